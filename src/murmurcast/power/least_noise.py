"""The split whose noise disturbs the consensus least, within the per-epoch limits.

Noise of node j enters the common model with weight pi_j and std sqrt(beta_j/alpha_j) sigma_j: minimise
sum_j pi_j^2 sigma_j^2 (1/alpha_j - 1), which is convex. As a cone program: t_j alpha_j >= 1.
"""

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, csr_array, eye_array, hstack, kron, vstack

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.power.largest_sum import drawn_back
from murmurcast.power.limits import Limits, sparse


def least_noise(limits: Limits, perron: FloatArray, noise_to_step: FloatArray) -> FloatArray:
    """[nodes] the alpha of least consensus noise; unique, the objective being strictly convex."""
    nodes = len(perron)
    weight = (perron * noise_to_step) ** 2
    program = sparse(limits)
    # (t + alpha, t - alpha, 2) in the second-order cone is t alpha >= 1; three rows a node.
    cone = hstack(
        [
            kron(eye_array(nodes), np.array([[-1.0], [1.0], [0.0]])),
            csr_array((3 * nodes, nodes)),
            kron(eye_array(nodes), np.array([[-1.0], [-1.0], [0.0]])),
        ]
    )
    widened = [hstack([part, csr_array((part.shape[0], nodes))]) for part in (program.equal, program.below)]
    bound = np.concatenate([program.equal_bound, program.below_bound, np.tile([0.0, 0.0, 2.0], nodes)])
    cost = np.concatenate([np.zeros(2 * nodes), weight / weight.mean()])
    cones = [clarabel.ZeroConeT(nodes), clarabel.NonnegativeConeT(len(program.below_bound))]
    cones += [clarabel.SecondOrderConeT(3)] * nodes
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    quadratic = csc_matrix((3 * nodes, 3 * nodes))
    solver = clarabel.DefaultSolver(quadratic, cost, csc_matrix(vstack([*widened, cone])), bound, cones, settings)
    found = solver.solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise Error(f"the cone program was not solved: {found.status}", hint='try objective = "sum"')
    return drawn_back(limits, np.asarray(found.x)[:nodes])
