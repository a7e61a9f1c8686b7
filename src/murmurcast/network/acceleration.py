"""Rounds of mixing that lean on the one before the last, so that a network agrees sooner: Chebyshev's recursion.

    y^1 = A y^0,     y^(k+1) = w_(k+1) A y^k + (1 - w_(k+1)) y^(k-1)
    w_1 = 1,         w_2 = 1 / (1 - rho^2/2),     w_(k+1) = 1 / (1 - rho^2 w_k/4)

rho is the second largest eigenvalue modulus of A. What L rounds make of y^0 is a polynomial of A whose coefficients sum
to 1, so that rows sum to 1 and pi y stays. Where eigenvalues are real it leaves 1/T_L(1/rho) of a disagreement, where
plain rounds leave rho^L: about the square root of as many rounds do.
"""

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray


def leads(modes: NDArray[np.complex128], rounds: int) -> FloatArray:
    """[rounds - 1] w_2 .. w_L, for rounds on weights with these modes of disagreement."""
    squared = float(np.abs(modes).max(initial=0.0)) ** 2
    relaxation = np.ones(rounds)
    for number in range(1, rounds):
        relaxation[number] = 1 / (1 - squared / 2) if number == 1 else 1 / (1 - squared * relaxation[number - 1] / 4)
    return _check.frozen(relaxation[1:])


def left_after(modes: NDArray[np.complex128], leading: FloatArray) -> float:
    """The largest share of a mode of disagreement that is left after one plain round and one for every lead."""
    before, now = np.ones_like(modes), modes
    for lead in leading:
        before, now = now, lead * modes * now + (1 - lead) * before
    return float(np.abs(now).max(initial=0.0))


def plainly_left_after(modes: NDArray[np.complex128], rounds: int) -> float:
    """The same after so many plain rounds."""
    return float(np.abs(modes).max(initial=0.0)) ** rounds
