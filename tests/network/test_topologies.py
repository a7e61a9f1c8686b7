"""Topologies have the links they are named for."""

import numpy as np
import pytest

from murmurcast.errors import Error, NotConnected
from murmurcast.network import topologies
from murmurcast.network.gains import LogDistance
from murmurcast.network.graph import Network

SHAPES = {
    "diamond": (topologies.diamond(), 4, 8),
    "complete": (topologies.complete(6), 6, 30),
    "ring": (topologies.ring(7), 7, 14),
    "path": (topologies.path(7), 7, 12),
    "star": (topologies.star(7), 7, 12),
    "grid": (topologies.grid(3, 4), 12, 34),
}


@pytest.mark.parametrize(("network", "nodes", "links"), SHAPES.values(), ids=SHAPES)
def test_shape(network: Network, nodes: int, links: int) -> None:
    assert (network.nodes, network.links) == (nodes, links)
    assert network.positions is not None
    assert (network.gains.toarray() != network.gains.toarray().T).any()  # each direction has its own gain


def test_hub_of_the_star_is_node_0() -> None:
    assert topologies.star(5).neighbours(0) == (1, 2, 3, 4)


def test_grid_is_numbered_row_by_row() -> None:
    assert topologies.grid(2, 3).neighbours(1) == (0, 2, 4)


def test_geometric_links_are_short_and_positions_kept() -> None:
    network = topologies.geometric(60, 0.3, seed=3)
    assert network.positions is not None
    sender, receiver = network.gains.nonzero()
    distance = np.linalg.norm(network.positions[sender] - network.positions[receiver], axis=1)
    assert distance.max() <= 0.3
    everybody = np.linalg.norm(network.positions[:, None] - network.positions[None], axis=2)
    assert network.links == (everybody <= 0.3).sum() - 60


def test_log_distance_gains_fall_with_distance() -> None:
    network = topologies.geometric(60, 0.3, seed=3, gain=LogDistance(exponent=2.0))
    assert network.positions is not None
    sender, receiver = network.gains.nonzero()
    distance = np.linalg.norm(network.positions[sender] - network.positions[receiver], axis=1)
    assert network.gains.data == pytest.approx(1 / distance)


def test_a_seed_below_zero_is_an_error() -> None:
    with pytest.raises(Error, match="seed is -1"):
        topologies.geometric(5, seed=-1)
    with pytest.raises(Error, match="seed is -1"):
        topologies.erdos_renyi(5, 0.9, seed=-1)


def test_the_same_seed_draws_the_same_network() -> None:
    first, second, third = (topologies.erdos_renyi(30, 0.3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.gains.toarray(), second.gains.toarray())
    assert (first.gains.toarray() != third.gains.toarray()).any()


def test_a_draw_that_falls_apart_is_an_error_with_a_way_out() -> None:
    with pytest.raises(NotConnected, match="pieces") as raised:
        topologies.erdos_renyi(40, 0.02)
    assert "probability" in raised.value.hint


@pytest.mark.parametrize(
    "call", [lambda: topologies.ring(2), lambda: topologies.complete(1), lambda: topologies.grid(1, 1)]
)
def test_too_small_is_an_error(call: object) -> None:
    with pytest.raises(Error, match="whole number of at least"):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    "call",
    [
        lambda: topologies.ring(10**9),
        lambda: topologies.complete(10**5),
        lambda: topologies.erdos_renyi(10**6, 0.5),
        lambda: topologies.geometric(10**9),
        lambda: topologies.grid(10**5, 10**5),
    ],
)
def test_what_would_fill_the_memory_is_an_error(call: object) -> None:
    with pytest.raises(Error, match="links, more than"):
        call()  # type: ignore[operator]


def test_everybody_hears_as_many_others_in_a_random_regular_network() -> None:
    first, second, third = (topologies.random_regular(40, 5, seed=seed) for seed in (1, 1, 2))
    assert (first.degree == 5).all()
    gains, same, other = (network.gains.toarray() for network in (first, second, third))
    np.testing.assert_array_equal(gains, same)
    assert (gains != other).any()
    assert (gains != gains.T).any()  # gains of the two directions differ
    for nodes, degree in ((5, 5), (5, 3)):
        with pytest.raises(Error, match="cannot all hear"):
            topologies.random_regular(nodes, degree)
