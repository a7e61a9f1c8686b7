"""What somebody who knows everything, or everything but the canaries' signs, expects: the algorithm's own update.

Differential privacy grants the attacker all data, the plan and the code. So it follows a node with the very function
that the node runs, on the signals it has or believes in, and compares what is sent with what it expected. Minibatches
are granted too, but for the coins of canaries: no promise counts on more being secret.
"""

from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast.algorithms.base import Algorithm, Local, Model
from murmurcast.audits.canaries import Canaries, Coins, threshold, tossed
from murmurcast.audits.claims import quiet_draws, tables_at
from murmurcast.engine import check, noise
from murmurcast.engine import node as one_node
from murmurcast.engine.noise import Purpose
from murmurcast.problems.base import Data, Problem

Signals = tuple[tuple[NDArray[Any], NDArray[Any]], ...]  # of every round, what nodes sent and what they heard
Points = Literal["as claimed", "own", "without own noise"]
_MOST_PER_BLOCK = 64  # runs whose gradients fit in the cache


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


class Stepped(NamedTuple):
    """Nodes after an epoch.

    Attributes:
        state: Their states, arrays of the host [nodes, runs, worlds, ...].
        expected: Of every round, [nodes, runs, worlds, ...] what they were expected to send, but for fresh draws.
    """

    state: Any
    expected: tuple[NDArray[Any], ...]


class Step(Protocol):
    """Takes the nodes that are followed through one epoch."""

    def __call__(self, epoch: int, state: Any, signals: Signals, /) -> Stepped:
        """On by an epoch, from 1; signals [nodes, runs, ..., dim]."""
        ...


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
    points: Points = "as claimed",
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
        points: Where gradients are taken: where the algorithm says, at the node's own model, or where the algorithm
            would take them had the node sent no noise.
        data: `problem.local_data()`, where it is at hand already.
    """
    dtype = jnp.zeros(0).dtype
    roots = jnp.asarray(noise.roots(seeds))
    # Arguments, not constants of the program: then one compiled program serves all nodes, and all systems of a size.
    fixed = list(
        zip(
            map(jnp.asarray, nodes),
            _of_nodes(problem.local_data() if data is None else data, nodes, dtype),
            _weight(canaries, nodes, dtype),
            _planted(canaries, nodes, len(seeds), problem.shape, dtype),
            _coins(canaries, nodes, len(seeds)),
            strict=True,
        )
    )
    supposed: Any = tuple(jnp.asarray(part, dtype) for part in zip(*worlds, strict=True))

    def of_run(key: jax.Array, tables: Any, mine: Any, planted: Any, state: Any, signals: Any) -> Any:
        able = one_node.local(problem, mine, jax.random.wrap_key_data(key))

        def of_world(world: Any, one: Any) -> Any:
            local = _in_world(able, world, planted)
            return _one_epoch(
                algorithm, tables, one, signals, _at_points(points, algorithm, tables, one, signals, local)
            )

        return jax.vmap(of_world)(supposed, state)

    @jax.jit
    def of_node(roots: jax.Array, epoch: jax.Array, tables: Any, fixed: Any, state: Any, signals: Any) -> Any:
        number, mine, weight, planted, coins = fixed
        keys, planted = _batch_keys(roots, epoch, number), _taking_part(coins, epoch, planted)

        def one(now: Any) -> Any:
            return of_run(now[0], tables, mine, (weight, now[1]), *now[2:])

        return jax.lax.map(one, (keys, planted, state, signals), batch_size=_runs_per_block(len(keys)))

    def step(epoch: int, state: Any, signals: Signals) -> Stepped:
        tables = [
            tuple(tables_at(part, epoch, nodes, dtype) for part in (one.sending, one.receiving))
            for one in algorithm.rounds
        ]
        shaped = tuple(tuple(_shaped(part, problem.shape, dtype) for part in one) for one in signals)
        # Node by node: a loop inside the program would copy every node's data in every epoch.
        following = [
            of_node(roots, jnp.asarray(epoch), *_at(place, tables), of, *_at(place, state, shaped))
            for place, of in enumerate(fixed)
        ]
        return Stepped(*_stacked(following))

    return Replay(nodes, _start(algorithm, problem, roots, nodes, fixed, supposed), step)


def _runs_per_block(runs: int) -> int:
    """As many as fit, in equal blocks where there are any of half that size: the rest would be compiled once more."""
    sizes = range(min(runs, _MOST_PER_BLOCK), _MOST_PER_BLOCK // 2 - 1, -1)
    return next((size for size in sizes if runs % size == 0), _MOST_PER_BLOCK)


def _one_epoch(algorithm: Algorithm, tables: Any, state: Any, signals: Any, local: Local) -> tuple[Any, Any]:
    """A node's next state, and what it was expected to send in every round."""
    expected = []
    for number, one in enumerate(algorithm.rounds):
        (sending, receiving), (sent, heard) = tables[number], signals[number]
        expected.append(_without_draws(algorithm, number, sending, state))
        state = one_node.receive(one, receiving, state, sent, heard, local).state
    return state, tuple(expected)


def _without_draws(algorithm: Algorithm, number: int, here: Any, state: Any) -> jax.Array:
    shapes = quiet_draws(algorithm, number, state.own.shape).items()
    nothing = {name: jnp.zeros(shape, state.own.dtype) for name, shape in shapes}
    return one_node.transmit(algorithm.rounds[number], here, state, nothing)


