"""The linear diagnostic: where leakage goes. Not a guarantee.

What a given receiver, or several together, could learn if gradients did not react to hidden states: a linear Gaussian
system, whose likelihood a Kalman filter gives exactly. It covers all ordered pairs, non-neighbours too, and is a lower
bound of the worst case: a relay whose gradient depends on its state leaks more.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np  # and no scipy.linalg: its BLAS threads and numpy's get in each other's way, 40 times slower

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast._threads import one_blas_thread, side_by_side

_CHUNK = 32 * 2**20  # numbers held at once when all responses of several targets are kept
_TINY = 1e-150  # of a unit vector's entries: no direction
NEGLIGIBLE = 1e-12  # of the strongest combination of what is heard: weaker ones are rounding


class Linear(NamedTuple):
    """What the observers learn of every node, as mu; 0 for the observers themselves.

    Attributes:
        mu_common: [nodes] all gradient changes in one common direction.
        mu_worst_lower: [nodes] a sequence of directions that reaches this was found.
        mu_worst_upper: [nodes] no sequence of directions reaches more (a dual bound).
    """

    mu_common: FloatArray
    mu_worst_lower: FloatArray
    mu_worst_upper: FloatArray


class Step(NamedTuple):
    """One epoch of the filter, after the observation is whitened.

    Attributes:
        observe: [rank, hidden] what the hidden nodes say -> whitened observation.
        carry: [hidden, hidden] F (I - L W).
        whiten: [rank, observers] what the observers hear of the hidden nodes, W V -> whitened observation.
        correct: [hidden, rank] L, from the whitened innovation.
    """

    observe: FloatArray
    carry: FloatArray
    whiten: FloatArray
    correct: FloatArray


def common_direction(
    weights: FloatArray, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray
) -> FloatArray:
    """Mu of every target if all its gradient changes point one way.

    Args:
        weights: [nodes, nodes] A, receiver first.
        observers: The coalition; its members share all they hear and know their own noise.
        effective_noise: [epochs, nodes] s_k,t.
        push: [epochs, nodes] S_k gamma_t / z_kk,t, how far one gradient can move what the node says.

    Returns:
        [nodes] mu; 0 for the observers.
    """
    return np.asarray(_along(weights, observers, effective_noise, push, np.ones((1, len(push))))[0])


def steady_or_turning(
    weights: FloatArray, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray
) -> FloatArray:
    """Mu of every target, the larger of two: its gradient changes all point one way, or turn round every epoch.

    Both are sequences of directions, so neither exceeds the worst of all sequences. That one takes hundreds of times
    as long to find. Turning round matters for the neighbours of an observer: what it hears of them in one epoch, it can
    subtract from what it hears in the next.

    Args:
        weights: As in `common_direction`.
        observers: As in `common_direction`.
        effective_noise: As in `common_direction`.
        push: As in `common_direction`.

    Returns:
        [nodes] mu; 0 for the observers.
    """
    signs = np.ones((2, len(push)))
    signs[1, 1::2] = -1
    return np.asarray(_along(weights, observers, effective_noise, push, signs).max(axis=0))


def _along(
    weights: FloatArray, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray, signs: FloatArray
) -> FloatArray:
    """[sequences, nodes] mu of every target along given sequences of signs, [sequences, epochs]; one sweep for all."""
    require_numbers(effective_noise, push)
    hidden = hidden_from(weights, observers)
    size, sequences = len(hidden), len(signs)
    response = np.zeros((size, sequences * size))  # of state to target, for all targets and sequences at once
    node, column = np.tile(np.arange(size), sequences), np.arange(sequences * size)
    total = np.zeros(sequences * size)
    with one_blas_thread():
        for epoch, now in enumerate(filter_steps(weights, observers, effective_noise)):
            total += np.square(now.observe @ response).sum(axis=0)
            response = now.carry @ response
            response[node, column] -= np.outer(signs[:, epoch], push[epoch, hidden]).ravel()
    result = np.zeros((sequences, len(weights)))
    result[:, hidden] = np.sqrt(total).reshape(sequences, size)
    return result


def worst_direction(
    weights: FloatArray,
    observers: tuple[int, ...],
    effective_noise: FloatArray,
    push: FloatArray,
    on_target: Count = quiet,
) -> tuple[FloatArray, FloatArray]:
    """Mu of every target over all sequences of directions of its gradient changes, from below and from above.

    Args:
        weights: As in `common_direction`.
        observers: As in `common_direction`.
        effective_noise: As in `common_direction`.
        push: As in `common_direction`.
        on_target: Called with (targets done, targets in all).

    Returns:
        ([nodes], [nodes]) lower and upper bound of mu.
    """
    require_numbers(effective_noise, push)
    hidden = hidden_from(weights, observers)
    with one_blas_thread():
        epochs = list(filter_steps(weights, observers, effective_noise))
    rank = epochs[0].observe.shape[0]
    size = max(1, _CHUNK // max(1, rank * len(epochs) ** 2))
    bounds: list[tuple[float, float]] = []
    for start in range(0, len(hidden), size):
        targets = np.arange(start, min(start + size, len(hidden)))
        seen = _responses(epochs, targets)
        seen *= push[:-1, hidden[targets]].T[:, None]
        for interval in side_by_side(lambda responses: largest_over_directions(responses.T @ responses), seen):
            bounds.append(interval)
            on_target(len(bounds), len(hidden))
    lower, upper = np.array(bounds).T
    return _spread(np.sqrt(lower), hidden, len(weights)), _spread(np.sqrt(upper), hidden, len(weights))


def largest_over_directions(q: Any, tolerance: float = 1e-10) -> tuple[float, float]:
    """The largest sum of Q[t, t'] <u_t, u_t'> over vectors with ||u_t|| <= 1, bracketed; real, or complex of symbols.

    Q is positive semidefinite, so turning one u_t at a time to sum_{t' != t} Q[t, t'] u_t' never lowers the value.
    Above: where diag(y) - Q is positive semidefinite, value <= sum y; y = ||sum_t' Q[t, t'] u_t'||, stretched until it
    is.
    """
    active = np.flatnonzero(q.diagonal().real > 0)
    if not active.size:
        return 0.0, 0.0
    scale = float(q.diagonal().real.max())
    q = q[np.ix_(active, active)] / scale
    others = q - np.diag(q.diagonal())
    # The leading eigenvector's signs are often the optimum; the small rest lets the ascent leave a saddle.
    directions = np.zeros((len(q), min(len(q), int(np.sqrt(2 * len(q))) + 3)), q.dtype)
    leading = np.linalg.eigh(q).eigenvectors[:, -1]
    size_of = np.abs(leading)
    directions[:, 0] = np.where(size_of > _TINY, leading / np.maximum(size_of, _TINY), 1.0)
    directions[:, 1:] += 1e-2 * np.random.default_rng(0).standard_normal(directions[:, 1:].shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lower, upper, check = float(q.sum().real), np.inf, 1  # all directions equal is where the common direction stands
    sweeps = int(np.clip(5e8 / directions.size / len(q), 20, 3000))  # a bracket is true at any width
    for sweep in range(1, sweeps + 1):
        for epoch, row in enumerate(others):
            pull = row @ directions
            if (size := float(np.vdot(pull, pull).real)) > 0:
                directions[epoch] = pull / np.sqrt(size)
        if sweep in (check, sweeps):
            check = max(check + 2, int(check * 1.3))
            lower = max(lower, float(np.einsum("tr,tr->", directions.conj(), q @ directions).real))
            upper = min(upper, _dual_bound(q, directions))
            if upper - lower <= tolerance * upper:
                break
    return lower * scale, max(upper, lower) * scale


def _dual_bound(q: Any, directions: Any) -> float:
    y = np.maximum(np.linalg.norm(q @ directions, axis=1), 1e-12)
    root = np.sqrt(y)
    stretched = q / root[:, None] / root[None, :]
    return float(np.linalg.eigvalsh(stretched)[-1]) * float(y.sum())


def filter_steps(weights: FloatArray, observers: tuple[int, ...], effective_noise: FloatArray) -> Iterator[Step]:
    """The Riccati sweep; it depends on the observers only, so one serves all targets.

    Args:
        weights: As in `common_direction`.
        observers: As in `common_direction`; `Step.whiten` keeps their order.
        effective_noise: As in `common_direction`.

    Yields:
        The filter of every epoch, for nodes `hidden_from(weights, observers)`.
    """
    hidden = hidden_from(weights, observers)
    full = weights[list(observers)][:, hidden]
    heard = row_space(full)
    # heard = reduce @ full, because the rows of full span those of heard.
    reduce = heard @ np.linalg.pinv(full, rcond=NEGLIGIBLE)
    forward = weights[np.ix_(hidden, hidden)]
    variance = with_some_noise(effective_noise)[:, hidden] ** 2
    uncertain = np.diag(variance[0])
    for epoch in range(len(effective_noise)):
        cross = heard @ uncertain
        root = np.linalg.cholesky(cross @ heard.T)
        observe = np.linalg.solve(root, heard)
        correct = np.linalg.solve(root, cross).T
        moved = forward @ correct
        yield Step(observe, forward - moved @ observe, np.linalg.solve(root, reduce), correct)
        if epoch + 1 < len(effective_noise):
            uncertain = forward @ uncertain @ forward.T - moved @ moved.T
            uncertain = (uncertain + uncertain.T) / 2
            np.fill_diagonal(uncertain, uncertain.diagonal() + variance[epoch + 1])


def require_numbers(effective_noise: FloatArray, push: FloatArray) -> None:
    """Every node adds noise, but for the first epoch: without it, what a node says is known, and mu is no number."""
    _check.above_zero(effective_noise=effective_noise[1:].ravel())
    _check.finite(push=np.abs(push).ravel())


def with_some_noise(effective_noise: FloatArray) -> FloatArray:
    """The same, with a thousandth of the next epoch's noise in a first message that has none: a filter needs some."""
    if effective_noise[0].all():
        return effective_noise
    return np.concatenate(
        [np.where(effective_noise[:1] > 0, effective_noise[:1], 1e-3 * effective_noise[1:2]), effective_noise[1:]]
    )


