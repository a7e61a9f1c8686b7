"""Weights by degree: what they are, and which of them one multicast can make."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.mixer import mixer
from murmurcast.network.link_weights import (
    max_degree_weights,
    metropolis_weights,
    out_degree_weights,
    over_air,
)
from tests.algorithms.networks import one_way, two_way
from tests.conftest import asymmetric_network


def rank_one(seed: int = 0, *, one_way_links: bool = False) -> mc.Network:
    """Gains that are a product of a sender's and a receiver's factor, on some links of a network."""
    rng = np.random.default_rng(seed)
    links = (one_way() if one_way_links else asymmetric_network(seed, 7)).gains.toarray() > 0
    nodes = len(links)
    factors = np.outer(rng.uniform(0.3, 1.2, nodes), rng.uniform(0.3, 1.2, nodes))
    return mc.Network(gains=links * factors, power=rng.uniform(0.5, 2.0, nodes))


def degrees(network: mc.Network) -> tuple[FloatArray, FloatArray]:
    links = (network.gains.toarray() > 0).astype(float)
    return links, links.sum(axis=1)


@pytest.mark.parametrize("seed", range(10))
def test_written_out(seed: int) -> None:
    network = asymmetric_network(seed)
    links, degree = degrees(network)
    plain = links / (degree.max() + 1)
    larger = links / (1 + np.maximum(degree[:, None], degree))
    for result, wanted in ((max_degree_weights(network), plain), (metropolis_weights(network), larger)):
        dense = result.toarray()
        np.testing.assert_allclose(dense, wanted + np.diag(1 - wanted.sum(axis=1)), rtol=0, atol=1e-15)
        np.testing.assert_allclose(dense.sum(axis=0), 1, atol=1e-14)
        assert (np.diag(dense) > 0).all()


def test_senders_share_their_mass_out_over_one_way_links() -> None:
    network = one_way()
    links, hear = degrees(network)
    result = out_degree_weights(network).toarray()
    np.testing.assert_allclose(result.sum(axis=0), 1, atol=1e-15)
    np.testing.assert_allclose(result, links.T / (1 + hear) + np.diag(1 / (1 + hear)), atol=1e-15)
    assert not np.allclose(result.sum(axis=1), 1)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("weights_of", [max_degree_weights, metropolis_weights, out_degree_weights])
def test_gains_of_rank_one_make_some_weights_over_the_air(seed: int, weights_of: Any) -> None:
    """1/R and 1/(1 + d_j) can be made; Metropolis' can where degrees do not stand in the way."""
    network = rank_one(seed)
    wanted = weights_of(network)
    factors = over_air(wanted, network)
    if factors is None:
        assert weights_of is metropolis_weights
        return
    built = factors.receiver_scale[:, None] * network.gains.toarray().T * factors.amplitude
    links = built > 0
    np.testing.assert_allclose(built[links], wanted.toarray()[links], rtol=1e-9)
    assert factors.amplitude.max() == pytest.approx(1.0)


def test_one_way_links_of_rank_one() -> None:
    network = rank_one(one_way_links=True)
    assert over_air(out_degree_weights(network), network) is not None


def test_any_gains_can_be_made_where_links_are_a_tree_of_senders_and_receivers() -> None:
    """A star: every leaf hears the hub alone, so that all its factors are free."""
    gains = np.zeros((4, 4))
    gains[0, 1:], gains[1:, 0] = (0.3, 0.8, 1.1), (0.9, 0.4, 0.7)
    network = mc.Network(gains=gains)
    assert over_air(metropolis_weights(network), network) is not None


@pytest.mark.parametrize("weights", ["max-degree", "metropolis", "out-degree"])
def test_other_gains_are_refused_with_the_ways_out(weights: Any) -> None:
    setup = mc.Setup(
        network=two_way(),
        problem=mc.ClippedGradients(),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=3),
    )
    with pytest.raises(mc.Error, match="cannot be made by one multicast") as raised:
        mixer(setup, weights, "air")
    for way_out in ("sinkhorn", "slots", "orthogonal"):
        assert way_out in raised.value.hint
    assert mixer(setup, weights, "slots").channel.kind == "slots"
    assert mixer(setup, weights, "orthogonal").channel.kind == "links"
    with pytest.raises(mc.Error, match="weights"):
        mixer(setup, "metropoli")  # type: ignore[arg-type]


@pytest.mark.parametrize("weights_of", [max_degree_weights, metropolis_weights, out_degree_weights])
def test_only_who_hears_whom_matters(weights_of: Any) -> None:
    network = two_way()
    rng = np.random.default_rng(2)
    gains = network.gains.toarray() * rng.uniform(0.1, 9.0, (5, 5))
    other = mc.Network(gains=gains, power=rng.uniform(0.5, 2.0, 5))
    np.testing.assert_array_equal(weights_of(other).toarray(), weights_of(network).toarray())


@pytest.mark.parametrize("weights_of", [max_degree_weights, metropolis_weights, out_degree_weights])
def test_relabelling_nodes_relabels_weights(weights_of: Any) -> None:
    network, order = asymmetric_network(6, 7), np.random.default_rng(1).permutation(7)
    other = mc.Network(gains=network.gains.toarray()[np.ix_(order, order)])
    there = weights_of(network).toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(weights_of(other).toarray(), there, rtol=0, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_factors_over_the_air_follow_gains_that_are_scaled(seed: int) -> None:
    """All gains k times as large: as loud as before, and heard with a k-th of the factor."""
    network = rank_one(seed)
    louder = mc.Network(gains=network.gains.toarray() * 5.0, power=network.power)
    one, other = (over_air(max_degree_weights(which), which) for which in (network, louder))
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(other.amplitude, one.amplitude, rtol=1e-9)
    np.testing.assert_allclose(other.receiver_scale, one.receiver_scale / 5, rtol=1e-9)


def test_one_gain_that_is_off_cannot_be_made() -> None:
    """On a cycle of links the factors are fixed: a gain of one percent more breaks them."""
    gains = np.outer([0.9, 0.5, 0.7, 1.1], [0.6, 1.2, 0.8, 0.4]) * (1 - np.eye(4))
    assert over_air(max_degree_weights(mc.Network(gains=gains)), mc.Network(gains=gains)) is not None
    gains[0, 1] *= 1.01
    assert over_air(max_degree_weights(mc.Network(gains=gains)), mc.Network(gains=gains)) is None
