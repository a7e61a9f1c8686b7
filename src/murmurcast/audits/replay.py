"""What somebody who knows everything, or everything but the canaries' signs, expects: the algorithm's own update.

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
from murmurcast.problems.base import Data, Problem

_RUNS_PER_BLOCK = 64  # runs whose gradients fit in the cache


class World(NamedTuple):
    """What nodes had, as somebody supposes who follows them.

    Attributes:
        data: 1 where their data is known, 0 where they are followed as if they had none.
        canaries: 1 for canaries with their true signs, 0 half way between the signs.
    """

    data: float
    canaries: float


HALF_WAY = World(data=1.0, canaries=0.0)
AS_IT_WAS = World(data=1.0, canaries=1.0)  # for whoever planted the canaries
WITHOUT_DATA = World(data=0.0, canaries=0.0)


class Step(Protocol):
    """Takes the nodes that are followed through one epoch."""

    def __call__(self, epoch: int, state: Any, sent: NDArray[Any], heard: NDArray[Any], /) -> Any:
        """The states after an epoch, from 1; signals [nodes, runs, ..., dim]."""
        ...


class TakeGradients(Protocol):
    """Where a node takes its gradients."""

    def __call__(self, able: Local, own: Any, /) -> Local:
        """What the node can do, from what it could do as claimed and from its own model."""
        ...


def as_claimed(able: Local, own: Any) -> Local:  # noqa: ARG001
    """Where the algorithm says."""
    return able


def at_own_point(able: Local, own: Any) -> Local:
    """At the node's own model, wherever the algorithm says it is."""
    return able._replace(gradient_at_public=lambda _: able.gradient_at_private(own))


class Replay(NamedTuple):
    """Nodes as somebody follows them.

    Attributes:
        nodes: Their numbers.
        start: State before epoch 1, arrays [nodes, runs, worlds, ...].
        step: On by an epoch.
    """

    nodes: NDArray[np.int64]
    start: Any
    step: Step


def replay(
    algorithm: Algorithm,
    problem: Problem,
    canaries: Canaries | None,
    nodes: NDArray[np.int64],
    seeds: tuple[int, ...],
    worlds: tuple[World, ...] = (HALF_WAY,),
    take: TakeGradients = as_claimed,
    data: Data | None = None,
) -> Replay:
    """Follows nodes, in float64 where JAX has it switched on, else in float32.

    All worlds have the same signals; a gradient at a public point is therefore taken once for all of them.

    Args:
        algorithm: What the nodes claim to do.
        problem: With the data of all nodes.
        canaries: Those of the runs; None where the problem itself is already half way.
        nodes: Whom to follow.
        seeds: Of the runs, for their minibatches.
        worlds: What is supposed of the nodes' data.
        take: Where gradients are taken.
        data: `problem.local_data()`, where it is at hand already.
    """
    dtype, only = jnp.zeros(0).dtype, spoken_round(algorithm)
    roots, numbers = jnp.asarray(noise.roots(seeds)), jnp.asarray(nodes)
    # Arguments, not constants of the program: then one compiled program serves all nodes, and all systems of a size.
    fixed = list(
        zip(
            numbers,
            _of_nodes(problem.local_data() if data is None else data, nodes, dtype),
            _weight(canaries, nodes, dtype),
            _planted(canaries, nodes, len(seeds), problem.shape, dtype),
            strict=True,
        )
    )
    supposed: Any = tuple(jnp.asarray(part, dtype) for part in zip(*worlds, strict=True))

    def of_run(key: jax.Array, here: Any, mine: Any, planted: Any, state: Any, signals: Any) -> Any:
        able = one_node.local(problem, mine, key)

        def of_world(world: Any, one: Any) -> Any:
            local = take(_in_world(able, world, planted), one.own)
            sent, heard = signals
            return one_node.receive(only, here, one, sent, heard, local).state

        return jax.vmap(of_world)(supposed, state)

    @jax.jit
    def of_node(epoch: jax.Array, here: Any, fixed: Any, state: Any, sent: jax.Array, heard: jax.Array) -> Any:
        number, mine, weight, planted = fixed
        keys = noise.at_node(noise.at_epoch(roots, Purpose.BATCH, epoch), number)

        def one(arguments: Any) -> Any:
            key, canary, state, *signals = arguments
            return of_run(jax.random.wrap_key_data(key), here, mine, (weight, canary), state, signals)

        return jax.lax.map(one, (keys, planted, state, sent, heard), batch_size=_RUNS_PER_BLOCK)

    def step(epoch: int, state: Any, sent: NDArray[Any], heard: NDArray[Any]) -> Any:
        here = tables_at(only.receiving, epoch, nodes, dtype)
        signals = [_shaped(signal, problem.shape, dtype) for signal in (sent, heard)]
        # Node by node: a loop inside the program would copy every node's data in every epoch.
        following = [
            of_node(jnp.asarray(epoch), *_at(place, here), of, *_at(place, state, *signals))
            for place, of in enumerate(fixed)
        ]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *following)

    start = _start(algorithm, problem, roots, nodes, dtype)
    several = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, :, None], len(worlds), axis=2), start)
    return Replay(nodes, several, step)


def _at(place: int, *trees: Any) -> tuple[Any, ...]:
    """The entries of one node."""
    return tuple(jax.tree.map(lambda leaf: leaf[place], tree) for tree in trees)


def _in_world(able: Local, world: Any, planted: Any) -> Local:
    """What a node can do in a world, with the canaries that were planted at it."""
    (known, told), (weight, canary) = world, planted
    return Local(
        lambda point: known * weight * able.gradient_at_public(point) + told * canary,
        lambda point: known * weight * able.gradient_at_private(point) + told * canary,
        able.project,
    )


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


def _of_nodes(data: Data, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> list[Any]:
    """Every node's data, by itself."""

    def of_node(leaf: Any) -> jax.Array:
        floating = np.issubdtype(leaf.dtype, np.floating)
        return jnp.asarray(leaf.astype(dtype, copy=False) if floating else leaf)

    held = jax.tree.map(np.asarray, data)
    return [jax.tree.map(lambda leaf, node=node: of_node(leaf[node]), held) for node in nodes]


def _weight(canaries: Canaries | None, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> jax.Array:
    """[nodes] 0 for a target whose canaries are all its data: half way, they cancel."""
    if canaries is None:
        return jnp.ones(len(nodes), dtype)
    return jnp.asarray(np.where(np.isin(nodes, canaries.targets) & canaries.alone, 0.0, 1.0), dtype)


def _planted(
    canaries: Canaries | None, nodes: NDArray[np.int64], runs: int, shape: tuple[int, ...], dtype: "np.dtype[Any]"
) -> jax.Array:
    """[nodes, runs, ...] what canaries add to gradients with their true signs."""
    added = np.zeros((len(nodes), runs, *shape), dtype)
    if canaries is not None:
        for target, signs, change in zip(canaries.targets, canaries.signs, canaries.change, strict=True):
            added[nodes == target] = change / 2 * signs.reshape(runs, *shape)
    return jnp.asarray(added)


def _shaped(signal: NDArray[Any], shape: tuple[int, ...], dtype: "np.dtype[Any]") -> jax.Array:
    return jnp.asarray(signal.reshape(*signal.shape[:-1], *shape), dtype)
