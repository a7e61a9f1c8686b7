"""Physical units: from dBm, hertz and metres to the numbers that the mathematics has.

A model of m real parameters travels as m/2 complex symbols u = v[0::2] + i v[1::2]. Power is that of one symbol, so a
node keeps its budget where (2/m) E||x~||^2 <= p. Gains are amplitudes: |h|^2 p is what arrives of p, in watts.
"""

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray
from murmurcast.network.path_loss import SPEED_OF_LIGHT as SPEED_OF_LIGHT

BOLTZMANN = 1.380649e-23  # J/K, exact since 2019


def watts(dbm: ArrayLike) -> FloatArray:
    """Power in watts."""
    return np.asarray(10 ** (np.asarray(dbm, np.float64) / 10) / 1000)


def dbm(watts: ArrayLike) -> FloatArray:
    """Power in decibels above a milliwatt."""
    return np.asarray(10 * np.log10(np.asarray(watts, np.float64) * 1000))


def ratio(decibels: ArrayLike) -> FloatArray:
    """A ratio of powers from decibels."""
    return np.asarray(10 ** (np.asarray(decibels, np.float64) / 10))


def thermal_noise(bandwidth_hz: float, noise_figure_db: float, temperature_k: float) -> float:
    """Of a receiver, in watts per complex symbol: k T B F."""
    return float(BOLTZMANN * temperature_k * bandwidth_hz * ratio(noise_figure_db))


def public_scale(alpha: FloatArray, noise_std: FloatArray, dim: int, radius: float) -> FloatArray:
    """[epochs] rho_t: one public factor for all signals with which the loudest node uses its power fully.

    Args:
        alpha: [nodes] power split.
        noise_std: [epochs, nodes] sigma, per coordinate.
        dim: m, number of parameters.
        radius: The largest norm of a model around the common reference.
    """
    return np.asarray(np.sqrt(dim / 2 / energy_over_power(alpha, noise_std, dim, radius).max(axis=-1)))


def energy_over_power(alpha: FloatArray, noise_std: FloatArray, dim: int, radius: float) -> FloatArray:
    """[epochs, nodes] E||x~||^2 / p of a whole message before the public factor, at most."""
    return np.asarray(alpha * radius**2 + (1 - alpha) * dim * noise_std**2)


def power_used(scale: FloatArray, energy_over_power: FloatArray, dim: int) -> FloatArray:
    """[epochs, nodes] the share of its power that a node uses, per symbol; at most 1."""
    return np.asarray(scale[:, None] ** 2 * energy_over_power * 2 / dim)


def pilot_gain(power: FloatArray, alpha: FloatArray, scale: FloatArray) -> FloatArray:
    """[epochs] lambda_t: how much stronger than its data every node sends its pilot; the same for all."""
    return np.asarray((np.sqrt(power) / (scale[:, None] * np.sqrt(alpha * power))).min(axis=1))


def receiver_noise_std(
    noise_power: FloatArray, compensation: FloatArray, normaliser: int, scale: FloatArray
) -> FloatArray:
    """[epochs, nodes] tau: what a receiver's own noise leaves in each coordinate of its mixed point."""
    return np.asarray(np.sqrt(noise_power / 2) / (compensation * normaliser * scale[:, None]))


def snr_db(gains: FloatArray, power: FloatArray, noise_power: FloatArray) -> FloatArray:
    """Of links, from their gains, their senders' powers and their receivers' noise; -inf where there is no link."""
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(gains**2 * power / noise_power))


def bits_per_symbol(snr_db: FloatArray, gap_db: float) -> FloatArray:
    """What a digital link carries in one complex symbol: log2(1 + SNR / gap)."""
    return np.asarray(np.log2(1 + ratio(snr_db - gap_db)))
