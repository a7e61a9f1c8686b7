"""A network with a hidden layer, every example clipped, at W4: against Opacus, and against a loop by hand in JAX.

All sides take the same number of full-batch steps of four nodes on the same images, each example's gradient clipped, in
one process and in turn. Opacus has the node's part alone: no mixing, and noise that is drawn once for a node.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import murmurcast as mc
from benchmarks.training import Ours, Work, epoch_of, images
from murmurcast.data.partition import Partition
from murmurcast.planning.plan import Plan

NODES, EACH, HIDDEN, CLIP = 4, 14_000, 64, 1.0
EPOCHS, ROUNDS = 5, 3
BARS = {"Opacus": 0.25, "JAX by hand": 1.3}
_ROWS = 500  # that Opacus takes at once: their gradients, 100 MB of them, are in memory
_BLOCK = 500  # rows that the loop by hand takes at once: they fit in the cache

Floats = NDArray[np.float32]


def bench() -> None:
    """Milliseconds per epoch of all sides, ratios and bars."""
    data = images(NODES, EACH)
    problem = mc.Model(data=data, module=mc.modules.mlp(784, 10, hidden=(HIDDEN,)), loss="cross-entropy", clip=CLIP)
    network = mc.Network(gains=mc.gains.paper(1))
    schedule = mc.Schedule(epochs=1000, step=0.1)
    plan = mc.plan(network, problem, mc.Budget(epsilon=1e5, unit="record"), schedule, z="perron")
    work = Work("MLP", EPOCHS, BARS["Opacus"], plan, problem, 1, _nothing, _nothing)
    sides: dict[str, Callable[[int], Any]] = {
        "ours": Ours(work),
        "JAX by hand": by_hand(data, plan),
        "Opacus": opacus(data),
    }
    for side in sides.values():
        side(1)
    best = epoch_of(sides, EPOCHS, ROUNDS)
    print(f"MLP 784-{HIDDEN}-10 at W4, every example clipped: {best['ours'] * 1e3:.3g} ms per epoch")
    for name, bar in BARS.items():
        ratio = best["ours"] / best[name]
        verdict = "within" if ratio <= bar else "OVER"
        print(f"    {name} {best[name] * 1e3:.3g} ms, ratio {ratio:.2f}, {verdict} {bar:g}", flush=True)


def _nothing(*_: int) -> Floats:
    """In the place of NumPy's sides, which are not compared here."""
    return np.zeros(1, np.float32)


def by_hand(data: Partition, plan: Plan) -> Callable[[int], Any]:
    """Algorithm 1 as one would write it in JAX: nodes stacked, the norm of every example's gradient in closed form."""
    order = np.concatenate(data.rows)
    features = jnp.asarray(data.dataset.features[order].reshape(NODES, -1, _BLOCK, 784))
    labels = jnp.asarray(data.dataset.targets[order].reshape(NODES, -1, _BLOCK))
    weights = jnp.asarray(plan.mixing.weights.toarray(), jnp.float32)
    steps, z = jnp.asarray(plan.schedule.steps, jnp.float32), jnp.asarray(plan.z[-1], jnp.float32)
    std = jnp.asarray(plan.effective_noise, jnp.float32)

    def of_block(model: Any, block: tuple[jax.Array, jax.Array]) -> Any:
        x, y = block
        first, bias, second, last = model
        hidden = jnp.tanh(x @ first + bias)
        residual = jax.nn.softmax(hidden @ second + last) - jax.nn.one_hot(y, 10)
        error = (residual @ second.T) * (1 - hidden**2)
        squares = jnp.sum(residual**2, 1) * (jnp.sum(hidden**2, 1) + 1) + jnp.sum(error**2, 1) * (jnp.sum(x**2, 1) + 1)
        scale = jnp.minimum(1, CLIP / jnp.sqrt(squares))[:, None]
        residual, error = residual * scale, error * scale
        return x.T @ error, error.sum(0), hidden.T @ residual, residual.sum(0)

    def of_node(model: Any, x: jax.Array, y: jax.Array) -> Any:
        def add(total: Any, block: Any) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, of_block(model, block)), None

        return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, model), (x, y))[0]

    @jax.jit
    def run(models: Any, features: jax.Array, labels: jax.Array, count: jax.Array) -> Any:
        def epoch(t: jax.Array, models: Any) -> Any:
            keys = jax.random.split(jax.random.fold_in(jax.random.key(0), t), len(models))

            def mixed(leaf: jax.Array, key: jax.Array) -> jax.Array:
                shape = (NODES,) + (1,) * (leaf.ndim - 1)
                noisy = leaf + std[t].reshape(shape) * jax.random.normal(key, leaf.shape)
                return jnp.tensordot(weights, noisy, 1)

            points = tuple(mixed(leaf, key) for leaf, key in zip(models, keys, strict=True))
            totals = jax.vmap(of_node)(points, features, labels)
            return jax.tree.map(
                lambda point, total: point - (steps[t] / z / EACH).reshape((NODES,) + (1,) * (total.ndim - 1)) * total,
                points,
                totals,
            )

        return jax.lax.fori_loop(0, count, epoch, models)

    start = tuple(
        jnp.zeros((NODES, *shape)).at[...].set(0.01) for shape in ((784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,))
    )
    return lambda count: jax.block_until_ready(run(start, features, labels, count))


def opacus(data: Partition) -> Callable[[int], Any]:
    """The same module in PyTorch on 2 threads, each node's epoch one clipped step over all its images."""
    import torch
    from opacus import GradSampleModule  # type: ignore[import-not-found, unused-ignore]
    from opacus.optimizers import DPOptimizer  # type: ignore[import-not-found, unused-ignore]
    from torch import nn

    torch.set_num_threads(2)
    order = np.concatenate(data.rows)
    features = torch.tensor(data.dataset.features[order].reshape(NODES, EACH, 784))
    labels = torch.tensor(data.dataset.targets[order].reshape(NODES, EACH).astype(np.int64))
    nets, optimisers = [], []
    for _ in range(NODES):
        module = GradSampleModule(
            nn.Sequential(nn.Linear(784, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 10)), loss_reduction="sum"
        )
        plain = torch.optim.SGD(module.parameters(), lr=0.1)
        nets.append(module)
        optimisers.append(
            DPOptimizer(
                plain, noise_multiplier=0.01, max_grad_norm=CLIP, expected_batch_size=EACH, loss_reduction="sum"
            )
        )

    def epochs(count: int) -> None:
        for _ in range(count):
            for x, y, module, optimiser in zip(features, labels, nets, optimisers, strict=True):
                for begin in range(0, EACH, _ROWS):
                    last = begin + _ROWS >= EACH
                    optimiser.signal_skip_step(do_skip=not last)
                    outputs = module(x[begin : begin + _ROWS])
                    nn.functional.cross_entropy(outputs, y[begin : begin + _ROWS], reduction="sum").backward()
                    optimiser.step()
                    optimiser.zero_grad()

    return epochs
