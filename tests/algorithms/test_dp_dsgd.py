"""Private decentralised gradient descent: its noise in closed form."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, carried, noise_in, setup_of, words_of
from tests.algorithms.networks import two_way


def by_hand(timing: str, decay: str, factor: float = 1.0) -> float:
    """sqrt(sum over t < T of (gamma_t / std_t+1)^2), epoch by epoch."""
    power = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}[decay]
    total = 0.0
    for epoch in range(1, EPOCHS):
        step = 0.2 / epoch**power
        std = 0.2 / (epoch + 1) ** power if timing == "paper" else step
        total += (factor * step / std) ** 2
    return float(np.sqrt(total))


@pytest.mark.parametrize("decay", ["constant", "sqrt", "linear"])
@pytest.mark.parametrize("timing", ["paper", "aligned", "quiet-start"])
def test_noise_is_the_closed_form(timing: Any, decay: Any) -> None:
    algorithm = mc.dp_dsgd(setup_of(noise_timing=timing, decay=decay, unit="record"))
    expected = 2 * CLIP / np.array(EXAMPLES) * by_hand(timing, decay) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    schedule = algorithm.rounds[0].sending.schedule
    assert (schedule[0] == 0) == (timing == "quiet-start")
    assert (schedule[1:] > 0).all()


def test_longer_steps_need_as_much_more_noise() -> None:
    one, other = (mc.dp_dsgd(setup_of(), step_factor=factor) for factor in (1.0, 5.0))
    np.testing.assert_allclose(noise_in(other), 5 * noise_in(one), rtol=1e-12)
    np.testing.assert_allclose(noise_in(other), 2 * CLIP * by_hand("aligned", "sqrt", 5.0) / allowed_mu(), rtol=1e-9)
    assert other.settings["step_factor"] == 5.0


@pytest.mark.parametrize("access", ["air", "orthogonal", "slots"])
@pytest.mark.parametrize("publish", ["last", "average"])
def test_neither_weights_nor_access_nor_what_is_published_costs_anything(access: Any, publish: Any) -> None:
    weights: Any = "sinkhorn" if access == "air" else "metropolis"
    algorithm = mc.dp_dsgd(setup_of(), weights=weights, access=access, publish=publish)
    np.testing.assert_allclose(noise_in(algorithm), noise_in(mc.dp_dsgd(setup_of())), rtol=1e-14)
    kind = {"air": "air", "orthogonal": "links", "slots": "slots"}[access]
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "noise: normal of a node"}
    assert (algorithm.settings["weights"], algorithm.settings["publish"]) == (weights, publish)


def test_the_first_message_carries_nothing_and_the_last_gradient_is_never_sent() -> None:
    (part,) = mc.dp_dsgd(setup_of(noise_timing="paper")).releases
    assert part.ratio.shape == (EPOCHS, 5)
    np.testing.assert_array_equal(part.ratio[0], 0)
    assert (part.ratio[1:] > 0).all()


def test_sinkhorns_weights_are_carried_out_and_doubly_stochastic() -> None:
    weights = carried(mc.dp_dsgd(setup_of()))
    np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=1e-10)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-10)
    assert ((weights - np.diag(np.diag(weights)) > 0) == (two_way().gains.toarray() > 0).T).all()
