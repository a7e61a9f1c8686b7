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
_FEWEST_OF_HUB, _TIMES_THE_MEAN = 64, 8  # links


class Numbering(NamedTuple):
    """What one process holds.

    Attributes:
        nodes: How many nodes there are in all.
        parts: The numbers of every process's own nodes, in the order of their rows; hubs, who hear many times as many
            others as most do, come last.
        hubs: How many hubs there are among the own nodes.
        process: Which process this is, from 0.
        halo: Numbers of others' nodes that are heard here, in the order of their rows, by the process that has them.
        wanted: Of every process, which of the own rows of this one it hears.
        crossing: How many signals cross between processes in a round, each counted once for every process it goes to.
    """

    nodes: int
    parts: tuple[Numbers, ...]
    hubs: int
    process: int
    halo: tuple[Numbers, ...]
    wanted: tuple[Numbers, ...]
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
        rows = np.zeros(self.nodes, np.int32)
        here = np.concatenate([self.own, *self.halo])
        rows[here] = np.arange(len(here), dtype=np.int32)
        return rows


def numbering(hearing: csr_array, parts: tuple[Numbers, ...], process: int) -> Numbering:
    """What one process holds, and what it hears of the others.

    Args:
        hearing: [sender, receiver] who hears whom, in any round.
        parts: The numbers of every process's own nodes, in the order of their rows.
        process: Which of them asks.
    """
    processes = len(parts)
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
        int(_are_hubs(hearing)[parts[process]].sum()),
        process,
        tuple(heard_from(other, process) for other in range(processes)),
        tuple(row[heard_from(process, other)] for other in range(processes)),
        len(pairs),
    )


def shared_out(hearing: csr_array, processes: int) -> tuple[Numbers, ...]:
    """The nodes of every process; within it, in an order that keeps neighbours together.

    One process must find them for all: METIS draws from C's `rand`, which other threads of a process draw from too, so
    that two processes may well find other parts.
    """
    both: Any = csr_array(hearing + hearing.T)
    order = np.asarray(csgraph.reverse_cuthill_mckee(both, symmetric_mode=True), np.int64)
    if processes == 1:
        return (_hubs_last(hearing, order),)
    part = _cut(both, processes)
    if part is None:
        return tuple(_hubs_last(hearing, own) for own in np.array_split(order, processes))
    return tuple(_hubs_last(hearing, order[part[order] == number]) for number in range(processes))


def _hubs_last(hearing: csr_array, numbers: Numbers) -> Numbers:
    hub = _are_hubs(hearing)[numbers]
    return np.concatenate([numbers[~hub], numbers[hub]])


def _are_hubs(hearing: csr_array) -> NDArray[np.bool_]:
    """[nodes] who hears so many that lists as long as theirs would be mostly empty for the others of a block."""
    heard = np.bincount(hearing.tocoo().coords[1], minlength=hearing.shape[0])
    return np.asarray(heard > max(_FEWEST_OF_HUB, _TIMES_THE_MEAN * heard.mean()))


def _cut(both: csr_array, processes: int) -> NDArray[np.int64] | None:
    """[nodes] the part of every node, with few links between parts; None where METIS is not installed, or fails."""
    try:
        from pymetis import CSRAdjacency, part_graph
    except ImportError:
        return None
    adjacency = CSRAdjacency(adj_starts=both.indptr.tolist(), adjacent=both.indices.tolist())
    _, membership = part_graph(processes, adjacency=adjacency)
    part = np.asarray(membership, np.int64)
    return part if len(np.unique(part)) == processes else None
