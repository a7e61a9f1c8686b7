"""What a power split and its noise come to on a radio: the public factor, pilots, slots, seconds."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network
from murmurcast.radio import units
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
        message_seconds: Of one message with its pilot, in one slot.
        epoch_seconds: From one epoch to the next.
        doppler: Cycles of the channel in an epoch, f_D T_e.
    """

    amplitude: FloatArray
    scale: FloatArray
    noise: FloatArray
    pilot_gain: FloatArray
    normaliser: int
    slots: Slots
    message_seconds: float
    epoch_seconds: float
    doppler: float

    def joules(self, radio: Radio, power: FloatArray, rounds: int) -> FloatArray:
        """[nodes] of one epoch: radiated, and what circuits and a gradient take where that was given."""
        on_air = self.slots.sendings * rounds * self.message_seconds * radio.efficiency
        return np.asarray(power * on_air + radio.circuit_watts * self.epoch_seconds + radio.joules_per_gradient)


def physics(network: Network, radio: Radio, split: Split) -> Physics:
    """A split on a radio, every number public."""
    power, alpha = network.power, split.alpha
    noise = radio.noise_w(power)
    scale = units.public_scale(alpha, split.noise_std, split.dim, split.radius)
    shared = slots(network, radio.access, radio.duplex)
    message = message_symbols(network, radio, split.dim) / radio.efficiency / radio.bandwidth_hz
    epoch = shared.number * split.rounds * message + radio.compute_seconds
    return Physics(
        amplitude=np.sqrt(alpha * power),
        scale=scale,
        noise=noise,
        pilot_gain=units.pilot_gain(power, alpha, scale),
        normaliser=split.normaliser,
        slots=shared,
        message_seconds=message,
        epoch_seconds=epoch,
        doppler=radio.doppler_hz * epoch,
    )


def message_symbols(network: Network, radio: Radio, dim: int) -> float:
    """Complex symbols of one message with its pilot; of a digital one, at the rate of the weakest link."""
    if radio.access != "digital":
        return float(-(-dim // 2) + radio.pilots)
    links = network.gains.tocoo()
    power, noise = network.power, radio.noise_w(network.power)
    snr = units.snr_db(links.data, power[links.coords[0]], noise[links.coords[1]])
    return dim * radio.bits / float(units.bits_per_symbol(snr.min(), radio.gap_db))
