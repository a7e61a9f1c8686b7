"""The split whose noise disturbs the consensus least, within the per-epoch limits.

Noise of node j enters the common model with weight pi_j and std sqrt(beta_j/alpha_j) sigma_j: minimise
sum_j pi_j^2 sigma_j^2 (1/alpha_j - 1), which is convex. As a cone program: t_j alpha_j >= 1.
"""

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, csr_array, eye_array, hstack, kron, vstack

from murmurcast._check import FloatArray
from murmurcast.planning.power.conic_solver import solve_cone_program
from murmurcast.planning.power.largest_sum import drawn_back
from murmurcast.planning.power.per_epoch_limits import Limits, sparse


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
    ends = hstack([vstack([eye_array(nodes), -eye_array(nodes)]), csr_array((2 * nodes, nodes))])
    above = vstack([program.equal, program.below, ends])
    widened = hstack([above, csr_array((above.shape[0], nodes))])
    links = program.below.shape[0]
    zero, cone_bound = np.zeros(links), np.tile([0.0, 0.0, 2.0], nodes)
    bound = np.concatenate([np.ones(nodes), zero, limits.ceiling, -limits.floor, cone_bound])
    cost = np.concatenate([np.zeros(2 * nodes), weight / weight.mean()])
    cones = [clarabel.ZeroConeT(nodes), clarabel.NonnegativeConeT(links + 2 * nodes)]
    cones += [clarabel.SecondOrderConeT(3)] * nodes
    quadratic = csc_matrix((3 * nodes, 3 * nodes))
    optimum = solve_cone_program(quadratic, cost, vstack([widened, cone]), bound, cones)
    return drawn_back(limits, optimum[:nodes])
