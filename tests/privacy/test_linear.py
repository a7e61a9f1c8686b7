"""The Kalman form against the plain covariance, and the order of the tiers."""

from itertools import combinations

import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.weights import mixing, z_diagonal
from murmurcast.planning.schedule import Schedule
from murmurcast.privacy import certificate, linear
from tests.conftest import asymmetric_network


def setting(seed: int, epochs: int, nodes: int | None = None) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weights, effective noise, push and certificate of a random network."""
    rng = np.random.default_rng([seed, 1])
    network = asymmetric_network(seed, nodes)
    alpha = rng.uniform(0.1, 0.95, network.nodes)
    weights = mixing(network, alpha, network.max_degree + 1).weights
    schedule = Schedule(epochs=epochs, step=rng.uniform(0.2, 2), noise_timing=("paper", "aligned")[seed % 2])
    z = z_diagonal(weights, epochs, "recursive")
    noise, sensitivity = rng.uniform(2, 12, network.nodes), rng.uniform(0.2, 2, network.nodes)
    effective = np.sqrt((1 - alpha) / alpha) * noise * schedule.noise_schedule[:, None]
    push = sensitivity * schedule.steps[:, None] / z
    exposed = certificate.exposure(schedule.steps, schedule.noise_schedule, z)
    return weights.toarray(), effective, push, certificate.mu(exposed, alpha, noise, sensitivity)


def brute_force(weights: FloatArray, observers: tuple[int, ...], effective: FloatArray, push: FloatArray) -> FloatArray:
    """[target, T-1, T-1] Q from the covariance of all that is heard, written out in full."""
    epochs, nodes = effective.shape
    hidden = [node for node in range(nodes) if node not in observers]
    heard, forward = weights[np.ix_(observers, hidden)], weights[np.ix_(hidden, hidden)]
    powers = [np.linalg.matrix_power(forward, lag) for lag in range(epochs)]
    size = len(observers)
    covariance = np.zeros((epochs * size, epochs * size))
    for t in range(epochs):
        for u in range(epochs):
            state = sum(
                powers[t - r] @ np.diag(effective[r, hidden] ** 2) @ powers[u - r].T for r in range(min(t, u) + 1)
            )
            covariance[t * size : (t + 1) * size, u * size : (u + 1) * size] = heard @ state @ heard.T
    inverse = np.linalg.pinv(covariance, rcond=1e-11, hermitian=True)
    result = np.zeros((nodes, epochs - 1, epochs - 1))
    for index, target in enumerate(hidden):
        response = np.zeros((epochs * size, epochs - 1))
        for impulse in range(epochs - 1):
            for t in range(impulse + 1, epochs):
                column = heard @ powers[t - impulse - 1][:, index]
                response[t * size : (t + 1) * size, impulse] = -push[impulse, target] * column
        result[target] = response.T @ inverse @ response
    return result


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_filter_equals_full_covariance_for_all_coalitions(seed: int, nodes: int) -> None:
    weights, effective, push, _ = setting(seed, epochs=3 + seed % 6, nodes=nodes)
    for size in range(1, nodes):
        for observers in combinations(range(nodes), size):
            q = brute_force(weights, observers, effective, push)
            expected = np.sqrt(q.sum(axis=(1, 2)))
            outcome = linear.common_direction(weights, observers, effective, push)
            np.testing.assert_allclose(outcome, expected, rtol=1e-9, atol=1e-12)
            lower, upper = linear.worst_direction(weights, observers, effective, push)
            for target in range(nodes):
                direct = np.sqrt(linear.largest_over_directions(q[target]))
                np.testing.assert_allclose((lower[target], upper[target]), direct, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_every_entry_of_q_equals_the_full_covariance(seed: int) -> None:
    # Changing the gradients of two epochs only leaves Q[t, t] + 2 Q[t, t'] + Q[t', t'].
    weights, effective, push, _ = setting(seed, epochs=8, nodes=5)
    for observers in ((0,), (1, 3), (0, 2, 4)):
        q = brute_force(weights, observers, effective, push)
        for pair in combinations(range(7), 2):
            masked = np.zeros_like(push)
            masked[list(pair)] = push[list(pair)]
            outcome = linear.common_direction(weights, observers, effective, masked)
            expected = np.sqrt(q[:, pair][:, :, pair].sum(axis=(1, 2)))
            np.testing.assert_allclose(outcome, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("seed", range(200))
def test_diagnostic_stays_below_the_certificate(seed: int) -> None:
    weights, effective, push, certified = setting(seed, epochs=2 + seed % 9)
    nodes = len(weights)
    for observers in [(node,) for node in range(nodes)] + list(combinations(range(nodes), 2)):
        if len(observers) == nodes:
            continue
        common = linear.common_direction(weights, observers, effective, push)
        lower, upper = linear.worst_direction(weights, observers, effective, push)
        assert (common <= lower * (1 + 1e-8) + 1e-12).all()
        assert (lower <= upper * (1 + 1e-12)).all()
        hidden = [node for node in range(nodes) if node not in observers]
        assert (upper[hidden] <= certified[hidden] * (1 + 1e-6)).all()
        assert (upper[list(observers)] == 0).all()


def test_everybody_else_together_reaches_the_certificate() -> None:
    weights, effective, push, certified = setting(3, epochs=7, nodes=5)
    for target in range(5):
        observers = tuple(node for node in range(5) if node != target)
        outcome = linear.common_direction(weights, observers, effective, push)
        assert outcome[target] == pytest.approx(certified[target], rel=1e-9)


def test_non_neighbours_learn_something() -> None:
    weights = np.array([[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]])
    outcome = linear.common_direction(weights, (2,), np.full((6, 3), 1.5), np.full((6, 3), 1.0))
    assert outcome[0] > 0.1
    # What node 0 says in epoch t reaches node 2 two epochs later: with two epochs, nothing has arrived.
    assert linear.common_direction(weights, (2,), np.full((2, 3), 1.5), np.full((2, 3), 1.0))[0] == 0


def test_relabelling_permutes_and_changes_nothing() -> None:
    weights, effective, push, _ = setting(5, epochs=6, nodes=6)
    order = np.array([3, 0, 5, 1, 4, 2])
    moved = linear.worst_direction(weights[np.ix_(order, order)], (1, 4), effective[:, order], push[:, order])
    plain = linear.worst_direction(weights, (int(order[1]), int(order[4])), effective, push)
    np.testing.assert_allclose(moved[1], plain[1][order], rtol=1e-7, atol=1e-12)


def test_worst_direction_of_a_known_program() -> None:
    # Three vectors that repel each other: best at 120 degrees, where sum <u_t, u_t'> (t != t') is -3.
    q = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])
    lower, upper = linear.largest_over_directions(q)
    assert lower == pytest.approx(9.0, rel=1e-9)
    assert upper == pytest.approx(9.0, rel=1e-9)


@pytest.mark.parametrize("observers", [(), (0, 1, 2), (7,), (-1,)])
def test_impossible_observers_are_errors(observers: tuple[int, ...]) -> None:
    weights, effective, push, _ = setting(1, epochs=3, nodes=3)
    with pytest.raises(Error):
        linear.common_direction(weights, observers, effective, push)
