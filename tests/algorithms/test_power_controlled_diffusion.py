"""Exact diffusion on a plan's weights: the plan's split, its own noise, and steps as long as Algorithm 1's."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.privacy.conversion import mu_of
from tests.algorithms.calibrated import CLIP, EPOCHS, allowed_mu, carried, left_perron, noise_in, plan_of, words_of
from tests.algorithms.networks import NODES


@pytest.fixture(scope="module")
def plan() -> mc.Plan:
    return plan_of()


def test_it_sends_as_loud_as_the_plan_splits(plan: mc.Plan) -> None:
    algorithm = mc.power_controlled_diffusion(plan)
    np.testing.assert_allclose(algorithm.rounds[0].sending.amplitude[0], np.sqrt(plan.alpha * plan.network.power))
    np.testing.assert_allclose(carried(algorithm), plan.mixing.weights.toarray(), rtol=1e-12, atol=1e-15)
    assert words_of(algorithm) == {"model_channel": "air", "model_draws": "noise: normal of a node"}
    assert algorithm.channel_uses == 1


def test_steps_are_as_long_as_algorithm_1s_unless_a_factor_is_given(plan: mc.Plan) -> None:
    """gamma/pi, the limit of gamma/z; half as long with half the factor."""
    gamma = 0.2 / np.sqrt(np.arange(1, EPOCHS + 1))
    full, half = (mc.power_controlled_diffusion(plan, step_factor=factor) for factor in (0.0, NODES / 2))
    pi = left_perron(plan.mixing.weights.toarray())
    np.testing.assert_allclose(full.rounds[0].sending.step, gamma[:, None] / pi, rtol=1e-9)
    np.testing.assert_allclose(half.rounds[0].sending.step, gamma[:, None] / pi / 2, rtol=1e-9)
    assert full.settings == {"step_factor": 5.0, "publish": "last"}
    assert half.settings["step_factor"] == 2.5


def test_it_costs_what_the_plan_allows_by_noise_of_its_own(plan: mc.Plan) -> None:
    algorithm = mc.power_controlled_diffusion(plan, publish="average")
    np.testing.assert_allclose(noise_in(algorithm), 2 * CLIP * np.sqrt(EPOCHS) / allowed_mu(), rtol=1e-9)
    np.testing.assert_allclose(mu_of(algorithm.releases[0]), plan.certificate.mu, rtol=1e-9)
    assert (algorithm.name, algorithm.plan) == ("power-controlled-diffusion", plan)
    assert algorithm.is_as_proved
    assert algorithm.settings["publish"] == "average"


def test_a_negative_factor_is_refused(plan: mc.Plan) -> None:
    with pytest.raises(mc.Error, match="step_factor is -1") as raised:
        mc.power_controlled_diffusion(plan, step_factor=-1.0)
    assert "above 0" in raised.value.hint
