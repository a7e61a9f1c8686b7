"""From evidence to guesses: by the filter that fits the claim, and by one that is learned from what is really there.

The matched filter is best if the noise is as claimed. If it is not (drawn twice, shared, dropped), the best filter is
another one; linear discriminant analysis finds it from canaries whose signs are told, and is tried on all others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.audits.evidence import Evidence

Numbers = NDArray[np.int64]
_SHRINKAGE = 1e-4
_LEARN, _CHOOSE = 0.3, 0.5  # learn on the first 30 % of all canaries, choose on the next 20 %, count on the rest


class Split(NamedTuple):
    """[canaries] which of them serve for what; all runs' canaries in one row."""

    learning: Numbers
    choosing: Numbers
    counting: Numbers


class Guesses(NamedTuple):
    """Statistics of all canaries, large for +1, by the matched and by the learned filter.

    Attributes:
        matched: [canaries].
        learned: [canaries]; those that were learned from must not be counted.
        signs: [canaries] the truth.
        split: Which canaries serve for what.
    """

    matched: FloatArray
    learned: FloatArray
    signs: FloatArray
    split: Split

    def right(self, statistic: FloatArray, which: Numbers) -> int:
        """How many guesses are right; where the statistic says nothing, the guess is +1."""
        return int((np.where(statistic[which] >= 0, 1.0, -1.0) == self.signs[which]).sum())

    def better(self) -> FloatArray:
        """The statistic that guesses better where nothing is counted."""
        matched, learned = (self.right(statistic, self.split.choosing) for statistic in (self.matched, self.learned))
        return self.learned if learned > matched else self.matched


def guess(evidence: Evidence, signs: FloatArray, seed: int) -> Guesses:
    """Both filters' statistics.

    Args:
        evidence: Readings of [runs, canaries].
        signs: [runs, canaries].
        seed: Of the split.
    """
    order = np.random.default_rng([seed, 1]).permutation(signs.size)
    split = Split(*np.split(order, [int(_LEARN * signs.size), int(_CHOOSE * signs.size)]))
    readings, truth = evidence.readings.reshape(len(evidence.readings), -1), signs.ravel()
    return Guesses(evidence.matched().ravel(), _learned(readings, truth, split.learning), truth, split)


def _learned(readings: FloatArray, signs: FloatArray, learn: Numbers) -> FloatArray:
    """[canaries] the discriminant, learned from some: linear discriminant analysis with equal priors.

    So the threshold is half way between the worlds, however many of each were drawn. Hardly any shrinkage: more of it
    would fill up the directions without noise, which are those to be found.
    """
    worlds = [readings[:, learn[signs[learn] == sign]] for sign in (-1, 1)]
    if not all(world.shape[1] for world in worlds):
        return np.zeros(len(signs))
    absent, present = (world.mean(axis=1) for world in worlds)
    covariance = np.mean([_shrunk_covariance(world) for world in worlds], axis=0)
    direction = np.linalg.lstsq(covariance, present - absent, rcond=None)[0]
    return np.asarray(direction @ readings - direction @ (absent + present) / 2)


def _shrunk_covariance(values: FloatArray) -> FloatArray:
    """[readings, readings] of readings [readings, canaries], drawn a little towards equal and independent ones."""
    apart = values - values.mean(axis=1, keepdims=True)
    covariance = apart @ apart.T / values.shape[1]
    level = float(np.trace(covariance)) / len(covariance)
    return np.asarray((1 - _SHRINKAGE) * covariance + _SHRINKAGE * level * np.eye(len(covariance)))
