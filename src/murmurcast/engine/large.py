"""Rounds of a large network: in place, block of nodes by block, and over several processes where there are some.

All models of a network lie in one array for each leaf of the state. In every round nodes send, hear and update in turn,
each phase over all nodes before the next begins: what is sent is written where the update reads nothing more, and so is
what is heard, so that Algorithm 1 needs room for two models of every node, and no more. Where models are small, signals
have room of their own, which is quicker. The numbers are the same to the bit however many threads and processes there
are.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast._threads import over_cores
from murmurcast.algorithms.base import Algorithm
from murmurcast.channels.base import is_heard_in_blocks
from murmurcast.engine import buffers, check, draws, node, noise, secure
from murmurcast.engine.buffers import Buffer, Use
from murmurcast.engine.compile_cache import use_compile_cache
from murmurcast.engine.membership import require_nodes
from murmurcast.engine.noise import Purpose
from murmurcast.engine.numbering import Numbering, numbering, shared_out
from murmurcast.engine.observe import Observer, in_precision_of
from murmurcast.engine.phases import Block, Fixed, Phases, phases
from murmurcast.engine.program import Carry, Program, cast
from murmurcast.engine.team import Team, team
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.problems.trust import clips_as_proved

FEWEST_NODES = 256  # from which on a sparse network goes in blocks
_BLOCKS_TOGETHER = 4  # as many, or a multiple: no core waits long for the last one
_MAX_SHARE_OF_PAIRS = 0.2  # that are links: from there on a matrix product is quicker
_BLOCK_BYTES = 4 * 2**20  # of one block's models, or of its lists of neighbours where these are longer
_SPACIOUS_BYTES = 256 * 2**20  # of all models of one seed: up to here signals have room of their own
_BYTES_PER_LINK = 8  # in such a list


class Piece(NamedTuple):
    """A block of every round, on the device, and which rows it is about.

    Attributes:
        rows: Of the nodes that count: the last piece is filled up with copies of its last node.
        sending: By round, with the constants of what is sent.
        receiving: By round, with those of what is made of what is heard.
    """

    rows: slice
    sending: tuple[Block, ...]
    receiving: tuple[Block, ...]


class _Run(NamedTuple):
    """A run: what is compiled, what does not change, and the room for what does.

    Attributes:
        phases: Of every round.
        uses: What every round's update does with a state.
        fixed: The same for all blocks.
        pieces: Of this process.
        numbering: Who is where.
        team: Who trains together.
        state: Rows of every leaf, as buffers.
        spare: Rows for signals, where some round finds no room for them in the state, or takes none.
        spacious: Whether every block has its nodes' states to itself until somebody looks: nothing is then copied.
    """

    phases: tuple[Phases, ...]
    uses: tuple[Use, ...]
    fixed: Fixed
    pieces: tuple[Piece, ...]
    numbering: Numbering
    team: Team
    state: Any
    spare: Buffer | None
    spacious: bool


def suits(algorithm: Algorithm, problem: Problem) -> bool:
    """Whether a run goes in blocks: the network is large and sparse, or there are several processes."""
    if why_not(algorithm):
        return False
    links = max(one.channel.gains.nnz for one in algorithm.rounds)  # type: ignore[attr-defined]
    large = problem.nodes >= FEWEST_NODES and links < _MAX_SHARE_OF_PAIRS * problem.nodes**2
    return large or team().size > 1


def why_not(algorithm: Algorithm) -> str:
    """Why a method cannot go in blocks, nor over several processes; empty where it can."""
    if secure.is_secure(algorithm.setup):
        return "secure noise is drawn in one process"
    kinds = [one.channel.kind for one in algorithm.rounds if not is_heard_in_blocks(one.channel)]
    return f'what goes over the channel "{kinds[0]}" is not heard node by node' if kinds else ""


def require_processes(algorithm: Algorithm, problem: Problem) -> None:
    """What several processes need of a run."""
    processes = team().size
    if processes == 1:
        return
    if reason := why_not(algorithm):
        raise Error(f"{algorithm.name} does not run over several processes: {reason}", hint="run it in one process")
    require_nodes(processes, problem.nodes)


def copies_of_models(algorithm: Algorithm, problem: Problem, dtype: DTypeLike) -> int:
    """How many arrays of the size of all models a run needs."""
    with jax.enable_x64(np.dtype(dtype) == np.float64):
        leaves = jax.tree.leaves(check.first_state(algorithm, problem, dtype).state)
        uses = [_use(algorithm, number, problem, dtype) for number in range(len(algorithm.rounds))]
    copies = 2 if _is_spacious(problem, dtype) else 1  # the blocks', and those that others see
    return copies * len(leaves) + any(not use.has_room for use in uses)


def program(algorithm: Algorithm, problem: Problem, seeds: tuple[int, ...], dtype: DTypeLike) -> Program:
    """A run in blocks."""
    use_compile_cache()
    fitting = check.require_fitting(algorithm, problem, problem.test_data(), dtype)
    this = _run(algorithm, problem, seeds, np.dtype(dtype))
    _begin(this, algorithm, problem, fitting)
    _compile(this)
    nothing = np.zeros((len(this.numbering.own), len(seeds)), dtype)
    arrays = jax.tree.map(lambda one: one.array, this.state, is_leaf=_is_buffer)
    start = Carry(arrays, nothing, nothing.copy(), {name: nothing.copy() for name in fitting.info})

    def advance(given: Any, carry: Carry, first: np.int32, stop: np.int32) -> Carry:  # noqa: ARG001
        states = _states(this)
        for epoch in range(int(first), int(stop)):
            sent = [_round(this, states, number, carry.info, np.int32(epoch)) for number in range(len(this.phases))]
            energy = reduce(np.maximum, sent)
            carry = carry._replace(sent=energy, loudest=np.maximum(carry.loudest, energy))
        _show(this, states)
        return carry

    seen = Observer(problem=problem, numbering=this.numbering, team=this.team, dtype=np.dtype(dtype))
    return Program(
        given=None,
        start=start,
        advance=advance,
        observe=seen.metrics,
        keep=seen.keep,
        restore=lambda leaves: seen.restore(start, leaves),
        published=seen.published,
        evaluated=seen.sample,
        crossing=this.numbering.crossing,
        in_blocks=True,
    )


def _run(algorithm: Algorithm, problem: Problem, seeds: tuple[int, ...], dtype: "np.dtype[Any]") -> _Run:
    together = team()
    hearing: Any = reduce(lambda one, other: one + other, [one.channel.gains for one in algorithm.rounds])  # type: ignore[attr-defined]
    node_numbering = numbering(csr_array(hearing), _parts(together, csr_array(hearing)), together.rank)
    pool, holdings = _data_of(problem, node_numbering.own, dtype)
    rounds = range(len(algorithm.rounds))
    uses = tuple(_use(algorithm, number, problem, dtype) for number in rounds)
    room = (node_numbering.rows, len(seeds))
    shapes = check.first_state(algorithm, problem, dtype).state
    return _Run(
        tuple(phases(algorithm, number, problem, dtype) for number in rounds),
        uses,
        Fixed(jnp.asarray(noise.roots(seeds)), pool, jnp.asarray(node_numbering.row_of())),
        tuple(
            _pieces(algorithm, problem, node_numbering, holdings, _nodes_per_block(problem, len(seeds), dtype), dtype)
        ),
        node_numbering,
        together,
        jax.tree.map(lambda leaf: buffers.buffer((*room, *leaf.shape), leaf.dtype), shapes),
        None if all(use.has_room for use in uses) else buffers.buffer((*room, *problem.shape), dtype),
        _is_spacious(problem, dtype),
    )


def _parts(together: Team, hearing: csr_array) -> tuple[NDArray[np.int64], ...]:
    """The nodes of every process, as the one that leads shares them out."""
    sizes_and_order = np.zeros(together.size + hearing.shape[0], np.int64)
    if together.leads:
        parts = shared_out(hearing, together.size)
        sizes_and_order[:] = [*map(len, parts), *np.concatenate(parts)]
    sizes, order = np.split(together.from_leader(sizes_and_order), [together.size])
    return tuple(np.split(order, np.cumsum(sizes)[:-1]))


def _data_of(problem: Problem, nodes: NDArray[np.int64], dtype: "np.dtype[Any]") -> tuple[Any, Any]:
    """The examples of some nodes, and which of them each holds; without a pool, None and what every node holds."""
    if not (clips_as_proved(problem) and hasattr(problem, "pool")):
        return None, jax.tree.map(lambda leaf: cast(leaf, dtype), problem.local_data())
    pool, holdings = problem.pool(nodes)
    return jax.tree.map(lambda leaf: jnp.asarray(cast(leaf, dtype)), pool), holdings


def _nodes_per_block(problem: Problem, seeds: int, dtype: "np.dtype[Any]") -> int:
    """The same whatever the number of processes, so that all of them run the same programs."""
    fit = max(2, _BLOCK_BYTES // (problem.dim * seeds * dtype.itemsize))
    rows_of_blocks = -(-problem.nodes // (_BLOCKS_TOGETHER * fit))
    return max(2, -(-problem.nodes // (_BLOCKS_TOGETHER * rows_of_blocks)))  # nearly no filling


def _pieces(
    algorithm: Algorithm, problem: Problem, node_numbering: Numbering, holdings: Any, size: int, dtype: "np.dtype[Any]"
) -> Iterator[Piece]:
    pairs, others = draws.pairs(algorithm), len(node_numbering.own) - node_numbering.hubs
    widest = max(int(np.bincount(one.channel.gains.indices).max()) for one in algorithm.rounds)  # type: ignore[attr-defined]
    of_hubs = max(2, min(size, node_numbering.hubs, _BLOCK_BYTES // (_BYTES_PER_LINK * widest)))
    for begin, end, rows in ((0, others, size), (others, len(node_numbering.own), of_hubs)):
        for start in range(begin, end, rows):
            numbers = node_numbering.own[start : min(end, start + rows)]
            filled = np.pad(numbers, (0, rows - len(numbers)), mode="edge")
            first = 0 if _is_spacious(problem, dtype) else start
            blocks = _blocks(algorithm, (start, first, filled), _of_nodes((holdings, pairs), filled, dtype), dtype)
            yield Piece(slice(start, start + len(numbers)), *blocks)


def _of_nodes(tree: Any, numbers: NDArray[Any], dtype: "np.dtype[Any]") -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(cast(leaf[numbers], dtype)), tree)


def _blocks(
    algorithm: Algorithm, where: tuple[int, int, NDArray[Any]], data: tuple[Any, Any], dtype: "np.dtype[Any]"
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """What some nodes send and receive with, round by round."""
    start, first, numbers = where

    def of_tables(tables: Any) -> Any:
        return placed(jax.tree.map(lambda table: table if table.ndim == 1 else table[:, numbers], tables))

    def lists_of(channel: Any) -> Any:
        return placed(channel.lists_of(numbers))

    def placed(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.asarray(cast(leaf, dtype)), tree)

    lists = {one.channel: lists_of(one.channel) for one in algorithm.rounds}  # rounds may share a channel
    common = Block(jnp.int32(start), jnp.int32(first), jnp.asarray(numbers, np.int32), None, None, *data)
    return (
        tuple(common._replace(here=of_tables(one.sending)) for one in algorithm.rounds),
        tuple(common._replace(here=of_tables(one.receiving), lists=lists[one.channel]) for one in algorithm.rounds),
    )


def _use(algorithm: Algorithm, number: int, problem: Problem, dtype: DTypeLike) -> Use:
    one, state = algorithm.rounds[number], check.first_state(algorithm, problem, dtype).state
    use = buffers.use_of_update(one, state, check.constants(one.receiving, dtype), problem.shape, dtype)
    # With room to spare nodes hear while they update: what they hear is then not written down and read again.
    return use._replace(free=()) if _is_spacious(problem, dtype) else use


def _is_spacious(problem: Problem, dtype: DTypeLike) -> bool:
    return bool(problem.nodes * problem.dim * np.dtype(dtype).itemsize <= _SPACIOUS_BYTES)


def _is_buffer(leaf: Any) -> bool:
    return isinstance(leaf, Buffer)


def _begin(this: _Run, algorithm: Algorithm, problem: Problem, fitting: check.Fitting) -> None:
    """Writes the state of every node at the public start."""

    @jax.jit
    def begin(points: jax.Array, keys: jax.Array, holdings: Any, pool: Any) -> Any:
        def of_node(item: Any) -> Any:
            points, keys, holdings = item
            mine = holdings if pool is None else problem.of_pool(pool, holdings)  # type: ignore[attr-defined]
            by_seed: Any = jax.vmap(
                lambda point, key: algorithm.init(point, node.local(problem, mine, jax.random.wrap_key_data(key)))
            )
            return by_seed(points, keys)

        return jax.lax.map(of_node, (points, keys, holdings))

    roots, leaves = this.fixed.roots, jax.tree.leaves(this.state, is_leaf=_is_buffer)
    key = noise.at_epoch(roots, Purpose.BATCH, 0)
    for piece in this.pieces:
        block = piece.sending[0]
        points = np.ascontiguousarray(
            node.points(problem, np.asarray(roots), np.asarray(block.numbers), this.state.own.array.dtype)
        )
        holdings, pool = (block.holdings, this.fixed.pool) if fitting.start_gradients else (block.numbers, None)
        state = begin(points, noise.at_node(key, block.numbers[:, None]), holdings, pool)
        _write(piece, [leaf.array for leaf in leaves], jax.tree.leaves(state))


def _compile(this: _Run) -> None:
    """Calls every phase once for every shape of lists and throws away what comes of it: training is timed alone."""
    model, states = this.state.own.view, _states(this)
    for number, (compiled, use) in enumerate(zip(this.phases, this.uses, strict=True)):
        shapes = {str(jax.tree.map(np.shape, one.receiving[number].lists)): at for at, one in enumerate(this.pieces)}
        for at in shapes.values():
            sending, receiving, epoch = this.pieces[at].sending[number], this.pieces[at].receiving[number], np.int32(1)
            compiled.send(sending, this.fixed, epoch, states[at])
            if use.has_room:
                compiled.hear(receiving, this.fixed, epoch, model)
            compiled.update(receiving, this.fixed, epoch, states[at], model, model if use.has_room else None)


def _states(this: _Run) -> list[Any]:
    """What phases read states from, piece by piece: all rows, or where there is room a piece's own as arrays of JAX."""
    if not this.spacious:
        return [jax.tree.map(lambda one: one.view, this.state, is_leaf=_is_buffer)] * len(this.pieces)

    def of(piece: Piece) -> Any:
        rows = np.minimum(piece.rows.start + np.arange(len(piece.sending[0].numbers)), piece.rows.stop - 1)
        # Placed as what updates give back is: for arrays that are not, JAX would compile everything again.
        return jax.tree.map(
            lambda one: jax.device_put(one.array[rows], one.view.sharding), this.state, is_leaf=_is_buffer
        )

    return list(map(of, this.pieces))


