"""The opponent: Algorithm 1 in matrix form as a stacked loop of plain NumPy and SciPy, in float32.

Nodes go through an epoch in blocks whose rows stay in the cache from the mixing to the noise of the next epoch, so an
epoch reads and writes what the nodes say only once. Threads share the nodes; BLAS has one thread in each of them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

Floats: TypeAlias = NDArray[np.float32]

_ROWS = 1000  # examples a full-batch gradient takes at once
_NODES = 32  # nodes a mini-batch gradient takes at once
_PREFETCH = 32  # epochs of noise the quadratic loop draws at once


def _project(values: Floats, radius: float | None) -> None:
    """Draws each vector of values, [..., dim], back into the ball, in place."""
    if radius is not None:
        norm = np.sqrt(np.einsum("...d,...d->...", values, values))
        values *= np.minimum(radius / np.maximum(norm, np.float32(1e-30)), np.float32(1))[..., None]


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What all workers share.

    Its features are [nodes, size, features]. `limit`, [nodes, size], is the largest |p - y| of an example: its gradient
    is (p - y) times (x, 1), so of norm |p - y| sqrt(|x|^2 + 1). `rate` is gamma_t / (z_k times the examples of a
    gradient), [epochs, nodes].
    """

    features: Floats
    labels: NDArray[np.uint8]
    limit: Floats
    classes: int
    weights: sparse.csr_array
    rate: Floats
    noise_std: Floats
    batch: int | None
    radius: float | None


