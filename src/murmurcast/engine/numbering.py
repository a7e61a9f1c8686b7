"""Which process holds which nodes of a large network, and in which rows of its arrays.

Nodes that hear each other lie close together, so that what a node hears is still in the cache, and as few links as
possible join nodes of two processes. A process has rows for its own nodes, and behind them rows for the nodes of others
that some of its own hear.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

Numbers = NDArray[np.int64]


class Numbering(NamedTuple):
    """What one process holds.

    Attributes:
        nodes: How many nodes there are in all.
        parts: The numbers of every process's own nodes, in the order of their rows.
        process: Which process this is, from 0.
        halo: Numbers of others' nodes that are heard here, in the order of their rows, by the process that has them.
        wanted: Of every process, which of the own rows of this one it hears.
        widest: The largest number of nodes that any process hears of any other.
        crossing: How many signals cross between processes in a round, each counted once for every process it goes to.
    """

    nodes: int
    parts: tuple[Numbers, ...]
    process: int
    halo: tuple[Numbers, ...]
    wanted: tuple[Numbers, ...]
    widest: int
    crossing: int

    @property
    def own(self) -> Numbers:
        """The numbers of the nodes that are held here."""
        return self.parts[self.process]

    @property
    def rows(self) -> int:
        """Of own nodes and of those that are heard besides."""
        return len(self.own) + sum(map(len, self.halo))

    def row_of(self) -> NDArray[np.int32]:
        """[nodes] in which row a node's signal lies; 0 of those that nobody here hears."""
        found = np.zeros(self.nodes, np.int32)
        here = np.concatenate([self.own, *self.halo])
        found[here] = np.arange(len(here), dtype=np.int32)
        return found


def numbering(hearing: csr_array, processes: int, process: int) -> Numbering:
    """Shares a network out.

    Args:
        hearing: [sender, receiver] who hears whom, in any round.
        processes: How many there are.
        process: Which of them asks; all find the same parts.
    """
    parts = _parts(hearing, processes)
    place = np.empty(hearing.shape[0], np.int64)  # which part
    for number, part in enumerate(parts):
        place[part] = number
    links = hearing.tocoo()
    sender, receiver = links.coords
    crossing = place[sender] != place[receiver]
    # Every (sender, process that hears it) once, by process, then sender.
    pairs = np.unique(np.stack([place[receiver[crossing]], sender[crossing]], axis=1), axis=0)

    def heard_from(there: int, here: int) -> Numbers:
        return np.asarray(pairs[(pairs[:, 0] == here) & (place[pairs[:, 1]] == there), 1])

    row = np.empty(hearing.shape[0], np.int64)
    row[parts[process]] = np.arange(len(parts[process]))
    return Numbering(
        hearing.shape[0],
        parts,
        process,
        tuple(heard_from(other, process) for other in range(processes)),
        tuple(row[heard_from(process, other)] for other in range(processes)),
        int(np.bincount(pairs[:, 0] * processes + place[pairs[:, 1]], minlength=1).max()),
        len(pairs),
    )


def _parts(hearing: csr_array, processes: int) -> tuple[Numbers, ...]:
    """The nodes of every process; within it, in an order that keeps neighbours together."""
    both: Any = csr_array(hearing + hearing.T)
    order = np.asarray(csgraph.reverse_cuthill_mckee(both, symmetric_mode=True), np.int64)
    if processes == 1:
        return (order,)
    part = _cut(both, processes)
    if part is None:
        return tuple(np.array_split(order, processes))
    return tuple(order[part[order] == number] for number in range(processes))


def _cut(both: csr_array, processes: int) -> NDArray[np.int64] | None:
    """[nodes] the part of every node, with few links between parts; None where METIS is not installed, or fails."""
    try:
        from pymetis import CSRAdjacency, part_graph
    except ImportError:
        return None
    adjacency = CSRAdjacency(adj_starts=both.indptr.tolist(), adjacent=both.indices.tolist())
    _, found = part_graph(processes, adjacency=adjacency)
    part = np.asarray(found, np.int64)
    return part if len(np.unique(part)) == processes else None
