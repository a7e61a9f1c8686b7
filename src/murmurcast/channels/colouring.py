"""How many slots signals need that must not be heard at once: a greedy colouring."""

from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array


def slots_of_senders(gains: csr_array) -> int:
    """Slots in which every node sends once and no receiver hears two at once; nodes send and hear at the same time."""
    return _colours(_pattern(gains))


def slots_of_receivers(gains: csr_array) -> int:
    """Slots in which every node is sent to once and no sender serves two at once."""
    return _colours(_pattern(csr_array(gains.T)))


class _Pattern(tuple[int, bytes, bytes]):
    """Who reaches whom, in a form that can be looked up."""

    __slots__ = ()


def _pattern(gains: csr_array) -> _Pattern:
    return _Pattern((gains.shape[0], *(part.astype(np.int64).tobytes() for part in (gains.indptr, gains.indices))))


@lru_cache
def _colours(pattern: _Pattern) -> int:
    """Colours of rows that have a column in common."""
    import networkx as nx

    nodes, indptr, indices = pattern
    starts, columns = (np.frombuffer(part, np.int64) for part in (indptr, indices))
    reaches = csr_array((np.ones(len(columns)), columns, starts), (nodes, nodes))
    together = csr_array(reaches @ reaches.T)
    together.setdiag(0)
    together.eliminate_zeros()
    colours = nx.greedy_color(nx.from_scipy_sparse_array(together), strategy="largest_first")
    return int(max(colours.values())) + 1
