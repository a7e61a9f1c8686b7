"""Everything that was sent and heard in a run, epoch by epoch, from the engine that trains.

The algorithm is wrapped, not the engine: its state also carries a tape, and `update` writes down the signal and the sum
that the engine hands it. Noise, channel and compiled loop are those of `murmurcast.run`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._progress import Count, quiet
from murmurcast.algorithms.base import Air, Algorithm, Leaf, Local, Model, Slots
from murmurcast.engine import loop, sharding, train
from murmurcast.engine.train import Point
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision
from murmurcast.runs.run import require_planned_for, require_settings

MAX_TAPE_BYTES = 2**30  # bytes of tape


class Transcript(NamedTuple):
    """What happened on the air, and where it led.

    Attributes:
        sent: [seed, epoch, node, dim] the signal of every node; through `Slots` [seed, epoch, node, neighbour, dim].
        heard: [seed, epoch, node, dim] the over-the-air sum at every receiver.
        own: [seed, node, dim] the models after the last epoch; they stay on the nodes.
        published: [seed, node, dim] the models that may be given away.
    """

    sent: NDArray[Any]
    heard: NDArray[Any]
    own: NDArray[Any]
    published: NDArray[Any]


class Taped(NamedTuple):
    """An algorithm's state with a tape.

    Attributes:
        inner: The algorithm's own state.
        sent: [epochs, ...] signals so far, 0 from there on.
        heard: [epochs, ...] sums so far.
    """

    inner: Any
    sent: jax.Array
    heard: jax.Array

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


def transcripts(
    algorithm: Algorithm,
    problem: Problem,
    seeds: Iterable[int],
    precision: Precision = "float32",
    on_epoch: Count = quiet,
) -> Transcript:
    """Runs an algorithm on a problem for all seeds at once and keeps what was on the air.

    Args:
        algorithm: One whose nodes talk over the air.
        problem: What they learn; it must be the one that was planned for, and small.
        seeds: One run each, the same as `murmurcast.run` makes of them.
        precision: "float32", or "float64" at half the speed.
        on_epoch: Called about twice a second with (epochs done, epochs in all).

    Raises:
        Error: Nothing is on the air, or the tape would be too large.
    """
    seeds = _check.whole_numbers("range(3)", seeds=seeds)
    require_settings(seeds, None, None, precision)
    require_planned_for(algorithm, problem)
    dtype, epochs = np.dtype(precision), algorithm.plan.schedule.epochs
    _require_on_air(algorithm)
    _require_room(bytes_of_tape(algorithm, problem, dtype.itemsize) * len(seeds))
    needed = problem.nodes * (problem.bytes_per_gradient + problem.dim * dtype.itemsize)
    layout = sharding.layout(problem.nodes, len(seeds), needed)
    with jax.enable_x64(precision == "float64"):
        program = loop.program(taped(algorithm, problem.shape), problem, layout, seeds, dtype)
        point = Point(0, program.start)
        while point.epoch < epochs:
            point = train.advance(program, point, epochs)
            on_epoch(point.epoch, epochs)
        state = train.to_host(layout, point.carry).state
    return _by_seed(state, problem.dim)


def bytes_of_tape(algorithm: Algorithm, problem: Problem, bytes_per_number: int = 4) -> int:
    """What one seed's tape takes."""
    signals = 1 + (_links(algorithm) or (1,))[0]  # one sum heard, and one signal or several sent
    return algorithm.plan.schedule.epochs * problem.nodes * problem.dim * signals * bytes_per_number


def taped(algorithm: Algorithm, shape: tuple[int, ...]) -> Algorithm:
    """The same algorithm, its state a `Taped`.

    Args:
        algorithm: Any.
        shape: Of one model.
    """
    epochs, links = algorithm.plan.schedule.epochs, _links(algorithm)

    def init(start: Model) -> Taped:
        leading = start.shape[: start.ndim - len(shape)]
        sent, heard = (jnp.zeros((*leading, epochs, *signal), start.dtype) for signal in ((*links, *shape), shape))
        return Taped(algorithm.init(start), sent, heard)

    def send(here: Any, state: Taped, noise: jax.Array) -> jax.Array:
        return algorithm.send(here, state.inner, noise)

    def update(here: Receiving, state: Taped, sent: jax.Array, heard: jax.Array, local: Local) -> Taped:
        row = here.epoch.astype(jnp.int32) - 1
        following = algorithm.update(here.inner, state.inner, sent, heard, local)
        return Taped(following, state.sent.at[row].set(sent), state.heard.at[row].set(heard))

    receiving = Receiving(algorithm.receiving, np.arange(1.0, epochs + 1))
    return algorithm._replace(receiving=receiving, init=init, send=send, update=update)


def _by_seed(state: Taped, dim: int) -> Transcript:
    """The tapes [nodes, seeds, epochs, ...] and models [nodes, seeds, ...], seeds first."""

    def tape(values: NDArray[Any], links: tuple[int, ...] = ()) -> NDArray[Any]:
        return np.moveaxis(values.reshape(*values.shape[:3], *links, dim), 0, 2)

    def model(values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(*values.shape[:2], dim).swapaxes(0, 1)

    # As typed, the state holds arrays of JAX; `to_host` made NumPy's of them.
    sent, heard, own, published = map(np.asarray, (state.sent, state.heard, state.own, state.published))
    links = sent.shape[3:4] if sent.ndim > heard.ndim else ()
    return Transcript(tape(sent, links), tape(heard), model(own), model(published))


def _links(algorithm: Algorithm) -> tuple[int, ...]:
    """(signals a node sends in an epoch,) where it sends several."""
    medium = algorithm.medium
    return (int(np.diff(medium.gains.indptr).max()),) if isinstance(medium, Slots) else ()


def _require_on_air(algorithm: Algorithm) -> None:
    if not isinstance(algorithm.medium, Air | Slots):
        raise Error(
            f'nothing of "{algorithm.name}" is on the air: its medium is {type(algorithm.medium).__name__}',
            hint='choose an algorithm whose nodes talk to each other, such as "power-controlled"',
        )


def _require_room(needed: int) -> None:
    if needed > MAX_TAPE_BYTES:
        raise Error(
            f"all that is sent and heard takes {needed / 2**30:.1f} GiB, more than {MAX_TAPE_BYTES / 2**30:.0f}",
            hint="use fewer seeds, epochs, nodes or parameters",
        )
