"""The auditor's look at what was released before training: is there as much noise in it as is claimed?

Who has all rows knows the exact averages. What the public ones differ by must be noise of the claimed size, and the
very noise that the stated seed gives: that no other run draws the same is known by its seed. Rows, those of the test
part too, must be what the public averages make of them: else something else left the nodes.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from murmurcast._check import FloatArray
from murmurcast.audits.noise_checks import Check
from murmurcast.data.base import Features
from murmurcast.data.partition import Partition
from murmurcast.data.preprocessing import FirstReleases, within_unit_ball
from murmurcast.privacy.first_releases import Statistic

_NAME = "noise of first releases"
_SAME = 1e-5  # of rows of norm 1: what float32 rounds
_SAME_NOISE = 1e-3  # of the averaged noise's deviation: rows that another machine rounded, and far from another draw


def check_first_releases(data: object, level: float) -> tuple[Check, ...]:
    """One check of all of them; none where nothing was released.

    Args:
        data: What a problem holds.
        level: The probability with which an honest system is accused, at most.
    """
    if not isinstance(data, Partition) or data.first is None or data.origin is None:
        return ()
    first, before = data.first, data.origin.dataset
    features, least, words = within_unit_ball(before.features, first.rows), 1.0, ""
    for statistic in first.averages:
        probability = _too_little(first, statistic, _exact(statistic, data, features))
        if probability < least:
            least, words = probability, f"what is released for {statistic} has less noise than is claimed"
        if not _is_as_drawn(first, statistic, [features[rows] for rows in data.rows]):
            least, words = 0.0, f"what is released for {statistic} is not what its seed and noise give"
        features = first.step(statistic, features)
    same = all(
        np.abs(expected - actual).max() <= _SAME
        for expected, actual in (
            (features, data.dataset.features),
            (first.apply(before.test_features), data.dataset.test_features),
        )
    )
    if not same:
        least, words = 0.0, "rows are not what the released statistics make of them"
    tests = len(first.averages)
    probability = min(1.0, least * tests)
    return (Check(_NAME, tests, probability, words, probability < level),)


def _exact(statistic: Statistic, data: Partition, features: Features) -> FloatArray:
    """The average over nodes that no noise is in: each has as much weight as rows."""
    rows = features[np.concatenate(data.rows)].astype(np.float64)
    return np.asarray(rows.mean(axis=0) if statistic == "centring" else rows.T @ rows / len(rows))


def _is_as_drawn(first: FirstReleases, statistic: Statistic, rows: Sequence[Features]) -> bool:
    """Whether the public average is that of the nodes' rows under noise of the claimed size from the stated seed."""
    apart = np.abs(first.average(statistic, rows) - first.averages[statistic]).max()
    return bool(apart <= _SAME_NOISE * _deviation(first, statistic))


def _deviation(first: FirstReleases, statistic: Statistic) -> float:
    """Of the noise in the average over nodes."""
    return float(np.linalg.norm(first.weights * first.noise[statistic]))


def _too_little(first: FirstReleases, statistic: Statistic, exact: FloatArray) -> float:
    """How probable it is that noise of the claimed size comes out as small."""
    apart = (first.averages[statistic] - exact) / _deviation(first, statistic)
    if statistic == "whitening":  # every entry off the diagonal once, at its own deviation
        apart = np.concatenate([np.diag(apart), apart[np.triu_indices(len(apart), 1)] * math.sqrt(2)])
    return float(chi2.cdf(np.sum(np.square(apart)), apart.size))
