"""Schedules: steps and the noise that follows them, epoch by epoch."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Infeasible
from tests.algorithms.networks import NODES, two_way
from tests.conftest import asymmetric_network

EXPONENT: dict[Any, float] = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}


@pytest.mark.parametrize("decay", EXPONENT)
def test_steps_and_noise_written_out(decay: Any) -> None:
    steps = [0.3 / epoch ** EXPONENT[decay] for epoch in range(1, 8)]
    given: dict[str, Any] = {"epochs": 7, "step": 0.3, "decay": decay}
    np.testing.assert_allclose(mc.Schedule(**given).steps, steps, rtol=1e-14)
    np.testing.assert_allclose(mc.Schedule(**given).noise_schedule, steps, rtol=1e-14)
    aligned = mc.Schedule(**given, noise_timing="aligned")
    np.testing.assert_allclose(aligned.noise_schedule, [steps[0], *steps[:-1]], rtol=1e-14)
    quiet = mc.Schedule(**given, noise_timing="quiet-start")
    np.testing.assert_allclose(quiet.noise_schedule, [0.0, *steps[:-1]], rtol=1e-14)
    np.testing.assert_allclose(quiet.steps, steps, rtol=1e-14)


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"noise_timing": "quiet-stat"}, 'noise_timing is "quiet-stat"', 'did you mean "quiet-start"'),
        ({"noise_timing": "late"}, 'noise_timing is "late"', "known here: aligned, paper, quiet-start"),
        ({"decay": "root"}, 'decay is "root"', "known here: constant, linear, sqrt"),
        ({"noise_to_step": "automatic"}, 'noise_to_step is "automatic"', '"auto"'),
        ({"noise_to_step": (1.0, 0.0)}, r"noise_to_step\[1\] is 0", "above 0"),
        ({"step": 0.0}, "step is 0", "above 0"),
        ({"epochs": 1}, "epochs is 1", "raise epochs"),
        ({"epochs": 10_000_001}, "more than 10000000", "lower schedule.epochs"),
    ],
)
def test_bad_schedules_are_refused(given: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        mc.Schedule(**{"epochs": 5, **given})
    assert hint in raised.value.hint


def setup_of(timing: Any) -> mc.Setup:
    return mc.Setup(
        network=two_way(),
        problem=mc.ClippedGradients(clip=0.8),
        budget=mc.Budget(epsilon=3.0),
        schedule=mc.Schedule(epochs=6, step=0.1, noise_timing=timing),
    )


@pytest.mark.parametrize("make", [mc.dp_dsgd, mc.subgradient_push_gaussian, mc.muffliato, mc.mafalda, mc.decor])
def test_a_quiet_start_is_free_where_the_first_message_carries_nothing(make: Any) -> None:
    loud, quiet = (make(setup_of(timing)) for timing in ("aligned", "quiet-start"))
    for before, after in zip(loud.releases, quiet.releases, strict=True):
        np.testing.assert_array_equal(after.ratio, before.ratio)
    assert quiet.rounds[0].sending.schedule[0] == 0
    assert loud.rounds[0].sending.schedule[0] > 0


def test_a_quiet_start_is_refused_where_the_first_message_carries_a_gradient() -> None:
    """DWFL steps before it sends; no noise hides that."""
    gains = np.array([[0.9], [0.5], [0.7], [1.1], [0.6]]) * (1 - np.eye(NODES))
    schedule = mc.Schedule(epochs=6, step=0.1, noise_timing="quiet-start")
    setup = mc.Setup(
        network=mc.Network(gains=gains),
        problem=mc.ClippedGradients(clip=0.8),
        budget=mc.Budget(epsilon=3.0),
        schedule=schedule,
    )
    with pytest.raises(Infeasible, match="a noise schedule of 0") as raised:
        mc.dwfl(setup, headroom=0.7, publish_from="heard")
    assert 'noise_timing = "aligned"' in raised.value.hint
    assert raised.value.smallest_epsilon == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_with_a_quiet_start_sends_only_models_first(seed: int) -> None:
    schedule = mc.Schedule(epochs=6, step=0.1, noise_timing="quiet-start")
    plan = mc.plan(asymmetric_network(seed, 5), mc.ClippedGradients(dim=3), mc.Budget(epsilon=3.0), schedule)
    np.testing.assert_array_equal(plan.noise_std[0], 0)
    np.testing.assert_array_equal(plan.effective_noise[0], 0)
    assert (plan.effective_noise[1:] > 0).all()
    assert np.isfinite(plan.certificate.mu).all()
    power = plan.sent_power()
    assert power is not None
    np.testing.assert_array_equal(power.smallest, 0)
