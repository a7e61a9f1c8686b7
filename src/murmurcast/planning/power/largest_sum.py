"""The paper's program: the largest sum of alpha within the per-epoch limits.

A linear program in which all coefficients are positive. HiGHS solves it to an exact vertex for small networks. An
interior-point method comes within 1e-9 for larger ones, as far as nodes hear their surroundings. In a large network
without locality every factorisation fills up; there HiGHS's first-order method comes within about 1e-4. Whichever it
is, the result is scaled until all limits hold exactly.
"""

from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy.sparse import csc_array, csc_matrix, csgraph, csr_array, eye_array, vstack

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.planning.power.conic_solver import solve_cone_program
from murmurcast.planning.power.interior_point import Optimum, optimum_inside
from murmurcast.planning.power.normal_equations import Order, elimination_order
from murmurcast.planning.power.per_epoch_limits import Limits, sparse

_SMALL, _MIDDLE = 300, 3000  # nodes
_WIDEST = 1000  # nodes in one layer
_WIDEST_BAND = 2500  # nodes
_SHORT_ROWS = 50  # mean degree up to which a row holds all of a receiver's senders


class Split(NamedTuple):
    """The split of largest sum, and what makes the next one quicker, if anything.

    Attributes:
        alpha: [nodes] the split; it meets all limits.
        near: Where the next one may begin, for another theta.
    """

    alpha: FloatArray
    near: Optimum | None = None


def largest_sum(limits: Limits) -> FloatArray:
    """[nodes] the alpha of largest sum; where several reach it, the most even one (least sum of squares).

    The tie-break comes up to 300 nodes, beyond 3000 where nodes hear their surroundings, and with a mean degree of at
    most 50; elsewhere the answer is merely the same every time.
    """
    return largest_sum_near(limits).alpha


def largest_sum_near(limits: Limits, near: Optimum | None = None) -> Split:
    """The same, begun where the one for another theta came by; it is the same split to within 1e-9 of the sum."""
    nodes = len(limits.floor)
    if nodes <= _SMALL:
        return Split(drawn_back(limits, _vertex(limits)))
    order = elimination_order(limits.share)
    if not goes_along(order):
        alpha = _vertex(limits) if _widest_layer(limits) <= _WIDEST else _first_order(limits)
        return Split(drawn_back(limits, alpha))
    optimum = _optimum(limits, near, order)
    if optimum is None:
        return Split(drawn_back(limits, _vertex(limits)))
    return Split(drawn_back(limits, _untied(optimum) if nodes > _MIDDLE else optimum.at.alpha), optimum)


def goes_along(order: Order) -> bool:
    """Whether the interior-point method factorises this network, in its order from end to end."""
    return len(order.nodes) <= _MIDDLE or order.band <= _WIDEST_BAND


def drawn_back(limits: Limits, alpha: FloatArray) -> FloatArray:
    """A solver's answer, scaled by the hair it misses the limits by. They are hard; the floor yields by that hair."""
    alpha = np.clip(alpha, limits.floor, limits.ceiling)
    return np.asarray(alpha / max(1.0, float(limits.used(alpha).max())))


def _widest_layer(limits: Limits) -> int:
    """The widest layer of a breadth-first search: it separates the network, so factors need be no denser than that."""
    hops = csgraph.shortest_path(limits.share, method="D", unweighted=True, indices=0)
    return int(np.bincount(hops.astype(np.int64)).max())


def _vertex(limits: Limits) -> FloatArray:
    import highspy  # imported when a program comes to it: commands should start at once

    solution = _run_highs(limits, "ipm", {highspy.HighsModelStatus.kOptimal})
    nodes, links = len(limits.floor), limits.cost.nnz
    alpha = np.asarray(solution.col_value)[:nodes]
    binding = np.abs(np.asarray(solution.row_dual)[:links]) > 1e-9
    at_end = (np.abs(np.asarray(solution.col_dual)[:nodes]) > 1e-9) | (limits.floor == limits.ceiling)
    # As many multipliers as nodes fix every alpha: the optimum is this vertex alone. Long rows would take minutes.
    alone = binding.sum() + at_end.sum() >= nodes
    return alpha if alone or links > _SHORT_ROWS * nodes else _most_even(limits, alpha, binding, at_end)


