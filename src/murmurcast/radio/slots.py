"""How many slots one round takes, and how often a node sends in it, by how nodes share the air.

G is the graph of who hears whom, in either direction. In its square, neighbours and nodes with a common neighbour are
linked: where they send in different slots, every receiver hears one sender at a time and never while it sends itself.
Slots are found by greedy colouring in three orders, of which the best counts.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast.network.graph import Network
from murmurcast.radio.settings import AccessName, Duplex

_ORDERS: tuple[Literal["largest_first", "smallest_last", "saturation_largest_first"], ...] = (
    "largest_first",
    "smallest_last",
    "saturation_largest_first",
)
_ALL_ORDERS_UP_TO = 400  # nodes; the last order takes time that grows with their square


class Slots(NamedTuple):
    """One round's slots.

    Attributes:
        number: How many there are.
        sendings: [nodes] in how many of them a node sends.
        turn: [nodes] the slot in which a node sends (own slots) or listens ("aligned" in half duplex), from 0.
    """

    number: int
    sendings: NDArray[np.int64]
    turn: NDArray[np.int64]


def slots(network: Network, access: AccessName, duplex: Duplex) -> Slots:
    """One round's slots by access and duplex.

    "aligned": one where nodes hear while they send. Else as many as G has colours: nodes of one colour listen at once,
    and all their neighbours send, every time the same.
    "own-slot", "digital": as many as the square of G has colours, in either duplex.
    "referenced": one, or two where every half of the nodes listens while the other sends.
    """
    nodes = network.nodes
    once, first = np.ones(nodes, np.int64), np.zeros(nodes, np.int64)
    if access in ("own-slot", "digital"):
        turn = _colours(_square(_either_way(network)))
        return Slots(int(turn.max()) + 1, once, turn)
    if duplex == "full":
        return Slots(1, once, first)
    if access == "referenced":
        return Slots(2, once, first)
    graph = _either_way(network)
    turn = _colours(graph)
    listening = csr_array((np.ones(nodes), (np.arange(nodes), turn)), shape=(nodes, int(turn.max()) + 1))
    sendings = np.diff(csr_array(graph @ listening).indptr)
    return Slots(int(turn.max()) + 1, sendings.astype(np.int64), turn)


def _either_way(network: Network) -> csr_array:
    """[nodes, nodes] 1 where one of the two hears the other."""
    heard = csr_array((np.ones(network.links), network.gains.indices, network.gains.indptr), shape=network.gains.shape)
    return csr_array((heard + heard.T) > 0).astype(np.float64)


def _square(graph: csr_array) -> csr_array:
    reached = csr_array(graph @ graph + graph)
    reached.setdiag(0)
    reached.eliminate_zeros()
    return reached


class _Pattern(NamedTuple):
    """Who is linked with whom, in a form that can be looked up: a plan, its run and its account ask for the same."""

    nodes: int
    starts: bytes
    neighbours: bytes


def _colours(graph: csr_array) -> NDArray[np.int64]:
    """[nodes] colours from 0, no two neighbours of the same; the fewest of several greedy orders."""
    starts, neighbours = (part.astype(np.int64).tobytes() for part in (graph.indptr, graph.indices))
    return np.array(_coloured(_Pattern(graph.shape[0], starts, neighbours)))


@lru_cache(maxsize=8)
def _coloured(pattern: _Pattern) -> tuple[int, ...]:
    import networkx as nx

    starts, neighbours = (np.frombuffer(part, np.int64) for part in pattern[1:])
    graph = csr_array((np.ones(len(neighbours)), neighbours, starts), (pattern.nodes, pattern.nodes))
    drawn = nx.from_scipy_sparse_array(graph)
    orders = _ORDERS if pattern.nodes <= _ALL_ORDERS_UP_TO else _ORDERS[:2]
    colourings: list[dict[int, int]] = [nx.greedy_color(drawn, strategy=order) for order in orders]
    best = min(colourings, key=lambda colours: max(colours.values()))
    return tuple(best[node] for node in range(pattern.nodes))
