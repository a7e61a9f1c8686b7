"""The fairest split: the largest least alpha within the per-epoch limits, then the largest sum above it."""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.power.largest_sum import largest_sum
from murmurcast.power.limits import Limits


def max_min(limits: Limits) -> FloatArray:
    """[nodes] the alpha whose least entry is largest; among those, the one of largest sum.

    Less alpha is always allowed, so the least entry is largest where all are equal: s (cost_ij + 1) <= 1 on every link.
    """
    even = float(np.min(1 / (limits.cost.data + 1)))
    least = np.clip(np.full(len(limits.floor), even * (1 - 1e-12)), limits.floor, limits.ceiling)
    return largest_sum(limits._replace(floor=least))
