"""What an attacker who knows everything but the canaries' signs expects: the algorithm's own update, half way.

Differential privacy grants the attacker all data, the plan and the code. So it follows a node with the very function
that the node runs, on the signals it has or believes in, and compares what is sent with what it expected. Minibatches
are granted too: the promise does not count on their being secret.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local
from murmurcast.algorithms.tables import row_of
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.transcript import spoken_round
from murmurcast.engine import node as one_node
from murmurcast.engine import noise
from murmurcast.engine.noise import Purpose
from murmurcast.problems.base import Problem

_RUNS_PER_BLOCK = 64  # runs whose gradients fit in the cache


class Step(Protocol):
    """Takes the nodes that an attacker follows through one epoch."""

    def __call__(self, epoch: int, state: Any, sent: NDArray[Any], heard: NDArray[Any], /) -> Any:
        """The states after an epoch, from 1; signals [nodes, runs, ..., dim]."""
        ...


class Replay(NamedTuple):
    """Nodes as the attacker follows them.

    Attributes:
        nodes: Their numbers.
        start: State before epoch 1, arrays [nodes, runs, ...].
        step: On by an epoch.
    """

    nodes: NDArray[np.int64]
    start: Any
    step: Step


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
    dtype, only = jnp.zeros(0).dtype, spoken_round(algorithm)
    # Arguments, not constants of the program: then one compiled program serves all systems of a size.
    fixed = (
        jnp.asarray(noise.roots(seeds)),
        jnp.asarray(nodes),
        _data(problem, nodes, dtype),
        _weight(canaries, nodes, dtype),
    )

    def of_run(
        key: jax.Array, here: Any, mine: Any, weight: jax.Array, state: Any, sent: jax.Array, heard: jax.Array
    ) -> Any:
        able = one_node.local(problem, mine, key)
        local = Local(
            lambda point: weight * able.gradient_at_public(point),
            lambda point: weight * able.gradient_at_private(point),
            able.project,
        )
        return one_node.receive(only, here, state, sent, heard, local).state

    def of_node(
        epoch_keys: jax.Array, number: jax.Array, here: Any, mine: Any, weight: jax.Array, *signals: Any
    ) -> Any:
        keys = noise.at_node(epoch_keys, number)

        def one(arguments: Any) -> Any:
            key, *rest = arguments
            return of_run(jax.random.wrap_key_data(key), here, mine, weight, *rest)

        return jax.lax.map(one, (keys, *signals), batch_size=_RUNS_PER_BLOCK)

    @jax.jit
    def of_all(epoch: jax.Array, here: Any, fixed: Any, state: Any, sent: jax.Array, heard: jax.Array) -> Any:
        roots, numbers, data, weight = fixed
        keys = noise.at_epoch(roots, Purpose.BATCH, epoch)
        return jax.lax.map(lambda these: of_node(keys, *these), (numbers, here, data, weight, state, sent, heard))

    def step(epoch: int, state: Any, sent: NDArray[Any], heard: NDArray[Any]) -> Any:
        here = tables_at(only.receiving, epoch, nodes, dtype)
        shaped = (_shaped(signal, problem.shape, dtype) for signal in (sent, heard))
        return of_all(jnp.asarray(epoch), here, fixed, state, *shaped)

    return Replay(nodes, _start(algorithm, problem, fixed[0], nodes, dtype), step)


def _start(algorithm: Algorithm, problem: Problem, roots: jax.Array, nodes: NDArray[Any], dtype: Any) -> Any:
    """The public start of every node and run; an attacker knows it."""
    local = Local(jnp.zeros_like, jnp.zeros_like, problem.project)
    return jax.vmap(jax.vmap(lambda point: algorithm.init(point, local)))(one_node.points(problem, roots, nodes, dtype))


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
        only, nothing = spoken_round(algorithm), jnp.zeros(1)
        state = algorithm.init(jnp.zeros(1), local)
        moved = []
        for epoch in range(1, algorithm.epochs + 1):
            moved.append(float(state.own[0]))
            here = tables_at(only.receiving, epoch, np.array([node]), np.dtype(np.float64))
            here = jax.tree.map(lambda leaf: leaf[0], here)
            state = one_node.receive(only, here, state, nothing, nothing, local).state
        return np.array(moved), float(state.published[0])


def tables_at(tables: Any, epoch: int, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> Any:
    """The tables' entries for nodes in an epoch, [nodes, ...]."""

    def entry(table: Any) -> NDArray[Any]:
        row = row_of(np.asarray(table), epoch)
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
