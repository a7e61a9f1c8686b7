"""Compiled rounds: send, channel, update, for all nodes and all seeds together.

One program with a loop of any length serves all chunk sizes, so that neither the chunks, nor the evaluations between
them, nor a resumed run can change a single bit. Nodes go through in blocks that fit in the cache; data is an argument.
Seeded noise is drawn inside the loop. Secure noise comes from the host, some epochs at a time.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as Spec
from jax.typing import DTypeLike

from murmurcast.algorithms.base import Algorithm, Local, Slots
from murmurcast.engine import mix, noise, secure
from murmurcast.engine.noise import Purpose
from murmurcast.engine.sharding import Layout
from murmurcast.problems.base import Problem

_BLOCK_BYTES = 2 * 2**20  # of what a block of nodes works on
_MODELS_PER_EVALUATION = 16  # models that share one pass over the test part


class Carry(NamedTuple):
    """What goes from epoch to epoch; all arrays [nodes, seeds, ...].

    Attributes:
        state: The algorithm's.
        sent: Energy of the last signal, ||signal||^2; of the strongest where a node sends several.
        loudest: The largest `sent` so far.
    """

    state: Any
    sent: jax.Array
    loudest: jax.Array


class Given(NamedTuple):
    """What does not change during a run.

    Attributes:
        roots: [seeds, 2] random keys.
        mine: The nodes' data, arrays [nodes, ...].
        sending: Tables of what is sent.
        receiving: Tables of what is made of what is heard.
        hearing: Who hears whom, dense or sparse; None where the medium needs no list.
    """

    roots: Any
    mine: Any
    sending: Any
    receiving: Any
    hearing: Any


class Program(NamedTuple):
    """A run, ready to go.

    Attributes:
        given: What does not change.
        start: The first carry.
        advance: (given, carry, first epoch, one past the last) -> carry; the given carry is used up.
        evaluate: (carry) -> figures of every node [nodes, seeds] and of the mean model [seeds].
    """

    given: Given
    start: Carry
    advance: Callable[[Given, Carry, np.int32, np.int32], Carry]
    evaluate: Callable[[Carry], "tuple[dict[str, jax.Array], dict[str, jax.Array]]"]


def program(
    algorithm: Algorithm, problem: Problem, layout: Layout, seeds: tuple[int, ...], dtype: DTypeLike
) -> Program:
    """Compiles a run of an algorithm on a problem."""
    secure.require(algorithm, problem, dtype)
    given, specs = _given(algorithm, problem, layout, seeds, dtype)
    everything = layout.by_node_and_seed
    rounds = partial(_rounds, algorithm, problem, layout, np.dtype(dtype))
    advance = jax.shard_map(
        rounds, mesh=layout.mesh, in_specs=(specs, everything, Spec(), Spec()), out_specs=everything, check_vma=False
    )
    test = jax.tree.map(lambda leaf: layout.put(_cast(leaf, dtype), Spec()), problem.test_data())
    evaluate = jax.jit(
        jax.shard_map(
            partial(_evaluate, problem, layout),
            mesh=layout.mesh,
            in_specs=(everything, Spec()),
            out_specs=(everything, layout.by_seed),
            check_vma=False,
        )
    )
    model = np.zeros((layout.filled_nodes, layout.filled_seeds, *problem.shape), dtype)
    state = jax.tree.map(lambda leaf: layout.put(np.asarray(leaf), everything), algorithm.init(jnp.asarray(model)))
    nothing = np.zeros((layout.filled_nodes, layout.filled_seeds), dtype)
    first = Carry(state, layout.put(nothing, everything), layout.put(nothing.copy(), everything))
    # Compiled here, not at the first call, so that training can be timed by itself.
    if secure.is_secure(algorithm.plan):
        forward = _with_noise(algorithm, problem, layout, rounds, (given, specs), first)
    else:
        forward = jax.jit(advance, donate_argnums=1).lower(given, first, np.int32(1), np.int32(2)).compile()
    return Program(given, first, forward, lambda carry: evaluate(carry.state, test))


def _with_noise(
    algorithm: Algorithm,
    problem: Problem,
    layout: Layout,
    rounds: Callable[..., Carry],
    placed: tuple[Given, Given],
    start: Carry,
) -> Callable[[Given, Carry, np.int32, np.int32], Carry]:
    """`advance` for noise that comes from the host."""
    given, specs = placed
    everything, feed = layout.by_node_and_seed, secure.feeder(algorithm, problem, layout)
    advance = jax.shard_map(
        rounds,
        mesh=layout.mesh,
        in_specs=(specs, everything, Spec(), Spec(), secure.by_epoch(layout)),
        out_specs=everything,
        check_vma=False,
    )
    ahead = secure.epochs_ahead(algorithm, problem, layout)
    nothing = jax.ShapeDtypeStruct(
        (ahead, layout.filled_nodes, layout.filled_seeds, problem.dim),
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


def _given(
    algorithm: Algorithm, problem: Problem, layout: Layout, seeds: tuple[int, ...], dtype: DTypeLike
) -> tuple[Given, Given]:
    """What does not change, on its devices, and how it is spread over them."""
    filled = seeds + (seeds[-1],) * (layout.filled_seeds - len(seeds))
    tables = algorithm.sending, algorithm.receiving
    hearing = mix.hearing(algorithm.medium, layout.filled_nodes)
    given = Given(noise.roots(filled), problem.local_data(), algorithm.sending, algorithm.receiving, hearing)
    sending, receiving = (
        jax.tree.map(lambda leaf: Spec() if leaf.ndim == 1 else layout.by_row_and_node, table) for table in tables
    )
    mine, lists = (jax.tree.map(lambda _: layout.by_node, part) for part in (given.mine, hearing))
    specs = Given(layout.by_seed, mine, sending, receiving, lists)

    def place(leaf: Any, spec: Spec) -> jax.Array:
        if spec not in (Spec(), layout.by_seed):
            leaf = layout.fill(leaf, axis=0 if spec == layout.by_node else 1)
        return layout.put(leaf if isinstance(leaf, jax.Array) else _cast(leaf, dtype), spec)

    return jax.tree.map(place, given, specs), specs


def _cast(leaf: Any, dtype: DTypeLike) -> Any:
    array = np.asarray(leaf)
    return array.astype(dtype, copy=False) if np.issubdtype(array.dtype, np.floating) else array


def _rounds(
    algorithm: Algorithm,
    problem: Problem,
    layout: Layout,
    dtype: "np.dtype[Any]",
    given: Given,
    carry: Carry,
    first: jax.Array,
    stop: jax.Array,
    integers: jax.Array | None = None,
) -> Carry:
    """Epochs first..stop-1 of the nodes (or seeds) of one device; `integers` are the noise that comes from the host."""
    numbers = layout.own_numbers()
    model_bytes = math.prod(problem.shape) * len(given.roots) * dtype.itemsize
    block = _together(len(numbers), 4 * model_bytes + problem.bytes_per_gradient)
    links = given.hearing.gains.shape[1:] if isinstance(algorithm.medium, Slots) else ()

    def one_epoch(epoch: jax.Array, carry: Carry) -> Carry:
        signal_keys, batch_keys = (
            jax.vmap(lambda root, purpose=purpose: noise.at_epoch(root, purpose, epoch))(given.roots)
            for purpose in (Purpose.SIGNAL, Purpose.BATCH)
        )
        if integers is None:
            stream = noise.stream(signal_keys, problem.dim)
            # In a loop of its own: what a loop writes is kept, while plain code would draw anew wherever noise is used.
            drawn = jax.lax.map(lambda number: noise.normal(stream, number, dtype), _link_numbers(numbers, links))
        else:
            drawn = integers[epoch - first]
        drawn = drawn.reshape(len(numbers), *links, len(given.roots), *problem.shape)
        transmit = jax.vmap(algorithm.send, in_axes=(None, 0, 0))  # over seeds
        transmit = jax.vmap(transmit, in_axes=(0, None, 0)) if links else transmit
        here = _at(epoch, given.sending, (len(numbers), *links))
        sent = jax.vmap(transmit)(here, carry.state, drawn)
        lists, hear = mix.channel(algorithm.medium, given.hearing, sent, layout)

        def receive(
            number: jax.Array, here: Any, mine: Any, state: Any, sent: jax.Array, listed: Any
        ) -> tuple[Any, jax.Array]:
            """One node's next state and the energy it sent, for all seeds."""

            def one(key: jax.Array, state: Any, sent: jax.Array, heard: jax.Array) -> Any:
                key = jax.random.wrap_key_data(noise.at_node(key, number))
                local = Local(
                    lambda point: problem.gradient_at_public(point, mine, key),
                    lambda point: problem.gradient_at_private(point, mine, key),
                    problem.project,
                )
                return algorithm.update(here, state, sent, heard, local)

            following = jax.vmap(one, in_axes=(0, 0, len(links), 0))(batch_keys, state, sent, hear(listed))
            energy = jnp.sum(sent * sent, axis=range(1 + len(links), sent.ndim))
            return following, energy.max(axis=0) if links else energy

        here = _at(epoch, given.receiving, (len(numbers),))
        state, energy = _over_nodes(block, receive, (numbers, here, given.mine, carry.state, sent, lists))
        return Carry(state, energy, jnp.maximum(carry.loudest, energy))

    return jax.lax.fori_loop(first, stop, one_epoch, carry)


