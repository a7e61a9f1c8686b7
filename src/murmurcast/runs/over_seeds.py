"""Intervals over seeds, by Student's t: of one run's mean, and of the difference between two runs.

A run's seeds are independent repetitions of the same experiment. What varies is what a seed draws: noise, minibatches
and starts; network and data stay as they are, and so does whatever was chosen by looking at earlier results.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from murmurcast._check import FloatArray

LEVEL = 0.95

Interval = tuple[float, float]


class Difference(NamedTuple):
    """How far one run lies above another.

    Attributes:
        mean: The difference of their means.
        interval: In which it lies; None where either has one seed.
        paired: Whether the runs have the same seeds and were subtracted seed by seed.
    """

    mean: float
    interval: Interval | None
    paired: bool


def interval(by_seed: FloatArray) -> Interval | None:
    """The 95 % interval of a mean over seeds, by Student's t with seeds - 1 degrees of freedom.

    Args:
        by_seed: [seed] a number of every seed.

    Returns:
        (low, high); None with one seed, which shows nothing of how others would differ.
    """
    if len(by_seed) < 2:
        return None
    with np.errstate(invalid="ignore", over="ignore"):  # of a run that diverged
        return _around(float(by_seed.mean()), float(by_seed.var(ddof=1)) / len(by_seed), len(by_seed) - 1)


def difference(one: dict[int, float], first: dict[int, float]) -> Difference:
    """One run minus the first, with its 95 % interval.

    With the same seeds the differences seed by seed have their own interval, as in the paired t-test; with others,
    the runs are independent, and Welch's degrees of freedom are taken, which need no equal variances.

    Args:
        one: A number of every seed, by seed.
        first: The same of the run that it is held against.
    """
    values, others = (np.array([run[seed] for seed in sorted(run)]) for run in (one, first))
    with np.errstate(invalid="ignore", over="ignore"):  # of runs that diverged
        mean = float(values.mean() - others.mean())
        if one.keys() == first.keys():
            return Difference(mean, interval(values - others), paired=True)
        if min(len(values), len(others)) < 2:
            return Difference(mean, None, paired=False)
        parts = np.array([of_run.var(ddof=1) / len(of_run) for of_run in (values, others)])
        total = parts.sum()
        freedom = total**2 / (parts**2 / (len(values) - 1, len(others) - 1)).sum() if total else 1.0
        return Difference(mean, _around(mean, float(total), float(freedom)), paired=False)


def half_width(bounds: Interval) -> float:
    """What stands behind "±": half of the interval."""
    return (bounds[1] - bounds[0]) / 2


def _around(mean: float, variance: float, freedom: float) -> Interval:
    width = float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return mean - width, mean + width