class _Worker:
    """One thread's share of the nodes, with its generator and its buffers."""

    def __init__(self, task: _Task, nodes: NDArray[np.intp], seed: np.random.SeedSequence) -> None:
        self.task, self.generator = task, np.random.Generator(np.random.SFC64(seed))
        width, examples = (1, _ROWS) if task.batch is None else (_NODES, task.batch)
        cuts = [*nodes[::width].tolist(), int(nodes[-1]) + 1]
        self.blocks = [(slice(*ends), task.weights[slice(*ends)]) for ends in pairwise(cuts)]
        # BLAS multiplies four classes at once: rows of zeros up to the next multiple make it faster.
        padded, features = -(-task.classes // 4) * 4, task.features.shape[2]
        self.matrix = np.zeros((width, padded, features), np.float32)
        self.product = np.empty((width, padded, features), np.float32)
        self.residual = np.empty((width, padded, examples), np.float32)
        self.rows = np.empty((width, examples, features), np.float32)

    def perturb(self, said: Floats, values: Floats | float, noise_std: Floats) -> None:
        """Writes values plus noise to said, [nodes, dim]."""
        self.generator.standard_normal(dtype=np.float32, out=said)
        said *= noise_std[:, None]
        said += values

    def begin(self, said: Floats) -> None:
        """The first epoch's noise, around zero."""
        for block, _ in self.blocks:
            self.perturb(said[block], 0.0, self.task.noise_std[0, block])

    def epoch(self, said: Floats, after: Floats, time: int) -> None:
        """Mixes, descends and projects; writes what is said next, or after the last epoch the parameters."""
        task = self.task
        for block, weights in self.blocks:
            mixed = weights @ said
            self.descend(mixed.reshape(len(mixed), task.classes, -1), block, task.rate[time, block])
            _project(mixed, task.radius)
            if time + 1 < len(task.noise_std):
                self.perturb(after[block], mixed, task.noise_std[time + 1, block])
            else:
                after[block] = mixed

    def descend(self, values: Floats, block: slice, rate: Floats) -> None:
        """Takes rate times the sum of clipped gradients from values, [nodes, classes, features + 1], in place."""
        task, count = self.task, len(values)
        matrix = self.matrix[:count]
        matrix[:, : task.classes] = values[..., :-1]
        bias = values[..., -1:].copy()
        for rows, labels, limit in self.examples(block):
            residual = self.residual[:count, :, : rows.shape[1]]
            np.matmul(matrix, rows.transpose(0, 2, 1), out=residual)
            logits = residual[:, : task.classes]
            logits += bias
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            logits /= logits.sum(axis=1, keepdims=True)
            logits -= labels[:, None] == np.arange(task.classes, dtype=labels.dtype)[:, None]
            norm = np.sqrt(np.einsum("kcn,kcn->kn", logits, logits))
            scale = np.minimum(limit / np.maximum(norm, np.float32(1e-30)), 1.0)
            scale *= rate[:, None]
            logits *= scale[:, None]
            values[..., :-1] -= np.matmul(residual, rows, out=self.product[:count])[:, : task.classes]
            values[..., -1] -= logits.sum(axis=2)

    def examples(self, block: slice) -> Iterator[tuple[Floats, NDArray[np.uint8], Floats]]:
        """The rows, labels and limits on the residual's norm that a block of nodes takes at once."""
        task, size = self.task, self.task.labels.shape[1]
        if task.batch is None:
            for start in range(0, size, _ROWS):
                part = (block, slice(start, start + _ROWS))
                yield task.features[part], task.labels[part], task.limit[part]
            return
        first = np.arange(block.start, block.stop)[:, None] * size
        chosen = first + self.generator.integers(size, size=(len(first), task.batch))
        rows = self.rows[: len(first)]
        # Any mode but "raise" writes to `out` directly.
        task.features.reshape(-1, rows.shape[2]).take(chosen, axis=0, out=rows, mode="clip")
        yield rows, task.labels.reshape(-1)[chosen], task.limit.reshape(-1)[chosen]


def softmax_loop(
    features: Floats,
    labels: NDArray[np.integer],
    sizes: ArrayLike,
    weights: sparse.csr_array | sparse.csr_matrix,
    steps: ArrayLike,
    noise_std: ArrayLike,
    z: ArrayLike,
    clip: float,
    batch: int | None,
    epochs: int,
    seed: int,
    threads: int,
    *,
    radius: float | None = None,
) -> Floats:
    """Softmax regression with every example's gradient clipped.

    Args:
        features: [examples, features], grouped by node.
        labels: [examples], from 0 to the number of classes less one.
        sizes: Examples of each node, all equal.
        weights: [nodes, nodes], row receives.
        steps: gamma_t, [epochs].
        noise_std: Of what is added to the model, [epochs, nodes]: sigma times sqrt(beta / alpha).
        z: [nodes].
        clip: The largest norm of an example's gradient.
        batch: Examples each node draws in an epoch, with replacement; None for all.
        epochs: How many, at least one.
        seed: Of noise and batches.
        threads: They share the nodes.
        radius: Of the ball the parameters stay in, if any.

    Returns:
        The parameters, [nodes, classes, features + 1], bias last.
    """
    nodes, size, classes = weights.shape[0], len(features) // weights.shape[0], int(labels.max()) + 1
    if np.any(np.asarray(sizes) != size):
        raise ValueError(f"sizes must all be {size}: examples / nodes")
    rows = np.ascontiguousarray(features, np.float32).reshape(nodes, size, -1)
    links: sparse.csr_array = sparse.csr_array(weights).astype(np.float32)
    links.eliminate_zeros()
    task = _Task(
        features=rows,
        labels=labels.astype(np.uint8).reshape(nodes, size),
        limit=np.float32(clip) / np.sqrt(np.einsum("knd,knd->kn", rows, rows) + 1),
        classes=classes,
        weights=links,
        rate=(np.asarray(steps)[:epochs, None] / np.asarray(z) / (batch or size)).astype(np.float32),
        noise_std=np.asarray(noise_std, np.float32)[:epochs],
        batch=batch,
        radius=radius,
    )
    shares = np.array_split(np.arange(nodes), min(threads, nodes))
    seeds = np.random.SeedSequence(seed).spawn(len(shares))
    workers = [_Worker(task, share, start) for share, start in zip(shares, seeds, strict=True)]
    said: Floats = np.empty((nodes, classes * (features.shape[1] + 1)), np.float32)
    after: Floats = np.empty_like(said)
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(len(workers)) as pool:
        spread = map if len(workers) == 1 else pool.map
        list(spread(_Worker.begin, workers, repeat(said)))
        for time in range(epochs):
            list(spread(_Worker.epoch, workers, repeat(said), repeat(after), repeat(time)))
            said, after = after, said
    return said.reshape(nodes, classes, -1)


def _ahead(draw: Callable[[int], Floats], count: int, threads: int) -> Iterator[Floats]:
    """draw(0), draw(1), ...; with threads, two of them under way while the caller uses the one before."""
    if threads == 1:
        yield from map(draw, range(count))
        return
    with ThreadPoolExecutor(threads) as pool:
        pending = deque(pool.submit(draw, index) for index in range(min(2, count)))
        for index in range(count):
            drawn = pending.popleft().result()
            if index + 2 < count:
                pending.append(pool.submit(draw, index + 2))
            yield drawn


def quadratic_loop(
    curvature: ArrayLike,
    centre: ArrayLike,
    weights: sparse.csr_array | sparse.csr_matrix,
    steps: ArrayLike,
    noise_std: ArrayLike,
    z: ArrayLike,
    epochs: int,
    seeds: Sequence[int],
    *,
    threads: int = 1,
    radius: float | None = None,
) -> Floats:
    """Quadratic losses with gradients curvature_k (x - centre_k), many seeds in one array, from zero.

    Mixing and gradient are linear, so an epoch is one product with a dense matrix: meant for small nodes times dim.

    Args, where not as in `softmax_loop`:
        curvature: [nodes, dim, dim].
        centre: [nodes, dim].
        seeds: One for each run; together they seed one stream of noise.
        threads: With 2, noise is drawn ahead.

    Returns:
        [seeds, nodes, dim].
    """
    hessian = np.asarray(curvature, np.float64) / np.asarray(z, np.float64)[:, None, None]
    nodes, dim, runs = len(hessian), hessian.shape[1], len(seeds)
    mixing = weights.toarray()
    # [mixing, 0] and [gradient, at zero]: a last row of ones in what is said carries the constant.
    still = np.zeros((nodes * dim, nodes * dim + 1), np.float32)
    still[:, :-1] = np.kron(mixing, np.eye(dim))
    slope = np.empty_like(still)
    slope[:, :-1] = np.einsum("kij,kl->kilj", hessian, mixing).reshape(nodes * dim, -1)
    slope[:, -1] = -np.einsum("kij,kj->ki", hessian, np.asarray(centre)).reshape(-1)
    gamma, scale = np.asarray(steps, np.float32)[:, None, None], np.asarray(noise_std, np.float32)[:, :, None]
    generators = [np.random.Generator(np.random.SFC64(seed)) for seed in np.random.SeedSequence(list(seeds)).spawn(3)]
    buffers = np.empty((3, _PREFETCH, nodes, dim * runs), np.float32)

    def draw(index: int) -> Floats:
        noise: Floats = buffers[index % 3]
        generators[index % 3].standard_normal(dtype=np.float32, out=noise)
        times = slice(index * _PREFETCH, min((index + 1) * _PREFETCH, epochs))
        noise[: times.stop - times.start] *= scale[times]
        return noise.reshape(_PREFETCH, -1, runs)

    values = np.zeros((nodes * dim, runs), np.float32)
    said = np.ones((nodes * dim + 1, runs), np.float32)
    model = said[:-1]
    with threadpool_limits(1, "blas"):
        for index, noise in enumerate(_ahead(draw, -(-epochs // _PREFETCH), threads)):
            steppers = still - gamma[index * _PREFETCH : min((index + 1) * _PREFETCH, epochs)] * slope
            for stepper, added in zip(steppers, noise, strict=False):
                np.add(values, added, out=model)
                np.matmul(stepper, said, out=values)
                if radius is not None:
                    _project(values.reshape(nodes, dim, runs).transpose(0, 2, 1), radius)
    return np.ascontiguousarray(values.T).reshape(runs, nodes, dim)
