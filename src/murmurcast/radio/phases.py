"""Whether phases can be aligned: can one multicast of every node arrive in phase at every receiver at once?

Sender j may turn its signal by any phase f_j, receiver i all it hears by any phase r_i. Aligned are they where, for
every link, f_j + theta_ji = r_i with theta_ji the phase of the channel. A multicast has one f_j for all its receivers,
so there are more links than there is to choose, unless the network is a tree; docs/radio-theory.md has the proof.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csgraph, csr_array

from murmurcast.network.graph import Network


class Alignment(NamedTuple):
    """What aligning all phases of a network asks for.

    Attributes:
        equations: sum_i (d_i - 1) = 2E - K: what a receiver hears must agree, for all receivers.
        conditions: How many of them cannot be met by choice, so that the channels would have to meet them by chance.
        reciprocal_conditions: The same where both directions of every link turn the phase alike, as the air does.
    """

    equations: int
    conditions: int
    reciprocal_conditions: int

    @property
    def possible(self) -> bool:
        """Whatever the channels are; so it is on trees only."""
        return self.conditions == 0


def alignment(network: Network) -> Alignment:
    """How far the phases of a network's multicasts can be aligned.

    With K nodes and E two-way links: 2E equations for 2K phases, of which c can be turned freely, where c counts the
    parts of the graph that joins every sender to its receivers (2 if the network is bipartite, else 1). That leaves
    2E - 2K + c conditions: 0 for trees only. With reciprocal phases E - K + c - 1: 0 for trees, and with one odd cycle.
    """
    network.require_two_way("the alignment of phases")
    links, nodes = network.links, network.nodes
    sender, receiver = network.gains.nonzero()
    joined = csr_array((np.ones(links), (sender, nodes + receiver)), shape=(2 * nodes, 2 * nodes))
    parts = int(csgraph.connected_components(joined, directed=False)[0])
    return Alignment(links - nodes, links - 2 * nodes + parts, links // 2 - nodes + parts - 1)
