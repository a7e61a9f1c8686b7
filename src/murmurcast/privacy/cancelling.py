"""What is left of noise that cancels between neighbours, against those who know part of it.

Node i adds own_i e_i + shared_i sum_j v_ij with v_ij = -v_ji fresh for every pair of neighbours. Over nodes this has
the covariance

    C = diag(own^2) + diag(shared) Laplacian diag(shared)

Where node j's message moves by d, given all that was sent before, all messages together are a Gaussian mechanism with
mu = d sqrt([C^-1]_jj): as much as one with noise of standard deviation 1/sqrt([C^-1]_jj) at node j alone. Who knows the
noise of some pairs subtracts it, and is left with the C of the others.
"""

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.privacy.releases import GAUSSIAN, Adversary, Releases, exposed_ratio

DENSE_UP_TO = 3000  # nodes, for one inverse
ONE_NODE_UP_TO = 200  # nodes, for an inverse without each of them


def cancelling_releases(
    sensitivity: FloatArray, push: FloatArray, schedule: FloatArray, links: csr_array, noise: tuple[FloatArray, ...]
) -> tuple[Releases, ...]:
    """What a run releases, one for every adversary; `noise` is (own, shared), the rest as in `exposed_ratio`."""
    left = noise_left(links, *noise)
    ratio = {who: exposed_ratio(sensitivity, push, schedule[:, None] * std) for who, std in left.items()}
    return tuple(Releases(GAUSSIAN, ratio[who], who) for who in left)


def noise_left(links: csr_array, own: FloatArray, shared: FloatArray) -> dict[Adversary, FloatArray]:
    """[nodes] the standard deviation that hides each node by itself, for every adversary, the strongest first.

    Args:
        links: [nodes, nodes] non-zero where two nodes are neighbours, both ways.
        own: [nodes] of noise that nobody shares.
        shared: [nodes] of the noise of one pair.

    Guarantees:
        Adversary: "everybody" knows the noise of all pairs; "eavesdropper and one node" that of one node's pairs,
        whichever node is worst; "eavesdropper" none. The middle one is left out beyond 200 nodes. Range: own > 0.
    """
    nodes = links.shape[0]
    if nodes > DENSE_UP_TO:
        raise Error(f"noise shared by {nodes} nodes needs dense matrices", hint=f"use at most {DENSE_UP_TO} nodes")
    adjacent = (links.toarray() != 0).astype(np.float64)
    left: dict[Adversary, FloatArray] = {"everybody": own}
    if nodes <= ONE_NODE_UP_TO:
        left["eavesdropper and one node"] = np.min(
            [_without(adjacent, own, shared, curious) for curious in range(nodes)], axis=0
        )
    left["eavesdropper"] = _alone(adjacent, own, shared)
    return left


def _alone(adjacent: FloatArray, own: FloatArray, shared: FloatArray) -> FloatArray:
    laplacian = np.diag(adjacent.sum(axis=1)) - adjacent
    covariance = np.diag(own**2) + shared[:, None] * laplacian * shared
    return np.asarray(1 / np.sqrt(np.diag(np.linalg.inv(covariance))))


def _without(adjacent: FloatArray, own: FloatArray, shared: FloatArray, curious: int) -> FloatArray:
    """What is left at all others, infinite at the curious node: of itself it learns nothing new."""
    others = np.delete(np.arange(len(own)), curious)
    left = np.full(len(own), np.inf)
    left[others] = _alone(adjacent[np.ix_(others, others)], own[others], shared[others])
    return left
