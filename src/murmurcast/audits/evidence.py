"""What an attacker has of canaries: readings that are standard normal noise, and a shift between the worlds."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.privacy.releases import Adversary


class Evidence(NamedTuple):
    """Readings of every canary, whitened by what is claimed of the noise.

    Attributes:
        readings: [readings, runs, canaries] with unit variance, not correlated, if all is as claimed.
        shift: [readings] from a canary's world -1 to its world +1, under gradients that do not react to hidden states.
        part: Of the mu that is promised for everything, what is promised for these readings.
        against: Whose readings they are; what is promised against anybody as strong or stronger holds.
    """

    readings: FloatArray
    shift: FloatArray
    part: float = 1.0
    against: Adversary = "everybody"

    @property
    def mu(self) -> float:
        """How far the worlds lie apart for this attacker, if all is as claimed. A diagnostic."""
        return float(np.linalg.norm(self.shift))

    def matched(self) -> FloatArray:
        """[runs, canaries] the log likelihood ratio of world +1 over world -1, if all is as claimed."""
        return np.asarray(np.tensordot(self.shift, self.readings, axes=1))

    def beside(self, *more: FloatArray) -> "Evidence":
        """With readings that canaries do not shift; they may still tell something of the noise."""
        silent = np.zeros(sum(len(part) for part in more))
        return self._replace(readings=np.concatenate([self.readings, *more]), shift=np.append(self.shift, silent))

    def joined(self, other: "Evidence") -> "Evidence":
        """With another's readings of the same canaries."""
        readings = np.concatenate([self.readings, other.readings])
        return self._replace(readings=readings, shift=np.append(self.shift, other.shift))
