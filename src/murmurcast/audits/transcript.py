"""Everything that was sent and heard in a run, epoch by epoch, from the engine that trains.

The algorithm is wrapped, not the engine: its state also carries a tape, and `update` writes down the signal and the sum
that the engine hands it. Noise, channel and compiled loop are those of `murmurcast.run`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._progress import Count, quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm, Local, Model, Round, state_of
from murmurcast.algorithms.tables import Leaf
from murmurcast.engine import check, loop, sharding, train
from murmurcast.engine.train import Point
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision
from murmurcast.runs.require import require_planned_for, require_settings

MAX_TAPE_BYTES = 2**30


class Prepare(Protocol):
    """What is changed in the nodes' first states before a run."""

    def __call__(self, state: Any, /) -> Any:
        """Arrays [nodes, seeds, ...] of the host."""
        ...


class OnAir(NamedTuple):
    """What happened on the air in one of an epoch's rounds.

    Attributes:
        sent: [seed, epoch, node, dim] the signal of every node; where it makes several
            [seed, epoch, node, signal, dim].
        heard: [seed, epoch, node, dim] what every receiver heard; [seed, epoch, node, neighbour, dim] where apart.
    """

    sent: NDArray[Any]
    heard: NDArray[Any]


class Transcript(NamedTuple):
    """What happened on the air, and where it led.

    Attributes:
        sent: As `OnAir`, of the first round.
        heard: As `OnAir`, of the first round.
        own: [seed, node, dim] the models after the last epoch; they stay on the nodes.
        published: [seed, node, dim] the models that may be given away.
        later: The further rounds of every epoch, where there are any.
    """

    sent: NDArray[Any]
    heard: NDArray[Any]
    own: NDArray[Any]
    published: NDArray[Any]
    later: tuple[OnAir, ...] = ()

    @property
    def rounds(self) -> tuple[OnAir, ...]:
        """All rounds, in order."""
        return (OnAir(self.sent, self.heard), *self.later)

    def of_seeds(self, seeds: slice) -> "Transcript":
        """The same of some seeds only."""
        first, *later = (OnAir(one.sent[seeds], one.heard[seeds]) for one in self.rounds)
        return Transcript(*first, self.own[seeds], self.published[seeds], tuple(later))


class Taped(NamedTuple):
    """An algorithm's state with a tape.

    Attributes:
        inner: The algorithm's own state.
        sent: Of every round, [epochs, ...] signals so far, 0 from there on.
        heard: Of every round, [epochs, ...] what was heard so far.
    """

    inner: Any
    sent: tuple[jax.Array, ...]
    heard: tuple[jax.Array, ...]

    @property
    def own(self) -> Model:
        """The node's model."""
        model: Model = self.inner.own
        return model

    @property
    def published(self) -> Model:
        """What the node would give to the world."""
        model: Model = self.inner.published
        return model


class Receiving(NamedTuple):
    """An algorithm's tables with the number of the epoch."""

    inner: Any
    epoch: Leaf


def _as_it_is(state: Any) -> Any:
    return state


def transcripts(
    algorithm: Algorithm,
    problem: Problem,
    seeds: Iterable[int],
    precision: Precision = "float32",
    on_epoch: Count = quiet,
    prepare: Prepare = _as_it_is,
    epochs: int | None = None,
) -> Transcript:
    """Runs an algorithm on a problem for all seeds at once and keeps what was on the air.

    Args:
        algorithm: One whose nodes talk over the air.
        problem: What they learn; it must be the one that was planned for, and small.
        seeds: One run each, the same as `murmurcast.run` makes of them.
        precision: "float32", or "float64" at half the speed.
        on_epoch: Called about twice a second with (epochs done, epochs in all).
        prepare: What is changed in the nodes' first states.
        epochs: Only the first so many, which are the same as in the whole run; None for all.

    Raises:
        Error: Nothing is on the air, or the tape would be too large.
    """
    seeds = _check.whole_numbers("range(3)", seeds=seeds)
    require_settings(seeds, None, None, precision)
    require_planned_for(algorithm, problem)
    dtype = np.dtype(precision)
    _require_on_air(algorithm)
    last = algorithm.epochs if epochs is None else epochs
    _require_room(bytes_of_tape(algorithm, problem, dtype.itemsize, last) * len(seeds))
    needed = problem.nodes * (problem.bytes_per_gradient + problem.dim * dtype.itemsize)
    layout = sharding.layout(problem.nodes, len(seeds), needed)
    with jax.enable_x64(precision == "float64"):
        program = loop.program(taped(algorithm, problem.shape, last), problem, layout, seeds, dtype)
        inner = layout.put_filled(prepare(layout.take(program.start.state.inner)))
        point = Point(0, program.start._replace(state=program.start.state._replace(inner=inner)))
        while point.epoch < last:
            point = train.advance(program, point, last)
            on_epoch(point.epoch, last)
        state = layout.take(point.carry.state)
    return _by_seed(state, problem.dim)


