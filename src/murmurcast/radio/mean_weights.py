"""Mean weights of a round over a radio: over its fading model, or over the steps of a trace that a run plays back."""

import numpy as np
from scipy.sparse import csgraph, csr_array

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.weights import arriving_amplitudes
from murmurcast.radio import divisor
from murmurcast.radio.divisor import DRAWS, MAX_DRAWN, Channel, Reception
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace

_CHUNK = 2**21  # weights at once


def reception_of(radio: Radio, normaliser: int) -> Reception:
    """How a radio's receivers combine what they hear."""
    halves = radio.access == "referenced" and radio.duplex == "half"
    return Reception(radio.access, normaliser, radio.kappa, radio.damping, halves)


def mean_weights(network: Network, alpha: FloatArray, radio: Radio, normaliser: int, epochs: int) -> csr_array:
    """E[A] with clear pilots: [receiver, sender] on links and diagonal, rows sum to 1.

    Args:
        network: Who hears whom.
        alpha: [nodes] power split.
        radio: Whose weights change. Of a trace the mean is over the steps that a run plays, each as often as it does;
            only dither and halves are drawn.
        normaliser: R.
        epochs: Of the run.
    """
    reception = reception_of(radio, normaliser)
    if radio.trace is None:
        channel = Channel(radio.fading, radio.k_factor_db)
        return divisor.expected(arriving_amplitudes(network, alpha), reception, channel)
    weights = csr_array(_over_steps(radio.trace, np.sqrt(alpha * network.power), reception, epochs))
    pieces = csgraph.connected_components(weights, connection="strong")[0]
    if pieces > 1:
        raise Error(
            f"in the steps of the trace that {epochs} epochs play, nodes cannot all reach each other",
            hint="give a trace in which they do, or plan for more epochs",
        )
    return weights


def _over_steps(trace: ChannelTrace, amplitude: FloatArray, reception: Reception, epochs: int) -> FloatArray:
    played, nodes = trace.times_played(epochs), trace.nodes
    draws = _draws(len(played) * nodes**2, len(played)) if reception.access == "referenced" else 1
    generator, total = np.random.default_rng(0), np.zeros((nodes, nodes))
    mean_power = np.square(trace.rms.T * amplitude).sum(axis=1)
    size = max(1, _CHUNK // (draws * nodes**2))
    for first in range(0, len(played), size):
        here = slice(first, min(first + size, len(played)))  # a trace may be longer than the run
        arriving = np.abs(trace.by_receiver[:, here]).swapaxes(0, 1) * amplitude  # [steps, receiver, sender]
        if reception.access == "referenced":
            weights = _towards_reference(generator, arriving, mean_power, reception, draws)
        else:
            weights = divisor.weights(arriving, reception.normaliser)
        total += np.tensordot(played[here] / epochs, weights, axes=1)
    return total


def _draws(numbers: int, steps: int) -> int:
    """Of every step: as many in all as for a fading model, and no more than can be held."""
    return int(max(1, min(-(-DRAWS // steps), MAX_DRAWN // numbers)))


def _towards_reference(
    generator: np.random.Generator, arriving: FloatArray, mean_power: FloatArray, reception: Reception, draws: int
) -> FloatArray:
    """[steps, receiver, sender] over senders' phases, which dither makes uniform, and over who is in which half."""
    shape, share = (draws, *arriving.shape), 0.5 if reception.halves else 1.0
    factor = np.exp(2j * np.pi * generator.random(shape))
    if reception.halves:
        factor *= generator.random(shape) < share
    floor = reception.damping * share * mean_power[:, None]
    away = divisor.over_own_phase(arriving * factor, floor, reception.kappa).mean(axis=0)
    return np.asarray(away + (1 - away.sum(axis=-1))[..., None] * np.eye(len(mean_power)))
