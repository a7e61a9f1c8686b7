"""Targets followed through what was really sent: what is left of every signal, and what the auditor knows of it.

Given all that was sent before, whoever hears every antenna by itself knows what a target would send next, but for the
canaries and fresh noise. With Algorithm 1 this is the situation of the certificate's proof. The auditor, who planted
the canaries, knows these too: what is left to him is the noise itself, to rounding.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.algorithms.base import Algorithm
from murmurcast.audits.canaries import Canaries, Numbers
from murmurcast.audits.claims import Claims, NoiseOfReadings, claim
from murmurcast.audits.laplace_readings import as_normal
from murmurcast.audits.pair_noise import PairNoise, PairsAtNodes, pairs_at_nodes
from murmurcast.audits.replay import AS_IT_WAS, HALF_WAY, WITHOUT_DATA, Points, Signals, replay
from murmurcast.audits.transcript import Transcript
from murmurcast.problems.base import Data, Problem

Signs = NDArray[np.int8]
LOW_BITS = 3  # how many of the last bits of a signal are looked at
_ENOUGH_TO_TELL_POINTS = 4000  # coordinates in all runs that are followed at other points as well
_ELSEWHERE: tuple[Points, ...] = ("own", "without own noise")
_ROUNDING = 1e3 * float(np.finfo(np.float32).eps)  # of a signal: what arithmetic in another order may do to it
_NEGLIGIBLE = 0.01  # of the std of noise that was sent before


class Observed(NamedTuple):
    """Nodes that are followed, and all that is known of them.

    Attributes:
        algorithm: What they claim to do.
        actual: What they do; it says which keys the noise of pairs has.
        problem: Its data, without canaries.
        canaries: What was planted.
        nodes: Whom to follow.
        transcript: What was sent and heard.
        seeds: Of the transcript's runs.
        claims: What is claimed of the nodes' signals; see `claims_of`.
        data: `problem.local_data()`, where it is at hand already.
    """

    algorithm: Algorithm
    actual: Algorithm
    problem: Problem
    canaries: Canaries
    nodes: Numbers
    transcript: Transcript
    seeds: tuple[int, ...]
    claims: Claims
    data: Data | None = None

    def of_first_runs(self, count: int) -> "Observed":
        """The same of the first runs only."""
        here = self.canaries.of_runs(list(range(count)))
        return self._replace(canaries=here, seeds=self.seeds[:count])

    def signals(self, epoch: int) -> Signals:
        """Of every round of an epoch, from 1: [nodes, runs, ...] what nodes sent and heard."""
        runs = len(self.seeds)
        return tuple(
            (
                one.sent[:runs, epoch - 1, self.nodes].swapaxes(0, 1),
                one.heard[:runs, epoch - 1, self.nodes].swapaxes(0, 1),
            )
            for one in self.transcript.rounds
        )


def claims_of(algorithm: Algorithm, canaries: Canaries, nodes: Numbers) -> Claims:
    """What is claimed of nodes' signals, with the canaries of those that have some."""
    change = dict(zip(canaries.targets.tolist(), canaries.change.tolist(), strict=True))
    return claim(algorithm, nodes, np.array([change.get(node, 0.0) for node in nodes.tolist()]))


