"""Weights whose rows and columns both sum to 1, made by one multicast: Sinkhorn scaling of the gains.

Sender j multiplies with q_j, receiver i with r_i, so that the air makes w_ij = r_i h_ji q_j. Scaled in turn until row i
and column i both sum to d_i/R, they leave every node 1 - d_i/R for itself, and W is doubly stochastic. Where links go
both ways such r and q exist and W is unique: the pattern of ones has these very sums.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import block_array, csc_array, csr_array, diags_array
from scipy.sparse.linalg import spsolve

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network

_ROUNDS, _NEWTON_ROUNDS = 1000, 50
_SIX_DIGITS = 1e-6
_CLOSE = 4e-15  # relative, of sums: what rounding leaves


class BalancedMixing(NamedTuple):
    """One round of mixing that is fair to senders and receivers alike.

    Attributes:
        weights: [nodes, nodes] w_ij, receiver first; rows and columns sum to 1.
        receiver_scale: [nodes] r_i, what receiver i multiplies its sum with.
        amplitude: [nodes] q_j, what sender j multiplies with; r_i h_ji q_j is w_ij. The largest is 1.
        normaliser: R, the largest degree plus 1, or a larger number.
        rounds: How many rounds of scaling nodes need to agree on r and q to six digits.
    """

    weights: csr_array
    receiver_scale: FloatArray
    amplitude: FloatArray
    normaliser: int
    rounds: int


def balanced_mixing(network: Network, normaliser: int | None = None) -> BalancedMixing:
    """Doubly stochastic weights of a network with two-way links; R is its largest degree plus 1 unless given."""
    network.require_two_way("balanced weights (Sinkhorn scaling)")
    resolved = network.max_degree + 1 if normaliser is None else normaliser
    arriving, margin = csr_array(network.gains.T), network.degree / resolved
    receiver, sender, rounds = _scaled(arriving, margin)
    sender = sender * float(largest := sender.max()) ** -1
    receiver = receiver * largest
    weights = csr_array(
        diags_array(receiver) @ arriving @ diags_array(sender) + diags_array(1 - network.degree / resolved)
    )
    weights.sort_indices()
    return BalancedMixing(weights, _check.frozen(receiver), _check.frozen(sender), resolved, rounds)


def _scaled(arriving: csr_array, margin: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """(r, q, rounds) with which every row and every column of r h q sums to its margin."""
    sender, leaving, rounds = np.ones(len(margin)), csr_array(arriving.T), 0
    for _ in range(_ROUNDS):
        receiver = margin / (arriving @ sender)
        sender = margin / (leaving @ receiver)
        off = np.abs(receiver * (arriving @ sender) / margin - 1).max()
        rounds += off > _SIX_DIGITS
        if off <= _CLOSE:
            return receiver, sender, rounds + 1
    # Slow networks: Newton's method on the convex function that the scaling minimises, from close by.
    for _ in range(_NEWTON_ROUNDS):
        now = csr_array(diags_array(receiver) @ arriving @ diags_array(sender))
        rows, columns = np.asarray(now.sum(axis=1)).ravel(), np.asarray(now.sum(axis=0)).ravel()
        off = np.concatenate([margin - rows, margin - columns])
        if np.abs(off).max() <= _CLOSE * margin.max():
            return receiver, sender, rounds + 1
        hessian = csc_array(block_array([[diags_array(rows), now], [now.T, diags_array(columns)]]))
        # A common factor of r over q changes nothing: the last sender's is kept.
        step = np.append(spsolve(hessian[:-1, :-1], off[:-1]), 0.0)
        receiver, sender = receiver * np.exp(step[: len(margin)]), sender * np.exp(step[len(margin) :])
    raise Error(
        "balanced weights did not settle: these gains are too unequal",
        hint='use weights = "row", or gains that lie closer together',
    )
