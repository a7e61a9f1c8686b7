"""Noise on a grid: what discrete Gaussian noise costs, with rounding, arithmetic and the sampler counted.

Real noise is drawn by computers, which add rounded numbers to rounded numbers; which results are possible then depends
on the data. On a grid nothing of it is left. Node k says, in epoch t,

    V = D (round(x / D) + n),      n ~ N_Z(0, (s/D)^2) in every coordinate,      D = 2^(floor(log2 s) - 26):

integers in units of a public power of two, so every V is possible whatever the data. The discrete Gaussian N_Z, shifted
by an integer vector of norm d, has Renyi divergence at most order d^2 / (2 sigma^2) (Canonne, Kamath and Steinke 2020):
rho = d^2 / (2 sigma^2) of concentrated DP, which adds up over adaptive epochs. It is written here as mu = sqrt(2 rho),
which for real Gaussian noise is the mu of Gaussian DP.

**The shift.** Let the node's gradients in two worlds differ by at most S. In float64, as computed, they differ by at
most S' (`sensitivity`). Then the integers round(x / D) differ by at most S' gamma_t / (z D) + 2 sqrt(m):

- rounding: |round(a) - round(b)| <= |a - b| + 1 in each of m coordinates, hence sqrt(m);
- arithmetic after the gradient: m_t, the mixed point, is held within 2^46 D. What follows, x = Proj(m_t - (gamma_t/z)
  g), takes five roundings, each of at most 2^-53 (|m_t| + |x|); where x leaves 2^46 D it is held there in both worlds.
  That is less than sqrt(m)/5 for both worlds together. A ball's projection multiplies by a factor with a relative error
  of (m + 32) 2^-53, less than sqrt(m)/2 for both worlds together if (m + 32) radius <= 2^51 sqrt(m) D, which is
  demanded. Clipping to a box is exact.

As D <= 2^-26 s, epoch t costs (S' gamma_t / (z s) + 2^-25 sqrt(m))^2 of mu^2, and by the triangle inequality

    mu_j <= sqrt( sum_{t<T} (S'_j gamma_t / (z_jj,t s_j,t+1))^2 ) + 2^-25 sqrt(m (T - 1)).

**The sampler** (`murmurcast.engine.discrete`) takes every integer with its probability up to a factor exp(+-e), e =
2^-42, and none beyond a cut of at least 16 sigma. Over N draws, for every set of outcomes: P'(E) <= e^(N e) P(E and all
n within the cut). Of this, the outcomes whose noise would be beyond the cut in the other world need noise beyond 16
sigma - d in this one, and d <= mu sigma: probability at most 2 N exp(-(16 - mu)^2 / 2). To the rest the ideal bound
applies, and the factor e^(N e) once more. So what is (epsilon, delta0)-DP with ideal noise is, with the sampler's,
(epsilon + 2 N e, e^(N e) (delta0 + 2 N exp(-(16 - mu)^2 / 2)))-DP.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray

FINENESS = 26  # the noise is between 2^26 and 2^27 steps of the grid
MAX_STEPS = 2.0**46  # steps of the grid
SAMPLER_ERROR = 2.0**-42  # of the logarithm of an integer's probability
REACH = 16.0  # standard deviations; no noise goes beyond
_ROUNDOFF = 2.0**-52
_GOLDEN = (math.sqrt(5) - 1) / 2


def spacing(noise: ArrayLike) -> FloatArray:
    """D = 2^(floor(log2 s) - 26), the public grid of noise s, exactly."""
    _check.above_zero(noise=np.ravel(noise))
    _, exponent = np.frexp(np.asarray(noise, np.float64))
    return np.asarray(np.ldexp(1.0, exponent - 1 - FINENESS))


def sensitivity(exact: FloatArray, clip: float, examples: ArrayLike, dim: int) -> FloatArray:
    """[nodes] S' = S + 2 clip (n + m + 64) 2^-52: how far gradients as computed in float64 differ.

    Clipped examples have norm clip up to (m + 16) roundings; a sum of n of them, in any order, is off by at most (n +
    2) roundings of the sum of norms (Higham 2002, section 3.1), in both worlds; the others' terms are the same in both.
    A clipped node's gradient is the case n = 0. What is left covers the roundings of this very account.

    Args:
        exact: [nodes] S: 2 clip, or 2 clip k / n; the k terms that differ have the roundings of all n at most.
        clip: What gradients are clipped to.
        examples: n, one number or [nodes]; 0 where there are no examples.
        dim: m.
    """
    return np.asarray(exact + 2 * clip * (np.asarray(examples, np.float64) + dim + 64) * _ROUNDOFF)


def rounding(dim: int, epochs: int) -> float:
    """2^-25 sqrt(m (T - 1)): what rounding and arithmetic add to mu in T epochs."""
    return 2.0 ** (1 - FINENESS) * math.sqrt(dim * (epochs - 1))


def epsilon(mu: ArrayLike, delta: float, samples: int = 0) -> FloatArray:
    """An epsilon at which discrete noise of concentrated-DP cost rho = mu^2/2 is (epsilon, delta)-DP.

    Args:
        mu: sqrt(2 rho), rounding counted.
        delta: Failure probability.
        samples: N, how many integers a node draws in all; 0 for ideal noise.

    Guarantees:
        Unit, adversary: whatever `mu` speaks of.
        Formula: min over orders a > 1 of a rho + log(1/(a delta0))/(a - 1) + log(1 - 1/a) (Canonne, Kamath and Steinke
            2020, Corollary 13), plus what the sampler costs, see above.
        Range: mu >= 0, 0 < delta < 1; infinite where the noise reaches no farther than the shift.
    """
    _check.not_negative(mu=mu)
    _check.fraction(delta=delta)
    mu_ = np.asarray(mu, np.float64)
    error = samples * SAMPLER_ERROR
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = 2 * samples * np.exp(-(np.maximum(REACH - mu_, 0) ** 2) / 2)
        left = delta * math.exp(-error) - beyond
    possible = np.isfinite(mu_) & (left > 0)
    safe_mu, safe_left = np.where(possible, mu_, 0.0), np.where(possible, left, delta)
    bound = np.maximum(_least_over_orders(safe_mu**2 / 2, np.log(1 / safe_left)), 0) + 2 * error
    return np.where(possible, np.where(mu_ == 0, 0.0, bound), np.inf)


@lru_cache
def mu(epsilon_: float, delta: float, samples: int = 0) -> float:
    """The largest mu at which `epsilon(mu, delta, samples)` is at most a budget; 0 where none is.

    Where a larger one has no bound at all, it stays a hair away from there.
    """
    _check.positive(epsilon=epsilon_)
    low, high = 0.0, math.sqrt(2 * epsilon_)  # order to infinity: epsilon is above rho
    if float(epsilon(1e-12, delta, samples)) > epsilon_:
        return 0.0
    while low < (middle := (low + high) / 2) < high:
        if float(epsilon(middle, delta, samples)) <= epsilon_:
            low = middle
        else:
            high = middle
    return low if np.isfinite(epsilon(high, delta, samples)) else low * (1 - 1e-9)


def _least_over_orders(rho: FloatArray, log_inverse: FloatArray) -> FloatArray:
    """The least over orders 1 + e^x of the bound, by golden section; every order gives a true bound, found best or not.

    The best order is near 1 + sqrt(log(1/delta) / rho).
    """

    def bound(x: FloatArray) -> FloatArray:
        above = np.exp(x)  # order - 1
        return (1 + above) * rho + (log_inverse - np.log1p(above)) / above - np.log1p(1 / above)

    centre = np.log(np.sqrt(log_inverse / np.maximum(rho, 1e-300)))
    low, high = centre - 8.0, centre + 4.0
    for _ in range(50):
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        down = bound(left) <= bound(right)
        low, high = np.where(down, low, left), np.where(down, right, high)
    return bound((low + high) / 2)