class Following(NamedTuple):
    """What is left of nodes' signals, in units of the noise that is claimed; 0 where nothing is sent.

    A reading is what is left of one signal given all that was sent before it, in the same epoch too. Signals of all
    rounds and links of an epoch stand in one row; those that only pass on what was sent before have no reading.

    Attributes:
        nodes: [nodes] who was followed, targets or not.
        noisy: [nodes, epochs, signals] whether something is sent, with noise, as is claimed.
        shift: [nodes, epochs, signals] of a reading, from a canary's world -1 to its world +1.
        surprises: [nodes, epochs, signals, runs, dim] beyond what an attacker expects who knows the noise of pairs.
        noise: [nodes, epochs, signals, runs, dim] beyond what follows from all data and canaries.
        bits: [nodes, epochs, signals, runs, dim] the last bits of the signals, as they were sent.
        moved: [nodes, epochs, runs, dim] the sign of what data and canaries did to the first signal with a reading.
        own: [nodes, epochs, runs, dim] the sign of the node's model.
        elsewhere: [points, nodes, epochs, signals, runs, dim] how far gradients at other points would move it from
            where it is; of as many runs as are needed, of none where gradients are not claimed to be at public points.
        unexplained: [nodes, epochs] how far signals without noise are from what follows from what was sent before, as a
            multiple of what rounding allows.
        published: [nodes, runs, dim] what is published beyond what an attacker expects.
        published_shift: [nodes].
        pairs: The noise that pairs of nodes share; None where they share none.
        law: Of the noise in a reading.
    """

    nodes: Numbers
    noisy: NDArray[np.bool_]
    shift: FloatArray
    surprises: NDArray[np.float32]
    noise: NDArray[np.float32]
    bits: Signs
    moved: Signs
    own: Signs
    elsewhere: NDArray[np.float32]
    unexplained: FloatArray
    published: FloatArray
    published_shift: FloatArray
    pairs: PairNoise | None = None
    law: NoiseOfReadings = "normal"

    def of_runs(self, runs: slice) -> "Following":
        """The same of some runs; of `elsewhere`, those that are among them."""
        chosen = {name: getattr(self, name)[..., runs, :] for name in _BY_RUN}
        pairs = None if self.pairs is None else self.pairs._replace(noise=self.pairs.noise[..., runs, :])
        return self._replace(**chosen, elsewhere=self.elsewhere[..., runs, :], pairs=pairs)


_BY_RUN = ("surprises", "noise", "bits", "moved", "own", "published")


class _Epoch(NamedTuple):
    """What is left of the signals of one epoch."""

    surprises: NDArray[np.float32]
    noise: NDArray[np.float32]
    bits: Signs
    moved: Signs
    own: Signs
    unexplained: FloatArray


def follow(observed: Observed, on_epoch: Count = quiet) -> Following:
    """Follows nodes through a transcript; `elsewhere` is left empty, and noise is as it is, whatever its law.

    Args:
        observed: Whom, through what.
        on_epoch: Called with (epochs done, epochs in all).
    """
    transcript, nodes, claims = observed.transcript, observed.nodes, observed.claims
    epochs, dim, readable = transcript.sent.shape[1], transcript.sent.shape[-1], claims.readable
    at_nodes = pairs_at_nodes(observed.actual, observed.algorithm, observed.seeds, dim, transcript.sent.dtype)
    followed = _replayed(observed, (HALF_WAY, AS_IT_WAS, WITHOUT_DATA), "as claimed")
    rows, state = [], followed.start
    for epoch in range(1, epochs + 1):
        signals = observed.signals(epoch)
        own = np.asarray(state.own[:, :, 1])
        state, expected = followed.step(epoch, state, signals)
        rows.append(_looked_at(claims, epoch, signals, expected, own, at_nodes))
        on_epoch(epoch, epochs)
    stacked = {name: np.stack([getattr(row, name) for row in rows], axis=1) for name in _Epoch._fields}
    noisy = claims.std[:, :, readable] > 0
    return Following(
        nodes=nodes,
        noisy=noisy,
        shift=claims.shift[:, :, readable],
        **stacked,
        elsewhere=np.zeros((0, *stacked["noise"].shape[:-2], 0, dim), np.float32),
        published=_beyond(transcript.published[:, nodes].swapaxes(0, 1), state),
        published_shift=claims.published_shift,
        pairs=None if at_nodes is None else at_nodes.in_units(claims, epochs),
        law=claims.law,
    )


