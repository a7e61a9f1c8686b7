"""What an attacker who knows everything but the canaries' signs expects: the algorithm's own update, half way.

Differential privacy grants the attacker all data, the plan and the code. So it follows a node with the very function
that the node runs, on the signals it has or believes in, and compares what is sent with what it expected. Minibatches
are granted too: the promise does not count on their being secret.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local
from murmurcast.audits.canaries import Canaries
from murmurcast.engine import noise
from murmurcast.engine.noise import Purpose
from murmurcast.problems.base import Problem

_RUNS_PER_BLOCK = 64  # runs whose gradients fit in the cache


class Replay(NamedTuple):
    """Nodes as the attacker follows them.

    Attributes:
        nodes: Their numbers.
        start: State before epoch 1, arrays [nodes, runs, ...].
        step: (epoch from 1, state, sent, heard) -> next state; signals [nodes, runs, ..., dim].
    """

    nodes: NDArray[np.int64]
    start: Any
    step: Callable[[int, Any, NDArray[Any], NDArray[Any]], Any]


def replay(
    algorithm: Algorithm, problem: Problem, canaries: Canaries | None, nodes: NDArray[np.int64], seeds: tuple[int, ...]
) -> Replay:
    """Follows nodes half way between the worlds, in float64 where JAX has it switched on, else in float32.

    Args:
        algorithm: What the nodes claim to do.
        problem: With the data of all nodes.
        canaries: Those of the runs; None where the problem itself is already half way.
        nodes: Whom to follow.
        seeds: Of the runs, for their minibatches.
    """
    dtype = jnp.zeros(0).dtype
    # Arguments, not constants of the program: then one compiled program serves all systems of a size.
    fixed = (noise.roots(seeds), jnp.asarray(nodes), _data(problem, nodes, dtype), _weight(canaries, nodes, dtype))

    def of_run(
        key: jax.Array, here: Any, mine: Any, weight: jax.Array, state: Any, sent: jax.Array, heard: jax.Array
    ) -> Any:
        local = Local(
            lambda point: weight * problem.gradient_at_public(point, mine, key),
            lambda point: weight * problem.gradient_at_private(point, mine, key),
            problem.project,
        )
        return algorithm.update(here, state, sent, heard, local)

    def of_node(
        epoch_keys: jax.Array, number: jax.Array, here: Any, mine: Any, weight: jax.Array, *signals: Any
    ) -> Any:
        keys = jax.vmap(lambda key: noise.at_node(key, number))(epoch_keys)

        def one(arguments: Any) -> Any:
            key, *rest = arguments
            return of_run(jax.random.wrap_key_data(key), here, mine, weight, *rest)

        return jax.lax.map(one, (keys, *signals), batch_size=_RUNS_PER_BLOCK)

    @jax.jit
    def of_all(epoch: jax.Array, here: Any, fixed: Any, state: Any, sent: jax.Array, heard: jax.Array) -> Any:
        roots, numbers, data, weight = fixed
        keys = jax.vmap(lambda root: noise.at_epoch(root, Purpose.BATCH, epoch))(roots)
        return jax.lax.map(lambda these: of_node(keys, *these), (numbers, here, data, weight, state, sent, heard))

    def step(epoch: int, state: Any, sent: NDArray[Any], heard: NDArray[Any]) -> Any:
        here = tables_at(algorithm.receiving, epoch, nodes, dtype)
        shaped = (_shaped(signal, problem.shape, dtype) for signal in (sent, heard))
        return of_all(jnp.asarray(epoch), here, fixed, state, *shaped)

    start = algorithm.init(jnp.zeros((len(nodes), len(seeds), *problem.shape), dtype))
    return Replay(nodes, start, step)


def response(algorithm: Algorithm, node: int, change: float) -> tuple[FloatArray, float]:
    """How a change of a node's gradients moves its model, given all that was sent and heard.

    Args:
        algorithm: Its update is linear in gradients where Omega does not bind.
        node: Whose gradients.
        change: Of every gradient, in one direction.

    Returns:
        [epochs] of the model it sends in each epoch, and of the model it publishes at the end.
    """
    with jax.enable_x64(True):
        local = Local(lambda _: jnp.full(1, change), lambda _: jnp.full(1, change), lambda model: model)
        nothing, state = jnp.zeros(1), algorithm.init(jnp.zeros((1, 1, 1)))
        state = jax.tree.map(lambda leaf: leaf[0, 0], state)
        moved = []
        for epoch in range(1, algorithm.plan.schedule.epochs + 1):
            moved.append(float(state.own[0]))
            here = tables_at(algorithm.receiving, epoch, np.array([node]), np.dtype(np.float64))
            state = algorithm.update(jax.tree.map(lambda leaf: leaf[0], here), state, nothing, nothing, local)
        return np.array(moved), float(state.published[0])


def tables_at(tables: Any, epoch: int, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> Any:
    """The tables' entries for nodes in an epoch, [nodes, ...]."""

    def entry(table: Any) -> NDArray[Any]:
        row = np.asarray(table)[min(epoch, len(table)) - 1]
        return (np.broadcast_to(row, len(nodes)) if np.ndim(row) == 0 else row[nodes]).astype(dtype)

    return jax.tree.map(entry, tables)


def _data(problem: Problem, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> Any:
    def of_nodes(leaf: Any) -> jax.Array:
        part = np.asarray(leaf)[nodes]
        return jnp.asarray(part.astype(dtype) if np.issubdtype(part.dtype, np.floating) else part)

    return jax.tree.map(of_nodes, problem.local_data())


def _weight(canaries: Canaries | None, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> jax.Array:
    """[nodes] 0 for a target whose canaries are all its data: half way, they cancel."""
    if canaries is None:
        return jnp.ones(len(nodes), dtype)
    return jnp.asarray(np.where((nodes == canaries.target) & canaries.alone, 0.0, 1.0), dtype)


def _shaped(signal: NDArray[Any], shape: tuple[int, ...], dtype: "np.dtype[Any]") -> jax.Array:
    return jnp.asarray(signal.reshape(*signal.shape[:-1], *shape), dtype)
