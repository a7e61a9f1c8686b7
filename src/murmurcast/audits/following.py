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
from murmurcast.algorithms.base import Algorithm, Sending
from murmurcast.audits.canaries import Canaries, Numbers
from murmurcast.audits.replay import (
    AS_IT_WAS,
    HALF_WAY,
    WITHOUT_DATA,
    as_claimed,
    at_own_point,
    replay,
    response,
    tables_at,
)
from murmurcast.audits.transcript import Transcript, spoken_round
from murmurcast.errors import Error
from murmurcast.problems.base import Data, Problem

Signs = NDArray[np.int8]
LOW_BITS = 3  # how many of the last bits of a signal are looked at
_ENOUGH_TO_TELL_POINTS = 4000  # coordinates in all runs that are followed at own points as well


class Following(NamedTuple):
    """What is left of nodes' signals, in units of the noise that is claimed; 0 where nothing is sent.

    Attributes:
        nodes: [nodes] who was followed, targets or not.
        noisy: [nodes, epochs, links] whether something is sent, with noise, as is claimed.
        shift: [nodes, epochs, links] of a signal, from a canary's world -1 to its world +1.
        surprises: [nodes, epochs, links, runs, dim] beyond what an attacker expects.
        noise: [nodes, epochs, links, runs, dim] beyond what follows from all data and canaries.
        bits: [nodes, epochs, links, runs, dim] the last bits of the signals, as they were sent.
        moved: [nodes, epochs, runs, dim] the sign of what data and canaries did to the model that is sent.
        own: [nodes, epochs, runs, dim] the sign of this model.
        elsewhere: [nodes, epochs, links, runs, dim] how far gradients at own points would move it from where it is;
            of as many runs as are needed, of none where gradients are claimed to be taken there.
        published: [nodes, runs, dim] what is published beyond what an attacker expects.
        published_shift: [nodes].
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
    published: FloatArray
    published_shift: FloatArray


class Units(NamedTuple):
    """What signals are measured in.

    Attributes:
        scale: [nodes, epochs, links] std of the noise as claimed; infinite where nothing is sent.
        noisy: [nodes, epochs, links] whether there is noise.
        shift: [nodes, epochs, links] of a signal by a canary.
    """

    scale: FloatArray
    noisy: NDArray[np.bool_]
    shift: FloatArray


def follow(
    algorithm: Algorithm,
    problem: Problem,
    canaries: Canaries,
    nodes: Numbers,
    transcript: Transcript,
    seeds: tuple[int, ...],
    data: Data | None = None,
    on_epoch: Count = quiet,
) -> Following:
    """Follows nodes through a transcript; `elsewhere` is left empty.

    Args:
        algorithm: What the nodes claim to do.
        problem: Its data, without canaries.
        canaries: What was planted.
        nodes: Whom to follow.
        transcript: What was sent and heard.
        seeds: Of the transcript's runs.
        data: `problem.local_data()`, where it is at hand already.
        on_epoch: Called with (epochs done, epochs in all).
    """
    epochs, dim = transcript.sent.shape[1], transcript.sent.shape[-1]
    followed = replay(algorithm, problem, canaries, nodes, seeds, (HALF_WAY, AS_IT_WAS, WITHOUT_DATA), data=data)
    change = dict(zip(canaries.targets.tolist(), canaries.change.tolist(), strict=True))
    moved = [response(algorithm, node, change.get(node, 0.0)) for node in nodes.tolist()]
    units = _units(algorithm, nodes, np.array([of_node for of_node, _ in moved]))
    rows: dict[str, list[Any]] = {name: [] for name in ("surprises", "noise", "bits", "moved", "own")}
    state = followed.start
    for epoch in range(1, epochs + 1):
        signal, sums = (part[:, epoch - 1, nodes].swapaxes(0, 1) for part in (transcript.sent, transcript.heard))
        said = _said(algorithm, signal.reshape(*signal.shape[:2], -1, dim), epoch, nodes)
        half, real, idle = np.moveaxis(np.asarray(state.own, np.float64).reshape(*signal.shape[:2], 3, dim), 2, 0)
        scale = units.scale[:, epoch - 1, :, None, None]
        rows["surprises"].append(_in_units(said - half[:, None], scale))
        rows["noise"].append(_in_units(said - real[:, None], scale))
        rows["bits"].append(_low_bits(signal).reshape(*signal.shape[:2], -1, dim).swapaxes(1, 2))
        rows["moved"].append(np.sign(real - idle).astype(np.int8))
        rows["own"].append(np.sign(real).astype(np.int8))
        state = followed.step(epoch, state, signal, sums)
        on_epoch(epoch, epochs)
    return Following(
        nodes=nodes,
        noisy=units.noisy,
        shift=units.shift,
        **{name: np.stack(parts, axis=1) for name, parts in rows.items()},
        elsewhere=np.zeros((len(nodes), epochs, units.scale.shape[2], 0, dim), np.float32),
        published=_beyond(transcript.published[:, nodes].swapaxes(0, 1), state),
        published_shift=np.array([of_published for _, of_published in moved]),
    )


def own_points(
    algorithm: Algorithm,
    problem: Problem,
    canaries: Canaries,
    nodes: Numbers,
    transcript: Transcript,
    seeds: tuple[int, ...],
    data: Data | None = None,
) -> NDArray[np.float32]:
    """How far gradients at own points, instead of mixed ones, would move what is sent: `Following.elsewhere`.

    Args:
        algorithm: As of `follow`, and so are all others.
        problem: Its data, without canaries.
        canaries: What was planted.
        nodes: Whom to follow.
        transcript: What was sent and heard.
        seeds: Of the transcript's runs.
        data: `problem.local_data()`, where it is at hand already.
    """
    std = claimed_noise(algorithm, nodes)
    scale = np.where(std > 0, std, np.inf)
    epochs, dim = transcript.sent.shape[1], transcript.sent.shape[-1]
    few = min(len(seeds), -(-_ENOUGH_TO_TELL_POINTS // dim))
    if algorithm.settings.get("gradient_at") != "mixed":
        return np.zeros((len(nodes), epochs, scale.shape[2], 0, dim), np.float32)
    chosen = canaries.of_runs(list(range(few)))
    followed = [
        replay(algorithm, problem, chosen, nodes, seeds[:few], (AS_IT_WAS,), take, data)
        for take in (as_claimed, at_own_point)
    ]
    states, found = [one.start for one in followed], []
    for epoch in range(1, epochs + 1):
        here, there = (np.asarray(state.own, np.float64).reshape(len(nodes), 1, few, dim) for state in states)
        found.append(_in_units(there - here, scale[:, epoch - 1, :, None, None]))
        signals = [part[:few, epoch - 1, nodes].swapaxes(0, 1) for part in (transcript.sent, transcript.heard)]
        states = [one.step(epoch, state, *signals) for one, state in zip(followed, states, strict=True)]
    return np.stack(found, axis=1)


def joined(parts: list[Following]) -> Following:
    """The same of several groups of runs; `elsewhere`, of which few are needed, of the first."""
    first = parts[0]
    by_run = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-2)
        for name in ("surprises", "noise", "bits", "moved", "own", "published")
    }
    return first if len(parts) == 1 else first._replace(**by_run)


def bytes_of_following(algorithm: Algorithm, dim: int, runs: int) -> int:
    """What is kept of one node."""
    channel = spoken_round(algorithm).channel
    return algorithm.epochs * dim * runs * (9 * (channel.signals or 1) + 2)


def claimed_noise(algorithm: Algorithm, nodes: Numbers) -> FloatArray:
    """[nodes, epochs, links] std of the noise in the units of the model; not a number where nothing is sent."""
    rows = []
    for epoch in range(1, algorithm.epochs + 1):
        here = tables_at(_sending(algorithm), epoch, nodes, np.dtype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            quiet_links = (here.noise * _column(here.schedule, here.noise)) / here.amplitude
        rows.append(quiet_links.reshape(len(nodes), -1))
    std = np.stack(rows, axis=1)
    return np.where(np.isfinite(std), std, np.nan)


def _units(algorithm: Algorithm, nodes: Numbers, steps: FloatArray) -> Units:
    """From [nodes, epochs] what canaries do to the models that are sent; without noise, their largest is the unit."""
    std = claimed_noise(algorithm, nodes)
    scale = np.where(std == 0, np.abs(steps).max(axis=1)[:, None, None], std)
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, np.inf)
    return Units(scale, std > 0, steps[:, :, None] / scale)


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


def _column(values: FloatArray, like: FloatArray) -> FloatArray:
    """[nodes, 1] or [nodes], to be multiplied with tables of links or of nodes."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def _said(algorithm: Algorithm, sent: NDArray[Any], epoch: int, nodes: Numbers) -> FloatArray:
    """[nodes, links, runs, dim] signals in the units of the model; nothing where nothing is sent."""
    amplitude = tables_at(_sending(algorithm), epoch, nodes, np.dtype(np.float64)).amplitude.reshape(len(nodes), -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sent.swapaxes(1, 2).astype(np.float64) / amplitude[:, :, None, None])


def _in_units(values: FloatArray, scale: FloatArray) -> NDArray[np.float32]:
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(values / scale, posinf=0.0, neginf=0.0).astype(np.float32)


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
