"""Networks: what is accepted, what is refused and how."""

import time
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.errors import Error, NotConnected
from murmurcast.network.gains import Uniform
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from tests.conftest import asymmetric_network

GAINS = np.array([[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]])


def test_sender_first() -> None:
    network = Network(gains=GAINS, power=[1, 2, 3])
    assert network.gains[0, 1] == 0.9
    assert network.gains[1, 0] == 0.5
    assert network.links == 6
    assert network.neighbours(0) == (1, 2)


def test_dense_and_sparse_are_the_same_network() -> None:
    dense, sparse = Network(gains=GAINS), Network(gains=csr_array(GAINS))
    np.testing.assert_array_equal(dense.gains.toarray(), sparse.gains.toarray())


def test_nothing_can_be_changed_afterwards() -> None:
    network = Network(gains=GAINS)
    with pytest.raises(ValueError, match="read-only"):
        network.gains.data[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        network.power[0] = 7
    with pytest.raises(AttributeError):
        network.power = np.ones(3)  # type: ignore[misc]


def changed(i: int, j: int, value: float) -> list[list[float]]:
    gains = GAINS.tolist()
    gains[i][j] = value
    return gains  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ([[0, 1, 1], [1, 0, 1]], "2 x 3, expected a square"),
        ([[0, 1], [1]], "not a matrix"),
        ([0, 1], "expected a square"),
        ([["a", "b"], ["c", "d"]], "not a matrix"),
        ([[0]], "at least 2 nodes"),
        (changed(1, 2, -0.5), r"gains\[1, 2\] is -0.5, which is negative"),
        (changed(2, 0, np.nan), r"gains\[2, 0\] is nan"),
        (changed(2, 0, np.inf), r"gains\[2, 0\] is inf"),
        (changed(1, 1, 0.3), r"gains\[1, 1\] is not 0"),
    ],
)
def test_wrong_gains_are_named(gains: list[list[float]], message: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        Network(gains=gains)
    assert raised.value.hint


def test_a_one_way_link_is_for_methods_that_allow_it() -> None:
    network = Network(gains=changed(0, 2, 0.0))
    assert network.links == 5
    assert network.one_way_link == (2, 0)
    np.testing.assert_array_equal(network.degree, [1, 2, 2])
    np.testing.assert_array_equal(network.heard_degree, [2, 2, 1])
    with pytest.raises(Error, match="x needs two-way links: node 0 hears node 2 but not the other way round") as raised:
        network.require_two_way("x")
    assert raised.value.hint
    with pytest.raises(Error, match="needs two-way links: node 0 hears node 2 but not the other way round"):
        plan(network, ClippedGradients(clip=1.0), Budget(epsilon=1.0), Schedule(epochs=5))
    both = Network(gains=GAINS)
    assert both.one_way_link is None
    both.require_two_way("x")


def test_one_way_links_alone_must_lead_everywhere() -> None:
    assert Network(gains=np.array([[0, 0.9, 0], [0, 0, 0.7], [0.6, 0, 0]])).links == 3
    with pytest.raises(NotConnected, match="2 pieces"):
        Network(gains=np.array([[0, 0.9, 0], [0.5, 0, 0.7], [0, 0, 0]]))  # node 2 hears, and is never heard


@pytest.mark.parametrize("power", [0.0, -1.0, np.inf, [1, 1, 0]])
def test_power_must_be_positive(power: float | list[float]) -> None:
    with pytest.raises(Error, match="power"):
        Network(gains=GAINS, power=power)


def test_power_needs_one_entry_per_node() -> None:
    with pytest.raises(Error, match=r"power has shape \(2,\), expected one number or 3"):
        Network(gains=GAINS, power=[1, 2])


def test_pieces_are_named() -> None:
    gains = np.zeros((5, 5))
    for i, j in ((0, 3), (3, 4), (1, 2)):
        gains[i, j], gains[j, i] = 0.5, 0.7
    with pytest.raises(NotConnected, match=r"2 pieces: \{0, 3, 4\}; \{1, 2\}") as raised:
        Network(gains=gains)
    assert raised.value.pieces == ((0, 3, 4), (1, 2))


def test_networkx_there_and_back() -> None:
    network = asymmetric_network(4)
    back = Network.from_networkx(network.to_networkx())
    np.testing.assert_array_equal(back.gains.toarray(), network.gains.toarray())
    np.testing.assert_array_equal(back.power, network.power)


def test_undirected_graph_gives_both_directions() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edge("a", "b", gain=0.4)
    network = Network.from_networkx(graph)
    np.testing.assert_array_equal(network.gains.toarray(), [[0, 0.4], [0.4, 0]])


def test_graph_without_gains_needs_a_model() -> None:
    with pytest.raises(Error, match="has no gain"):
        Network.from_networkx(nx.path_graph(3))
    assert Network.from_networkx(nx.path_graph(3), gain=Uniform(), seed=1).links == 4


def test_links_beyond_the_nodes_are_refused() -> None:
    with pytest.raises(Error, match="names node 5"):
        Network.from_links(3, [(0, 5)], gain=Uniform())


def test_a_hundred_thousand_nodes_build_in_seconds() -> None:
    nodes, reach = 100_000, 5
    sender = np.repeat(np.arange(nodes), 2 * reach)
    receiver = (sender + np.tile([*range(-reach, 0), *range(1, reach + 1)], nodes)) % nodes
    gains = csr_array((np.random.default_rng(0).uniform(0.3, 1, len(sender)), (sender, receiver)), shape=(nodes, nodes))
    start = time.process_time()
    network = Network(gains=gains)
    assert time.process_time() - start < 10
    assert network.links == 10 * nodes


@pytest.mark.parametrize(
    ("gains", "way_out"),
    [
        ([[0, -80.0, 0], [-75.5, 0, -91], [0, -88, 0]], "10 ** (dB / 20)"),
        ([[0, 0.9, 0], [0.5, 0, -0.7], [0, 0.8, 0]], "absolute value"),
        ([[0, -0.9, 0], [-0.5, 0, -0.7], [0, -0.8, 0]], "absolute value"),
        ([[0, 1j, 0], [0.5, 0, 0.7], [0, 0.8, 0]], "numpy.abs"),
    ],
)
def test_gains_in_other_units_are_told_how_to_convert(gains: list[list[complex]], way_out: str) -> None:
    with pytest.raises(Error) as raised:
        Network(gains=np.array(gains))
    assert way_out in raised.value.hint


def test_nodes_are_called_by_their_numbers_unless_they_have_names() -> None:
    plain = Network(gains=GAINS)
    assert plain.names == ("0", "1", "2")
    assert not plain.is_named
    named = plain.named(["mill", "farm", "port"])
    assert named.names == ("mill", "farm", "port")
    assert named.is_named
    np.testing.assert_array_equal(named.gains.toarray(), plain.gains.toarray())
    for wrong in (["mill", "farm"], ["mill", "mill", "port"], ["mill", "", "port"], ["mill", "a\nb", "port"]):
        with pytest.raises(Error) as raised:
            plain.named(wrong)
        assert raised.value.hint
