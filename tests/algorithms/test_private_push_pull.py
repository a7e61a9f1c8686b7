"""Push-pull under noise: two forms, their words, weights and noise."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, carried, noise_in, setup_of, words_of
from tests.algorithms.networks import NODES, column_weights, one_way, row_weights
from tests.algorithms.test_subgradient_push import ACCESS

DRAWS = {
    "push-pull": ("noise: normal of a node", "noise: noise of model again, 0 epochs ago"),
    "ab": ("none", "noise: normal of a node"),
}


@pytest.mark.parametrize("form", DRAWS)
@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_forms_differ_in_where_noise_is_drawn(form: Any, access: Any, kind: str, uses: int) -> None:
    algorithm = mc.private_push_pull(setup_of(one_way()), form=form, access=access)
    model, tracker = DRAWS[form]
    channels = {"model_channel": kind, "tracker_channel": kind}
    assert words_of(algorithm) == channels | {"model_draws": model, "tracker_draws": tracker}
    assert algorithm.channel_uses == 2 * uses
    assert (algorithm.settings["form"], algorithm.settings["access"]) == (form, access)


@pytest.mark.parametrize("form", DRAWS)
def test_both_forms_need_the_same_noise(form: Any) -> None:
    algorithm = mc.private_push_pull(setup_of(one_way(), unit="record"), form=form)
    expected = 2 * CLIP / np.array(EXAMPLES) * np.sqrt(EPOCHS) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    np.testing.assert_allclose(algorithm.rounds[1].sending.noise[0], expected, rtol=1e-9)  # nothing is divided


@pytest.mark.parametrize("form", DRAWS)
def test_models_go_by_rows_and_trackers_by_columns(form: Any) -> None:
    algorithm = mc.private_push_pull(setup_of(one_way()), form=form)
    np.testing.assert_allclose(carried(algorithm, 0), row_weights(one_way()), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(carried(algorithm, 1), column_weights(one_way()), rtol=1e-12, atol=1e-15)


def test_models_step_before_they_are_sent_or_after() -> None:
    setup = setup_of(one_way(), decay="constant")
    before, after = (mc.private_push_pull(setup, form=form, step_factor=[2.0] * NODES) for form in ("push-pull", "ab"))
    np.testing.assert_allclose(before.rounds[0].sending.step, 0.4, rtol=1e-14)
    np.testing.assert_array_equal(before.rounds[1].receiving.step, 0)
    assert "step" not in after.rounds[0].sending._fields
    np.testing.assert_allclose(after.rounds[1].receiving.step, 0.4, rtol=1e-14)
