"""What is released by methods whose nodes keep their own model without noise: a private memory of all their gradients.

If one unit's data changes, node j's model differs by d_t in epoch t, and everything that it sends differs by as much,
under the noise of each link. Given all that was sent before, the difference fades by the node's own weight and grows by
its gradient's:

    d_t+1 = w_jj d_t + gamma_t min(2 C, S_j + L d_t)          mu_j^2 = sum_t d_t^2 sum_{i in N_j} 1/s_ij,t^2

The second part of the minimum needs a known L: a clipped gradient moves by no more than its gradient does, clipping
being a projection. Where gradients are taken at the mixed point, it is w_jj d_t that they see.
"""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.privacy.releases import GAUSSIAN, Releases


def memory(
    own_weight: FloatArray, push: FloatArray, sensitivity: FloatArray, most: float, seen: FloatArray
) -> FloatArray:
    """[epochs, nodes] d_t: how far one unit's data can have moved what a node sends in epoch t.

    Args:
        own_weight: [nodes] w_jj.
        push: [epochs] the step of the newest gradient in what is sent in epoch t; 0 where there is none.
        sensitivity: [nodes] S, of a gradient at one point.
        most: 2 C, of a gradient at any two points.
        seen: [nodes] L times what a gradient sees of d: 1, or the own weight; infinite where L is not known.
    """
    rows, before = [], np.zeros_like(own_weight)
    for step in push.tolist():
        with np.errstate(invalid="ignore"):
            pulled = np.where(before > 0, seen * before, 0.0)
        before = own_weight * before + step * np.minimum(most, sensitivity + pulled)
        rows.append(before)
    return np.stack(rows)


def sent_next(steps: FloatArray) -> FloatArray:
    """[epochs] the step of the newest gradient in what is sent, where a gradient is sent in the epoch after it."""
    return np.concatenate([[0.0], steps[:-1]])


def memory_releases(moved: FloatArray, hidden_by: FloatArray, std: FloatArray) -> Releases:
    """From d_t, [nodes] the sum over links of 1/s^2 where q std = 1, and [epochs, nodes] q std."""
    with np.errstate(all="ignore"):
        ratio = np.where(moved > 0, moved * np.sqrt(hidden_by) / std, 0.0)
    return Releases(GAUSSIAN, np.where(np.isnan(ratio), np.inf, ratio), "everybody")
