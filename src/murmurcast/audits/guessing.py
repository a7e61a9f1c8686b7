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
    """[canaries] the discriminant, learned from some."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    if len(np.unique(signs[learn])) < 2:
        return np.zeros(len(signs))
    # Equal priors: the threshold is half way between the worlds, however many of each were drawn. Hardly any shrinkage:
    # more of it would fill up the directions without noise, which are those to be found.
    discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=_SHRINKAGE, priors=[0.5, 0.5])
    discriminant.fit(readings[:, learn].T, signs[learn])
    return np.asarray(discriminant.decision_function(readings.T))
