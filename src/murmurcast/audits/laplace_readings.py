"""Readings under Laplace noise: as good a test as a matched filter is under normal noise.

The log likelihood ratio of a shift s under Laplace noise of scale 1 is |x + s/2| - |x - s/2| = 2 clip(x, -s/2, s/2):
linear in the clipped reading. And noise that is Laplace's becomes standard normal by its own distribution, so that all
checks of normal noise serve.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from murmurcast._check import FloatArray

_STD = float(np.sqrt(2))  # of scale 1


def as_normal(noise: NDArray[Any]) -> NDArray[np.float32]:
    """Laplace noise of unit variance as standard normal noise, each number by itself and in the same order."""
    size = np.abs(noise.astype(np.float64))
    return np.asarray(-np.sign(noise) * ndtri_exp(-_STD * size - np.log(2)), np.float32)


def variance_as_normal(share: float) -> float:
    """The variance of `as_normal` noise whose scale was cut to a share of what is claimed."""
    middle = (np.arange(20_000) + 0.5) / 20_000
    cut = -share * np.log(middle) / _STD  # quantiles of |noise|, in units of the std that is claimed
    return float(np.square(as_normal(cut).astype(np.float64)).mean())


def clipped(surprises: NDArray[Any], shift: FloatArray) -> tuple[NDArray[np.float32], FloatArray]:
    """Readings [..., runs, dim] and their shifts [...], clipped where the likelihood ratio is; of unit variance again.

    With a = s/2 and the shift's world +1: mean a - (1 - e^(-2a))/2, mean square a^2 - a + 1 - (a + 1) e^(-2a).
    """
    half = _STD * np.abs(shift) / 2
    vanishes = np.exp(-2 * half)
    mean = half - (1 - vanishes) / 2
    square = half**2 - half + 1 - (half + 1) * vanishes
    std = np.sqrt(np.maximum(square - mean**2, np.finfo(np.float64).tiny))
    readable = half > 1e-6  # below, nothing is to be read, and rounding would be
    limit, unit = (np.where(readable, part, other)[..., None, None] for part, other in ((half, np.inf), (std, _STD)))
    readings = np.clip(_STD * surprises, -limit, limit) / unit
    return readings.astype(np.float32), np.where(readable, np.sign(shift) * 2 * mean / std, 0.0)
