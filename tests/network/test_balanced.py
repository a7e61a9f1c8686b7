"""Doubly stochastic weights by one multicast: sums, scales, and the networks where scaling is slow."""

import networkx as nx
import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.network import balanced
from murmurcast.network.balanced import BalancedMixing, balanced_mixing
from tests.algorithms.networks import one_way
from tests.conftest import asymmetric_network


def ring(nodes: int, decades: float = 0.5) -> mc.Network:
    rng = np.random.default_rng(nodes)
    gains = np.zeros((nodes, nodes))
    for i in range(nodes):
        for j in ((i + 1) % nodes, (i - 1) % nodes):
            gains[i, j] = 10 ** rng.uniform(-decades, 0)
    return mc.Network(gains=gains)


def require_balanced(network: mc.Network, built: BalancedMixing) -> None:
    weights: FloatArray = built.weights.toarray()
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    scaled = built.receiver_scale[:, None] * network.gains.toarray().T * built.amplitude
    np.testing.assert_allclose(weights - np.diag(np.diag(weights)), scaled, rtol=1e-12, atol=0)
    np.testing.assert_allclose(np.diag(weights), 1 - network.degree / built.normaliser, rtol=1e-12)
    assert built.amplitude.max() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_rows_and_columns_sum_to_one(seed: int) -> None:
    network = asymmetric_network(seed, 3 + seed)
    require_balanced(network, balanced_mixing(network))


def test_gains_over_two_decades() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        support = asymmetric_network(seed, 8).gains.toarray() > 0
        network = mc.Network(gains=support * 10 ** rng.uniform(-2, 0, support.shape))
        require_balanced(network, balanced_mixing(network))


def test_a_long_ring_where_plain_scaling_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    network = ring(200)
    require_balanced(network, balanced_mixing(network))
    monkeypatch.setattr(balanced, "_NEWTON_ROUNDS", 0)
    with pytest.raises(mc.Error, match="did not settle") as raised:  # so it was Newton's method that settled it
        balanced_mixing(network)
    assert 'weights = "row"' in raised.value.hint


def test_they_do_not_depend_on_how_fast_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    network = asymmetric_network(4, 7)
    plain = balanced_mixing(network)
    monkeypatch.setattr(balanced, "_ROUNDS", 3)  # Newton's method does the rest
    quick = balanced_mixing(network)
    np.testing.assert_allclose(quick.weights.toarray(), plain.weights.toarray(), rtol=0, atol=1e-13)


def test_a_larger_normaliser_keeps_more_of_the_own_model() -> None:
    network = asymmetric_network(2, 6)
    built = balanced_mixing(network, 20)
    require_balanced(network, built)
    assert built.normaliser == 20
    assert (built.weights.diagonal() > balanced_mixing(network).weights.diagonal()).all()


def test_relabelling_nodes_relabels_weights() -> None:
    network, order = asymmetric_network(6, 7), np.random.default_rng(1).permutation(7)
    other = mc.Network(gains=network.gains.toarray()[np.ix_(order, order)])
    there = balanced_mixing(network).weights.toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(balanced_mixing(other).weights.toarray(), there, rtol=0, atol=1e-13)


def test_equal_gains_make_the_plain_weights() -> None:
    graph = nx.random_regular_graph(4, 30, seed=1)
    built = balanced_mixing(mc.Network(gains=nx.to_numpy_array(graph)))
    np.testing.assert_allclose(built.weights.toarray(), (nx.to_numpy_array(graph) + np.eye(30)) / 5, rtol=0, atol=1e-14)
    assert built.rounds == 1


def test_one_way_links_are_refused() -> None:
    with pytest.raises(mc.Error, match="two-way links"):
        balanced_mixing(one_way())


@pytest.mark.parametrize("seed", range(5))
def test_gains_scaled_by_a_common_factor_make_the_same_weights(seed: int) -> None:
    network = asymmetric_network(seed, 6)
    louder = mc.Network(gains=network.gains.toarray() * 37.0)
    one, other = balanced_mixing(network), balanced_mixing(louder)
    np.testing.assert_allclose(other.weights.toarray(), one.weights.toarray(), rtol=0, atol=1e-13)
    np.testing.assert_allclose(other.amplitude, one.amplitude, rtol=1e-9)
    np.testing.assert_allclose(other.receiver_scale, one.receiver_scale / 37.0, rtol=1e-9)


def test_gains_scaled_by_factors_of_senders_and_receivers_make_the_same_weights() -> None:
    """Scaling undoes whatever belongs to one antenna alone."""
    rng, network = np.random.default_rng(3), asymmetric_network(3, 6)
    senders, receivers = rng.uniform(0.2, 5.0, (2, 6))
    other = mc.Network(gains=senders[:, None] * network.gains.toarray() * receivers)
    one, there = balanced_mixing(network), balanced_mixing(other)
    np.testing.assert_allclose(there.weights.toarray(), one.weights.toarray(), rtol=0, atol=1e-12)
    expected = one.amplitude / senders
    np.testing.assert_allclose(there.amplitude, expected / expected.max(), rtol=1e-8)


def test_power_does_not_matter() -> None:
    gains = asymmetric_network(5, 6).gains
    one, other = (
        balanced_mixing(mc.Network(gains=gains, power=power)).weights.toarray()
        for power in (np.ones(6), np.arange(1.0, 7.0))
    )
    np.testing.assert_array_equal(one, other)


def test_transposed_gains_transpose_the_weights() -> None:
    network = asymmetric_network(7, 6)
    other = mc.Network(gains=network.gains.toarray().T)
    there = balanced_mixing(other).weights.toarray()
    np.testing.assert_allclose(there, balanced_mixing(network).weights.toarray().T, rtol=0, atol=1e-12)
    assert np.abs(there - there.T).max() > 0.01
