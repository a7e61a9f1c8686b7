"""Exact diffusion under noise: nu in closed form, and the tables it shares with the plain form."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.networks import one_way
from tests.algorithms.test_dsgd import BY_ACCESS
from tests.algorithms.test_private_frost import SCHEDULES


@pytest.mark.parametrize("weights", ["sinkhorn", "row"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_noise_is_in_units_of_gradients(weights: Any, schedule: dict[str, Any]) -> None:
    """nu = S sqrt(T)/mu, neither divided by D nor moved by the schedule of any other noise."""
    algorithm = mc.private_exact_diffusion(setup_of(unit="record", **schedule), weights=weights, step_factor=3.0)
    expected = 2 * CLIP / np.array(EXAMPLES) * np.sqrt(EPOCHS) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    np.testing.assert_allclose(algorithm.releases[0].ratio, allowed_mu() / np.sqrt(EPOCHS), rtol=1e-9)


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
def test_all_but_the_noise_is_the_plain_form(access: Any, kind: str, uses: int) -> None:
    plain, private = (make(setup_of(), access=access) for make in (mc.exact_diffusion, mc.private_exact_diffusion))
    assert words_of(private) == {"model_channel": kind, "model_draws": "noise: normal of a node"}
    assert private.channel_uses == plain.channel_uses == uses
    assert private.settings == plain.settings
    for name in ("amplitude", "step"):
        expected = getattr(plain.rounds[0].sending, name)
        np.testing.assert_array_equal(getattr(private.rounds[0].sending, name), expected)
    for expected, table in zip(plain.rounds[0].receiving, private.rounds[0].receiving, strict=True):
        np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("weights", ["sinkhorn", "max-degree", "metropolis"])
def test_one_way_links_are_refused(weights: Any) -> None:
    with pytest.raises(mc.Error, match="two-way links"):
        mc.private_exact_diffusion(setup_of(one_way()), weights=weights, access="orthogonal")


def test_metropolis_hears_neighbours_apart() -> None:
    with pytest.raises(mc.Error, match="cannot be made by one multicast"):
        mc.private_exact_diffusion(setup_of(), weights="metropolis")
    algorithm = mc.private_exact_diffusion(setup_of(), weights="metropolis", access="slots")
    assert algorithm.settings["weights"] == "metropolis"
    np.testing.assert_array_equal(noise_in(algorithm), noise_in(mc.private_exact_diffusion(setup_of())))
