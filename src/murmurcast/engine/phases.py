"""The three phases of a round of a large network: nodes send, hear and update, a block of them at a time.

Models, signals and what was heard lie in rows; a phase reads some of them and returns what comes of a block. Within it
nodes go one by one through the same steps, so that neither the block nor its place in it can change a bit.
"""

from functools import reduce
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.algorithms.base import Algorithm
from murmurcast.channels.base import LINKS_TOGETHER, Moment
from murmurcast.engine import draws, node, noise
from murmurcast.engine.noise import Purpose
from murmurcast.problems.base import Problem


class Block(NamedTuple):
    """Some nodes in one round, one behind the other.

    Attributes:
        start: The row of the first.
        first: Its row in the states that phases are given, which may be those of the block alone.
        numbers: [nodes] their numbers.
        here: Their constants, [rows, nodes, ...] or [epochs].
        lists: Whom they hear, each leaf [nodes, ...].
        holdings: What they hold, each leaf [nodes, ...].
        pairs: Their pairs of neighbours, where a draw needs them.
    """

    start: Any
    first: Any
    numbers: Any
    here: Any
    lists: Any
    holdings: Any
    pairs: Any


class Fixed(NamedTuple):
    """What does not change during a run, and is the same for all blocks.

    Attributes:
        roots: [seeds, 2] random keys.
        pool: All examples; None where nodes hold theirs themselves.
        row_of: [all nodes] in which row a node's signal is.
    """

    roots: Any
    pool: Any
    row_of: Any


class Send(Protocol):
    """What leaves the nodes of a block."""

    def __call__(self, block: Block, fixed: Fixed, epoch: Any, state: Any, /) -> tuple[Any, Any]:
        """Signals [nodes, ...] and their energy [nodes, seeds], from the rows of the state."""
        ...


class Hear(Protocol):
    """What the nodes of a block hear."""

    def __call__(self, block: Block, fixed: Fixed, epoch: Any, said: Any, /) -> Any:
        """[nodes, ...] from the rows of signals."""
        ...


class Update(Protocol):
    """What the nodes of a block make of what they hear."""

    def __call__(self, block: Block, fixed: Fixed, epoch: Any, state: Any, said: Any, heard: Any, /) -> tuple[Any, Any]:
        """Their next states and what they leave for people; where nothing heard is at hand, they hear it now."""
        ...


class Phases(NamedTuple):
    """The compiled phases of one round."""

    send: Send
    hear: Hear
    update: Update


