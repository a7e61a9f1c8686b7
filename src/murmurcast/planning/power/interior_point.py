"""An interior-point method made for the per-epoch limits.

Library solvers see a general sparse matrix and take four to ten times as long: here a receiver's rows differ in one
entry only, so the normal equations are a few sparse products, and one Cholesky factor serves both steps of Mehrotra's
method. It starts strictly inside, from an even split or from where it passed for a theta nearby, and stays there.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import csr_array, diags_array

from murmurcast._check import FloatArray
from murmurcast.planning.power.normal_equations import Order, Solve, elimination_order, factorised
from murmurcast.planning.power.per_epoch_limits import Limits

_GAP, _ROUNDS = 1e-9, 60
_FINEST = 1e-12  # the gap at which multipliers tell ties from small ones
_FAR, _NEAR = 0.3, 1e-4  # gaps between which a later solution may begin


class Point(NamedTuple):
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

    def moved(self, by: "Point", primal: float, dual: float) -> "Point":
        """The point some way along a step."""
        lengths = (primal, primal, primal, dual, dual, dual)
        return Point(*(now + length * change for now, change, length in zip(self, by, lengths, strict=True)))


class Inside(NamedTuple):
    """A split strictly inside its limits, with slacks and multipliers."""

    alpha: FloatArray
    point: Point

    @property
    def gap(self) -> float:
        """How far it is from the largest sum, at most, as a part of its own."""
        return self.point.gap / float(self.alpha.sum())


class Optimum(NamedTuple):
    """The split of largest sum, and the way to it.

    Attributes:
        limits: What it is the optimum of.
        at: The split.
        passed: Where the way came by, from far to near.
    """

    limits: Limits
    at: Inside
    passed: tuple[Inside, ...]

    @property
    def is_alone(self) -> bool:
        """Whether as many limits as there are nodes have a multiplier: they fix every alpha."""
        point, limits = self.at.point, self.limits
        at_bound = (point.y_above > point.above) | (point.y_below > point.below) | (limits.floor == limits.ceiling)
        return bool((point.y > point.room).sum() + at_bound.sum() >= len(at_bound))


def largest_sum_inside(limits: Limits, start: FloatArray) -> FloatArray | None:
    """[nodes] the alpha of largest sum within 1e-9, from a strictly feasible start; None where that is not reached."""
    optimum = optimum_inside(limits, start)
    return None if optimum is None else optimum.at.alpha


def optimum_inside(
    limits: Limits, start: FloatArray, near: Optimum | None = None, order: Order | None = None
) -> Optimum | None:
    """The split of largest sum within 1e-9; None where that is not reached.

    Args:
        limits: What it must keep to.
        start: [nodes] a split strictly inside.
        near: The optimum of the same network for another theta: where its way came by is a better start.
        order: Of elimination, where it is known already.
    """
    order = elimination_order(limits.share) if order is None else order
    begin = None if near is None else _moved_inside(limits, near)
    optimum = None if begin is None else _followed(limits, begin, order, _GAP)
    optimum = _followed(limits, Inside(start, _start(limits, start)), order, _GAP) if optimum is None else optimum
    if optimum is None or optimum.is_alone:
        return optimum
    finer = _followed(limits, optimum.at, order, _FINEST)  # a small multiplier looks like a tie from afar
    return optimum if finer is None else finer._replace(passed=optimum.passed)


def _followed(limits: Limits, begin: Inside, order: Order, gap: float) -> Optimum | None:
    at, passed = begin, list[Inside]()
    for _ in range(_ROUNDS):
        if at.gap <= gap:
            return Optimum(limits, at, tuple(passed))
        if _NEAR <= at.gap <= (passed[-1].gap / 3 if passed else _FAR):
            passed.append(at)
        try:
            at = _nearer(limits, at, factorised(_normal_matrix(limits, at.point), order))
        except LinAlgError:
            return None
    return None


def _nearer(limits: Limits, at: Inside, solve: Solve) -> Inside:
    """One step of Mehrotra's method."""
    alpha, point = at
    count = len(point.y) + 2 * len(alpha)
    _, predictor = _newton(limits, point, solve, 0.0, None)
    now = point.gap / count
    after = point.moved(predictor, *_lengths(point, predictor)).gap / count
    step, corrector = _newton(limits, point, solve, now * (after / now) ** 3, predictor)
    primal, dual = (min(1.0, 0.99 * length) for length in _lengths(point, corrector))
    return Inside(alpha + primal * step, point.moved(corrector, primal, dual))


