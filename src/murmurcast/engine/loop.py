"""Compiled rounds: send, channel, update, for all nodes and all seeds together.

One program with a loop of any length serves all chunk sizes, so that neither the chunks, nor the evaluations between
them, nor a resumed run can change a single bit. Nodes go through in blocks that fit in the cache; data is an argument.
Seeded noise is drawn inside the loop. Secure noise comes from the host, some epochs at a time.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as Spec
from jax.typing import DTypeLike
from numpy.typing import NDArray

from murmurcast._npz import in_one_piece
from murmurcast.algorithms.base import Algorithm, Info, Local
from murmurcast.channels.base import Moment
from murmurcast.engine import check, draws, node, noise, secure
from murmurcast.engine.noise import Purpose
from murmurcast.engine.program import Advance, Carry, Program, cast
from murmurcast.engine.sharding import Layout
from murmurcast.problems.base import Problem

_BLOCK_BYTES = 2 * 2**20  # of what a block of nodes works on
_MODELS_PER_EVALUATION = 16  # models that share one pass over the test part


class GivenRound(NamedTuple):
    """What does not change of one round.

    Attributes:
        sending: Tables of what is sent.
        receiving: Tables of what is made of what is heard.
        lists: Who hears whom; None where the channel needs no list.
    """

    sending: Any
    receiving: Any
    lists: Any


class Given(NamedTuple):
    """What does not change during a run.

    Attributes:
        roots: [seeds, 2] random keys.
        mine: The nodes' data, arrays [nodes, ...].
        rounds: What does not change of every round.
        pairs: The nodes' pairs of neighbours, where a draw needs them.
    """

    roots: Any
    mine: Any
    rounds: tuple[GivenRound, ...]
    pairs: Any


class _Run(NamedTuple):
    """What is compiled: an algorithm on a problem, spread over devices."""

    algorithm: Algorithm
    problem: Problem
    layout: Layout
    dtype: "np.dtype[Any]"


def program(
    algorithm: Algorithm, problem: Problem, layout: Layout, seeds: tuple[int, ...], dtype: DTypeLike
) -> Program:
    """Compiles a run of an algorithm on a problem."""
    secure.require(algorithm, problem, dtype)
    test_data = problem.test_data()
    fitting = check.require_fitting(algorithm, problem, test_data, dtype)
    this = _Run(algorithm, problem, layout, np.dtype(dtype))
    given, specs = _given(this, seeds)
    everything = layout.by_node_and_seed

    # Functions, not `partial`: JAX asks for its `repr`, which writes out every array of the algorithm.
    def rounds(*arguments: Any) -> Carry:
        return _rounds(this, *arguments)

    def metrics(state: Any, test: Any) -> "tuple[dict[str, jax.Array], dict[str, jax.Array]]":
        return _evaluate(problem, layout, state, test)

    advance = jax.shard_map(
        rounds, mesh=layout.mesh, in_specs=(specs, everything, Spec(), Spec()), out_specs=everything, check_vma=False
    )
    test = jax.tree.map(lambda leaf: layout.put(cast(leaf, dtype), Spec()), test_data)
    evaluate = jax.jit(
        jax.shard_map(
            metrics,
            mesh=layout.mesh,
            in_specs=(everything, Spec()),
            out_specs=(everything, layout.by_seed),
            check_vma=False,
        )
    )
    first = _start(this, given, fitting)
    # Compiled here, not at the first call, so that training can be timed by itself.
    if secure.is_secure(algorithm.setup):
        forward = _with_noise(this, rounds, (given, specs), first)
    else:
        forward = jax.jit(advance, donate_argnums=1).lower(given, first, np.int32(1), np.int32(2)).compile()

    def observe(carry: Carry) -> dict[str, NDArray[Any]]:
        by_node, by_seed = evaluate(carry.state, test)
        sent = {"sent_power": carry.sent, "loudest": carry.loudest}
        observed: dict[str, NDArray[Any]] = layout.take(by_node | sent | carry.info) | layout.take_by_seed(by_seed)
        return observed

    return Program(
        given=given,
        start=first,
        advance=forward,
        observe=observe,
        keep=lambda carry: [in_one_piece(leaf) for leaf in jax.tree.leaves(layout.take(carry))],
        restore=lambda leaves: layout.put_filled(jax.tree.unflatten(jax.tree.structure(first), leaves)),
        published=lambda carry: layout.take(carry.state.published),
        evaluated=np.arange(layout.nodes),
    )


def with_tables_of(algorithm: Algorithm, program: Program, layout: Layout, dtype: DTypeLike) -> Program:
    """The same compiled rounds for an algorithm that differs in its tables only, which are an argument."""

    def placed(tables: Any) -> Any:
        wide = layout.by_row_and_node
        return jax.tree.map(
            lambda leaf: (
                layout.put(cast(leaf, dtype), Spec())
                if leaf.ndim == 1
                else layout.put(cast(layout.fill(leaf, axis=1), dtype), wide)
            ),
            tables,
        )

    rounds = tuple(
        before._replace(sending=placed(one.sending), receiving=placed(one.receiving))
        for one, before in zip(algorithm.rounds, program.given.rounds, strict=True)
    )
    return program._replace(given=program.given._replace(rounds=rounds))


def _start(this: _Run, given: Given, fitting: check.Fitting) -> Carry:
    """The first carry: the state of every node at the public start."""
    layout, problem = this.layout, this.problem

    numbers = np.arange(layout.filled_nodes, dtype=np.int32)
    points = node.points(problem, given.roots, np.minimum(numbers, layout.nodes - 1), this.dtype)
    if fitting.start_gradients:
        keys = noise.at_node(noise.at_epoch(given.roots, Purpose.BATCH, 0), numbers[:, None])

        def begin(point: jax.Array, key: jax.Array, mine: Any) -> Any:
            return this.algorithm.init(point, node.local(problem, mine, jax.random.wrap_key_data(key)))

        state = jax.jit(jax.vmap(jax.vmap(begin, in_axes=(0, 0, None))))(points, keys, given.mine)
    else:
        without = _no_gradient(problem)
        state = jax.vmap(jax.vmap(lambda point: this.algorithm.init(point, without)))(points)
    everything = layout.by_node_and_seed
    nothing = np.zeros((layout.filled_nodes, layout.filled_seeds), this.dtype)
    # From the host, so that no two leaves share one buffer: buffers are used up.
    return Carry(
        jax.tree.map(lambda leaf: layout.put(np.array(leaf), everything), state),
        layout.put(nothing, everything),
        layout.put(nothing.copy(), everything),
        {name: layout.put(nothing.copy(), everything) for name in fitting.info},
    )


def _no_gradient(problem: Problem) -> Local:
    def refuse(point: jax.Array) -> jax.Array:
        raise AssertionError(f"init takes no gradient, as was found out by shape, and asks for one at {point}")

    return Local(refuse, refuse, problem.project)


def _with_noise(this: _Run, rounds: Any, placed: tuple[Given, Given], start: Carry) -> Advance:
    """`advance` for noise that comes from the host."""
    given, specs = placed
    layout = this.layout
    everything, feed = layout.by_node_and_seed, secure.feeder(this.algorithm, this.problem, layout)
    advance = jax.shard_map(
        rounds,
        mesh=layout.mesh,
        in_specs=(specs, everything, Spec(), Spec(), secure.by_epoch(layout)),
        out_specs=everything,
        check_vma=False,
    )
    ahead = secure.epochs_ahead(this.algorithm, this.problem, layout)
    nothing = jax.ShapeDtypeStruct(
        (ahead, layout.filled_nodes, layout.filled_seeds, this.problem.dim),
        np.float64,
        sharding=NamedSharding(layout.mesh, secure.by_epoch(layout)),
    )
    compiled = jax.jit(advance, donate_argnums=1).lower(given, start, np.int32(1), np.int32(2), nothing).compile()

    def forward(given: Given, carry: Carry, first: np.int32, stop: np.int32) -> Carry:
        for begin in range(int(first), int(stop), ahead):
            end = min(begin + ahead, int(stop))
            carry = compiled(given, carry, np.int32(begin), np.int32(end), feed(begin, end))
        return carry

    return forward


def _given(this: _Run, seeds: tuple[int, ...]) -> tuple[Given, Given]:
    """What does not change, on its devices, and how it is spread over them."""
    layout, algorithm, nodes = this.layout, this.algorithm, this.layout.filled_nodes
    filled = seeds + (seeds[-1],) * (layout.filled_seeds - len(seeds))
    rounds = tuple(GivenRound(one.sending, one.receiving, one.channel.lists(nodes)) for one in algorithm.rounds)
    given = Given(noise.roots(filled), this.problem.local_data(), rounds, draws.pairs(algorithm))

    def of_tables(tables: Any) -> Any:
        return jax.tree.map(lambda leaf: Spec() if leaf.ndim == 1 else layout.by_row_and_node, tables)

    def of_nodes(tree: Any) -> Any:
        return jax.tree.map(lambda _: layout.by_node, tree)

    specs = Given(
        layout.by_seed,
        of_nodes(given.mine),
        tuple(GivenRound(of_tables(one.sending), of_tables(one.receiving), of_nodes(one.lists)) for one in rounds),
        of_nodes(given.pairs),
    )

    placed: dict[tuple[int, Spec], jax.Array] = {}

    def place(leaf: Any, spec: Spec) -> jax.Array:
        if (same := (id(leaf), spec)) not in placed:  # once what several rounds share, such as a radio's trace
            if spec not in (Spec(), layout.by_seed):
                leaf = layout.fill(leaf, axis=0 if spec == layout.by_node else 1)
            placed[same] = layout.put(leaf if isinstance(leaf, jax.Array) else cast(leaf, this.dtype), spec)
        return placed[same]

    return jax.tree.map(place, given, specs), specs


def _rounds(
    this: _Run, given: Given, carry: Carry, first: jax.Array, stop: jax.Array, integers: jax.Array | None = None
) -> Carry:
    """Epochs first..stop-1 of the nodes (or seeds) of one device; `integers` are the noise that comes from the host."""
    problem, numbers = this.problem, this.layout.own_numbers()
    model_bytes = math.prod(problem.shape) * len(given.roots) * this.dtype.itemsize
    block = _nodes_per_block(len(numbers), 4 * model_bytes + problem.bytes_per_gradient)

    def one_epoch(epoch: jax.Array, carry: Carry) -> Carry:
        secret = None if integers is None else integers[epoch - first]
        state, info = carry.state, carry.info
        energy = jnp.zeros_like(carry.sent)
        for number in range(len(this.algorithm.rounds)):
            state, left, sent = _one_round(this, number, given, (epoch, numbers, block), state, secret)
            info = info | left
            energy = sent if number == 0 else jnp.maximum(energy, sent)
        return Carry(state, energy, jnp.maximum(carry.loudest, energy), info)

    return jax.lax.fori_loop(first, stop, one_epoch, carry)


def _one_round(
    this: _Run, number: int, given: Given, when: tuple[jax.Array, jax.Array, int], state: Any, secret: jax.Array | None
) -> tuple[Any, Info, jax.Array]:
    """One round of all nodes of a device: their next states, what they leave for people, and the energy they sent."""
    one, fixed, problem = this.algorithm.rounds[number], given.rounds[number], this.problem
    epoch, numbers, block = when
    batch_keys = noise.at_node(noise.at_epoch(given.roots, Purpose.BATCH, epoch), numbers[:, None])
    draw = draws.of_round(this.algorithm, number, problem.shape, given.roots, given.pairs, this.dtype)
    drawn, axes = draw(epoch, numbers, secret)
    signal_axis, heard_axis = (int(several is not None) for several in (one.channel.signals, one.channel.neighbours))

    def transmit(here: Any, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:
        return node.transmit(one, here, state, drawn)

    of_seeds = jax.vmap(transmit, in_axes=(None, 0, axes), out_axes=signal_axis)
    here = node.constants_at(fixed.sending, epoch, len(numbers))
    sent = jax.vmap(of_seeds)(here, state, drawn)
    moment = Moment(epoch, numbers, draws.receiver_noise(problem.shape, number, given.roots, epoch, this.dtype))
    lists, hear = one.channel.deliver(fixed.lists, sent, moment, this.layout.exchange)

    def receive(
        keys: jax.Array, here: Any, mine: Any, state: Any, sent: jax.Array, listed: Any
    ) -> tuple[Any, Info, jax.Array]:
        """One node's next state, its metrics and the energy it sent, for all seeds."""

        def of_seed(key: jax.Array, state: Any, sent: jax.Array, heard: jax.Array) -> node.Received:
            local = node.local(problem, mine, jax.random.wrap_key_data(key))
            return node.receive(one, here, state, sent, heard, local)

        received = jax.vmap(of_seed, in_axes=(0, 0, signal_axis, heard_axis))(keys, state, sent, hear(listed))
        return received.state, received.info, one.channel.energy(sent)

    here = node.constants_at(fixed.receiving, epoch, len(numbers))
    by_node: tuple[Any, Info, jax.Array] = _over_nodes(
        block, receive, (batch_keys, here, given.mine, state, sent, lists)
    )
    return by_node


