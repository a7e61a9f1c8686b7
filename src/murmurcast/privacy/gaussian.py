"""The exact Gaussian-DP curve: mu, epsilon and delta from each other.

A mechanism is mu-GDP when telling two neighbouring datasets apart from its output is at least as hard as telling
N(0, 1) from N(mu, 1). Equivalently, for every epsilon >= 0 it is (epsilon, delta)-DP with

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

All functions broadcast and work in float64 from epsilon 1e-4 to 500 and delta down to 1e-12 and beyond.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtri

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error

_NODES, _QUADRATURE = np.polynomial.legendre.leggauss(12)


def delta(epsilon: ArrayLike, mu: ArrayLike) -> FloatArray:
    """The smallest delta at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Guarantees:
        Unit, adversary: whatever `mu` speaks of. Formula: the exact curve above, not a bound.
        Range: epsilon >= 0, mu >= 0.
    """
    _check.not_negative(epsilon=epsilon)
    _check.gaussian(mu=mu)
    return np.exp(_log_delta(np.asarray(epsilon, float), np.asarray(mu, float)))


def epsilon(mu: ArrayLike, delta: ArrayLike) -> FloatArray:
    """The smallest epsilon at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Guarantees:
        Unit, adversary: whatever `mu` speaks of. Formula: the inverse of the exact curve.
        Range: mu >= 0, 0 < delta < 1.
    """
    _check.gaussian(mu=mu)
    _check.fraction(delta=delta)
    mu_, delta_ = np.broadcast_arrays(np.asarray(mu, float), np.asarray(delta, float))
    result = np.where(np.isinf(mu_), np.inf, 0.0)
    open_ = np.isfinite(mu_) & (_log_delta(np.zeros(()), mu_) > np.log(delta_))
    if open_.any():
        mu_, delta_ = mu_[open_], delta_[open_]
        # delta <= Phi(mu/2 - epsilon/mu) puts the root below this; it is positive because delta(0) is above delta.
        above = np.maximum(mu_ * (mu_ / 2 - ndtri(delta_)), mu_ * mu_) * (1 + 1e-12)
        result[open_] = _root(lambda e, m, d: _log_delta(e, m) - np.log(d), np.zeros_like(mu_), above, (mu_, delta_))
    return result


def mu(epsilon: ArrayLike, delta: ArrayLike) -> FloatArray:
    """The largest mu for which a mu-GDP mechanism is (epsilon, delta)-DP: what a budget allows.

    Guarantees:
        Formula: the inverse of the exact curve. Range: epsilon >= 0, 0 < delta < 1.
    """
    _check.not_negative(epsilon=epsilon)
    _check.fraction(delta=delta)
    epsilon_, delta_ = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(delta, float))
    # At epsilon = 0 the curve is the total variation 2 Phi(mu/2) - 1, and delta falls as epsilon grows: a lower end.
    low = 2 * ndtri((1 + delta_) / 2)
    # An upper end: epsilon/mu - mu/2 = -tail, so far to the left that the curve has passed delta.
    tail = 3 + np.abs(ndtri(delta_))
    high = np.maximum(tail + np.sqrt(tail * tail + 2 * epsilon_), 2 * low)
    root = _root(lambda m, e, d: _log_delta(e, m) - np.log(d), low * (1 - 1e-12), high, (epsilon_, delta_))
    _require_root(root, epsilon_, delta_)
    return root


def compose(mus: ArrayLike) -> float:
    """The mu of running all mechanisms one after the other, each allowed to depend on the earlier outputs."""
    _check.gaussian(mu=mus)
    return math.sqrt(math.fsum(np.square(np.ravel(np.asarray(mus, float)))))


def classical_epsilon(mu: ArrayLike, delta: ArrayLike) -> FloatArray:
    """The textbook formula, epsilon = mu sqrt(2 ln(1.25/delta)): the paper's view, proved for epsilon < 1 only."""
    _check.gaussian(mu=mu)
    _check.fraction(delta=delta)
    return np.asarray(np.asarray(mu, float) * np.sqrt(2 * np.log(1.25 / np.asarray(delta, float))))


def _log_delta(epsilon: FloatArray, mu: FloatArray) -> FloatArray:
    """Log delta(epsilon; mu) without cancellation.

    With a = epsilon/mu - mu/2 and b = a + mu, e^epsilon phi(b) = phi(a), so delta = phi(a) (M(a) - M(b)) with
    Mills' ratio M(x) = Phi(-x)/phi(x). For a < -1 the plain difference is well conditioned; for small mu the
    difference of M is the integral of -M'(x) = 1 - x M(x), by quadrature.
    """
    epsilon, mu = np.broadcast_arrays(epsilon, mu)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = np.where(epsilon == 0, 0.0, epsilon / mu) - mu / 2
        b = a + mu
        left = log_ndtr(-a) + np.log1p(-np.exp(np.minimum(epsilon + log_ndtr(-b) - log_ndtr(-a), 0.0)))
        points = a[..., None] + mu[..., None] * (_NODES + 1) / 2
        # Far out, 1 - x M(x) has lost its digits; -M'(x) = 1/x^2 - 3/x^4 + ... has them.
        slope = np.where(points < 50, 1 - points * _mills(points), (1 - 3 / points**2 + 15 / points**4) / points**2)
        small = mu / 2 * (slope @ _QUADRATURE)
        difference = np.where(mu < 0.5, small, _mills(a) - _mills(b))
        right = -a * a / 2 - math.log(2 * math.pi) / 2 + np.log(difference)
        result = np.where(a < -1, left, right)
    result = np.where(mu == 0, -np.inf, result)
    return np.where(np.isinf(mu), 0.0, result)


def _mills(x: FloatArray) -> FloatArray:
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _require_root(mu: FloatArray, epsilon: FloatArray, delta: FloatArray) -> None:
    """Rounding hides where the curve crosses delta once epsilon is far below delta, or beyond all measure."""
    lost = np.isnan(mu)
    if lost.any():
        value, beside = epsilon[lost][0], delta[lost][0]
        size, way = ("small", "raise") if value < 1 else ("large", "lower")
        raise Error(f"epsilon {value:g} is too {size} to compute with at delta {beside:g}", hint=f"{way} epsilon")


def _root(
    function: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    args: tuple[FloatArray, FloatArray],
) -> FloatArray:
    from scipy.optimize import elementwise  # slow to import, and not every command solves for a root

    solution = elementwise.find_root(
        function, (low, high), args=args, tolerances={"xatol": 0.0, "xrtol": 4e-16, "fatol": 0.0, "frtol": 0.0}
    )
    return np.asarray(solution.x)
