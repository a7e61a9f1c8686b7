"""The eavesdropper: hears every antenna by itself, and holds all published models.

With Algorithm 1 this is the situation of the certificate's proof, so its best guess reaches the certified mu.
"""

from collections.abc import Iterator

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.following import Following


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
    yield "eavesdropper", heard.beside(others)
    yield "last epoch alone", _last_epoch(following, place)
    bits = following.bits[place].reshape(heard.readings.shape) & 1
    squares = np.square(heard.readings)
    yield "squares and low bits", heard.beside(squares - 1, bits - 0.5)
    # A published model is a function of what was sent: no noise is claimed for it, any scale serves.
    beyond = following.published[place]
    scale = max(float(np.abs(beyond).max()), np.finfo(np.float64).tiny)
    given = Evidence(beyond[None] / scale, following.published_shift[place : place + 1] / scale)
    yield "published, with the air", heard.beside(others).joined(given)


def of_signals(following: Following, place: int) -> Evidence:
    """One target's signals in every epoch and to every neighbour."""
    surprises, shift = following.surprises[place], following.shift[place].ravel()
    return Evidence(surprises.reshape(-1, *surprises.shape[2:]).astype(np.float64), shift)


def _last_epoch(following: Following, place: int) -> Evidence:
    """The last signal that a canary can be in, by itself: a fault that comes late is not averaged away."""
    shift = following.shift[place]
    epochs = np.flatnonzero(np.abs(shift).sum(axis=1))
    last = int(epochs[-1]) if len(epochs) else -1
    part = float(np.linalg.norm(shift[last]) / max(np.linalg.norm(shift), np.finfo(np.float64).tiny))
    return Evidence(following.surprises[place, last].astype(np.float64), shift[last], part)


def _of_others(readings: FloatArray) -> FloatArray:
    """The sum over all other coordinates of a run, of about unit variance: it says nothing, unless noise is shared.

    As read, signs and all: to take the others' shifts away first would let told signs into the readings of those that
    are not told.
    """
    dim = readings.shape[-1]
    if dim == 1:
        return readings[:0]
    return np.asarray((readings.sum(axis=-1, keepdims=True) - readings) / np.sqrt(dim - 1))
