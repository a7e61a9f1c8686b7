"""What Gaussian noise costs over records that join by a secret coin each, by the privacy loss distribution.

One record in place of another moves what a node sends up or down only if its coin says so. With g the largest share of
one record, s the noise and q the coin's probability, the worst that one release can look like in the two worlds is

    (1 - q) N(0, s^2) + q N(-g, s^2)    against    (1 - q) N(0, s^2) + q N(+g, s^2),

whatever else is in the sum and wherever it is projected to. A ratio is 2 g / s here as everywhere: without coins, with
q = 1, this is the Gaussian mechanism of that ratio. Releases compose by their privacy loss distributions, which
dp-accounting keeps on a grid, rounded so that epsilon is never too small; of the two orders of the worlds the larger
epsilon counts.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray

OVERFLOW_SHARE = 1e-3  # of delta: what room that runs out may take of it
_DIGITS = 7  # of ratios, rounded up: the same run gives the same epsilon, however its terms are added up
_SAME = 1e-3  # relative: ratios so close are counted as the largest of them
_COARSEST, _FINEST = 2.0**-10, 2.0**-17  # of the grid of privacy losses
_LOSSES_PER_RELEASE = 20  # grid points within a typical privacy loss of one release
_CLOSE = 1e-6  # relative: how nearly a budget is met
_COARSER, _NEAR = 16.0, 0.01  # a coarse grid, and how nearly it tells where the fine one meets the budget
_MOST_EXCESS = 3.0  # times the budget: more tells a search nothing
_LEAST_MU, _MOST_MU = 1e-9, 1e3


class Part(NamedTuple):
    """Releases of one kind.

    Attributes:
        rate: q; 1 for releases without a coin.
        ratio: How far a record that joins can move one of them, over the noise; or a share of something.
        times: How many there are.
    """

    rate: float
    ratio: float
    times: int


Parts = tuple[Part, ...]


def parts_of(rate: float, ratios: FloatArray) -> Parts:
    """One node's releases [epochs], those of nearly the same ratio taken together as the largest of them."""
    left = np.sort(ratios[ratios > 0])[::-1]
    parts = []
    while len(left):
        same = int(np.searchsorted(-left, -left[0] * (1 - _SAME), side="right"))
        parts.append(Part(rate, float(left[0]), same))
        left = left[same:]
    return tuple(parts)


def scaled(parts: Iterable[Part], factor: float) -> Parts:
    """The same releases with ratios so many times as large."""
    return tuple(part._replace(ratio=part.ratio * factor) for part in parts)


def epsilon(parts: Parts, delta: float, overflow: float = 0.0) -> float:
    """Epsilon of all releases together, at delta.

    Args:
        parts: Of one node.
        delta: Failure probability.
        overflow: The probability that in any of them records were left out for want of room, at most. It changes what
            is sent in either world with no more than this probability, which costs (1 + e^epsilon) times as much delta.

    Guarantees:
        Unit: one record in place of another, which takes part by a coin of its own that nobody sees. Formula: an upper
        bound of the privacy loss distributions' composition. Range: 0 < delta < 1; infinite where nothing is hidden, or
        where overflow would take more than a thousandth of delta.
    """
    return _cost(parts, delta, overflow)


def best_guess(parts: Parts, overflow: float = 0.0) -> float:
    """The best chance of guessing right which of two records, each with probability 1/2, takes part by coins.

    Args:
        parts: Of one node.
        overflow: As in `epsilon`: it changes what is sent in either world with no more than this probability.

    Guarantees:
        Unit, adversary: those of `epsilon`. Formula: (1 + d)/2 + overflow, d an upper bound of the total variation
        distance, which is delta at epsilon 0. Range: 1/2 to 1; 1 where nothing is hidden.
    """
    if not all(math.isfinite(part.ratio) for part in parts):
        return 1.0
    counted = _counted(parts)
    return min(1.0, (1 + (_distance(counted) if counted else 0.0)) / 2 + overflow)