def _show(this: _Run, states: list[Any]) -> None:
    """Writes the states of pieces that have them to themselves where others look."""
    arrays = [one.array for one in jax.tree.leaves(this.state, is_leaf=_is_buffer)]
    for piece, state in zip(this.pieces, states, strict=True):
        if this.spacious:
            _write(piece, arrays, jax.tree.leaves(state))


def _write(piece: Piece, to: list[NDArray[Any]], arrays: list[Any]) -> None:
    for rows, values in zip(to, arrays, strict=True):
        rows[piece.rows] = np.asarray(values)[: piece.rows.stop - piece.rows.start]


def _round(this: _Run, states: list[Any], number: int, info: dict[str, NDArray[Any]], epoch: np.int32) -> NDArray[Any]:
    """One round of all nodes, in place; [own rows, seeds] the energy they sent."""
    compiled, use, fixed = this.phases[number], this.uses[number], this.fixed
    leaves: list[Buffer] = jax.tree.leaves(this.state, is_leaf=_is_buffer)
    said: Any = leaves[use.free[0]] if use.has_room else this.spare
    got: Any = leaves[use.free[1]] if use.has_room else None
    energy = np.zeros((len(this.numbering.own), len(fixed.roots)), this.state.own.array.dtype)
    changed = [place for place in range(len(leaves)) if place not in use.kept]

    def send(at: int) -> None:
        piece = this.pieces[at]
        _write(piece, [said.array, energy], list(compiled.send(piece.sending[number], fixed, epoch, states[at])))

    def hear(at: int) -> None:
        piece = this.pieces[at]
        _write(piece, [got.array], [compiled.hear(piece.receiving[number], fixed, epoch, said.view)])

    def update(at: int) -> None:
        piece, heard = this.pieces[at], None if got is None else got.view
        state, left = compiled.update(piece.receiving[number], fixed, epoch, states[at], said.view, heard)
        if this.spacious:
            states[at] = jax.block_until_ready(state)  # signals are overwritten next
        else:
            updated = jax.tree.leaves(state)
            _write(piece, [leaves[place].array for place in changed], [updated[place] for place in changed])
        _write(piece, [info[name] for name in left], list(left.values()))

    pieces = range(len(this.pieces))
    over_cores(in_precision_of(energy, send), pieces)
    this.team.exchange(this.numbering, said.array)
    if got is not None:
        over_cores(in_precision_of(energy, hear), pieces)
    over_cores(in_precision_of(energy, update), pieces)
    return energy
