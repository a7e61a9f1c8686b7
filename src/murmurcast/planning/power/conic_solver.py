"""One call of the cone solver, for every program here that needs it."""

from typing import Any

import clarabel
import numpy as np
from scipy.sparse import csc_matrix

from murmurcast._check import FloatArray
from murmurcast.errors import Error


def solve_cone_program(
    quadratic: csc_matrix, cost: FloatArray, matrix: Any, bound: FloatArray, cones: list[Any]
) -> FloatArray:
    """The x of least x' quadratic x / 2 + cost' x with bound - matrix x in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = (
        "faer"  # supernodal, on all cores; the default takes twice as long where factors fill up
    )
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(quadratic, cost, csc_matrix(matrix), bound, cones, settings).solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise Error(
            f"the power program was not solved: {solution.status}",
            hint="raise privacy.epsilon or schedule.noise_to_step a little; the limits may be too tight to resolve",
        )
    return np.asarray(solution.x)
