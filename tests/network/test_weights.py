"""Weights, z and their limit, on asymmetric networks."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.gains import Constant
from murmurcast.network.graph import Network
from murmurcast.network.weights import mix_signals, mixing, mixing_rate, normaliser, perron, z_diagonal
from tests.conftest import asymmetric_network

SEEDS = range(20)


def split(network: Network, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng([seed, 9]).uniform(0.05, 0.95, network.nodes)


def test_weights_by_hand() -> None:
    network = Network(gains=[[0, 0.5, 0.2], [0.4, 0, 0], [0.8, 0, 0]], power=[1.0, 4.0, 0.25])
    built = mixing(network, np.array([0.25, 0.25, 1.0]), 3)
    # What arrives: at 0 from 1: 0.4 x 1, from 2: 0.8 x 0.5; at 1 from 0: 0.5 x 0.5; at 2 from 0: 0.2 x 0.5.
    np.testing.assert_allclose(built.compensation, [0.4, 0.25, 0.1])
    expected = [[1 / 3, 1 / 3, 1 / 3], [1 / 3, 2 / 3, 0], [1 / 3, 0, 2 / 3]]
    np.testing.assert_allclose(built.weights.toarray(), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_sum_to_one_and_signal_form_equals_matrix_form(seed: int) -> None:
    network = asymmetric_network(seed)
    alpha = split(network, seed)
    built = mixing(network, alpha, network.max_degree + 1)
    np.testing.assert_allclose(built.weights.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert built.weights.toarray().min() >= 0
    said = np.random.default_rng(seed).normal(size=(network.nodes, 11))
    signal = mix_signals(network, alpha, built.normaliser, said)
    np.testing.assert_allclose(signal, built.weights @ said, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_relabelling_permutes_and_changes_nothing(seed: int) -> None:
    network, order = asymmetric_network(seed), np.random.default_rng(seed).permutation
    p = order(network.nodes)
    alpha = split(network, seed)
    moved = Network(gains=network.gains.toarray()[np.ix_(p, p)], power=network.power[p])
    plain = mixing(network, alpha, 9)
    other = mixing(moved, alpha[p], 9)
    np.testing.assert_allclose(other.weights.toarray(), plain.weights.toarray()[np.ix_(p, p)], atol=1e-14)
    np.testing.assert_allclose(perron(other.weights), perron(plain.weights)[p], rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_z_is_the_diagonal_of_powers_and_tends_to_perron(seed: int) -> None:
    network = asymmetric_network(seed)
    weights = mixing(network, split(network, seed), network.max_degree + 1).weights
    z = z_diagonal(weights, 400, "recursive")
    for epoch in (1, 2, 3, 7):
        expected = np.linalg.matrix_power(weights.toarray(), epoch - 1).diagonal()
        np.testing.assert_allclose(z[epoch - 1], expected, rtol=1e-12)
    pi = perron(weights)
    np.testing.assert_allclose(weights.T @ pi, pi, rtol=1e-12)
    assert pi.sum() == pytest.approx(1)
    np.testing.assert_allclose(z[-1], pi, rtol=1e-9)
    np.testing.assert_array_equal(z_diagonal(weights, 5, "perron"), np.tile(pi, (5, 1)))


@pytest.mark.parametrize("seed", SEEDS)
def test_mixing_rate_bounds_every_entry_at_every_time(seed: int) -> None:
    network = asymmetric_network(seed)
    weights = mixing(network, split(network, seed), network.max_degree + 1).weights
    rate = mixing_rate(weights)
    assert 0 < rate.rate < 1
    dense, pi = weights.toarray(), perron(weights)
    power = np.eye(network.nodes)
    for epoch in range(40):
        worst = np.abs(power - pi).max()
        assert worst <= rate.constant * rate.rate**epoch * (1 + 1e-9) + 1e-14
        power = power @ dense


def test_mixing_rate_of_dependent_eigenvectors_still_bounds() -> None:
    # A row-stochastic matrix with a Jordan block: no basis of eigenvectors.
    dense = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.5, 0.0, 0.5]])
    dense[0] = [0.5, 0.25, 0.25]
    dense[1] = [0.5, 0.25, 0.25]
    dense[2] = [0.25, 0.5, 0.25]
    rate = mixing_rate(csr_array(dense))
    pi, power = perron(csr_array(dense)), np.eye(3)
    for epoch in range(30):
        assert np.abs(power - pi).max() <= rate.constant * rate.rate**epoch * (1 + 1e-9) + 1e-14
        power = power @ dense


@pytest.mark.parametrize("network", [topologies.ring(3000), topologies.grid(40, 50), topologies.path(500)])
def test_perron_of_slow_networks(network: Network) -> None:
    weights = mixing(network, np.full(network.nodes, 0.5), network.max_degree + 1).weights
    pi = perron(weights)
    assert pi.min() > 0
    np.testing.assert_allclose(weights.T @ pi, pi, rtol=1e-8)


def test_normaliser_rules() -> None:
    network = topologies.star(5)
    assert normaliser(network, "lazy") == 5
    assert normaliser(network, "max-degree") == 4
    assert normaliser(network, 9) == 9
    with pytest.raises(Error, match="below the largest degree 4"):
        normaliser(network, 3)
    with pytest.raises(Error, match="lasy") as raised:
        normaliser(network, "lasy")
    assert "lazy" in raised.value.hint


def test_zero_z_is_an_error_that_gives_both_ways_out() -> None:
    network = topologies.complete(4)
    weights = mixing(network, np.full(4, 0.5), 3).weights
    with pytest.raises(Error, match="z of node 0 is 0 in epoch 2") as raised:
        z_diagonal(weights, 10, "recursive")
    assert 'normaliser = "lazy"' in raised.value.hint
    assert 'z = "perron"' in raised.value.hint
    assert z_diagonal(weights, 10, "perron").min() > 0


def test_periodic_weights_have_no_rate() -> None:
    network = topologies.ring(4, gain=Constant())
    weights = mixing(network, np.full(4, 0.5), 2).weights
    np.testing.assert_allclose(perron(weights), 0.25)
    with pytest.raises(Error, match="periodic"):
        mixing_rate(weights)


def test_recursion_is_refused_where_it_cannot_be_stored() -> None:
    network = topologies.ring(3001)
    weights = mixing(network, np.full(3001, 0.5), 3).weights
    with pytest.raises(Error, match="3001 x 3001") as raised:
        z_diagonal(weights, 2, "recursive")
    assert "perron" in raised.value.hint
