"""Who learns what: single receivers and pairs against the plain diagnostic, and what is left out on large networks."""

import math
from itertools import combinations

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.privacy import linear
from murmurcast.privacy.coalitions import collusion, likely_seconds
from tests.conftest import asymmetric_network
from tests.privacy.test_linear import brute_force, setting


@pytest.mark.parametrize("seed", range(6))
def test_two_directions_written_out(seed: int) -> None:
    weights, noise, push, _ = setting(seed, epochs=2 + seed)
    turning = np.resize([1.0, -1.0], 1 + seed)
    for observers in ((0,), (1, 2)):
        if len(weights) == len(observers):
            continue
        q = brute_force(weights, observers, noise, push)
        expected = np.sqrt(np.maximum(q.sum(axis=(1, 2)), np.einsum("t,ktu,u->k", turning, q, turning)))
        np.testing.assert_allclose(
            linear.steady_or_turning(weights, observers, noise, push), expected, rtol=1e-7, atol=1e-9
        )


@pytest.mark.parametrize("seed", range(4))
def test_every_receiver_and_every_pair(seed: int) -> None:
    weights, noise, push, certified = setting(seed, epochs=5)
    nodes = len(weights)
    result = collusion(weights, noise, push)
    assert result.is_complete
    assert result.receivers == tuple(range(nodes))
    assert result.pairs_tried == result.pairs == math.comb(nodes, 2)
    for receiver in range(nodes):
        expected = linear.steady_or_turning(weights, (receiver,), noise, push)
        np.testing.assert_array_equal(result.single_mu[receiver], expected)
    together = {pair: linear.steady_or_turning(weights, pair, noise, push) for pair in combinations(range(nodes), 2)}
    for target in range(nodes):
        best = max(values[target] for values in together.values())
        assert result.pair_mu[target] == pytest.approx(best, rel=1e-12)
        receiver = result.worst_receiver[target]
        assert result.single_mu[receiver, target] == result.worst_single_mu[target] == result.single_mu[:, target].max()
    assert (result.single_mu <= certified * (1 + 1e-8)).all()
    assert (result.pair_mu <= certified * (1 + 1e-8)).all()


def test_equals_but_for_rounding_are_named_in_their_order() -> None:
    """A processor's last digits must not decide whom a plan names."""
    weights, noise, push, _ = setting(0, epochs=5, nodes=5)

    def learnt(members: tuple[int, ...]) -> np.ndarray:
        return np.array([0.0 if node in members else len(members) + 1e-14 * sum(members) for node in range(5)])

    named = collusion(weights, noise, push, learnt=learnt)
    assert named.worst_receiver.tolist() == [1, 0, 0, 0, 0]
    assert named.pair.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


def test_receivers_that_are_no_neighbours_learn_too() -> None:
    plan = mc.plan(
        mc.topologies.path(4, seed=2), mc.ClippedGradients(clip=1.0), mc.Budget(epsilon=2.0), mc.Schedule(epochs=12)
    )
    result = plan.collusion()
    assert 2 not in plan.network.neighbours(0)
    assert result.single_mu[2, 0] > 0.01
    assert result.single_mu[2, 0] < result.single_mu[1, 0]
    assert result.single_mu[0, 2] != result.single_mu[2, 0]


def test_a_part_is_a_part_of_the_whole_and_says_so() -> None:
    plan = mc.plan(
        mc.topologies.geometric(14, seed=3),
        mc.ClippedGradients(clip=1.0),
        mc.Budget(epsilon=2.0),
        mc.Schedule(epochs=9),
    )
    whole = plan.collusion(math.inf)
    each = likely_seconds(14, 9)
    part = plan.collusion(6.5 * each)
    assert whole.is_complete
    assert not part.is_complete
    assert len(part.receivers) == 6
    assert part.pairs_tried == 0
    for place, receiver in enumerate(part.receivers):
        np.testing.assert_array_equal(part.single_mu[place], whole.single_mu[receiver])
    assert (part.pair[:, 1] == -1).all()  # 7 and anybody
    np.testing.assert_array_equal(part.pair_mu, part.worst_single_mu)
    pairs = plan.collusion(40.5 * each)
    assert (len(pairs.receivers), pairs.pairs_tried, pairs.pairs) == (14, 26, 91)
    assert (pairs.pair_mu <= whole.pair_mu * (1 + 1e-12)).all()
    # The likeliest pairs are the worst ones, or nearly.
    assert np.median(pairs.pair_mu / whole.pair_mu) > 0.99
    nothing = plan.collusion(0.0)
    assert (nothing.receivers, nothing.pairs_tried) == ((), 0)
    assert (nothing.worst_receiver == -1).all()
    assert (nothing.pair == -1).all()


def test_the_same_call_gives_the_same_answer_whatever_the_clock() -> None:
    weights, noise, push, _ = setting(2, epochs=6)
    seen: list[tuple[int, int]] = []
    first = collusion(weights, noise, push, on_coalition=lambda done, of: seen.append((done, of)))
    second = collusion(weights, noise, push)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert seen[-1] == (len(seen), len(seen))


def test_two_nodes_have_no_pair_to_fear() -> None:
    network = mc.Network(gains=[[0, 0.9], [0.4, 0]], power=(1.0, 2.0))
    plan = mc.plan(network, mc.ClippedGradients(clip=1.0), mc.Budget(epsilon=2.0), mc.Schedule(epochs=5))
    result = plan.collusion()
    assert result.pairs == 0
    assert result.is_complete
    assert (result.pair == -1).all()
    np.testing.assert_allclose(result.worst_single_mu, plan.certificate.mu, rtol=1e-9)


def test_relabelling_changes_nothing() -> None:
    weights, noise, push, _ = setting(5, epochs=6, nodes=6)
    order = np.array([3, 0, 5, 1, 4, 2])
    plain = collusion(weights, noise, push)
    moved = collusion(weights[np.ix_(order, order)], noise[:, order], push[:, order])
    np.testing.assert_allclose(moved.single_mu, plain.single_mu[np.ix_(order, order)], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.pair_mu, plain.pair_mu[order], rtol=1e-9)


def test_networks_too_large_for_dense_matrices_are_an_error() -> None:
    network = mc.topologies.ring(3001, seed=1)
    plan = mc.plan(network, mc.ClippedGradients(clip=1.0), mc.Budget(epsilon=2.0), mc.Schedule(epochs=3), z="perron")
    with pytest.raises(mc.Error, match="dense"):
        plan.collusion()


def test_the_plan_hands_over_its_own_numbers() -> None:
    network = asymmetric_network(3, 5)
    plan = mc.plan(network, mc.ClippedGradients(clip=0.5), mc.Budget(epsilon=4.0), mc.Schedule(epochs=12, step=0.1))
    result = plan.collusion()
    for receiver in range(5):
        exact = plan.linear((receiver,))
        assert (result.single_mu[receiver] >= exact.mu_common * (1 - 1e-9)).all()
        assert (result.single_mu[receiver] <= exact.mu_worst_upper * (1 + 1e-9)).all()