def own_points(observed: Observed) -> NDArray[np.float32]:
    """What would be left of signals had gradients been taken elsewhere: [points, nodes, epochs, signals, runs, dim].

    Args:
        observed: As of `follow`; a few of its runs are enough.
    """
    dim, epochs = observed.transcript.sent.shape[-1], observed.transcript.sent.shape[1]
    few = observed.of_first_runs(min(len(observed.seeds), -(-_ENOUGH_TO_TELL_POINTS // dim)))
    claims = few.claims
    kind = few.transcript.sent.dtype
    at_nodes = pairs_at_nodes(few.actual, few.algorithm, few.seeds, dim, kind)
    left = []
    for points in _ELSEWHERE:
        followed, rows = _replayed(few, (AS_IT_WAS,), points), []
        state = followed.start
        for epoch in range(1, epochs + 1):
            signals = few.signals(epoch)
            state, expected = followed.step(epoch, state, signals)
            beyond = _flat(signals) - _flat_expected(expected, 0, dim) - _of_pairs(claims, epoch, at_nodes)
            rows.append(_readings(claims, epoch, beyond)[0][:, claims.readable])
        left.append(np.stack(rows, axis=1))
    return np.stack(left)


def finished(followed: Following, elsewhere: NDArray[np.float32] | None) -> Following:
    """With what gradients elsewhere would do, from what would be left of signals then; and noise that checks know."""
    if elsewhere is not None:
        apart = followed.noise[..., : elsewhere.shape[-2], :] - elsewhere
        followed = followed._replace(elsewhere=apart)
    return followed._replace(noise=as_normal(followed.noise)) if followed.law == "laplace" else followed


def joined(parts: list[Following]) -> Following:
    """The same of several groups of runs; `elsewhere`, of which few are needed, of the first."""
    first = parts[0]
    if len(parts) == 1:
        return first
    by_run: Any = {name: np.concatenate([getattr(part, name) for part in parts], axis=-2) for name in _BY_RUN}
    pairs = first.pairs
    if pairs is not None:
        pairs = pairs._replace(noise=np.concatenate([part.pairs.noise for part in parts if part.pairs], axis=-2))
    unexplained = np.max([part.unexplained for part in parts], axis=0)
    return first._replace(**by_run, pairs=pairs, unexplained=unexplained)


def bytes_of_following(algorithm: Algorithm, dim: int, runs: int) -> int:
    """What is kept of one node."""
    signals = sum(one.channel.signals or 1 for one in algorithm.rounds if one.draws) or 1
    return algorithm.epochs * dim * runs * (9 * signals + 2)


def _replayed(observed: Observed, worlds: Any, points: Points) -> Any:
    return replay(
        observed.algorithm,
        observed.problem,
        observed.canaries,
        observed.nodes,
        observed.seeds,
        worlds,
        points,
        observed.data,
    )


def _looked_at(
    claims: Claims, epoch: int, signals: Signals, expected: Any, own: NDArray[Any], at_nodes: PairsAtNodes | None
) -> _Epoch:
    """What is left of an epoch's signals, for an attacker half way and for the auditor."""
    sent, readable = _flat(signals), claims.readable
    of_pairs = _of_pairs(claims, epoch, at_nodes)
    half, real, idle = (_flat_expected(expected, world, sent.shape[-1]) for world in range(3))
    surprises, _ = _readings(claims, epoch, sent - half - of_pairs)
    noise, rest = _readings(claims, epoch, sent - real - of_pairs)
    bits = np.concatenate([_signals_apart(_low_bits(one.sent)) for one in map(_Spoken._make, signals)], axis=1)
    first = readable[0] if len(readable) else 0
    return _Epoch(
        surprises[:, readable],
        noise[:, readable],
        bits[:, readable],
        np.sign(real[:, first] - idle[:, first]).astype(np.int8),
        np.sign(own.reshape(real[:, 0].shape)).astype(np.int8),
        _beyond_rounding(claims, epoch, (sent, real), rest),
    )


class _Spoken(NamedTuple):
    sent: NDArray[Any]
    heard: NDArray[Any]


def _signals_apart(sent: NDArray[Any]) -> NDArray[Any]:
    """[nodes, signals, runs, dim] from [nodes, runs, dim] or [nodes, runs, signals, dim]."""
    return np.moveaxis(sent.reshape(*sent.shape[:2], -1, sent.shape[-1]), 2, 1)


def _flat(signals: Signals) -> FloatArray:
    """[nodes, signals, runs, dim] all signals of an epoch."""
    return np.concatenate([_signals_apart(sent).astype(np.float64) for sent, _ in signals], axis=1)


def _flat_expected(expected: Any, world: int, dim: int) -> FloatArray:
    """The same of what was expected in a world, from [nodes, runs, worlds, ...]."""
    parts = (np.asarray(one[:, :, world], np.float64) for one in expected)
    return np.concatenate([_signals_apart(part.reshape(*part.shape[:2], -1, dim)) for part in parts], axis=1)


def _of_pairs(claims: Claims, epoch: int, at_nodes: PairsAtNodes | None) -> "FloatArray | float":
    """[nodes, signals, runs, dim] what the noise of pairs does to every signal: both ends know it."""
    if at_nodes is None:
        return 0.0
    drawn = at_nodes.drawn(epoch)[claims.nodes]
    return np.asarray(np.einsum("nsl,nlrd->nsrd", claims.shared[:, epoch - 1], drawn))


def _readings(claims: Claims, epoch: int, beyond: FloatArray) -> tuple[NDArray[np.float32], FloatArray]:
    """Readings of signals [nodes, signals, runs, dim], and what is left of those that have none, in their own units."""
    scale, rest = claims.scale[:, epoch - 1, :, None, None], beyond
    if claims.earlier is not None:
        rest, std = beyond.copy(), claims.std[:, epoch - 1]
        for signal in range(beyond.shape[1]):
            known = claims.earlier[:, epoch - 1, signal, :signal] / np.where(std > 0, std, np.inf)[:, :signal]
            rest[:, signal] -= np.einsum("ni,nird->nrd", known, rest[:, :signal])
    return (rest / scale).astype(np.float32), rest


def _beyond_rounding(
    claims: Claims, epoch: int, signals: tuple[FloatArray, FloatArray], rest: FloatArray
) -> FloatArray:
    """[nodes] the largest rest of a signal that should have none, as a multiple of what rounding allows."""
    # As large as what was sent, or as what was expected: where both are 0, nothing is left of them.
    size, std = np.abs(signals).max(axis=(0, -2, -1)), claims.std[:, epoch - 1]
    allowed = _ROUNDING * size + _NEGLIGIBLE * claims.spread[:, epoch - 1]
    if claims.earlier is not None:
        share = np.abs(claims.earlier[:, epoch - 1]) / np.where(std > 0, std, np.inf)[:, None]
        allowed = allowed + _ROUNDING * np.einsum("nsi,ni->ns", share, size)
    largest = np.where(np.isinf(claims.scale[:, epoch - 1]), np.abs(rest).max(axis=(-2, -1)), 0.0)
    tiny = np.finfo(np.float64).tiny
    return np.asarray((largest / np.maximum(allowed, tiny)).max(axis=1))


def _low_bits(sent: NDArray[Any]) -> Signs:
    """The last bits of every number, as it was sent."""
    bits: NDArray[Any] = np.ascontiguousarray(sent).view(f"u{sent.dtype.itemsize}")
    return np.asarray(bits % 2**LOW_BITS, np.int8)


def _beyond(given: FloatArray, state: Any) -> FloatArray:
    """[nodes, runs, dim] what is published beyond what an attacker expects.

    Beyond the expected own model, should it be plain to see that this one was given away instead.
    """
    models = (np.asarray(model[:, :, 0], np.float64).reshape(given.shape) for model in (state.published, state.own))
    beyond = [given - model for model in models]
    nearest = np.argmin([np.linalg.norm(part, axis=-1) for part in beyond], axis=0)
    return np.asarray(np.where(nearest[..., None], beyond[1], beyond[0]))
