"""The eavesdropper: hears every antenna by itself, and holds all published models.

Given all that was sent before, it knows what the target would send next, but for the canaries and fresh noise. With
Algorithm 1 this is the situation of the certificate's proof, so its best guess reaches the certified mu.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast.algorithms.base import Algorithm, Sending
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.replay import Replay, replay, response, tables_at
from murmurcast.audits.transcript import Transcript, spoken_round
from murmurcast.errors import Error
from murmurcast.problems.base import Problem


class Overheard(NamedTuple):
    """What is left of the target's signals and of its published model when all that was expected is taken away.

    Attributes:
        air: Of the signals, in every epoch and to every neighbour.
        published: The same, and what the published model shows beyond it: nothing but rounding where it is a function
            of what was sent.
    """

    air: Evidence
    published: Evidence


def overhear(
    algorithm: Algorithm,
    problem: Problem,
    canaries: Canaries,
    transcript: Transcript,
    seeds: tuple[int, ...],
    on_epoch: Count = quiet,
) -> Overheard:
    """Follows the target through a transcript.

    Args:
        algorithm: What the nodes claim to do.
        problem: Its data, without canaries.
        canaries: What was planted.
        transcript: What was sent and heard.
        seeds: Of the transcript's runs.
        on_epoch: Called with (epochs done, epochs in all).
    """
    node = np.array([canaries.target])
    followed = replay(algorithm, problem, canaries, node, seeds)
    moved, moved_published = response(algorithm, canaries.target, canaries.change)
    left, published = _surprises(algorithm, followed, transcript, on_epoch)
    noise = _claimed_noise(algorithm, canaries.target, np.abs(moved).max())
    readings = (left / noise[:, :, None, None]).reshape(-1, *left.shape[2:])
    shift = (moved[:, None] / noise).ravel()
    heard = np.isfinite(shift)  # a neighbour that is not there is not sent to
    readings, shift = readings[heard], shift[heard]
    others = _of_others(readings)
    air = Evidence(np.concatenate([readings, others]), np.concatenate([shift, np.zeros(len(others))]))
    # A published model is a function of what was sent: no noise is claimed for it, any scale serves.
    scale = max(float(np.abs(published).max()), np.finfo(np.float64).tiny)
    given_away = np.concatenate([air.readings, published[None] / scale])
    return Overheard(air, Evidence(given_away, np.append(air.shift, moved_published / scale)))


def _of_others(readings: FloatArray) -> FloatArray:
    """The sum over all other coordinates of a run, of about unit variance: it says nothing, unless noise is shared.

    As read, signs and all: to take the others' shifts away first would let told signs into the readings of those that
    are not told.
    """
    dim = readings.shape[-1]
    if dim == 1:
        return readings[:0]
    return np.asarray((readings.sum(axis=-1, keepdims=True) - readings) / np.sqrt(dim - 1))


def _surprises(
    algorithm: Algorithm, followed: Replay, transcript: Transcript, on_epoch: Count
) -> tuple[FloatArray, FloatArray]:
    """[epochs, links, runs, dim] what is said beyond what was expected, and [runs, dim] what is published.

    The latter beyond the expected own model, should it be plain to see that this one was given away instead.
    """
    target, state = int(followed.nodes[0]), followed.start
    runs, epochs, dim = len(transcript.sent), transcript.sent.shape[1], transcript.sent.shape[-1]
    left = []
    for epoch in range(1, epochs + 1):
        sent = transcript.sent[:, epoch - 1, target]
        said = _said(algorithm, sent.reshape(runs, -1, dim), epoch, target)
        left.append(said - np.asarray(state.own, np.float64).reshape(1, runs, dim))
        state = followed.step(epoch, state, sent[None], transcript.heard[None, :, epoch - 1, target])
        on_epoch(epoch, epochs)
    given = transcript.published[:, target]
    beyond = [given - np.asarray(model, np.float64).reshape(runs, dim) for model in (state.published, state.own)]
    nearest = np.argmin([np.linalg.norm(part, axis=1) for part in beyond], axis=0)
    return np.stack(left), np.where(nearest[:, None], beyond[1], beyond[0])


def _sending(algorithm: Algorithm) -> Sending:
    """The tables of a signal that is a model with noise; of others it is not known what to expect."""
    tables = spoken_round(algorithm).sending
    if not {"amplitude", "noise", "schedule"} <= set(tables._fields):
        raise Error(
            f'no attack is known on the signals of "{algorithm.name}": they are not a model with noise',
            hint="audit an algorithm whose sending tables have amplitude, noise and schedule",
        )
    sending: Sending = tables
    return sending


def _said(algorithm: Algorithm, sent: NDArray[Any], epoch: int, target: int) -> FloatArray:
    """[links, runs, dim] signals in the units of the model; nothing where nothing is sent."""
    amplitude = tables_at(_sending(algorithm), epoch, np.array([target]), np.dtype(np.float64)).amplitude.reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sent.swapaxes(0, 1).astype(np.float64) / amplitude[:, None, None])


def _claimed_noise(algorithm: Algorithm, target: int, without: float) -> FloatArray:
    """[epochs, links] std of the noise in the units of the model; `without` stands for none."""
    rows = []
    for epoch in range(1, algorithm.epochs + 1):
        here = tables_at(_sending(algorithm), epoch, np.array([target]), np.dtype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            rows.append(here.noise.reshape(-1) * here.schedule / here.amplitude.reshape(-1))
    noise = np.stack(rows)
    return np.where(noise == 0, without, noise)