class Reached(NamedTuple):
    """Signals in the rows of a process; meets `Signals` of the channels.

    Attributes:
        rows: [rows, ...].
        row_of: [all nodes] in which row a node's signal is.
    """

    rows: jax.Array
    row_of: jax.Array

    @property
    def everybody(self) -> None:
        """Only those that are heard here are at hand."""
        return

    def at(self, numbers: jax.Array) -> jax.Array:
        """[links, ...] of the senders with these numbers."""
        return self.rows[self.row_of[numbers]]

    def weighed(self, numbers: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
        """[...] weighed sums in the order of the links, some signals in one pass: a gather would copy them all."""
        together = min(LINKS_TOGETHER, len(numbers))
        rows, filled = self.row_of[numbers], -len(numbers) % together
        used = reduce(jnp.logical_or, [one != 0 for one in weights])
        last = jnp.max(jnp.where(used, jnp.arange(len(rows)) + 1, 0))  # filling takes no pass
        rows, weights = jnp.pad(rows, (0, filled)), tuple(jnp.pad(one, (0, filled)) for one in weights)
        flat = self.rows.reshape(len(self.rows), -1)

        def some(group: jax.Array, sums: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            for place in range(together):
                link = group * together + place
                signal = jax.lax.dynamic_index_in_dim(flat, rows[link], keepdims=False)
                sums = tuple(total + one[link] * signal for total, one in zip(sums, weights, strict=True))
            return sums

        nothing = tuple(jnp.zeros(flat.shape[1], flat.dtype) for _ in weights)
        sums = jax.lax.fori_loop(0, (last + together - 1) // together, some, nothing)
        return tuple(total.reshape(self.rows.shape[1:]) for total in sums)


class InRows(NamedTuple):
    """How a channel reaches signals that lie in rows; meets `Exchange` as far as channels in blocks ask."""

    signals: Reached

    def reach(self, values: jax.Array) -> Reached:  # noqa: ARG002
        """What was sent lies in the rows already."""
        return self.signals

    def gather(self, values: jax.Array) -> jax.Array:
        """Never asked by a channel that is heard in blocks."""
        raise AssertionError(f"a channel that is heard in blocks asks for everybody, with {values.shape}")

    def total(self, values: jax.Array) -> jax.Array:
        """Never asked either."""
        return self.gather(values)


def phases(algorithm: Algorithm, number: int, problem: Problem, dtype: "np.dtype[Any]") -> Phases:
    """Of a round, from 0."""
    hear_one = _hearing(algorithm, number, problem, dtype)

    def hear(block: Block, fixed: Fixed, epoch: Any, said: Any) -> Any:
        return jax.lax.map(lambda one: hear_one(one, fixed, epoch, said), _by_node(block, epoch))

    return Phases(
        jax.jit(_sending(algorithm, number, problem, dtype)),
        jax.jit(hear),
        jax.jit(_updating(algorithm, number, problem, hear_one)),
    )


def _by_node(block: Block, epoch: Any) -> Block:
    """A block whose leaves are all [nodes, ...]: rows for its start, and the constants of this epoch."""
    nodes = len(block.numbers)
    places = jnp.arange(nodes)
    here = node.constants_at(block.here, epoch, nodes)
    return block._replace(start=block.start + places, first=block.first + places, here=here)


def _row(rows: Any, place: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, place, keepdims=False), rows)


def _alone(tree: Any) -> Any:
    """One node's leaves as those of a block of one."""
    return jax.tree.map(lambda leaf: leaf[None], tree)


def _sending(algorithm: Algorithm, number: int, problem: Problem, dtype: "np.dtype[Any]") -> Send:
    one = algorithm.rounds[number]

    def send(block: Block, fixed: Fixed, epoch: Any, state: Any) -> tuple[Any, Any]:
        def of_node(ours: Block) -> tuple[Any, Any]:
            draw = draws.of_round(algorithm, number, problem.shape, fixed.roots, _alone(ours.pairs), dtype)
            drawn, axes = draw(epoch, ours.numbers[None])
            values = {name: all_nodes[0] for name, all_nodes in drawn.items()}
            of_seeds: Any = jax.vmap(
                lambda state, drawn: node.transmit(one, ours.here, state, drawn), in_axes=(0, axes)
            )
            sent = of_seeds(_row(state, ours.first), values)
            return sent, one.channel.energy(sent)

        signals_and_energy: tuple[Any, Any] = jax.lax.map(of_node, _by_node(block, epoch))
        return signals_and_energy

    return send


def _hearing(algorithm: Algorithm, number: int, problem: Problem, dtype: "np.dtype[Any]") -> Hear:
    """What one node hears."""
    channel = algorithm.rounds[number].channel

    def hear(ours: Block, fixed: Fixed, epoch: Any, said: Any) -> Any:
        noise_of = draws.receiver_noise(problem.shape, number, fixed.roots, epoch, dtype)
        moment = Moment(epoch, ours.numbers[None], noise_of)
        sent = _alone(_row(said, ours.start))
        entries, heard = channel.deliver(_alone(ours.lists), sent, moment, InRows(Reached(said, fixed.row_of)))
        return heard(jax.tree.map(lambda leaf: leaf[0], entries))

    return hear


def _updating(algorithm: Algorithm, number: int, problem: Problem, hear_one: Hear) -> Update:
    one = algorithm.rounds[number]
    seeds_axis = int(one.channel.neighbours is not None)

    def update(block: Block, fixed: Fixed, epoch: Any, state: Any, said: Any, heard: Any) -> tuple[Any, Any]:
        key_of_epoch = noise.at_epoch(fixed.roots, Purpose.BATCH, epoch)

        def of_node(ours: Block) -> tuple[Any, Any]:
            keys = noise.at_node(key_of_epoch, ours.numbers)
            mine = ours.holdings if fixed.pool is None else problem.of_pool(fixed.pool, ours.holdings)  # type: ignore[attr-defined]
            got = hear_one(ours, fixed, epoch, said) if heard is None else _row(heard, ours.start)

            def of_seed(key: Any, state: Any, sent: Any, got: Any) -> node.Received:
                local = node.local(problem, mine, jax.random.wrap_key_data(key))
                return node.receive(one, ours.here, state, sent, got, local)

            by_seed = jax.vmap(of_seed, in_axes=(0, 0, 0, seeds_axis))
            received = by_seed(keys, _row(state, ours.first), _row(said, ours.start), got)
            return received.state, received.info

        states_and_info: tuple[Any, Any] = jax.lax.map(of_node, _by_node(block, epoch))
        return states_and_info

    return update