def _link_numbers(numbers: jax.Array, links: tuple[int, ...]) -> jax.Array:
    """[nodes], or [nodes x links] where a node has a signal for each: whose noise to draw."""
    return (numbers[:, None] * links[0] + jnp.arange(links[0])).ravel() if links else numbers


def _at(epoch: jax.Array, tables: Any, shape: tuple[int, ...]) -> Any:
    """The tables' entries for an epoch, each of the given shape."""
    return jax.tree.map(lambda table: jnp.broadcast_to(table[jnp.minimum(epoch, len(table)) - 1], shape), tables)


def _over_nodes(block: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A function of one node for all nodes, in blocks."""
    nodes = len(arguments[0])
    if block >= nodes:
        return jax.vmap(function)(*arguments)
    return jax.lax.map(lambda these: function(*these), arguments, batch_size=block)


def _together(nodes: int, bytes_per_node: int) -> int:
    """How many nodes to take at once: as many as fit in the cache, or all where not even one does."""
    fit = min(nodes, _BLOCK_BYTES // bytes_per_node) or nodes
    # A block that divides the nodes leaves no remainder to compile for, if one of about that size does.
    return next((size for size in range(fit, fit // 2, -1) if nodes % size == 0), fit)


def _evaluate(
    problem: Problem, layout: Layout, state: Any, test: Any
) -> "tuple[dict[str, jax.Array], dict[str, jax.Array]]":
    """Figures of every node's own and published model, and of the mean model."""

    def of(models: jax.Array) -> dict[str, jax.Array]:
        return _over_nodes(
            max(1, _MODELS_PER_EVALUATION // models.shape[1]),
            jax.vmap(lambda model: problem.evaluate(model, test)),
            (models,),
        )

    own, published = of(state.own), of(state.published)
    mean = layout.sum_over_nodes(state.own) / layout.nodes
    spread = layout.sum_over_nodes(jnp.sum((state.own - mean) ** 2, axis=range(2, state.own.ndim))) / layout.nodes
    of_mean = jax.vmap(lambda model: problem.evaluate(model, test))(mean)
    return (
        {f"own_{name}": value for name, value in own.items()}
        | {f"published_{name}": value for name, value in published.items()},
        {f"mean_{name}": value for name, value in of_mean.items()} | {"consensus_error": jnp.sqrt(spread)},
    )
