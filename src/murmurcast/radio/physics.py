"""What a power split and its noise come to on a radio: the public factor, pilots, slots, seconds."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network
from murmurcast.radio import units
from murmurcast.radio.air_time import joules, message_symbols, uses_of_round
from murmurcast.radio.settings import Radio
from murmurcast.radio.slots import Slots, slots


class Split(NamedTuple):
    """What nodes say, and how they divide their power over it.

    Attributes:
        alpha: [nodes] share of power for the model.
        noise_std: [epochs, nodes] sigma, per coordinate, before the split.
        normaliser: R.
        dim: m, number of parameters.
        radius: The largest norm of a model.
        rounds: Of an epoch.
    """

    alpha: FloatArray
    noise_std: FloatArray
    normaliser: int
    dim: int
    radius: float
    rounds: int


class Physics(NamedTuple):
    """A split on a radio.

    Attributes:
        amplitude: [nodes] sqrt(alpha p), of the model in what a node sends, before the public factor.
        scale: [epochs] rho, the public factor.
        noise: [nodes] N, the receivers' noise in a complex symbol, watts.
        pilot_gain: [epochs] lambda, how much stronger than its data a node sends its pilot.
        normaliser: R.
        slots: Of one round.
        air_seconds: Of an epoch, on the air.
        joules: [nodes] of an epoch.
        doppler: Cycles of the channel from one epoch to the next, f_D T_e.
    """

    amplitude: FloatArray
    scale: FloatArray
    noise: FloatArray
    pilot_gain: FloatArray
    normaliser: int
    slots: Slots
    air_seconds: float
    joules: FloatArray
    doppler: float


def physics(network: Network, radio: Radio, split: Split) -> Physics:
    """A split on a radio, every number public."""
    power, alpha = network.power, split.alpha
    noise = radio.noise_w(power)
    scale = public_scale(split)
    shared = slots(network, radio.access, radio.duplex)
    symbols = message_symbols(network, radio, split.dim)
    seconds = split.rounds * uses_of_round(shared, symbols, radio) / radio.bandwidth_hz
    return Physics(
        amplitude=np.sqrt(alpha * power),
        scale=scale,
        noise=noise,
        pilot_gain=units.pilot_gain(power, alpha, scale),
        normaliser=split.normaliser,
        slots=shared,
        air_seconds=seconds,
        joules=joules(power, radio, split.rounds * shared.sendings * symbols, seconds),
        doppler=radio.doppler_hz * (seconds + radio.compute_seconds),
    )


def public_scale(split: Split) -> FloatArray:
    """[epochs] rho. A further round sends the mixed point, whose noise may be that of a louder neighbour."""
    first = units.public_scale(split.alpha, split.noise_std, split.dim, split.radius)
    if split.rounds == 1:
        return first
    loudest = np.max((1 / split.alpha - 1) * split.noise_std**2, axis=-1, keepdims=True)  # s^2
    passed = split.alpha * (split.radius**2 + split.dim * loudest)
    return np.asarray(np.minimum(first, np.sqrt(split.dim / 2 / passed.max(axis=-1))))
