"""The balanced split: alpha_j p_j proportional to q_j^2 of Sinkhorn scaling, which makes A itself doubly stochastic.

A does not change when every alpha is scaled alike, so its z is known before the level is, and the level follows in
closed form from whatever limits it.
"""

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error, Infeasible
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.graph import Network
from murmurcast.planning.power.per_epoch_limits import Limits

_BELOW = 1 - 1e-11  # approached from below, so that the promise holds to the last digit


def balanced_shape(network: Network, normaliser: int, minimum: float, maximum: float) -> FloatArray:
    """[nodes] alpha up to a common factor, the largest 1, where some factor keeps all within their bounds."""
    amplitude = balanced_mixing(network, normaliser).amplitude
    shape = amplitude**2 / network.power
    shape = shape / shape.max()
    if shape.min() * maximum < minimum:
        raise Error(
            f"a balanced split needs alphas that lie {1 / shape.min():.3g} apart, and power.min and power.max allow "
            f"{maximum / minimum:.3g}",
            hint='lower power.min, or set power.objective = "sum"',
        )
    return np.asarray(shape)


def level_within(limits: Limits, shape: FloatArray, epsilon: float) -> FloatArray:
    """[nodes] the largest split of this shape within per-epoch limits."""
    level = min(_BELOW / float(limits.used(shape).max()), float(limits.ceiling.min()))
    lowest = float(limits.floor.max() / shape.min())
    if level < lowest:
        at_floor = shape * lowest
        left = 1 - (limits.share @ at_floor)[limits.receiver]
        needed = epsilon * float(np.sqrt(np.max(limits.cost.data * at_floor[limits.cost.indices] / left)))
        _refuse(epsilon, needed if (left > 0).all() else np.inf)
    return level * shape


def level_below(most: FloatArray, shape: FloatArray, maximum: float) -> FloatArray:
    """[nodes] the largest split of this shape in which no alpha exceeds what its node's certificate allows."""
    return min(_BELOW * float((most / shape).min()), maximum) * shape


def require_level(alpha: FloatArray, minimum: float, epsilon: float, smallest_epsilon: float) -> None:
    """Every alpha is at least its minimum; `smallest_epsilon` is the one that makes it so."""
    if alpha.min() < minimum * (1 - 1e-12):
        _refuse(epsilon, smallest_epsilon)


def _refuse(epsilon: float, smallest_epsilon: float) -> None:
    words = (
        "the smallest feasible epsilon is " + _check.rounded_up(smallest_epsilon * (1 + 1e-9))
        if np.isfinite(smallest_epsilon)
        else "no epsilon is feasible with so little noise"
    )
    raise Infeasible(
        f"no balanced power split meets epsilon {epsilon:g} with every alpha at its minimum or above",
        hint=f'{words}; or raise noise_to_step, lower power.min, or set power.objective = "sum"',
        smallest_epsilon=smallest_epsilon * (1 + 1e-9),
    )
