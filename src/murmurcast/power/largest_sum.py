"""The paper's program: the largest sum of alpha within the per-epoch limits.

A linear program in which all coefficients are positive. Up to a few thousand nodes HiGHS solves it to a vertex; beyond,
where every factorisation fills up, its first-order method finds the optimum to about 1e-6 and the result is drawn back
until all limits hold exactly.
"""

from typing import Any

import clarabel
import highspy
import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, eye_array, vstack

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.power.limits import Limits

_VERTEX_UP_TO = 3000  # nodes


def largest_sum(limits: Limits) -> FloatArray:
    """[nodes] the alpha of largest sum; where several reach it, the most even one (least sum of squares)."""
    exact = len(limits.floor) <= _VERTEX_UP_TO
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("solver", "ipm" if exact else "pdlp")
    highs.passModel(_model(limits))
    highs.run()
    accepted = {highspy.HighsModelStatus.kOptimal}
    if not exact:
        # The first-order method's optimum misses HiGHS's own, much tighter check; the drawing back below repairs that.
        accepted.add(highspy.HighsModelStatus.kUnknown)
    if highs.getModelStatus() not in accepted:
        raise Error(
            f"the linear program was not solved: {highs.modelStatusToString(highs.getModelStatus())}",
            hint='try objective = "max-min", which has a closed form',
        )
    solution = highs.getSolution()
    alpha = np.asarray(solution.col_value)
    if exact:
        binding = np.abs(np.asarray(solution.row_dual)) > 1e-9
        at_end = np.abs(np.asarray(solution.col_dual)) > 1e-9
        # As many multipliers as nodes fix every alpha: the optimum is this vertex alone.
        if binding.sum() + at_end.sum() < len(alpha):
            alpha = _most_even(limits, alpha, binding, at_end)
    return drawn_back(limits, alpha)


def drawn_back(limits: Limits, alpha: FloatArray) -> FloatArray:
    """A solver's answer, scaled by the hair it misses the limits by. They are hard; the floor yields by that hair."""
    alpha = np.clip(alpha, limits.floor, limits.ceiling)
    return np.asarray(alpha / max(1.0, float(limits.used(alpha).max())))


def _model(limits: Limits) -> highspy.HighsLp:
    rows = csc_array(limits.rows())
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.ones(rows.shape[1])
    model.col_lower_, model.col_upper_ = limits.floor, limits.ceiling
    model.row_lower_, model.row_upper_ = np.full(rows.shape[0], -highspy.kHighsInf), np.ones(rows.shape[0])
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    return model


def _most_even(
    limits: Limits,
    alpha: FloatArray,
    binding: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    at_end: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
) -> FloatArray:
    """The least sum of squares among the optima: those that keep equal what has a multiplier."""
    nodes = len(alpha)
    rows, identity = limits.rows(), csr_array(eye_array(nodes))
    equal = vstack([rows[binding], identity[at_end]])
    equal_bound = np.concatenate([np.ones(int(binding.sum())), alpha[at_end]])
    below = vstack([rows[~binding], identity[~at_end], -identity[~at_end]])
    below_bound = np.concatenate([np.ones(int((~binding).sum())), limits.ceiling[~at_end], -limits.floor[~at_end]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(len(equal_bound)), clarabel.NonnegativeConeT(len(below_bound))]
    bounds = np.concatenate([equal_bound, below_bound])
    quadratic, linear = csc_matrix(eye_array(nodes)), np.zeros(nodes)
    solver = clarabel.DefaultSolver(quadratic, linear, csc_matrix(vstack([equal, below])), bounds, cones, settings)
    found = solver.solve()
    solved = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    return np.asarray(found.x) if found.status in solved else alpha