def _at_points(points: Points, algorithm: Algorithm, tables: Any, state: Any, signals: Any, local: Local) -> Local:
    """What the node can do, its gradients at public points taken elsewhere."""
    if points == "as claimed":
        return local
    if points == "own":
        return local._replace(gradient_at_public=lambda _: local.gradient_at_private(state.own))
    seen: list[Model] = []

    def look(point: Model) -> Model:
        seen.append(point)
        return jnp.zeros_like(point)

    looking, quietly = local._replace(gradient_at_public=look), state
    for number, one in enumerate(algorithm.rounds):
        (sending, receiving), (_, heard) = tables[number], signals[number]
        sent = _without_draws(algorithm, number, sending, quietly)
        quietly = one_node.receive(one, receiving, quietly, sent, heard, looking).state
    left = iter(seen)
    return local._replace(gradient_at_public=lambda _: local.gradient_at_private(next(left)))


def _at(place: int, *trees: Any) -> tuple[Any, ...]:
    """The entries of one node, of arrays of the host."""
    return tuple(jax.tree.map(lambda leaf: leaf[place], tree) for tree in trees)


def _stacked(of_nodes: list[Any]) -> Any:
    """All nodes together, on the host: JAX would compile a program for every shape that is cut or put together."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *of_nodes)


def _in_world(able: Local, world: Any, planted: Any) -> Local:
    """What a node can do in a world, with the canaries that were planted at it."""
    (known, shown), (weight, canary) = world, planted
    return Local(
        lambda point: known * weight * able.gradient_at_public(point) + shown * canary,
        lambda point: known * weight * able.gradient_at_private(point) + shown * canary,
        able.project,
    )


def _start(
    algorithm: Algorithm, problem: Problem, roots: jax.Array, nodes: NDArray[Any], fixed: list[Any], supposed: Any
) -> Any:
    """[nodes, runs, worlds, ...] the first state of every node: the public start, and what data did to it there."""
    dtype = supposed[0].dtype
    points = np.asarray(one_node.points(problem, roots, nodes, dtype))
    if not check.first_state(algorithm, problem, dtype).gradients:
        local = Local(jnp.zeros_like, jnp.zeros_like, problem.project)
        begin = jax.jit(jax.vmap(jax.vmap(lambda point: algorithm.init(point, local))))
        worlds = len(supposed[0])
        return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:, :, None], worlds, axis=2), begin(points))

    @jax.jit
    def of_node(roots: jax.Array, points: jax.Array, fixed: Any) -> Any:
        number, mine, weight, planted, coins = fixed
        keys = _batch_keys(roots, 0, number)
        planted = _taking_part(coins, jnp.zeros((), jnp.int32), planted)

        def of_run(arguments: Any) -> Any:
            key, canary, point = arguments
            able = one_node.local(problem, mine, jax.random.wrap_key_data(key))
            return jax.vmap(lambda world: algorithm.init(point, _in_world(able, world, (weight, canary))))(supposed)

        return jax.lax.map(of_run, (keys, planted, points), batch_size=_runs_per_block(len(keys)))

    return _stacked([of_node(roots, points[place], of) for place, of in enumerate(fixed)])


def _of_nodes(data: Data, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> list[Any]:
    """Every node's data, by itself."""

    def of_node(leaf: Any) -> jax.Array:
        floating = np.issubdtype(leaf.dtype, np.floating)
        return jnp.asarray(leaf.astype(dtype, copy=False) if floating else leaf)

    arrays = jax.tree.map(np.asarray, data)
    return [jax.tree.map(lambda leaf, node=node: of_node(leaf[node]), arrays) for node in nodes]


def _weight(canaries: Canaries | None, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> list[jax.Array]:
    """[nodes] 0 for a target whose canaries are all its data: half way, they cancel."""
    nothing = np.zeros(len(nodes), bool) if canaries is None else np.isin(nodes, canaries.targets) & canaries.alone
    return [jnp.asarray(weight, dtype) for weight in np.where(nothing, 0.0, 1.0)]


def _planted(
    canaries: Canaries | None, nodes: NDArray[np.int64], runs: int, shape: tuple[int, ...], dtype: "np.dtype[Any]"
) -> list[jax.Array]:
    """[nodes] of every node, [runs, ...] what canaries add to gradients with their true signs."""
    added = np.zeros((len(nodes), runs, *shape), dtype)
    if canaries is not None:
        for target, signs, change in zip(canaries.targets, canaries.signs, canaries.change, strict=True):
            added[nodes == target] = change / 2 * signs.reshape(runs, *shape)
    return [jnp.asarray(one) for one in added]


def _batch_keys(roots: jax.Array, epoch: Any, number: jax.Array) -> jax.Array:
    """[runs, 2] of a node's minibatches in an epoch."""
    return noise.at_node(noise.at_epoch(roots, Purpose.BATCH, epoch), number)


def _coins(canaries: Canaries | None, nodes: NDArray[np.int64], runs: int) -> list[Any]:
    """[nodes] the coins of every node's canaries in all runs; () where they have none."""
    if canaries is None or canaries.rates is None or canaries.keys is None:
        return [()] * len(nodes)
    rates = dict(zip(canaries.targets.tolist(), canaries.rates.tolist(), strict=True))
    nothing = jnp.zeros(runs, jnp.int32)
    return [
        Coins(jnp.asarray(canaries.keys), jnp.full(runs, threshold(rates.get(node, 0.0))), nothing + node, nothing)
        for node in nodes.tolist()
    ]


def _taking_part(coins: Any, epoch: jax.Array, planted: jax.Array) -> jax.Array:
    """[runs, ...] what canaries add in an epoch."""
    return jax.vmap(lambda of, canary: tossed(of, epoch, canary))(coins, planted) if coins else planted


def _shaped(signal: NDArray[Any], shape: tuple[int, ...], dtype: "np.dtype[Any]") -> NDArray[Any]:
    return signal.reshape(*signal.shape[:-1], *shape).astype(dtype, copy=False)
