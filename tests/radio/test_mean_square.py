"""The mean-square rate: a small map formed in full, a simulation, and what was measured before."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.weights import arriving_amplitudes
from murmurcast.radio import mean_square
from murmurcast.radio.divisor import STEADY, Channel, Reception, expected, mean

REFERENCED = Reception("referenced", 0)
RAYLEIGH = Channel("iid")


def arriving(network: Any) -> Any:
    return arriving_amplitudes(network, np.linspace(0.3, 0.7, network.nodes)).toarray()


@pytest.mark.parametrize("reception", [REFERENCED, Reception("referenced", 0, halves=True), Reception("own-slot", 6)])
def test_rows_sum_to_one(reception: Reception) -> None:
    result = mean_square.weights(arriving(topologies.complete(5)), reception, RAYLEIGH, True, 0, 50)
    np.testing.assert_allclose(result.sum(axis=2), 1, atol=1e-12)


@pytest.mark.parametrize("channel", [RAYLEIGH, STEADY])
def test_the_rate_is_the_spectral_radius_of_the_whole_map(channel: Channel) -> None:
    given = arriving(topologies.ring(5, seed=1))
    weights = mean_square.weights(given, REFERENCED, channel, True, 3, 400)
    disagreeing = weights - weights.mean(axis=1, keepdims=True)
    product = np.einsum("nij,nkl->ikjl", disagreeing, disagreeing.conj()).reshape(25, 25) / 400
    exact = np.abs(np.linalg.eigvals(product)).max()
    assert mean_square.rate(given, REFERENCED, channel, True, 3, 400) == pytest.approx(exact, rel=1e-7)


def test_disagreement_shrinks_at_that_rate() -> None:
    given = arriving(topologies.complete(6, seed=2))
    rate = mean_square.rate(given, REFERENCED, STEADY)
    weights = mean_square.weights(given, REFERENCED, STEADY, True, 0, 6 * 20_000).reshape(6, 20_000, 6, 6)
    models = np.broadcast_to(np.arange(6.0)[:, None], (20_000, 6, 1)) + 0j
    spread = []
    for now in weights:
        models = now @ models
        spread.append((np.abs(models - models.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).mean())
    assert (spread[-1] / spread[1]) ** (1 / 4) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("channel", [RAYLEIGH, STEADY])
def test_complete_networks_and_rings_agree_as_fast_as_known(channel: Channel) -> None:
    for seed in range(3):
        complete, ring = arriving(topologies.complete(8, seed=seed)), arriving(topologies.ring(8, seed=seed))
        assert 0.46 < mean_square.rate(complete, REFERENCED, channel) < 0.56
        assert 0.68 < mean_square.rate(ring, REFERENCED, channel) < 0.95


def noise_in_common(given: Any, reception: Reception) -> float:
    """How much of the noise that nodes say stays in the common model, over what mean weights would leave.

    Noise of node j has a standard deviation of 1/pi_j, as it follows the step; mean weights give it the weight pi_j.
    """
    nodes, epochs, runs = len(given), 25, 300
    pi = mean(expected(csr_array(given), reception, RAYLEIGH))
    weights = mean_square.weights(given, reception, RAYLEIGH, True, 0, epochs * runs)
    influence = np.full((runs, 1, nodes), 1 / nodes)
    for now in weights.reshape(epochs, runs, nodes, nodes):
        influence = influence @ now
    return float((np.abs(influence[:, 0] / pi) ** 2).mean())


def test_referenced_access_leaves_half_as_much_noise_again_in_the_common_model() -> None:
    given = arriving(topologies.complete(10, seed=1))
    assert 1.0 < noise_in_common(given, Reception("own-slot", 10)) < 1.13
    for halves in (False, True):
        assert 1.3 < noise_in_common(given, Reception("referenced", 0, halves=halves)) < 1.8


def test_phases_that_stand_still_without_dither_let_models_grow() -> None:
    given = arriving(topologies.ring(10))
    still = [mean_square.rate(given, REFERENCED, STEADY, dither=False, seed=seed, draws=1) for seed in range(20)]
    assert np.median(still) > 1.01
    assert mean_square.rate(given, REFERENCED, STEADY, dither=True) < 0.97


def test_without_fading_weights_that_are_known_shrink_by_their_second_eigenvalue() -> None:
    given = arriving(topologies.geometric(12, seed=3))
    reception = Reception("own-slot", 12)
    weights = mean_square.weights(given, reception, STEADY, True, 0, 1)[0]
    second = np.sort(np.abs(np.linalg.eigvals(weights)))[-2]
    assert mean_square.rate(given, reception, STEADY, draws=1) == pytest.approx(second**2, rel=1e-7)


def test_a_single_round_of_exact_averaging_leaves_nothing() -> None:
    equal = np.full((4, 4), 1.0) - np.eye(4)
    assert mean_square.rate(equal, Reception("own-slot", 4), STEADY) == pytest.approx(0, abs=1e-9)


def test_large_networks_are_refused() -> None:
    with pytest.raises(Error, match="61 nodes"):
        mean_square.rate(np.ones((61, 61)), REFERENCED)