def _responses(epochs: list[Step], targets: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> FloatArray:
    """[targets, rank * epochs, epochs - 1] whitened response in every epoch to a unit impulse in every earlier one.

    Swept backwards over the impulse's epoch with all later observations at once: one product a step.
    """
    rank, hidden = epochs[0].observe.shape
    count = len(epochs)
    result = np.zeros((len(targets), count * rank, count - 1))
    rows = np.zeros((0, hidden))
    for impulse in range(count - 2, -1, -1):
        later = epochs[impulse + 1]
        rows = np.concatenate([later.observe, rows @ later.carry])
        result[:, (impulse + 1) * rank :, impulse] = rows[:, targets].T
    return result


def row_space(heard: FloatArray) -> FloatArray:
    """An orthonormal basis of what the observers hear: repeated or empty rows carry nothing more."""
    _, size, basis = np.linalg.svd(heard, full_matrices=False)
    return np.asarray(basis[size > size.max(initial=0.0) * NEGLIGIBLE])


def hidden_from(weights: FloatArray, observers: tuple[int, ...]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The nodes that are not observers, in ascending order."""
    members = _check.observers(len(weights), observers)
    return np.setdiff1d(np.arange(len(weights)), members)


def _spread(values: FloatArray, hidden: "np.ndarray[tuple[int], np.dtype[np.int64]]", nodes: int) -> FloatArray:
    result = np.zeros(nodes)
    result[hidden] = values
    return result
