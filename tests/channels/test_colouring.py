"""How many channel uses neighbours need that must be heard apart."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.channels import colouring
from murmurcast.channels.colouring import slots_of_receivers, slots_of_senders
from murmurcast.channels.links import Links
from murmurcast.channels.slots import Slots
from tests.algorithms.networks import one_way


def gains_of(graph: Any) -> csr_array:
    return csr_array(nx.to_numpy_array(graph))


@pytest.mark.parametrize(
    ("graph", "slots"),
    [
        (nx.cycle_graph(100), 2),
        (nx.complete_graph(3), 3),
        (nx.complete_graph(12), 12),
        (nx.star_graph(7), 7),  # all leaves send to the hub; the hub needs no slot of its own
        (nx.path_graph(2), 1),  # they send to each other at once
    ],
)
def test_known_graphs(graph: Any, slots: int) -> None:
    gains = gains_of(graph)
    assert slots_of_senders(gains) == slots_of_receivers(gains) == slots
    assert Links(gains).uses == Slots(gains).uses == slots


def test_a_large_sparse_network_needs_few() -> None:
    """At most 1 + d (d - 1) = 13 for degree 4, and by far not one for every node."""
    gains = gains_of(nx.random_regular_graph(4, 1000, seed=1))
    assert 4 <= slots_of_receivers(gains) <= 11


def test_no_two_that_share_a_neighbour_share_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    result: dict[int, int] = {}

    def remember(graph: Any, strategy: str) -> dict[int, int]:
        result.update(greedy(graph, strategy))
        return result

    greedy: Any = nx.greedy_color
    monkeypatch.setattr(nx, "greedy_color", remember)
    gains = gains_of(nx.random_regular_graph(4, 200, seed=2))
    colouring._colours.cache_clear()
    assert slots_of_senders(gains) == len(set(result.values()))
    reached = gains.toarray() > 0
    for receiver in range(200):
        senders = np.flatnonzero(reached[:, receiver])
        assert len({result[int(sender)] for sender in senders}) == len(senders)


def test_one_way_links_tell_senders_from_receivers() -> None:
    """One sender that everybody hears, and nobody else sends to two: receivers need a slot each, senders fewer."""
    gains = np.zeros((5, 5))
    gains[0, 1:] = 1
    for i in range(1, 5):
        gains[i, (i + 1) % 5] = 1
    assert slots_of_receivers(csr_array(gains)) == 4
    assert slots_of_senders(csr_array(gains)) == 2
    assert slots_of_senders(one_way().gains) >= int((one_way().gains.toarray() > 0).sum(axis=0).max())
