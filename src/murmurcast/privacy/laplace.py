"""What Laplace noise costs in a whole run, without the sqrt(m) of a calibration by the L1 norm.

One coordinate that moves by a, hidden by Laplace noise of scale b, is pure (a/b)-DP. Such a mechanism is Gaussian DP
with mu = -2 Phi^-1(1/(1 + e^(a/b))), at most sqrt(pi/2) a/b, and concentrated DP with rho = (a/b)^2/2 (Dong, Roth and
Su 2022; Bun and Steinke 2016). Both add up in squares over coordinates and epochs, so that of all moves only the
Euclidean norm counts:

    mu = sqrt(pi/2) (sum of ratio^2)^(1/2)        rho = sum of ratio^2 / 2 = mu^2 / pi

The smaller of the two epsilons holds.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray
from murmurcast.privacy import discrete, gaussian

MU_OF_CONCENTRATED = math.sqrt(math.pi / 2)  # mu over sqrt(2 rho)


def mu(ratio: FloatArray) -> FloatArray:
    """[nodes] from [epochs, nodes] ratios of move over scale."""
    with np.errstate(over="ignore"):
        return np.asarray(MU_OF_CONCENTRATED * np.sqrt(np.sum(np.square(ratio), axis=0)))


def epsilon(mu: ArrayLike, delta: float) -> FloatArray:
    """The smaller of the epsilons by Gaussian DP and by concentrated DP.

    Guarantees:
        Unit, adversary: whatever `mu` speaks of. Formula: see the module. Range: mu >= 0, 0 < delta < 1.
    """
    concentrated = np.asarray(mu, np.float64) / MU_OF_CONCENTRATED  # sqrt(2 rho)
    return np.minimum(gaussian.epsilon(mu, delta), discrete.epsilon(concentrated, delta))
