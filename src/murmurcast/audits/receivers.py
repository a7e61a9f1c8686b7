"""Receivers, one or several together: they know their own signals and noise, and what their antennas have of others'.

On the ideal channel that is one sum; over a radio it is whatever its access lets through, every neighbour alone where
each has a slot, in every round. Gains, phases, dither and pilots are public. Their own receivers' noise is taken as 0:
an antenna may be better than a plan knows of. What is quantised they are granted as it was before.

Under gradients that do not react to hidden states all is linear and Gaussian, and the Kalman filter of the linear
diagnostic whitens what they hear: readings are exactly standard normal, and the worlds lie `Observed.linear_common`
apart. Where gradients do react, the receivers take them at the filter's estimate of the hidden nodes' mixed points. The
statistic is then an approximation; as an attack it is as honest, because it uses nothing that they do not have.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.common_reference import renews_reference
from murmurcast.algorithms.observed import System
from murmurcast.audits.claims import amplitude_in_epochs
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.replay import Replay
from murmurcast.audits.symbols import Symbols, as_numbers, as_symbols, turned
from murmurcast.audits.transcript import Transcript
from murmurcast.errors import Error
from murmurcast.privacy.linear_radio import filter_steps


class View(NamedTuple):
    """All that a coalition has of a run, in the units of models.

    Attributes:
        observers: Its members, in ascending order.
        said: Of every round that mixes, [seed, epoch, observer, dim] what its members said, with noise of their own.
        received: Of every such round, [seed, epoch, row, dim] what the others said, as antennas heard it; each row is a
            sum, of symbols where phases count.
        reference: [seed, epoch, dim] what everybody speaks relative to, in public; zeros where there is none.
    """

    observers: tuple[int, ...]
    said: tuple[FloatArray, ...]
    received: tuple[Symbols, ...]
    reference: FloatArray


def view(algorithm: Algorithm, system: System, transcript: Transcript, observers: tuple[int, ...]) -> View:
    """What a coalition has of runs of Algorithm 1: its own signals, and what its antennas heard beside them.

    Args:
        algorithm: Algorithm 1, as it is claimed.
        system: Its plan as the linear diagnostic sees it.
        transcript: Of which only what reaches them is used.
        observers: Its members.
    """
    members = _check.observers(algorithm.plan.network.nodes, observers)
    amplitude, reference = amplitude_in_epochs(algorithm), _reference(algorithm, transcript)
    said: list[FloatArray] = []
    received: list[Symbols] = []
    hidden, kind = np.setdiff1d(np.arange(algorithm.plan.network.nodes), members), _kind(system, members)
    for one, on_air in zip(system.rounds, transcript.rounds, strict=False):  # a last one may renew the reference
        own = on_air.sent[:, :, list(members)].astype(np.float64) / amplitude[:, members, None]
        said.append(own + reference[:, :, None])
        if algorithm.plan.radio is None:
            received.append(_sums(algorithm, on_air.heard, own, members))
        else:
            spoken = on_air.sent[:, :, hidden] / amplitude[:, hidden, None] + reference[:, :, None]
            rows: Any = one.antennas(members)[:, :, hidden]
            received.append(rows @ as_symbols(spoken, kind))
    return View(members, tuple(said), tuple(received), reference)


def _kind(system: System, observers: tuple[int, ...]) -> "np.dtype[Any]":
    """Complex where phases count, in weights or at antennas."""
    return np.result_type(*(part for one in system.rounds for part in (one.weights, one.antennas(observers))))


def _sums(algorithm: Algorithm, heard: NDArray[Any], own: FloatArray, observers: tuple[int, ...]) -> FloatArray:
    """On the ideal channel, without what they said themselves."""
    mixing, members = algorithm.plan.mixing, list(observers)
    compensation = (mixing.compensation * mixing.normaliser)[members, None]
    among = mixing.weights.toarray()[np.ix_(members, members)]
    np.fill_diagonal(among, 0.0)  # nobody hears itself
    return np.asarray(heard[:, :, members].astype(np.float64) / compensation - among @ own)


def _reference(algorithm: Algorithm, transcript: Transcript) -> FloatArray:
    """[seed, epoch, dim] what was said by all relative to it."""
    first, last = transcript.sent, algorithm.rounds[-1]
    reference = np.zeros((*first.shape[:2], first.shape[-1]))
    if renews_reference(last):
        for epoch in range(1, first.shape[1]):
            renewed = last.receiving.renews[epoch - 1] > 0
            reference[:, epoch] = transcript.rounds[-1].heard[:, epoch - 1, 0] if renewed else reference[:, epoch - 1]
    return reference


class Heard(NamedTuple):
    """What observers make of what they have; it serves for all targets.

    Attributes:
        observers: Who they are.
        readings: [readings, runs, dim] whitened by what is claimed of the noise; of symbols where phases count.
        shift: [nodes, readings] by a unit change of every gradient of a node; 0 for the observers.
        dim: Coordinates of a model.
    """

    observers: tuple[int, ...]
    readings: Symbols
    shift: Symbols
    dim: int

    def about(self, target: int, change: float) -> Evidence:
        """The evidence of one target, whose gradients change by so much."""
        if target in self.observers:
            raise Error(f"node {target} is an observer of itself", hint="name a target outside the coalition")
        readings, shift = turned(self.readings, self.shift[target], self.dim)
        return Evidence(readings, change * shift)


def listen(algorithm: Algorithm, system: System, seen: View, followed: Replay, on_epoch: Count = quiet) -> Heard:
    """Filters what observers have, and nothing else.

    Args:
        algorithm: Algorithm 1, as it is claimed.
        system: Its plan as the linear diagnostic sees it.
        seen: What the observers have.
        followed: All hidden nodes half way between the worlds, in ascending order.
        on_epoch: Called with (epochs done, epochs in all).
    """
    hidden, members = followed.nodes, np.array(seen.observers)
    seeds, epochs, _, dim = seen.said[0].shape
    kind = _kind(system, seen.observers)
    push = (system.push / algorithm.plan.sensitivity)[:, hidden]
    state, moved = followed.start, np.zeros((len(hidden), len(hidden)), kind)
    readings, shift = [], []
    for epoch, now in enumerate(filter_steps(system.rounds, seen.observers, system.effective_noise)):
        own = np.asarray(state.own, np.float64).reshape(len(hidden), seeds, dim)
        expected = as_symbols(own, kind)
        heard, known = _beside_own(system, seen, hidden, members, epoch, kind)
        surprise = np.tensordot(now.whiten, heard, axes=1) - np.tensordot(now.observe, expected, axes=1)
        readings.append(surprise)
        shift.append(now.observe @ moved)
        mixed = np.tensordot(now.predict, expected, axes=1) + np.tensordot(now.correct, surprise, axes=1) + known
        signals = _signals(algorithm, seen, hidden, epoch, as_numbers(mixed, dim))
        state = followed.step(epoch + 1, state, signals).state
        moved = now.carry @ moved - np.diag(push[epoch])
        on_epoch(epoch + 1, epochs)
    by_node = np.zeros((system.push.shape[1], sum(map(len, shift))), kind)
    by_node[hidden] = np.concatenate(shift).T
    return Heard(seen.observers, np.concatenate(readings), by_node, dim)


def _beside_own(
    system: System, seen: View, hidden: NDArray[np.int64], members: NDArray[np.int64], epoch: int, kind: Any
) -> tuple[Any, Any]:
    """What observers hear in an epoch without what they said in it, and what that did to hidden nodes' mixed points."""
    heard, known = [], np.zeros(())
    for number, one in enumerate(system.rounds):
        rows, weights = one.antennas(seen.observers)[epoch][:, hidden], one.weights[epoch]
        received = np.moveaxis(seen.received[number][:, epoch], 0, 1)
        heard.append(received - (np.tensordot(rows, known, axes=1) if known.ndim else 0))
        said = as_symbols(np.moveaxis(seen.said[number][:, epoch], 0, 1), kind)
        carried = np.tensordot(weights[np.ix_(hidden, hidden)], known, axes=1) if known.ndim else 0
        known = carried + np.tensordot(weights[np.ix_(hidden, members)], said, axes=1)
    return np.concatenate(heard), known


def _signals(algorithm: Algorithm, seen: View, hidden: NDArray[np.int64], epoch: int, mixed: FloatArray) -> Any:
    """Of every round, signals that make these mixed points, [nodes, runs, dim]: what was heard before is in them."""
    plan, nothing = algorithm.plan, np.zeros_like(mixed)
    factor = 1.0 if plan.radio is not None else (plan.mixing.compensation * plan.mixing.normaliser)[hidden, None, None]
    heard = (mixed - seen.reference[None, :, epoch]) * factor
    signals = [(nothing, heard)] * len(seen.said)
    if len(algorithm.rounds) > len(seen.said):
        renewed = seen.reference[:, min(epoch + 1, seen.reference.shape[1] - 1)]
        signals.append((nothing, np.broadcast_to(renewed, mixed.shape)))
    return tuple(signals)
