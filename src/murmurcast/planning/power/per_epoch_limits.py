"""The per-epoch limits on the power split, in the form every program here uses.

eps_ij <= eps_max, squared and divided by receiver i's largest possible noise N_i = sum_k h_ki^2 p_k q_k^2, reads

    cost_ij alpha_j + sum_k share_ik alpha_k <= 1       for every link j -> i,

with share_ik = h_ki^2 p_k q_k^2 / N_i (rows sum to 1) and cost_ij = (kappa_j/eps_max)^2 h_ji^2 p_j / N_i,
kappa_j = S_j theta sqrt(2 ln(1.25/delta)). All coefficients are positive: less alpha is always allowed.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Infeasible
from murmurcast.network.graph import Network
from murmurcast.privacy import gaussian


class Limits(NamedTuple):
    """Per-epoch limits of a network.

    Attributes:
        share: [receiver, sender] each sender's part of the receiver's largest noise.
        cost: [receiver, sender] with the same links: what a sender's signal takes of that noise.
        floor: [nodes] least alpha.
        ceiling: [nodes] greatest alpha.
    """

    share: csr_array
    cost: csr_array
    floor: FloatArray
    ceiling: FloatArray

    @property
    def receiver(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """[links] the receiver of every link, in the order of `share.data`."""
        return np.repeat(np.arange(self.share.shape[0]), np.diff(self.share.indptr))

    def used(self, alpha: FloatArray) -> FloatArray:
        """[links] left side of the limits over 1: at most 1 where eps_ij <= eps_max."""
        return np.asarray(self.cost.data * alpha[self.cost.indices] + (self.share @ alpha)[self.receiver])

    def rows(self) -> csr_array:
        """[links, nodes] the left sides as one sparse matrix: O(links x degree) non-zeros, which solve quickest."""
        links = np.arange(self.cost.nnz)
        own = csr_array((self.cost.data, (links, self.cost.indices)), shape=(len(links), self.share.shape[1]))
        return csr_array(self.share[self.receiver] + own)


class SparseLimits(NamedTuple):
    """The same limits with one more variable a receiver for the noise it is left with.

    Attributes:
        below: [links, 2 nodes] below @ (alpha, left) <= 0.
        equal: [nodes, 2 nodes] equal @ (alpha, left) = 1.
    """

    below: csr_array
    equal: csr_array


def limits(
    network: Network,
    noise_to_step: FloatArray,
    sensitivity: FloatArray,
    theta: float,
    epsilon: float,
    delta: float,
    floor: float,
    ceiling: float,
) -> Limits:
    """The limits eps_ij <= epsilon of one epoch; an error that names the worst link where they cannot hold."""
    result = unchecked_limits(network, noise_to_step, sensitivity, theta, epsilon, delta, floor, ceiling)
    _require_feasible(result, epsilon)
    return result


def unchecked_limits(
    network: Network,
    noise_to_step: FloatArray,
    sensitivity: FloatArray,
    theta: float,
    epsilon: float,
    delta: float,
    floor: float,
    ceiling: float,
) -> Limits:
    """The same limits, whether or not every alpha at its minimum keeps to them."""
    _check.fraction(delta=delta)
    _check.split(minimum=floor, maximum=ceiling)
    _check.above_zero(epsilon=epsilon, theta=theta, noise_to_step=noise_to_step, sensitivity=sensitivity)
    strength = csr_array(network.gains.power(2).T @ diags_array(network.power))
    strength.sort_indices()
    noise = strength @ noise_to_step**2
    share = csr_array(diags_array(1 / noise) @ strength @ diags_array(noise_to_step**2))
    kappa = gaussian.classical_epsilon(sensitivity * theta, delta)
    cost = csr_array(diags_array(1 / noise) @ strength @ diags_array((kappa / epsilon) ** 2))
    ends = (np.full(network.nodes, floor), np.full(network.nodes, ceiling))
    return Limits(share, cost, *ends)


def sparse(limits: Limits) -> SparseLimits:
    """O(links) non-zeros instead of O(links x degree), for dense networks and programs that factorise all of it."""
    nodes = len(limits.floor)
    links = np.arange(limits.cost.nnz)
    shape = (len(links), nodes)
    cost = csr_array((limits.cost.data, (links, limits.cost.indices)), shape=shape)
    pick = csr_array((-np.ones(len(links)), (links, limits.receiver)), shape=shape)
    return SparseLimits(csr_array(hstack([cost, pick])), csr_array(hstack([limits.share, eye_array(nodes)])))


def _require_feasible(limits: Limits, epsilon: float) -> None:
    """Less alpha is always allowed, so the floor decides: cost floor_j <= 1 - sum share floor on every link."""
    left = 1 - limits.share @ limits.floor
    excess = limits.cost.data * limits.floor[limits.cost.indices] / left[limits.receiver]
    worst = int(np.argmax(excess))
    if excess[worst] <= 1:
        return
    smallest = float(epsilon * np.sqrt(excess[worst]) * (1 + 1e-9))
    receiver, sender, least = int(limits.receiver[worst]), int(limits.cost.indices[worst]), limits.floor[0]
    raise Infeasible(
        f"no power split was found for epsilon {epsilon:g}: with every alpha at its minimum {least:g}, "
        f"receiver {receiver} learns more from sender {sender} (link {sender} -> {receiver})",
        hint=f"the smallest feasible epsilon, every alpha at its minimum, is {_check.rounded_up(smallest)}; "
        f"or raise noise_to_step, lower clip, or lower power.min",
        smallest_epsilon=smallest,
    )
