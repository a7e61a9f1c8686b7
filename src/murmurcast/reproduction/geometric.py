"""C and xi of the convergence section: |[A^t]_ij - pi_j| <= C xi^t, with the smallest C that xi allows."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.network.weights import mixing_rate, perron

_FORGOTTEN = 1e-12  # of xi^t: from there on rounding decides


class Geometric(NamedTuple):
    """A geometric bound of how far powers of A are from their limit.

    Attributes:
        constant: C.
        rate: xi.
        checked: Up to which power C was taken and the bound holds.
    """

    constant: float
    rate: float
    checked: int

    def bound(self, powers: FloatArray) -> FloatArray:
        """C xi^t for the given t."""
        return np.asarray(self.constant * self.rate**powers)


def geometric(weights: csr_array) -> Geometric:
    """Takes xi, the second largest eigenvalue modulus, and C, the largest |[A^t]_ij - pi_j| / xi^t until that is tiny.

    Where the eigenvectors are too close to dependent for that xi, `mixing_rate` takes a larger one, and so does this.
    """
    rate = mixing_rate(weights).rate
    checked = int(np.ceil(np.log(_FORGOTTEN) / np.log(rate)))
    return Geometric(float(excess_over(weights, rate, checked).max()), rate, checked)


def excess_over(weights: csr_array, rate: float, powers: int) -> FloatArray:
    """[powers + 1] the largest |[A^t]_ij - pi_j| / rate^t over i, j, for t = 0..powers.

    Powers of the scaled deviation (A - 1 pi)/rate: A^t - 1 pi itself would lose its digits as it shrinks.
    """
    limit = perron(weights)[None, :]
    scaled = (weights.toarray() - limit) / rate
    power = np.eye(len(scaled)) - limit
    largest = np.empty(powers + 1)
    for exponent in range(powers + 1):
        largest[exponent] = np.abs(power).max()
        power = power @ scaled
    return largest


def first_term(
    bound: Geometric, gradient: float, nodes: int, theta: float, diameter: float, start: float = 0.0
) -> float:
    """U1 of Theorem 2: xi C G / (1 - xi) (2 (K + theta) sum_i ||x_i,0|| + K theta L).

    Args:
        bound: C and xi.
        gradient: G.
        nodes: K.
        theta: The bound of 1/z.
        diameter: L, of Omega.
        start: Sum over nodes of ||x_i,0||.
    """
    reach = 2 * (nodes + theta) * start + nodes * theta * diameter
    return bound.rate * bound.constant * gradient / (1 - bound.rate) * reach
