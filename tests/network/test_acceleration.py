"""Rounds that lean on the two before them: Chebyshev's polynomial, and never more disagreement than it says."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import eval_chebyt

import murmurcast as mc
from murmurcast.network.acceleration import leads, left_after, plainly_left_after
from murmurcast.network.stability import DENSE_UP_TO, disagreements
from murmurcast.network.weights import mixing, perron
from tests.conftest import asymmetric_network


def of_a_ring(nodes: int) -> csr_array:
    network = mc.topologies.ring(nodes, seed=0, gain=mc.gains.Constant(value=0.7))
    return mixing(network, np.full(nodes, 0.5), 3).weights


def polynomial(weights: csr_array, leading: np.ndarray) -> np.ndarray:
    """What the rounds make of a start, as a matrix."""
    dense = weights.toarray()
    before, now = np.eye(len(dense)), dense
    for lead in leading:
        before, now = now, lead * dense @ now + (1 - lead) * before
    return now


def test_modes_are_all_eigenvalues_but_one() -> None:
    result = disagreements(of_a_ring(9))
    expected = [(1 + 2 * np.cos(2 * np.pi * k / 9)) / 3 for k in range(1, 9)]
    np.testing.assert_allclose(np.sort(result.real), np.sort(expected), atol=1e-12)
    np.testing.assert_allclose(result.imag, 0, atol=1e-12)


@pytest.mark.parametrize("rounds", [2, 3, 7, 20])
def test_what_is_left_is_one_over_chebyshevs_polynomial(rounds: int) -> None:
    modes = disagreements(of_a_ring(20))
    radius = float(np.abs(modes).max())
    result = left_after(modes, leads(modes, rounds))
    assert result == pytest.approx(1 / eval_chebyt(rounds, 1 / radius), rel=1e-9)
    assert result < plainly_left_after(modes, rounds) == pytest.approx(radius**rounds)


def test_one_round_is_a_plain_one() -> None:
    modes = disagreements(of_a_ring(8))
    assert len(leads(modes, 1)) == 0
    assert left_after(modes, leads(modes, 1)) == plainly_left_after(modes, 1)


@pytest.mark.parametrize("seed", range(4))
def test_rows_sum_to_one_and_pi_stays_on_asymmetric_weights(seed: int) -> None:
    network = asymmetric_network(seed, 8)
    weights = mixing(network, np.linspace(0.2, 0.8, 8), network.max_degree + 1).weights
    modes = disagreements(weights)
    built = polynomial(weights, leads(modes, 6))
    np.testing.assert_allclose(built.sum(axis=1), 1, atol=1e-12)
    pi = perron(weights)
    np.testing.assert_allclose(pi @ built, pi, atol=1e-12)
    largest = np.abs(np.linalg.eigvals(built - np.outer(np.ones(8), pi))).max()
    assert left_after(modes, leads(modes, 6)) == pytest.approx(largest, rel=1e-6)


def test_every_lead_lies_between_one_and_two() -> None:
    for nodes in (3, 40, 200):
        result = leads(disagreements(of_a_ring(nodes)), 60)
        assert ((result >= 1) & (result <= 2)).all()


def test_too_many_nodes_are_refused_with_a_way_out() -> None:
    large = mc.topologies.ring(DENSE_UP_TO + 1, seed=0)
    with pytest.raises(mc.Error, match="eigenvalues") as refused:
        disagreements(mixing(large, np.full(large.nodes, 0.5), 3).weights)
    assert "schedule.rounds" in refused.value.hint