def bytes_of_tape(algorithm: Algorithm, problem: Problem, bytes_per_number: int = 4, epochs: int | None = None) -> int:
    """What one seed's tape takes, of the first so many epochs or of all."""
    channels = [one.channel for one in algorithm.rounds]
    vectors = sum((channel.signals or 1) + (channel.neighbours or 1) for channel in channels)  # sent, and heard
    return (epochs or algorithm.epochs) * problem.nodes * problem.dim * vectors * bytes_per_number


def taped(algorithm: Algorithm, shape: tuple[int, ...], epochs: int) -> Algorithm:
    """The same algorithm, its state a `Taped`.

    Args:
        algorithm: Any.
        shape: Of one model.
        epochs: How many the tape is for, from the first.
    """
    channels = [one.channel for one in algorithm.rounds]

    def init(start: Model, local: Local) -> Taped:
        sent, heard = (
            tuple(jnp.zeros((epochs, *of(channel, shape)), start.dtype) for channel in channels)
            for of in (check.signal_shape, check.heard_shape)
        )
        return Taped(algorithm.init(start, local), sent, heard)

    rounds = tuple(_taped_round(one, number, epochs) for number, one in enumerate(algorithm.rounds))
    return algorithm._replace(init=init, rounds=rounds)


def _taped_round(one: Round, number: int, epochs: int) -> Round:
    """The same round; what was sent and heard in it is written down."""

    def send(here: Any, state: Taped, drawn: dict[str, jax.Array]) -> jax.Array:
        return one.send(here, state.inner, drawn)

    def written(tapes: tuple[jax.Array, ...], row: jax.Array, signal: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(tape.at[row].set(signal) if place == number else tape for place, tape in enumerate(tapes))

    def update(here: Receiving, state: Taped, sent: jax.Array, heard: jax.Array, local: Local) -> Taped:
        row = here.epoch.astype(jnp.int32) - 1
        following = state_of(one.update(here.inner, state.inner, sent, heard, local))
        return Taped(following, written(state.sent, row, sent), written(state.heard, row, heard))

    receiving = Receiving(one.receiving, np.arange(1.0, epochs + 1))
    return one._replace(receiving=receiving, send=send, update=update)


def _by_seed(state: Taped, dim: int) -> Transcript:
    """The tapes [nodes, seeds, epochs, ...] and models [nodes, seeds, ...], seeds first."""
    # As typed, the state holds arrays of JAX; `take` made NumPy's of them.
    own, published = map(np.asarray, (state.own, state.published))
    shape = own.shape[2:]

    def tape(tapes: jax.Array) -> NDArray[Any]:
        values = np.asarray(tapes)
        several = values.shape[3 : values.ndim - len(shape)]
        return np.moveaxis(values.reshape(*values.shape[:3], *several, dim), 0, 2)

    def model(values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(*values.shape[:2], dim).swapaxes(0, 1)

    first, *later = (OnAir(tape(sent), tape(heard)) for sent, heard in zip(state.sent, state.heard, strict=True))
    return Transcript(*first, model(own), model(published), tuple(later))


def _require_on_air(algorithm: Algorithm) -> None:
    if not any(one.channel.on_air for one in algorithm.rounds):
        raise Error(
            f'nothing of "{algorithm.name}" is on the air: its channel is "{algorithm.rounds[0].channel.kind}"',
            hint=f'choose an algorithm whose nodes talk to each other, such as "{registry.DEFAULT}"',
        )


def _require_room(needed: int) -> None:
    if needed > MAX_TAPE_BYTES:
        raise Error(
            f"all that is sent and heard takes {needed / 2**30:.1f} GiB, more than {MAX_TAPE_BYTES / 2**30:.0f}",
            hint="use fewer seeds, epochs, nodes or parameters",
        )
