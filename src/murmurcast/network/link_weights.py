"""Weights that look at degrees and not at gains, and which of them one multicast can make.

The air multiplies: sender j's factor q_j, the gain h_ji, receiver i's factor r_i. A matrix of weights can be made by
one multicast only if w_ij / h_ji = r_i q_j on all links. Any other needs every neighbour to be heard apart, or a signal
for every receiver.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network

_CLOSE = 1e-9  # relative: gains that are given in decimals


class OverAir(NamedTuple):
    """Factors with which one multicast makes weights.

    Attributes:
        receiver_scale: [nodes] r_i.
        amplitude: [nodes] q_j, the largest 1.
    """

    receiver_scale: FloatArray
    amplitude: FloatArray


def max_degree_weights(network: Network) -> csr_array:
    """[receiver, sender] 1/R for every neighbour, 1 - d_i/R for itself, R the largest degree plus 1.

    Doubly stochastic where links go both ways.
    """
    return _with_own(network, np.full(network.gains.nnz, 1 / (network.max_degree + 1)))


def metropolis_weights(network: Network) -> csr_array:
    """[receiver, sender] 1/(1 + max(d_i, d_j)), the rest for itself: doubly stochastic where links go both ways."""
    links = network.gains.tocoo()
    sender, receiver = links.coords
    return _with_own(network, 1 / (1 + np.maximum(network.degree[sender], network.degree[receiver])))


def out_degree_weights(network: Network) -> csr_array:
    """[receiver, sender] 1/(1 + d_j), d_j how many hear j, and as much for itself: column-stochastic."""
    share = 1 / (1 + network.degree)
    gains = network.gains
    heard = csr_array((np.ones(gains.nnz), gains.indices, gains.indptr), gains.shape).T
    weights = csr_array(heard @ diags_array(share) + diags_array(share))
    weights.sort_indices()
    return weights


def over_air(weights: csr_array, network: Network) -> OverAir | None:
    """The factors with which one multicast makes these weights on this network; None where there are none."""
    arriving = csr_array(network.gains.T)
    arriving.sort_indices()
    coo = arriving.tocoo()
    receiver, sender = coo.coords
    wanted = np.log(np.asarray(weights[receiver, sender]).ravel() / coo.data)
    nodes = network.nodes
    ratio = csr_array((wanted, (receiver, sender)), (nodes, nodes))
    potential = _along_links(csr_array((np.ones(len(wanted)), (receiver, sender)), (nodes, nodes)), ratio)
    if np.abs(potential[receiver] + potential[nodes + sender] - wanted).max() > _CLOSE:
        return None
    largest = potential[nodes:].max()
    return OverAir(np.exp(potential[:nodes] + largest), np.exp(potential[nodes:] - largest))


def _along_links(links: csr_array, ratio: csr_array) -> FloatArray:
    """[receivers, then senders] potentials whose sums are the ratios along trees of links."""
    nodes = links.shape[0]
    receiver, sender = links.tocoo().coords
    both = csr_array((np.ones(len(sender)), (receiver, nodes + sender)), (2 * nodes, 2 * nodes))
    values = ratio.todok()
    potential, reached = np.zeros(2 * nodes), np.zeros(2 * nodes, bool)
    while not reached.all():
        root = int(np.argmin(reached))
        order, before = breadth_first_order(both, root, directed=False)
        reached[order] = True
        for vertex in order[1:]:
            parent = before[vertex]
            link = (min(vertex, parent), max(vertex, parent) - nodes)
            potential[vertex] = values.get(link, 0.0) - potential[parent]
    return potential


def _with_own(network: Network, link_weight: FloatArray) -> csr_array:
    """Weights of the links, sender by sender, with what is left of 1 for the receiver itself."""
    sender_first = csr_array((link_weight, network.gains.indices, network.gains.indptr), network.gains.shape)
    heard = csr_array(sender_first.T)
    weights = csr_array(heard + diags_array(1 - np.asarray(heard.sum(axis=1)).ravel()))
    weights.sort_indices()
    return weights
