"""Laplace noise: its bounds against what it exactly costs, and both ways to calibrate it."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.privacy import discrete, gaussian, laplace
from murmurcast.privacy.conversion import epsilon_of, mu_of
from tests.algorithms.networks import NODES, one_way, two_way

EPOCHS, DIM, DELTA = 20, 50, 1e-5


def built(calibration: Any, network: mc.Network | None = None, epsilon: float = 1.0) -> mc.Algorithm:
    setup = mc.Setup(
        network=network or two_way(),
        problem=mc.ClippedGradients(clip=0.8, examples_per_node=(30, 20, 25, 40, 35), dim=DIM),
        budget=mc.Budget(epsilon=epsilon, delta=DELTA, unit="record"),
        schedule=mc.Schedule(epochs=EPOCHS, step=0.3, noise_timing="aligned"),
    )
    return mc.row_stochastic_laplace(setup, calibration=calibration)


def exact_delta(ratio: float, times: int, epsilon: float) -> float:
    """Of so many Laplace mechanisms, each moved by `ratio` scales, from the distribution of their privacy loss."""
    at = np.linspace(-ratio, ratio, 4001)
    # Loss |x + a| - |x| of x under the first: all of it above, exp(-a) of it below, and a density in between.
    below, above = np.exp(-ratio) / 2, 0.5
    mass = np.exp((at - ratio) / 2) / 4
    mass = mass * (1 - below - above) / mass.sum()
    mass[0] += below
    mass[-1] += above
    total, least = np.ones(1), 0.0
    for _ in range(times):
        total, least = np.convolve(total, mass), least - ratio
    loss = least + (at[1] - at[0]) * np.arange(len(total))
    assert total.sum() == pytest.approx(1.0)
    return float(np.sum(total * np.maximum(0, 1 - np.exp(np.minimum(epsilon - loss, 0)))))


@pytest.mark.parametrize(("ratio", "times"), [(0.05, 10), (0.2, 6), (0.5, 4), (1.5, 2), (3.0, 1)])
def test_both_bounds_hold_for_what_laplace_noise_exactly_costs(ratio: float, times: int) -> None:
    mu = laplace.mu(np.full((times, 1), ratio))[0]
    assert mu == pytest.approx(np.sqrt(np.pi / 2 * times) * ratio)
    for epsilon in (0.1 * ratio, 0.5 * ratio, 1.5 * ratio):
        exact = exact_delta(ratio, times, epsilon)
        assert exact <= gaussian.delta(epsilon, mu) * (1 + 1e-3)
    for delta in (1e-2, 1e-3):
        bound = float(laplace.epsilon(mu, delta))
        assert exact_delta(ratio, times, bound) <= delta * (1 + 1e-3)
        assert bound <= float(gaussian.epsilon(mu, delta))


def test_the_smaller_of_two_epsilons() -> None:
    mu = np.array([0.05, 0.5, 2.0, 8.0])
    concentrated = discrete.epsilon(mu / np.sqrt(np.pi / 2), DELTA)
    np.testing.assert_allclose(laplace.epsilon(mu, DELTA), np.minimum(gaussian.epsilon(mu, DELTA), concentrated))
    assert (laplace.epsilon(mu, DELTA) < gaussian.epsilon(mu, DELTA)).any()


def cost(algorithm: mc.Algorithm) -> FloatArray:
    """sqrt(pi/2) sqrt(sum (S gamma_t / (z_jj,t b_t+1))^2), written out from the tables."""
    (only,) = algorithm.rounds
    schedule, setup = algorithm.setup.schedule, algorithm.setup
    scale = only.sending.noise[0] * schedule.noise_schedule[1:, None]
    arriving = setup.network.gains.toarray().T * np.sqrt(setup.network.power)
    heard = (arriving > 0).sum(axis=1)
    most = heard.max() + 1
    weights = arriving / arriving.sum(axis=1, keepdims=True) * (heard / most)[:, None] + np.diag(1 - heard / most)
    power, z = np.eye(NODES), []
    for _ in range(EPOCHS - 1):
        z.append(np.diag(power))
        power = weights @ power
    ratio = setup.sensitivity * schedule.steps[:-1, None] / (np.array(z) * scale)
    return np.asarray(np.sqrt(np.pi / 2 * (ratio**2).sum(axis=0)))


@pytest.mark.parametrize("network", [two_way(), one_way()])
@pytest.mark.parametrize("calibration", ["certified", "l1"])
def test_the_formula(calibration: Any, network: mc.Network) -> None:
    algorithm = built(calibration, network)
    (releases,) = algorithm.releases
    assert (releases.law.name, releases.against) == ("laplace", "everybody")
    np.testing.assert_allclose(mu_of(releases), cost(algorithm), rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_certified_meets_the_budget_exactly(epsilon: float) -> None:
    (releases,) = built("certified", epsilon=epsilon).releases
    result = epsilon_of(releases, DELTA)
    np.testing.assert_allclose(result, epsilon, rtol=1e-6)
    assert (result <= epsilon * (1 + 1e-9)).all()


def test_calibrating_by_the_l1_norm_costs_far_less_than_was_asked_for() -> None:
    certified, by_l1 = built("certified"), built("l1")
    (releases,) = by_l1.releases
    assert (epsilon_of(releases, DELTA) < 0.2).all()  # of the 1 that was asked for
    more = by_l1.rounds[0].sending.noise / certified.rounds[0].sending.noise
    assert (more > 5).all()
    ratio = releases.ratio.max(axis=0) * np.sqrt(DIM) * (EPOCHS - 1)  # pure DP of the worst epoch, times all of them
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-9)


def test_unit_record_needs_public_points_and_l1_the_number_of_parameters() -> None:
    setup = built("certified").setup
    with pytest.raises(mc.Error, match="public mixed point") as raised:
        mc.row_stochastic_laplace(setup, gradient_at="own")
    assert 'gradient_at = "mixed"' in raised.value.hint
    blind = mc.Setup(
        network=setup.network, problem=mc.ClippedGradients(), budget=mc.Budget(epsilon=1.0), schedule=setup.schedule
    )
    with pytest.raises(mc.Error, match="number of parameters"):
        mc.row_stochastic_laplace(blind, calibration="l1")
