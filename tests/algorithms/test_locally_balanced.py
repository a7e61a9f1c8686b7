"""Locally balanced perturbations: what balances them, what they would cost, and that nothing is promised."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.locally_balanced import cost_if_counted
from tests.algorithms.calibrated import CLIP, EPOCHS, ORDER, left_perron, plan_of, relabelled, setup_of, words_of
from tests.algorithms.networks import NODES, one_way, row_weights, two_way


def shares(network: mc.Network) -> FloatArray:
    """[receiver, sender] c_i = pi_i a_ij, by which what sender j says to i counts in the weighed mean."""
    weights = row_weights(network)
    return np.asarray(left_perron(weights)[:, None] * weights)


def test_balances_are_shares_over_their_norm() -> None:
    sending = mc.locally_balanced(setup_of()).rounds[0].sending
    gains, counted = two_way().gains.toarray(), shares(two_way())
    for sender in range(NODES):
        receivers = np.flatnonzero(gains[sender])
        norm = np.sqrt(sum(counted[i, sender] ** 2 for i in (*receivers, sender)))
        expected = counted[receivers, sender] / norm
        np.testing.assert_allclose(sending.balance[0, sender, : len(receivers)], expected, rtol=1e-9)
        np.testing.assert_array_equal(sending.balance[0, sender, len(receivers) :], 0)
        assert sending.own_balance[0, sender] == pytest.approx(counted[sender, sender] / norm, rel=1e-9)


def test_what_was_said_tells_the_own_perturbation() -> None:
    """Perturbations of length 1 along no share: the own one is minus the others' weighed sum over c_j."""
    receiving = mc.locally_balanced(setup_of()).rounds[0].receiving
    gains, counted = two_way().gains.toarray(), shares(two_way())
    for sender in range(NODES):
        receivers = np.flatnonzero(gains[sender])
        expected = counted[receivers, sender] / counted[sender, sender]
        np.testing.assert_allclose(receiving.unsaid[0, sender, : len(receivers)], expected, rtol=1e-9)
    np.testing.assert_allclose(receiving.z[0], left_perron(row_weights(two_way())), rtol=1e-9)
    np.testing.assert_allclose(receiving.own_weight[0], np.diag(row_weights(two_way())), rtol=1e-12)


def test_words_uses_and_no_promise() -> None:
    algorithm = mc.locally_balanced(setup_of(), noise_to_step=2.0)
    draws = "links: normal of a link; itself: normal of a node"
    assert words_of(algorithm) == {"model_channel": "slots", "model_draws": draws}
    assert algorithm.channel_uses == 3
    assert algorithm.settings == {"noise_to_step": 2.0}
    assert (algorithm.releases, algorithm.proof) == ((), None)
    np.testing.assert_array_equal(algorithm.rounds[0].sending.noise, 2.0)


def test_a_plan_brings_its_split() -> None:
    plan = plan_of()
    sending = mc.locally_balanced(plan).rounds[0].sending
    for sender in range(NODES):
        loud = sending.amplitude[0, sender, : len(plan.network.neighbours(sender))]
        np.testing.assert_allclose(loud, np.sqrt(plan.alpha[sender] * plan.network.power[sender]), rtol=1e-12)


def test_what_it_would_cost_is_the_sum_written_out() -> None:
    """Differences add up, for nothing is forgotten; every neighbour hears them, and together what balances them."""
    counted, pi = shares(two_way()), left_perron(row_weights(two_way()))
    degree = (two_way().gains.toarray() > 0).sum(axis=1)
    expected = []
    for node in range(NODES):
        total, difference = 0.0, 0.0
        others = sum(counted[i, node] for i in range(NODES) if i != node) / counted[node, node]
        for epoch in range(1, EPOCHS + 1):
            std = 3.0 * 0.2 / np.sqrt(max(epoch - 1, 1))
            total += (difference / std) ** 2 * (degree[node] + others**2)
            difference += 0.2 / np.sqrt(epoch) * 2 * CLIP / pi[node]
        expected.append(np.sqrt(total))
    np.testing.assert_allclose(cost_if_counted(setup_of(), 3.0), expected, rtol=1e-9)


def test_it_would_cost_more_than_in_proportion_to_epochs_and_less_with_more_noise() -> None:
    short, long = (cost_if_counted(setup_of(decay="constant", epochs=epochs)) for epochs in (50, 200))
    np.testing.assert_allclose(long / short, 4**1.5, rtol=0.05)
    np.testing.assert_allclose(cost_if_counted(setup_of(), 5.0), cost_if_counted(setup_of()) / 5, rtol=1e-12)
    permuted = cost_if_counted(setup_of(relabelled(two_way())))
    np.testing.assert_allclose(permuted, cost_if_counted(setup_of())[ORDER], rtol=1e-9)


def test_one_way_links_are_refused() -> None:
    with pytest.raises(mc.Error, match="locally-balanced, whose nodes balance") as raised:
        mc.locally_balanced(setup_of(one_way()))
    assert "both gains" in raised.value.hint