def _over_nodes(block: int, function: Any, arguments: tuple[Any, ...]) -> Any:
    """A function of one node for all nodes, in blocks."""
    nodes = len(arguments[0])
    if block >= nodes:
        return jax.vmap(function)(*arguments)
    return jax.lax.map(lambda these: function(*these), arguments, batch_size=block)


def _nodes_per_block(nodes: int, bytes_per_node: int) -> int:
    """How many nodes to take at once: as many as fit in the cache, or all where not even one does."""
    fit = min(nodes, _BLOCK_BYTES // bytes_per_node) or nodes
    # A block that divides the nodes leaves no remainder to compile for, if one of about that size does.
    return next((size for size in range(fit, fit // 2, -1) if nodes % size == 0), fit)


def _evaluate(
    problem: Problem, layout: Layout, state: Any, test: Any
) -> "tuple[dict[str, jax.Array], dict[str, jax.Array]]":
    """Metrics of every node's own and published model, and of the mean model."""

    @jax.jit  # traced once for own and published models
    def of(models: jax.Array) -> dict[str, jax.Array]:
        metrics: dict[str, jax.Array] = _over_nodes(
            max(1, _MODELS_PER_EVALUATION // models.shape[1]),
            jax.vmap(lambda model: problem.evaluate(model, test)),
            (models,),
        )
        return metrics

    own, published = of(state.own), of(state.published)
    total = layout.exchange.total
    mean = total(state.own) / layout.nodes
    spread = total(jnp.sum((state.own - mean) ** 2, axis=range(2, state.own.ndim))) / layout.nodes
    of_mean = jax.vmap(lambda model: problem.evaluate(model, test))(mean)
    return (
        {f"own_{name}": value for name, value in own.items()}
        | {f"published_{name}": value for name, value in published.items()},
        {f"mean_{name}": value for name, value in of_mean.items()} | {"consensus_error": jnp.sqrt(spread)},
    )
