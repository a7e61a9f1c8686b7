"""The fairest split: the largest least alpha within the per-epoch limits, then the largest sum above it."""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.planning.power.largest_sum import largest_sum
from murmurcast.planning.power.per_epoch_limits import Limits


def max_min(limits: Limits) -> FloatArray:
    """[nodes] the alpha whose least entry is largest; among those, the one of largest sum."""
    level = even_split(limits)
    # Raising any alpha that a binding limit holds would break it, so those stay; often that is all of them.
    tight = np.unique(limits.receiver[limits.used(level) >= 1 - 1e-10])
    limited = np.isin(np.arange(len(level)), limits.share[tight].indices)
    if limited.all():
        return level
    return largest_sum(limits._replace(floor=level, ceiling=np.where(limited, level, limits.ceiling)))


def even_split(limits: Limits) -> FloatArray:
    """[nodes] the largest alpha that all nodes can share: s (cost_ij + 1) <= 1 on every link.

    Less alpha is always allowed, so no split has a larger least entry.
    """
    level = float(np.min(1 / (limits.cost.data + 1)))
    return np.asarray(np.clip(level * (1 - 1e-12), limits.floor, limits.ceiling))
