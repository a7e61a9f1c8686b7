"""The linear diagnostic of a radio: the reference's, brute force, and the plain diagnostic where nothing changes."""

from typing import Any

import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.weights import arriving_amplitudes
from murmurcast.privacy import linear, linear_radio
from murmurcast.privacy.linear_radio import RadioNoise
from murmurcast.radio import divisor
from murmurcast.radio.divisor import Channel, Reception
from tests.radio.reference import Instance, instances, require_equal

EPOCHS, NODES = 6, 5


def instance(seed: int, varying: bool = True) -> tuple[Any, Any, Any, Any]:
    """Weights, noise, push and tau of an asymmetric network."""
    rng = np.random.default_rng(seed)
    linked = rng.random((NODES, NODES)) < 0.7
    linked |= np.roll(np.eye(NODES, dtype=bool), 1, axis=0) | np.eye(NODES, dtype=bool)
    weights = np.where(linked, rng.uniform(0.1, 1.0, (EPOCHS if varying else 1, NODES, NODES)), 0)
    weights = weights / weights.sum(axis=2, keepdims=True)
    noise, push = rng.uniform(0.5, 2.0, (EPOCHS, NODES)), rng.uniform(0.1, 1.0, (EPOCHS, NODES))
    return weights if varying else weights[0], noise, push, rng.uniform(0.05, 0.8, (EPOCHS, NODES))


def brute_force(weights: Any, members: tuple[int, ...], noise: Any, push: Any, tau: Any, observers: Any) -> Any:
    """[nodes] mu from the covariance of everything that is heard, in real numbers: no filter, no recursion."""
    epochs, nodes = noise.shape
    hidden = [node for node in range(nodes) if node not in members]
    size, seen = len(hidden), len(members)
    sources = 2 * epochs * size + epochs * seen  # what nodes add, what their receivers add, what observers' add
    state, response = np.zeros((size, sources), complex), np.zeros((size, size), complex)
    heard, answer = [], []
    for epoch in range(epochs):
        start = epoch * (2 * size + seen)
        state[:, start : start + size] += np.diag(noise[epoch, hidden])
        observation = weights[epoch][np.ix_(members, hidden)] @ state
        observation[:, start + 2 * size : start + 2 * size + seen] += np.diag(observers[epoch, list(members)])
        heard.append(observation)
        answer.append(weights[epoch][np.ix_(members, hidden)] @ response)
        forward = weights[epoch][np.ix_(hidden, hidden)]
        state, response = forward @ state, forward @ response - np.diag(push[epoch, hidden])
        state[:, start + size : start + 2 * size] += np.diag(tau[epoch, hidden])
    across, along = np.concatenate(heard), np.concatenate(answer)
    real = np.block([[across.real, -across.imag], [across.imag, across.real]])
    both = np.concatenate([along.real, along.imag])
    result = np.zeros(nodes)
    result[hidden] = np.sqrt(np.einsum("oj,oj->j", both, np.linalg.pinv(real @ real.T, rcond=1e-12) @ both))
    return result


@pytest.mark.parametrize("one", instances("tier3"), ids=lambda one: one.name)
def test_it_is_the_expected_one(one: Instance) -> None:
    given, tau = one.inputs, one.inputs["receiver_noise_std"]
    everybody = np.sqrt(np.square(given["push"][:-1] / given["effective_noise"][1:]).sum(axis=0))
    require_equal(everybody, one.expected["tier1"])
    for members in given["observers"]:
        result = linear_radio.common_direction(
            given["weights"], tuple(members), given["effective_noise"], given["push"], RadioNoise(tau, tau)
        )
        require_equal(result, one.expected[",".join(map(str, members))])
        assert (result <= everybody).all()