def largest_factor(parts: Parts, budget: float, delta: float, fixed: Parts = (), overflow: float = 0.0) -> float:
    """How many times as large all ratios may be for a budget; 0 where not even what is fixed besides fits."""
    fits = [0.0]

    def excess(factor: float, coarser: float = 1.0) -> float:
        cost = _cost((*scaled(parts, factor), *fixed), delta, overflow, coarser)
        if cost <= budget and coarser == 1:
            fits.append(factor)
        if (1 - _CLOSE) * budget <= cost <= budget:
            return 0.0  # so that the search ends
        return min(cost - budget, _MOST_EXCESS * budget)  # finite, for the search

    if not parts or excess(0.0) > 0:
        return 0.0 if parts else math.inf
    # On a coarse grid, which is soon computed, to begin beside the answer: a cost is dear.
    near = _crossing(partial(excess, coarser=_COARSER), 1.0, 2.0, _NEAR)
    _crossing(excess, near, 1 + _NEAR, _CLOSE)
    return max(fits)


def _crossing(excess: Callable[[float], float], guess: float, growth: float, close: float) -> float:
    """Where a rising function passes 0, to a relative error; ends around it are sought outwards from a guess."""
    from scipy.optimize import toms748  # slow to import, and only sampled releases need it

    low = high = guess
    while excess(high) <= 0:
        if high >= _MOST_MU:
            return high
        low, high, growth = high, high * growth, growth**2
    while excess(low) > 0:
        if low <= _LEAST_MU:
            return low
        low, high, growth = low / growth, low, growth**2
    return float(toms748(excess, low, high, xtol=close * low / 2, rtol=close / 2))


def _cost(parts: Parts, delta: float, overflow: float, coarser: float = 1.0) -> float:
    """`epsilon`, on a grid so many times as coarse."""
    if not all(math.isfinite(part.ratio) for part in parts):
        return math.inf
    counted = _counted(parts)
    if not counted:
        return 0.0
    cost = _epsilon(counted, delta * (1 - OVERFLOW_SHARE) if overflow else delta, coarser)
    if overflow and (1 + math.exp(min(cost, 700.0))) * overflow > OVERFLOW_SHARE * delta:
        return math.inf
    return cost


def _counted(parts: Parts) -> Parts:
    return tuple(part._replace(ratio=_rounded_up(part.ratio)) for part in parts if part.ratio > 0)


@lru_cache(maxsize=4096)
def _epsilon(parts: Parts, delta: float, coarser: float) -> float:
    return float(_together(parts, coarser).get_epsilon_for_delta(delta))


@lru_cache(maxsize=4096)
def _distance(parts: Parts) -> float:
    return float(_together(parts).get_delta_for_epsilon(0.0))


def _together(parts: Parts, coarser: float = 1.0) -> Any:
    """The privacy loss distribution of all releases, on a grid so many times as coarse."""
    spacing = _spacing(parts) * coarser
    whole: Any = None
    for part in parts:
        distribution = _distribution(part, spacing).self_compose(part.times)
        whole = distribution if whole is None else whole.compose(distribution)
    return whole


def _distribution(part: Part, spacing: float) -> Any:
    """Of one release of this kind; g is 1 here, so the noise is 2 over the ratio."""
    # Slow to import, and only sampled releases need it.
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as distributions

    return distributions.from_gaussian_mechanism(
        standard_deviation=2 / part.ratio,
        value_discretization_interval=spacing,
        sampling_prob=part.rate,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )


def _spacing(parts: Parts) -> float:
    """Of the grid of privacy losses: a power of 2, a part of the loss that the dearest release typically makes."""
    typical = max(part.rate * part.ratio for part in parts) / _LOSSES_PER_RELEASE
    return min(_COARSEST, max(_FINEST, 2.0 ** math.floor(math.log2(typical))))


def _rounded_up(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return math.ceil(value / unit - 1e-6) * unit  # a hair above a digit is rounding, and stays
