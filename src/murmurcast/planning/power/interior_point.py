"""An interior-point method made for the per-epoch limits of mid-sized networks.

Library solvers see a general sparse matrix and take four times as long: here a receiver's rows differ in one entry
only, so the normal equations are a few sparse products, and one dense Cholesky factor of nodes x nodes serves both
steps of Mehrotra's method. It starts strictly inside, from an even split, and stays there.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array

from murmurcast._check import FloatArray
from murmurcast.planning.power.per_epoch_limits import Limits

_GAP, _ROUNDS = 1e-9, 60


class _Point(NamedTuple):
    """Slacks of the limits, the floor and the ceiling, and the multiplier of each."""

    room: FloatArray
    above: FloatArray
    below: FloatArray
    y: FloatArray
    y_above: FloatArray
    y_below: FloatArray

    @property
    def gap(self) -> float:
        """How far the sum of alpha is from its largest, at most."""
        return float(self.room @ self.y + self.above @ self.y_above + self.below @ self.y_below)

    def moved(self, by: "_Point", primal: float, dual: float) -> "_Point":
        """The point some way along a step."""
        lengths = (primal, primal, primal, dual, dual, dual)
        return _Point(*(now + length * change for now, change, length in zip(self, by, lengths, strict=True)))


def largest_sum_inside(limits: Limits, start: FloatArray) -> FloatArray | None:
    """[nodes] the alpha of largest sum within 1e-9, from a strictly feasible start; None where that is not reached."""
    alpha, point = start, _start(limits, start)
    count = len(point.y) + 2 * len(alpha)
    for _ in range(_ROUNDS):
        if point.gap <= _GAP * alpha.sum():
            return alpha
        try:
            factor = cho_factor(_normal_matrix(limits, point), overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        _, predictor = _newton(limits, point, factor, 0.0, None)
        now = point.gap / count
        after = point.moved(predictor, *_lengths(point, predictor)).gap / count
        step, corrector = _newton(limits, point, factor, now * (after / now) ** 3, predictor)
        primal, dual = (min(1.0, 0.99 * length) for length in _lengths(point, corrector))
        alpha = alpha + primal * step
        point = point.moved(corrector, primal, dual)
    return None


def _start(limits: Limits, alpha: FloatArray) -> _Point:
    """Multipliers that satisfy their equation: those of floor and ceiling make up for what those of the limits lack."""
    links = limits.cost.nnz
    y = np.full(links, len(alpha) / (links * (1 + limits.cost.data.mean())))
    lacking = 1 - _transposed(limits, y)
    upper = np.maximum(lacking, 0) + 0.1
    return _Point(1 - limits.used(alpha), alpha - limits.floor, limits.ceiling - alpha, y, upper - lacking, upper)


def _transposed(limits: Limits, y: FloatArray) -> FloatArray:
    """[nodes] the limits' matrix, transposed, times y."""
    own = np.bincount(limits.cost.indices, limits.cost.data * y, len(limits.floor))
    return np.asarray(own + limits.share.T @ np.add.reduceat(y, limits.share.indptr[:-1]))


def _normal_matrix(limits: Limits, point: _Point) -> FloatArray:
    """[nodes, nodes] rows' diag(y / room) rows, plus what floor and ceiling add."""
    share, cost, weight = limits.share, limits.cost, point.y / point.room
    weighted = csr_array((weight * cost.data, share.indices, share.indptr), shape=share.shape)
    per_receiver = np.add.reduceat(weight, share.indptr[:-1])
    half = share.T @ (weighted + diags_array(per_receiver / 2) @ share)
    normal: FloatArray = (half + half.T).toarray()
    own = np.bincount(cost.indices, weight * cost.data**2, len(normal))
    normal[np.diag_indices(len(normal))] += own + point.y_above / point.above + point.y_below / point.below
    return normal


def _newton(
    limits: Limits, point: _Point, factor: Any, centre: float, bend: _Point | None
) -> tuple[FloatArray, _Point]:
    """The step to products of slack and multiplier equal to `centre`, corrected by the products of an earlier step."""
    room, above, below = (
        (centre - (0.0 if bend is None else bend[part] * bend[part + 3])) / point[part] for part in range(3)
    )
    step = cho_solve(factor, 1 - _transposed(limits, room) + above - below, check_finite=False)
    used = limits.used(step)
    return step, _Point(
        -used,
        step,
        -step,
        room - point.y + point.y / point.room * used,
        above - point.y_above - point.y_above / point.above * step,
        below - point.y_below + point.y_below / point.below * step,
    )


def _lengths(point: _Point, step: _Point) -> tuple[float, float]:
    """How far slacks and multipliers may go before one of them is 0."""

    def reach(value: FloatArray, change: FloatArray) -> float:
        down = change < 0
        return float(np.min(-value[down] / change[down], initial=1.0))

    reaches = [reach(value, change) for value, change in zip(point, step, strict=True)]
    return min(reaches[:3]), min(reaches[3:])
