"""What guesses about many canaries of one run refute, whatever ties the canaries together.

Every sign is drawn by itself, so under (epsilon, 0)-DP each guess is right with probability at most
q = e^epsilon/(1 + e^epsilon), given all others: the number of right ones lies below a binomial one. Delta adds to the
probability of W >= v right ones of r guesses, with m canaries in all (Steinke, Nasr, Jagielski 2023, "Privacy auditing
with one (1) training run", Theorem 5.2):

    P[W >= v] <= P[B >= v] + 2 m delta max_i P[v - i <= B < v]/i,      B ~ Binomial(r, q)
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from murmurcast import _check
from murmurcast._check import FloatArray

_LARGEST_EPSILON = 50.0  # beyond it e^epsilon is infinite for every count
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the canaries that are guessed; the rest are too uncertain


class OneRun(NamedTuple):
    """What guesses about canaries showed.

    Attributes:
        canaries: How many there are.
        guesses: How many were guessed: the surest.
        right: How many guesses were right.
        epsilon: At least this, with the confidence asked for.
    """

    canaries: int
    guesses: int
    right: int
    epsilon: float


def probability(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """At most this probable are so many right guesses, if the mechanism is (epsilon, delta)-DP."""
    chance = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    if right == 0 or delta == 0:
        return min(1.0, tail)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    steepest = float((below / np.arange(1, right + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * steepest)


def epsilon_lower_bound(canaries: int, guesses: int, right: int, delta: float, confidence: float) -> float:
    """The largest epsilon that so many right guesses refute; 0 where they refute nothing."""
    _check.fraction(confidence=confidence)
    allowed = 1 - confidence

    def excess(epsilon: float) -> float:
        return probability(canaries, guesses, right, epsilon, delta) - allowed

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, _LARGEST_EPSILON)) if excess(_LARGEST_EPSILON) > 0 else _LARGEST_EPSILON


def measure(
    chosen_on: tuple[FloatArray, FloatArray], counted: tuple[FloatArray, FloatArray], delta: float, confidence: float
) -> OneRun:
    """Chooses on some canaries how many of the surest to guess, and counts on others.

    Args:
        chosen_on: ([n] statistics, [n] signs); a large statistic speaks for +1.
        counted: The same of other canaries.
        delta: The delta at which epsilon is meant.
        confidence: Of the bound.
    """
    trial = [(_guessed(*chosen_on, share, delta, confidence).epsilon, -rank) for rank, share in enumerate(_SHARES)]
    return _guessed(*counted, _SHARES[-max(trial)[1]], delta, confidence)


def _guessed(statistic: FloatArray, signs: FloatArray, share: float, delta: float, confidence: float) -> OneRun:
    guesses = max(1, round(share * len(statistic)))
    surest = np.argsort(-np.abs(statistic), kind="stable")[:guesses]
    # Where the statistic says nothing, the guess is +1, not half a point.
    right = int((np.where(statistic[surest] >= 0, 1.0, -1.0) == signs[surest]).sum())
    epsilon = epsilon_lower_bound(len(statistic), guesses, right, delta, confidence)
    return OneRun(len(statistic), guesses, right, epsilon)
