"""How weights treat disagreement, and whether exact diffusion settles on them: told before anything is trained."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

from murmurcast._threads import threads_for
from murmurcast.errors import Error
from murmurcast.network.weights import mixing_rate, perron, require_aperiodic

DENSE_UP_TO = 3000  # nodes, for all eigenvalues
_EXACT_UP_TO = 300  # nodes, for the rate by all eigenvectors
_LARGEST, _BASIS, _RESTARTS = 6, 60, 300  # eigenvalues; vectors that they are looked for in; how often anew


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


def rate_alone(weights: csr_array) -> float:
    """The rate of `mixing_rate` without its constant: the second largest eigenvalue modulus.

    Up to 300 nodes it is the very same number. Beyond, the few largest eigenvalues by Arnoldi's iteration, always from
    the same vector, or all of them where it does not converge; weights whose eigenvectors are close to dependent then
    have their modulus here, and not its square root.

    Raises:
        Error: Powers of the weights do not converge.
    """
    if weights.shape[0] <= _EXACT_UP_TO:
        return mixing_rate(weights).rate
    try:
        modes = _largest_disagreements(weights)
    except ArpackError:
        modes = disagreements(weights)
    rate = float(np.abs(modes).max())
    require_aperiodic(rate)
    return rate


def _largest_disagreements(weights: csr_array) -> NDArray[np.complex128]:
    """A few eigenvalues of A - 1 pi, which has all of A but that of consensus."""
    nodes, limit = weights.shape[0], perron(weights)
    deviation = LinearOperator(
        (nodes, nodes), matvec=lambda x: weights @ x.ravel() - limit @ x.ravel(), dtype=np.float64
    )
    values = eigs(
        deviation,
        _LARGEST,
        ncv=_BASIS,
        maxiter=_RESTARTS,
        v0=np.random.default_rng(0).standard_normal(nodes),
        return_eigenvectors=False,
    )
    return np.asarray(values, np.complex128)


def exact_diffusion_radius(weights: csr_array) -> float:
    """The largest modulus of a disagreement's factor per epoch, for small steps; below 1 it dies out.

    Every eigenvalue l of (I + W)/2 but the one of consensus makes a factor s with s^2 - 2 l s + l = 0. Real l below 1
    always make |s| = sqrt(l) < 1; strongly complex ones, of very unequal gains around a cycle, may not.
    """
    others = (1 + disagreements(weights, "a method that needs no such check")) / 2
    root = np.sqrt(others**2 - others)
    return float(np.abs(np.concatenate([others + root, others - root])).max(initial=0.0))
