"""How weights treat disagreement, and whether exact diffusion settles on them: told before anything is trained."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast._threads import threads_for
from murmurcast.errors import Error

DENSE_UP_TO = 3000  # nodes, for all eigenvalues


def disagreements(
    weights: csr_array, way_out: str = "set schedule.epochs and schedule.rounds by hand"
) -> NDArray[np.complex128]:
    """[nodes - 1] what one round makes of every mode of disagreement: all eigenvalues but that of consensus.

    Raises:
        Error: Too many nodes; its hint names the way out.
    """
    nodes = weights.shape[0]
    if nodes > DENSE_UP_TO:
        raise Error(
            f"how {nodes} nodes come to agree needs all eigenvalues of their weights",
            hint=f"use at most {DENSE_UP_TO} nodes, or {way_out}",
        )
    with threads_for(nodes):
        values = np.linalg.eigvals(weights.toarray())
    return np.delete(values, int(np.argmin(np.abs(values - 1)))).astype(np.complex128)


def exact_diffusion_radius(weights: csr_array) -> float:
    """The largest modulus of a disagreement's factor per epoch, for small steps; below 1 it dies out.

    Every eigenvalue l of (I + W)/2 but the one of consensus makes a factor s with s^2 - 2 l s + l = 0. Real l below 1
    always make |s| = sqrt(l) < 1; strongly complex ones, of very unequal gains around a cycle, may not.
    """
    others = (1 + disagreements(weights, "a method that needs no such check")) / 2
    root = np.sqrt(others**2 - others)
    return float(np.abs(np.concatenate([others + root, others - root])).max(initial=0.0))
