"""How much privacy an attack refutes, with confidence: from counts of right and wrong guesses to a bound of epsilon.

A mechanism that is (epsilon, delta)-DP allows no test with TPR > e^epsilon FPR + delta, nor with
TNR > e^epsilon FNR + delta. So a test that was seen to do better shows a larger epsilon.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error


class Measured(NamedTuple):
    """What an attack showed.

    Attributes:
        threshold: Guess "present" above it; chosen on other trials than those counted.
        false_positives: Guesses "present" in the world where it is not so.
        true_positives: Guesses "present" in the world where it is so.
        trials: Of each world, counted ones only.
        epsilon: At least this, with the confidence below.
        delta: At this delta.
        confidence: Of the bound.
    """

    threshold: float
    false_positives: int
    true_positives: int
    trials: int
    epsilon: float
    delta: float
    confidence: float


def clopper_pearson_lower(successes: ArrayLike, trials: int, confidence: float) -> FloatArray:
    """A rate the true one lies above, with the given confidence (one-sided, exact binomial)."""
    count = _counts(successes, trials, confidence)
    with np.errstate(invalid="ignore"):
        quantile = beta.ppf(1 - confidence, count, trials - count + 1)
    return np.where(count == 0, 0.0, quantile)


def clopper_pearson_upper(successes: ArrayLike, trials: int, confidence: float) -> FloatArray:
    """A rate the true one lies below, with the given confidence (one-sided, exact binomial)."""
    count = _counts(successes, trials, confidence)
    with np.errstate(invalid="ignore"):
        quantile = beta.ppf(confidence, count + 1, trials - count)
    return np.where(count == trials, 1.0, quantile)


def epsilon_lower_bound(
    false_positives: ArrayLike, true_positives: ArrayLike, trials: int, delta: float, confidence: float = 0.95
) -> FloatArray:
    """The largest epsilon that the counts refute.

    The larger of ln((TPR - delta)/FPR) and ln((TNR - delta)/FNR). Only two rates are unknown, FPR = 1 - TNR and
    TPR = 1 - FNR. Each is bounded on its worse side at (1 + confidence)/2 (Bonferroni), so both bounds, and with them
    both terms, hold together with the confidence asked for.

    Args:
        false_positives: Guesses "present" in the world where it is not so; one count or several.
        true_positives: Guesses "present" in the other world, of the same shape.
        trials: Of each world.
        delta: The delta at which epsilon is meant; 0 allowed.
        confidence: Of the bound. It holds for a test that was fixed before the trials were seen.

    Returns:
        Epsilon, at least 0, of the shape of the counts.
    """
    if not 0 <= delta < 1:
        raise Error(f"delta is {delta:g}, expected 0 or more and below 1", hint="give a small number, such as 1e-5")
    each = (1 + confidence) / 2
    wrong = clopper_pearson_upper(false_positives, trials, each)
    right = clopper_pearson_lower(true_positives, trials, each)
    with np.errstate(divide="ignore"):
        present = np.log(np.maximum(right - delta, 0)) - np.log(wrong)
        absent = np.log(np.maximum(1 - wrong - delta, 0)) - np.log(1 - right)
    return np.asarray(np.maximum(np.maximum(present, absent), 0.0))


def measure(absent: FloatArray, present: FloatArray, delta: float, confidence: float = 0.95) -> Measured:
    """Chooses a threshold on the first half of the trials and counts on the second, so that the bound is honest.

    Args:
        absent: [trials] the attack's statistic in one world.
        present: [trials] in the other, where it tends to be larger.
        delta: The delta at which epsilon is meant.
        confidence: Of the bound.
    """
    if absent.shape != present.shape or absent.ndim != 1 or len(absent) < 2:
        raise Error(
            f"the statistic has shapes {absent.shape} and {present.shape}",
            hint="give both worlds the same number of trials, at least 2",
        )
    half = len(absent) // 2
    threshold = best_threshold(absent[:half], present[:half], delta, confidence)
    return counted(threshold, absent[half:], present[half:], delta, confidence)


def counted(
    threshold: float, absent: FloatArray, present: FloatArray, delta: float, confidence: float = 0.95
) -> Measured:
    """Counts with a threshold that was chosen on other trials.

    Args:
        threshold: Guess "present" above it.
        absent: [trials] the attack's statistic in one world.
        present: [trials] in the other.
        delta: The delta at which epsilon is meant.
        confidence: Of the bound.
    """
    false_positives, true_positives = (int((world > threshold).sum()) for world in (absent, present))
    epsilon = float(epsilon_lower_bound(false_positives, true_positives, len(absent), delta, confidence))
    return Measured(threshold, false_positives, true_positives, len(absent), epsilon, delta, confidence)


def best_threshold(absent: FloatArray, present: FloatArray, delta: float, confidence: float = 0.95) -> float:
    """The threshold with which these trials would refute most; of equals the middle one."""
    candidates = np.unique(np.concatenate([absent, present]))
    false_positives, true_positives = (
        len(world) - np.searchsorted(np.sort(world), candidates, side="right") for world in (absent, present)
    )
    shown = epsilon_lower_bound(false_positives, true_positives, len(absent), delta, confidence)
    best = np.flatnonzero(shown == shown.max())
    return float(candidates[best[len(best) // 2]])


def mu_lower_bound(right: ArrayLike, trials: int, confidence: float = 0.95) -> FloatArray:
    """The largest mu of Gaussian DP that the counts refute.

    Such a mechanism lets nobody be right more often than Phi(mu/2) about a world that was drawn evenly. Several worlds
    of one run count as trials of their own, so their noise must be independent, as it is claimed to be.

    Args:
        right: Right guesses, with a test that was fixed before.
        trials: Guesses in all.
        confidence: Of the bound.
    """
    return mu_of_guess(np.maximum(clopper_pearson_lower(right, trials, confidence), 0.5))


def mu_of_guess(chance: ArrayLike) -> FloatArray:
    """The mu of Gaussian DP under which a world that was drawn evenly is guessed with this chance, at best."""
    return np.asarray(2 * norm.ppf(np.asarray(chance, np.float64)))


def smallest_cut(mu_reached: float, mu_allowed: float, trials: int, confidence: float, power: float = 0.9) -> float:
    """How far noise may be cut before `mu_lower_bound` would exceed what is allowed, with probability `power`.

    Args:
        mu_reached: Of the attack as things are; noise at a share of its std makes it mu_reached/share.
        mu_allowed: What is promised.
        trials: Guesses in all.
        confidence: Of the bound.
        power: How surely the cut shall be caught.

    Returns:
        The largest share of the noise's std that would be caught; 0 where no cut would.
    """
    if mu_reached <= 0 or mu_lower_bound(trials, trials, confidence) <= mu_allowed:
        return 0.0
    # The bound grows with the count: the least that refutes.
    counts = range(trials + 1)
    least = bisect_left(counts, 1, key=lambda count: int(mu_lower_bound(count, trials, confidence) > mu_allowed))
    highest = 1 - 1e-15
    if binom.sf(least - 1, trials, highest) < power:
        return 0.0
    needed = brentq(lambda rate: binom.sf(least - 1, trials, rate) - power, 0.5, highest, xtol=1e-15)
    return float(min(1.0, mu_reached / (2 * norm.ppf(needed))))


def _counts(successes: ArrayLike, trials: int, confidence: float) -> FloatArray:
    _check.at_least(1, trials=trials)
    _check.fraction(confidence=confidence)
    count = np.asarray(successes, np.float64)
    if ((count < 0) | (count > trials)).any():
        raise Error(f"a count is not within 0 and {trials} trials", hint="count the guesses of one world only")
    return count