def _inside(limits: Limits) -> FloatArray:
    optimum = _optimum(limits)
    return _vertex(limits) if optimum is None else optimum.at.alpha


def _optimum(limits: Limits, near: Optimum | None = None, order: Order | None = None) -> Optimum | None:
    """Half way between the floor and the largest even split is strictly inside, unless the floor itself binds."""
    middle = (limits.floor + np.minimum(1 / (1 + limits.cost.data.max()), limits.ceiling)) / 2
    strictly = (limits.used(middle) < 1 - 1e-9).all() and (middle > limits.floor * (1 + 1e-9)).all()
    return optimum_inside(limits, middle, near, order) if strictly else None


def _untied(optimum: Optimum) -> FloatArray:
    """The most even of the optima; from inside all of them are approached at once."""
    limits, (alpha, point) = optimum.limits, optimum.at
    if optimum.is_alone or limits.cost.nnz > _SHORT_ROWS * len(alpha):
        return alpha
    low, high = point.y_above > point.above, point.y_below > point.below
    ends = np.where(low, limits.floor, np.where(high, limits.ceiling, alpha))
    return _most_even(limits, ends, point.y > point.room, low | high)


def _first_order(limits: Limits) -> FloatArray:
    # Its answer misses HiGHS's own, much tighter check and is called unknown; the scaling repairs what it misses.
    import highspy

    accepted = {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown}
    return np.asarray(_run_highs(limits, "pdlp", accepted).col_value)[: len(limits.floor)]


def _run_highs(limits: Limits, solver: str, accepted: set[Any]) -> Any:
    import highspy

    nodes, links = len(limits.floor), limits.cost.nnz
    unbounded = np.full(links, -highspy.kHighsInf)
    if links <= _SHORT_ROWS * nodes:
        rows, lower, upper, extra = csc_array(limits.rows()), unbounded, np.ones(links), 0
    else:
        below, equal = sparse(limits)
        rows, extra = csc_array(vstack([below, equal])), nodes
        lower, upper = np.concatenate([unbounded, np.ones(nodes)]), np.concatenate([np.zeros(links), np.ones(nodes)])
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.concatenate([np.ones(nodes), np.zeros(extra)])
    model.col_lower_ = np.concatenate([limits.floor, np.zeros(extra)])
    model.col_upper_ = np.concatenate([limits.ceiling, np.ones(extra)])
    model.row_lower_, model.row_upper_ = lower, upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("solver", solver)
    highs.setOptionValue("pdlp_optimality_tolerance", 1e-5)
    highs.passModel(model)
    highs.run()
    if highs.getModelStatus() not in accepted:
        raise Error(
            f"the linear program was not solved: {highs.modelStatusToString(highs.getModelStatus())}",
            hint="raise privacy.epsilon or schedule.noise_to_step a little; the limits may be too tight to resolve",
        )
    return highs.getSolution()


def _most_even(
    limits: Limits,
    alpha: FloatArray,
    binding: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    at_end: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
) -> FloatArray:
    """The least sum of squares among the optima: those that keep equal what has a multiplier."""
    nodes = len(alpha)
    rows, identity = limits.rows(), csr_array(eye_array(nodes))
    matrix = vstack([rows[binding], identity[at_end], rows[~binding], identity[~at_end], -identity[~at_end]])
    equal = np.concatenate([np.ones(int(binding.sum())), alpha[at_end]])
    below = np.concatenate([np.ones(int((~binding).sum())), limits.ceiling[~at_end], -limits.floor[~at_end]])
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(below))]
    return solve_cone_program(
        csc_matrix(eye_array(nodes)), np.zeros(nodes), matrix, np.concatenate([equal, below]), cones
    )