def _start(limits: Limits, alpha: FloatArray) -> Point:
    """Multipliers that satisfy their equation: those of floor and ceiling make up for what those of the limits lack."""
    links = limits.cost.nnz
    y = np.full(links, len(alpha) / (links * (1 + limits.cost.data.mean())))
    lacking = 1 - _transposed(limits, y)
    upper = np.maximum(lacking, 0) + 0.1
    return Point(1 - limits.used(alpha), alpha - limits.floor, limits.ceiling - alpha, y, upper - lacking, upper)


def _moved_inside(limits: Limits, near: Optimum) -> Inside | None:
    """Where the way to another theta's optimum came by, moved inside these limits; None where it does not get there.

    Costs that grow by a factor are made up for by moving towards the floor, and multipliers of floor and ceiling make
    up for what the limits' now lack. It is as far from the optimum as the costs are from each other, so what was
    nearer than that is passed over.
    """
    grown = float((limits.cost.data / near.limits.cost.data).max())
    at = next((inside for inside in reversed(near.passed) if inside.gap >= abs(grown - 1)), None)
    if at is None:
        return None
    floor_uses = float(limits.used(limits.floor).max())
    kept = 1.0 if grown <= 1 else (1 - floor_uses) / (grown - floor_uses)
    alpha = limits.floor + kept * (at.alpha - limits.floor)
    lacking = _transposed(near.limits, at.point.y) - _transposed(limits, at.point.y)
    point = at.point._replace(
        room=1 - limits.used(alpha),
        above=alpha - limits.floor,
        below=limits.ceiling - alpha,
        y_above=at.point.y_above + np.maximum(-lacking, 0),
        y_below=at.point.y_below + np.maximum(lacking, 0),
    )
    return Inside(alpha, point) if min(float(part.min()) for part in point) > 0 else None


def _transposed(limits: Limits, y: FloatArray) -> FloatArray:
    """[nodes] the limits' matrix, transposed, times y."""
    own = np.bincount(limits.cost.indices, limits.cost.data * y, len(limits.floor))
    return np.asarray(own + limits.share.T @ np.add.reduceat(y, limits.share.indptr[:-1]))


def _normal_matrix(limits: Limits, point: Point) -> csr_array:
    """[nodes, nodes] rows' diag(y / room) rows, plus what floor and ceiling add."""
    share, cost, weight = limits.share, limits.cost, point.y / point.room
    weighted = csr_array((weight * cost.data, share.indices, share.indptr), shape=share.shape)
    per_receiver = np.add.reduceat(weight, share.indptr[:-1])
    half = share.T @ (weighted + diags_array(per_receiver / 2) @ share)
    own = np.bincount(cost.indices, weight * cost.data**2, len(limits.floor))
    ends = point.y_above / point.above + point.y_below / point.below
    return csr_array(half + half.T + diags_array(own + ends))


def _newton(limits: Limits, point: Point, solve: Solve, centre: float, bend: Point | None) -> tuple[FloatArray, Point]:
    """The step to products of slack and multiplier equal to `centre`, corrected by the products of an earlier step."""
    room, above, below = (
        (centre - (0.0 if bend is None else bend[part] * bend[part + 3])) / point[part] for part in range(3)
    )
    step = solve(1 - _transposed(limits, room) + above - below)
    used = limits.used(step)
    return step, Point(
        -used,
        step,
        -step,
        room - point.y + point.y / point.room * used,
        above - point.y_above - point.y_above / point.above * step,
        below - point.y_below + point.y_below / point.below * step,
    )


def _lengths(point: Point, step: Point) -> tuple[float, float]:
    """How far slacks and multipliers may go before one of them is 0."""

    def reach(value: FloatArray, change: FloatArray) -> float:
        down = change < 0
        return float(np.min(-value[down] / change[down], initial=1.0))

    reaches = [reach(value, change) for value, change in zip(point, step, strict=True)]
    return min(reaches[:3]), min(reaches[3:])