@pytest.mark.parametrize("members", [(0,), (3,), (1, 2), (4, 0, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_covariance_of_all_that_is_heard_says(members: tuple[int, ...], seed: int) -> None:
    weights, noise, push, tau = instance(seed)
    own = np.random.default_rng(seed).uniform(0.0, 0.5, (EPOCHS, NODES))
    own[:, 0] = 0
    for observers in (own, np.zeros((EPOCHS, NODES))):
        result = linear_radio.common_direction(weights, members, noise, push, RadioNoise(tau, observers))
        expected = brute_force(weights, members, noise, push, tau, observers)
        np.testing.assert_allclose(result, expected, rtol=1e-9)


@pytest.mark.parametrize("members", [(0,), (1, 2)])
def test_complex_weights_are_the_covariance_of_both_parts(members: tuple[int, ...]) -> None:
    weights, noise, push, tau = instance(7)
    turned = weights * np.exp(2j * np.pi * np.random.default_rng(7).random(weights.shape))
    result = linear_radio.common_direction(turned, members, noise, push, RadioNoise(tau, tau))
    np.testing.assert_allclose(result, brute_force(turned, members, noise, push, tau, tau), rtol=1e-9)


@pytest.mark.parametrize("members", [(0,), (2, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_without_noise_and_with_constant_weights_it_is_the_plain_one(members: tuple[int, ...], seed: int) -> None:
    weights, noise, push, _ = instance(seed, varying=False)
    silent = RadioNoise(np.zeros((EPOCHS, NODES)))
    for of in ("common_direction", "steady_or_turning"):
        result = getattr(linear_radio, of)(weights, members, noise, push, silent)
        expected = getattr(linear, of)(weights, members, noise, push)
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_a_first_message_without_noise_is_treated_as_in_the_plain_one() -> None:
    weights, noise, push, _ = instance(2, varying=False)
    noise[0] = 0
    silent = RadioNoise(np.zeros((EPOCHS, NODES)))
    result = linear_radio.common_direction(weights, (1,), noise, push, silent)
    np.testing.assert_allclose(result, linear.common_direction(weights, (1,), noise, push), rtol=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_any_receiver_lowers_it_and_a_better_antenna_does_not(seed: int) -> None:
    weights, noise, push, tau = instance(seed)
    everybody = np.sqrt(np.square(push[:-1] / noise[1:]).sum(axis=0))
    silent = RadioNoise(np.zeros((EPOCHS, NODES)))
    bare = linear_radio.common_direction(weights, (0,), noise, push, silent)
    relayed = linear_radio.common_direction(weights, (0,), noise, push, RadioNoise(tau))
    deaf = linear_radio.common_direction(weights, (0,), noise, push, RadioNoise(tau, tau))
    assert (everybody >= bare - 1e-12).all()
    assert (bare >= relayed - 1e-12).all()
    assert (relayed >= deaf - 1e-12).all()
    assert deaf[1] < bare[1]


def test_fading_raises_what_a_receiver_learns() -> None:
    network = topologies.ring(6, seed=1)
    arriving = arriving_amplitudes(network, np.full(6, 0.5))
    ones = np.ones((20, 6))
    silent, rng = RadioNoise(0 * ones), np.random.default_rng(0)
    mean = divisor.expected(arriving, Reception("own-slot", 3), Channel("iid")).toarray()
    steady = linear_radio.common_direction(mean, (0,), ones, ones, silent)
    faded = []
    for _ in range(20):
        weights = divisor.weights(arriving.toarray() * np.sqrt(rng.standard_exponential((20, 6, 6))), 3)
        faded.append(linear_radio.common_direction(weights, (0,), ones, ones, silent))
    np.testing.assert_allclose(steady[[1, 5]], [1.92, 3.14], atol=0.05)
    np.testing.assert_allclose(np.mean(faded, axis=0)[[1, 5]], [2.47, 3.41], atol=0.1)


def test_an_observer_that_hears_nothing_in_an_epoch_learns_from_the_others_only() -> None:
    weights, noise, push, tau = instance(1)
    before = linear_radio.common_direction(weights, (0,), noise, push, RadioNoise(tau))
    outage = weights.copy()
    outage[3, 0] = np.eye(NODES)[0]
    result = linear_radio.common_direction(outage, (0,), noise, push, RadioNoise(tau))
    expected = brute_force(outage, (0,), noise, push, tau, np.zeros((EPOCHS, NODES)))
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    assert (result[1:] < before[1:]).all()


def test_noise_that_is_no_number_is_refused() -> None:
    weights, noise, push, tau = instance(1)
    with pytest.raises(Error, match="hidden"):
        linear_radio.common_direction(weights, (0,), noise, push, RadioNoise(-tau))


def brute_force_of_rounds(rounds: Any, members: tuple[int, ...], noise: Any, push: Any) -> Any:
    """[nodes] mu from the covariance of all that is heard in all rounds: every source has a column of its own."""
    epochs, nodes = noise.shape
    hidden = [node for node in range(nodes) if node not in members]
    size = len(hidden)
    sources = epochs * size * (1 + len(rounds))
    state, response = np.zeros((size, sources), complex), np.zeros((size, size), complex)
    heard, answer, column = [], [], 0
    for epoch in range(epochs):
        state[:, column : column + size] += np.diag(noise[epoch, hidden])
        column += size
        for one in rounds:
            rows, forward = one.antennas(members)[epoch][:, hidden], one.weights[epoch][np.ix_(hidden, hidden)]
            heard.append(rows @ state)
            answer.append(rows @ response)
            state, response = forward @ state, forward @ response
            state[:, column : column + size] += np.diag(one.noise[epoch, hidden])
            column += size
        response = response - np.diag(push[epoch, hidden])
    across, along = np.concatenate(heard), np.concatenate(answer)
    basis, strength, _ = np.linalg.svd(across, full_matrices=False)
    kept = strength > 1e-11 * strength.max()
    result = np.zeros(nodes)
    result[hidden] = np.linalg.norm((basis[:, kept].conj().T @ along) / strength[kept, None], axis=0)
    return result


def several(seed: int, count: int, silent: bool) -> tuple[Any, Any, Any]:
    """Rounds with weights, noise and antennas of their own; noise and push."""
    rng, rounds = np.random.default_rng(seed), []
    for number in range(count):
        weights, noise, push, tau = instance(seed + 10 * number)
        turned = weights * np.exp(0.3j * rng.random(weights.shape))
        rows = rng.normal(size=(2, EPOCHS, NODES, NODES))  # two sums for every observer

        def antennas(members: tuple[int, ...], rows: Any = rows) -> Any:
            return np.concatenate([part[:, list(members)] for part in rows[: 1 + len(members) % 2]], axis=1)

        rounds.append(linear_radio.OneRound(turned, 0 * tau if silent else tau, antennas))
    return tuple(rounds), noise, push


@pytest.mark.parametrize("members", [(0,), (1, 2)])
@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_rounds_that_are_heard_count(count: int, silent: bool, members: tuple[int, ...]) -> None:
    rounds, noise, push = several(3, count, silent)
    result = linear_radio.common_direction_of(rounds, members, noise, push)
    np.testing.assert_allclose(result, brute_force_of_rounds(rounds, members, noise, push), rtol=1e-7)
    everybody = np.sqrt(np.square(push[:-1] / noise[1:]).sum(axis=0))
    lower, upper = linear_radio.worst_direction_of(rounds, members, noise, push)
    turning = linear_radio.steady_or_turning_of(rounds, members, noise, push)
    assert (result <= turning * (1 + 1e-9)).all()
    assert (turning <= upper * (1 + 1e-9)).all()
    assert (lower <= upper * (1 + 1e-9)).all()
    assert (upper <= everybody * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_worst_sequence_of_one_plain_round_is_the_plain_one(seed: int) -> None:
    weights, noise, push, _ = instance(seed, varying=False)
    varying = np.broadcast_to(weights, (EPOCHS, NODES, NODES))
    one = linear_radio.OneRound(varying, np.zeros((EPOCHS, NODES)), linear_radio.mixtures(varying))
    result = linear_radio.worst_direction_of((one,), (1,), noise, push)
    np.testing.assert_allclose(result, linear.worst_direction(weights, (1,), noise, push), rtol=1e-8)
