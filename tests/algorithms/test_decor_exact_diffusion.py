"""Exact diffusion with noise that cancels between neighbours: scales by an explicit covariance, and words."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Infeasible
from murmurcast.privacy.conversion import mu_of
from tests.algorithms.calibrated import CLIP, EPOCHS, allowed_mu, setup_of, words_of
from tests.algorithms.networks import NODES, two_way
from tests.algorithms.test_decor import inverse_by_hand
from tests.algorithms.test_dsgd import BY_ACCESS

LINKS = two_way().gains.toarray() > 0


@pytest.mark.parametrize("weights", ["sinkhorn", "row"])
@pytest.mark.parametrize("shared_to_own", [1.0, 10.0])
def test_the_scale_is_that_of_the_node_that_is_hidden_least(weights: Any, shared_to_own: float) -> None:
    """In units of gradients: neither steps, nor D, nor the schedule of other noise is in it."""
    setup = setup_of(noise_timing="paper", decay="linear")
    algorithm = mc.decor_exact_diffusion(setup, weights=weights, shared_to_own=shared_to_own, step_factor=4.0)
    hidden = np.sqrt(inverse_by_hand(shared_to_own, LINKS))
    expected = 2 * CLIP * np.sqrt(EPOCHS) * hidden.max() / allowed_mu()
    sending = algorithm.rounds[0].sending
    np.testing.assert_allclose(sending.own[0], expected, rtol=1e-9)
    np.testing.assert_allclose(sending.shared[0], shared_to_own * expected, rtol=1e-9)
    cost = {part.against: mu_of(part) for part in algorithm.releases}
    np.testing.assert_allclose(cost["eavesdropper"], allowed_mu() * hidden / hidden.max(), rtol=1e-9)
    np.testing.assert_allclose(cost["everybody"], allowed_mu() / hidden.max(), rtol=1e-9)


@pytest.mark.parametrize("against", ["eavesdropper", "eavesdropper and one node", "everybody"])
def test_the_budget_is_about_whom_it_says(against: Any) -> None:
    algorithm = mc.decor_exact_diffusion(setup_of(), against=against, shared_to_own=2.0)
    cost = {part.against: mu_of(part).max() for part in algorithm.releases}
    assert list(cost) == ["everybody", "eavesdropper and one node", "eavesdropper"]
    assert cost[against] == pytest.approx(allowed_mu(), rel=1e-9)
    assert sorted(cost.values(), reverse=True) == list(cost.values())
    assert algorithm.settings["against"] == against


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
def test_all_but_the_noise_is_the_plain_form(access: Any, kind: str, uses: int) -> None:
    plain = mc.exact_diffusion(setup_of(), access=access)
    algorithm = mc.decor_exact_diffusion(setup_of(), access=access)
    pairs = "own: normal of a node; shared: normal of a pair with opposite signs"
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": pairs}
    assert algorithm.channel_uses == uses
    assert algorithm.settings == {"against": "eavesdropper", "shared_to_own": 10.0, **plain.settings}
    np.testing.assert_array_equal(algorithm.rounds[0].sending.step, plain.rounds[0].sending.step)
    for expected, table in zip(plain.rounds[0].receiving, algorithm.rounds[0].receiving, strict=True):
        np.testing.assert_array_equal(table, expected)


def test_given_noise_that_is_too_little_names_an_epsilon_that_works() -> None:
    with pytest.raises(Infeasible, match="costs node") as raised:
        mc.decor_exact_diffusion(setup_of(noise_to_step=0.1))
    again = mc.decor_exact_diffusion(setup_of(noise_to_step=0.1, epsilon=raised.value.smallest_epsilon))
    np.testing.assert_array_equal(again.rounds[0].sending.own[0], np.full(NODES, 0.1))
