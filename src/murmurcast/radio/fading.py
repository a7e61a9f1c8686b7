"""How a link fades: complex factors of unit mean power, by which its gain is multiplied.

    jakes:  h(t) = M^-1/2 sum_n exp(i (2 pi f_D T_e t cos a_n + theta_n)),  M = 16

A link's angles a and phases theta follow from the seed and the link alone, so the factor of any epoch is known at once:
order, resuming and sharding cannot change it. The two directions of a link are one channel and share their factor.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import j0

from murmurcast._check import FloatArray
from murmurcast.radio import units

Array = Any  # of NumPy or JAX
SINUSOIDS = 16  # of a link: E|h|^4 is 2 - 1/16, against 2 of Rayleigh fading


class Sinusoids(NamedTuple):
    """From where a link's echoes come, and how they begin.

    Attributes:
        angles: [links, 16] a, between an echo and the way the nodes move, in radians.
        phases: [links, 16] theta, at epoch 0, in radians.
    """

    angles: FloatArray
    phases: FloatArray


def sinusoids(links: "np.typing.NDArray[np.int64]", seed: int) -> Sinusoids:
    """What `jakes` sums up, drawn for every pair of nodes on its own.

    Args:
        links: [links, 2] the two nodes of every link, in either order.
        seed: Public. A pair's draw depends on this and on its two nodes, and on nothing else.
    """
    pairs, place = np.unique(np.sort(links, axis=1), axis=0, return_inverse=True)
    drawn = np.empty((len(pairs), 2, SINUSOIDS))
    keyed = np.random.Philox(key=seed)
    generator, state = np.random.Generator(keyed), keyed.state
    counter: Any = state["state"]
    for row, pair in enumerate(pairs):
        counter["counter"][:] = (0, *pair, 0)  # a stretch of 2^64 blocks for every pair
        keyed.state = state
        drawn[row] = generator.random((2, SINUSOIDS))
    angles, phases = np.moveaxis(2 * np.pi * drawn[place.ravel()], 1, 0)
    return Sinusoids(angles, phases)


def jakes(time: Array, angles: Array, phases: Array, doppler_times_epoch: float) -> Array:
    """Factors of all links at given epochs: scattered echoes, no line of sight.

    Args:
        time: [...] epochs, as numbers or arrays; one traced number is fine.
        angles: [links, 16] of `sinusoids`, as NumPy or JAX arrays.
        phases: [links, 16] of `sinusoids`.
        doppler_times_epoch: f_D T_e, by how many turns an echo from straight ahead moves in one epoch.

    Returns:
        [..., links] complex, of unit mean power.
    """
    xp = angles.__array_namespace__()
    turned = 2 * np.pi * doppler_times_epoch * xp.asarray(time)[..., None, None] * xp.cos(angles) + phases
    return xp.exp(1j * turned).sum(-1) / SINUSOIDS**0.5


def rayleigh(generator: np.random.Generator, shape: tuple[int, ...]) -> "np.typing.NDArray[np.complex128]":
    """Independent factors: circular complex Gaussian, no line of sight."""
    real, imaginary = generator.normal(scale=np.sqrt(0.5), size=(2, *shape))
    return np.asarray(real + 1j * imaginary)


def with_line_of_sight(scattered: Array, k_factor_db: float | None) -> Array:
    """The same with a steady part `k_factor_db` decibels above the scattered power; unit mean power still.

    Args:
        scattered: [...] complex factors of `jakes` or `rayleigh`.
        k_factor_db: None for no line of sight.
    """
    if k_factor_db is None:
        return scattered
    ratio = float(units.ratio(k_factor_db))
    return (ratio / (1 + ratio)) ** 0.5 + scattered / (1 + ratio) ** 0.5


def correlation(epochs: "np.typing.ArrayLike", doppler_times_epoch: float) -> FloatArray:
    """[...] rho(k) = J0(2 pi f_D T_e k): how alike scattered factors are that lie so many epochs apart."""
    return np.asarray(j0(2 * np.pi * doppler_times_epoch * np.asarray(epochs, np.float64)))
