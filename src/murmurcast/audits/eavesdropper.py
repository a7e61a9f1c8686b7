"""The eavesdropper: hears every antenna by itself, and holds all published models.

This is the situation of a certificate's proof, so its best guess reaches the certified mu where the proof is tight.
Where pairs of nodes share noise, everybody together knows it; an eavesdropper alone, or with one node, does not.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.following import Following
from murmurcast.audits.laplace_readings import clipped
from murmurcast.audits.pair_noise import PairNoise, mu_without_keys, without_keys


def overheard(following: Following, place: int) -> "Iterator[tuple[str, Evidence]]":
    """What the eavesdropper has of one target's canaries, looked at in several ways.

    Args:
        following: The targets' signals, without what was expected.
        place: Of the target among them.

    Yields:
        A name, and the evidence.
    """
    heard = of_signals(following, place)
    others = _of_others(heard.readings)
    if following.pairs is None:
        yield "eavesdropper", heard.beside(others)
    else:
        yield "everybody", heard.beside(others, _of_pairs(following.pairs, place))
        yield from _without_keys(following, following.pairs, place)
    yield "last epoch alone", _last_epoch(following, place)
    bits = following.bits[place].reshape(heard.readings.shape) & 1
    squares = np.square(heard.readings)
    yield "squares and low bits", heard.beside(squares - 1, bits - 0.5)
    # A published model is a function of what was sent: no noise is claimed for it, any scale serves.
    beyond = following.published[place]
    scale = max(float(np.abs(beyond).max()), np.finfo(np.float64).tiny)
    given = Evidence(beyond[None] / scale, following.published_shift[place : place + 1] / scale)
    yield "published, with the air", heard.beside(others).joined(given)


def _of_pairs(pairs: PairNoise, place: int) -> FloatArray:
    """[epochs, runs, dim] the noise that a target shares with others, who know it: nothing of it should be left."""
    weight = pairs.weight[place]
    size = np.maximum(np.linalg.norm(weight, axis=-1), np.finfo(np.float64).tiny)
    return np.asarray(np.einsum("tp,tprd->trd", weight / size[:, None], pairs.noise))


def _without_keys(following: Following, pairs: PairNoise, place: int) -> "Iterator[tuple[str, Evidence]]":
    """What is left to those who do not know the noise of all pairs."""
    readings = following.surprises[:, :, 0], following.noise[:, :, 0]
    shift, nodes = following.shift[place, :, 0], following.nodes
    curious = [int(node) for node in np.unique(pairs.ends) if node != nodes[place]]
    reached = {node: mu_without_keys(shift, pairs, place, node, nodes) for node in curious}
    best = max(reached, key=lambda node: reached[node], default=None)
    if best is not None:
        besides = without_keys(readings, shift, pairs, place, best, nodes)
        yield f"eavesdropper and node {best}", besides._replace(against="eavesdropper and one node")
    yield "eavesdropper", without_keys(readings, shift, pairs, place, None, nodes)._replace(against="eavesdropper")


def of_signals(following: Following, place: int) -> Evidence:
    """One target's signals in every epoch and round, and to every neighbour."""
    surprises, shift = _to_guess_by(following, place)
    return Evidence(surprises.reshape(-1, *surprises.shape[2:]).astype(np.float64), shift.ravel())


def _to_guess_by(following: Following, place: int) -> tuple[NDArray[np.float32], FloatArray]:
    """Readings [epochs, signals, runs, dim] whose sum, weighed by their shifts, is the best test; and these."""
    surprises, shift = following.surprises[place], following.shift[place]
    return clipped(surprises, shift) if following.law == "laplace" else (surprises, shift)


def _last_epoch(following: Following, place: int) -> Evidence:
    """The last signal that a canary can be in, by itself: a fault that comes late is not averaged away."""
    surprises, shift = _to_guess_by(following, place)
    epochs = np.flatnonzero(np.abs(shift).sum(axis=1))
    last = int(epochs[-1]) if len(epochs) else -1
    part = float(np.linalg.norm(shift[last]) / max(np.linalg.norm(shift), np.finfo(np.float64).tiny))
    return Evidence(surprises[last].astype(np.float64), shift[last], part)


def _of_others(readings: FloatArray) -> FloatArray:
    """The sum over all other coordinates of a run, of about unit variance: it says nothing, unless noise is shared.

    As read, signs and all: to take the others' shifts away first would let told signs into the readings of those that
    are not told.
    """
    dim = readings.shape[-1]
    if dim == 1:
        return readings[:0]
    return np.asarray((readings.sum(axis=-1, keepdims=True) - readings) / np.sqrt(dim - 1))
