"""Programs of larger networks, factorised along the network and begun where another came by."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

from murmurcast._check import FloatArray
from murmurcast.network import topologies
from murmurcast.network.gains import Constant
from murmurcast.network.graph import Network
from murmurcast.planning.power import interior_point, largest_sum
from murmurcast.planning.power.normal_equations import elimination_order, factorised
from murmurcast.planning.power.per_epoch_limits import Limits, limits


def geometric(nodes: int, seed: int = 1) -> Network:
    return topologies.geometric(nodes, float(np.sqrt(20 / np.pi / nodes)), seed=seed)


def within(network: Network, theta: float, floor: float = 0.002) -> Limits:
    rng = np.random.default_rng(network.nodes)
    noise, sensitivity = rng.uniform(5, 15, network.nodes), rng.uniform(0.5, 3, network.nodes)
    return limits(network, noise, sensitivity, theta, 1.0, 1e-5, floor, 0.98)


def test_the_order_brings_common_receivers_senders_near() -> None:
    network = geometric(600)
    order = elimination_order(network.gains)
    np.testing.assert_array_equal(np.sort(order.nodes), np.arange(600))
    np.testing.assert_array_equal(order.nodes[order.place], np.arange(600))
    heard = network.gains
    common = (heard.T @ heard).tocoo()
    assert order.band == np.abs(order.place[common.row] - order.place[common.col]).max()
    assert order.is_local


@pytest.mark.parametrize("seed", range(5))
def test_factors_in_a_band_solve_the_whole_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = geometric(300, seed)
    order = elimination_order(network.gains)
    half = csr_array(network.gains)
    normal = csr_array(half.T @ half + diags_array(rng.uniform(0.1, 1, 300)))
    right = rng.normal(size=300)
    whole = order._replace(band=300)
    assert order.is_local
    assert not whole.is_local
    np.testing.assert_allclose(factorised(normal, order)(right), np.linalg.solve(normal.toarray(), right), rtol=1e-9)
    np.testing.assert_allclose(factorised(normal, whole)(right), np.linalg.solve(normal.toarray(), right), rtol=1e-9)


@pytest.mark.parametrize("theta", [0.5, 3.0, 10.0])
def test_the_optimum_is_the_vertex(theta: float) -> None:
    limited = within(geometric(500), theta)
    result = largest_sum.largest_sum_near(limited)
    assert limited.used(result.alpha).max() <= 1 + 1e-12
    assert result.alpha.sum() == pytest.approx(largest_sum._vertex(limited).sum(), rel=1e-8)
    assert result.near is not None
    assert result.near.is_alone


@pytest.mark.one_in(3)
@pytest.mark.parametrize("grown", [0.5, 0.9, 0.999, 1.0, 1.0001, 1.01, 1.2, 3.0])
def test_where_a_program_begins_changes_nothing(grown: float) -> None:
    network = geometric(500)
    before = largest_sum.largest_sum_near(within(network, 3.0)).near
    limited = within(network, 3.0 * grown)
    cold, warm = (largest_sum.largest_sum_near(limited, near).alpha for near in (None, before))
    assert limited.used(warm).max() <= 1 + 1e-12
    assert warm.sum() == pytest.approx(cold.sum(), rel=2e-9)
    np.testing.assert_allclose(warm, cold, rtol=1e-5)


def test_a_program_begun_nearby_takes_fewer_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    network, factors = geometric(500), list[int]()

    def counted(*arguments: object) -> object:
        factors[-1] += 1
        return factorised(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(interior_point, "factorised", counted)
    before = None
    for theta in (3.0, 3.003):
        factors.append(0)
        before = largest_sum.largest_sum_near(within(network, theta), before).near
    assert factors[1] <= 0.6 * factors[0]


def test_ties_of_large_networks_are_broken_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    # As `test_ties_are_broken_evenly` of small ones: what the hub allows nodes 2 and 3 they may share in any way.
    network = topologies.star(4, gain=Constant())
    limited = limits(network, np.full(4, 10.0), np.array([1.0, 8.4, 1e-3, 1e-3]), 3.0, 1.0, 1e-5, 0.01, 0.99)
    expected = largest_sum.largest_sum(limited)
    monkeypatch.setattr(largest_sum, "_SMALL", 0)
    monkeypatch.setattr(largest_sum, "_MIDDLE", 0)
    result: FloatArray = largest_sum.largest_sum(limited)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [1.0, 3.0, 10.0])
def test_five_thousand_nodes_are_as_good_as_the_vertex(strength: float) -> None:
    limited = within(geometric(5000), strength)
    result = largest_sum.largest_sum(limited)
    assert limited.used(result).max() <= 1 + 1e-12
    assert result.sum() == pytest.approx(largest_sum._vertex(limited).sum(), rel=1e-7)
