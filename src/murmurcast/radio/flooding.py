"""What it takes to tell all nodes what one of them says: digitally, from neighbour to neighbour, hop by hop.

All nodes that heard it in one hop send the same bits at once in the next, so a hop takes one message. It is as long as
the worst placed of the next nodes needs, which listens to the strongest of those that send.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network
from murmurcast.radio import units
from murmurcast.radio.air_time import require_carried
from murmurcast.radio.settings import Radio

BITS = 8  # of every parameter of a common reference


class FloodCost(NamedTuple):
    """One flood.

    Attributes:
        hops: How many times it is sent on until all have it.
        seconds: On the air.
        joules: [nodes] radiated by those that send it on, and what circuits take meanwhile where that was given.
    """

    hops: int
    seconds: float
    joules: FloatArray


def hops_from(gains: csr_array, source: int = 0) -> NDArray[np.int64]:
    """[nodes] after how many hops each has it."""
    return np.asarray(csgraph.shortest_path(gains, indices=source, unweighted=True)).astype(np.int64)


def flood_cost(network: Network, radio: Radio, dim: int, bits: int = BITS) -> FloodCost:
    """Of one flood from node 0, by the mean gains of the links.

    Args:
        network: Who hears whom.
        radio: What carries it; its gap to capacity is that of digital links.
        dim: m, number of parameters.
        bits: Of each.
    """
    links, noise, after = network.gains.tocoo(), radio.noise_w(network.power), hops_from(network.gains)
    sender, receiver = links.coords
    onward = after[receiver] == after[sender] + 1
    snr = units.snr_db(links.data, network.power[sender], noise[receiver])[onward]
    best = np.full(network.nodes, -np.inf)
    np.maximum.at(best, receiver[onward], snr)
    best[0] = np.inf  # it has it already
    carried = require_carried(best, radio)
    slowest = np.full(int(after.max()) + 1, np.inf)
    np.minimum.at(slowest, after, carried)
    symbols = dim * bits / slowest[1:]  # [hops]
    sends = np.zeros(network.nodes)
    sends[sender[onward]] = symbols[after[sender[onward]]]
    seconds = float(symbols.sum() / radio.efficiency / radio.bandwidth_hz)
    joules = network.power * sends / radio.bandwidth_hz + radio.circuit_watts * seconds
    return FloodCost(int(after.max()), seconds, np.asarray(joules))
