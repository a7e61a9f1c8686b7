"""The normal equations of the interior-point method, factorised along the network.

They link senders that share a receiver. Where nodes hear their surroundings, numbering them from one end of the network
to the other leaves those links near the diagonal, and a factor fills no more than that band: LAPACK's banded Cholesky
takes a fifth of a second where 10,000 nodes hear 20 each. It works in blocks of 32 columns, too small to be shared:
with two threads it took no less time, and most of it waiting.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cho_solve_banded, cholesky_banded
from scipy.sparse import csgraph, csr_array

from murmurcast._check import FloatArray
from murmurcast._threads import one_blas_thread


class Solve(Protocol):
    """Solves the factorised equations for one right side."""

    def __call__(self, right: FloatArray, /) -> FloatArray:
        """[nodes] the solution."""
        ...


class Order(NamedTuple):
    """In which order nodes are eliminated.

    Attributes:
        nodes: [nodes] who comes when.
        place: [nodes] when each comes.
        band: How far apart two senders with a common receiver come, at most.
    """

    nodes: NDArray[np.int64]
    place: NDArray[np.int64]
    band: int

    @property
    def is_local(self) -> bool:
        """Whether a band is worth having: half the nodes, and a whole matrix is as quick."""
        return 2 * self.band < len(self.nodes)


def elimination_order(links: csr_array) -> Order:
    """Reverse Cuthill-McKee: from one end of the network to the other, neighbours together.

    Args:
        links: [nodes, nodes] who hears whom; only which entries there are matters, and they are two-way.
    """
    nodes = np.asarray(csgraph.reverse_cuthill_mckee(links, symmetric_mode=True), np.int64)
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes))
    senders, begins = place[links.indices], links.indptr[:-1]
    apart = np.maximum.reduceat(senders, begins) - np.minimum.reduceat(senders, begins)
    return Order(nodes, place, int(apart.max()))


def factorised(normal: csr_array, order: Order) -> Solve:
    """The equations, ready to be solved; scipy's LinAlgError where they are no longer positive."""
    if not order.is_local:
        whole = cho_factor(normal.toarray(), overwrite_a=True, check_finite=False)
        return lambda right: np.asarray(cho_solve(whole, right, check_finite=False))
    with one_blas_thread():
        factor = cholesky_banded(_in_band(normal, order), overwrite_ab=True, lower=True, check_finite=False)

    def solve(right: FloatArray) -> FloatArray:
        return np.asarray(cho_solve_banded((factor, True), right[order.nodes], check_finite=False)[order.place])

    return solve


def _in_band(normal: csr_array, order: Order) -> FloatArray:
    """[band + 1, nodes] the lower diagonals, as LAPACK has them."""
    entries = normal.tocoo()
    row, column = order.place[entries.row], order.place[entries.col]
    lower = row >= column
    band = np.zeros((order.band + 1, len(order.nodes)), order="F")
    band[row[lower] - column[lower], column[lower]] = entries.data[lower]
    return band
