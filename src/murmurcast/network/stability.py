"""Whether exact diffusion settles on given weights, found out before anything is trained."""

import numpy as np
from scipy.sparse import csr_array

from murmurcast._threads import threads_for
from murmurcast.errors import Error

DENSE_UP_TO = 3000  # nodes, for all eigenvalues


def exact_diffusion_radius(weights: csr_array) -> float:
    """The largest modulus of a disagreement's factor per epoch, for small steps; below 1 it dies out.

    Every eigenvalue l of (I + W)/2 but the one of consensus makes a factor s with s^2 - 2 l s + l = 0. Real l below 1
    always make |s| = sqrt(l) < 1; strongly complex ones, of very unequal gains around a cycle, may not.
    """
    nodes = weights.shape[0]
    if nodes > DENSE_UP_TO:
        raise Error(
            f"whether exact diffusion is stable on {nodes} nodes needs all eigenvalues of their weights",
            hint=f"use at most {DENSE_UP_TO} nodes, or a method that needs no such check",
        )
    with threads_for(nodes):
        values = np.linalg.eigvals((np.eye(nodes) + weights.toarray()) / 2)
    others = np.delete(values, int(np.argmin(np.abs(values - 1)))).astype(complex)
    root = np.sqrt(others**2 - others)
    return float(np.abs(np.concatenate([others + root, others - root])).max(initial=0.0))
