"""FROST under noise: nu in closed form, and how z carries it into trackers."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.tables import row_of
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.networks import NODES, one_way, row_weights
from tests.algorithms.test_subgradient_push import ACCESS
from tests.certificates.ledger_edits import caught, with_ledger

FACTORS = [1.0, 0.5, 2.0, 0.25, 1.0 / 3]
SCHEDULES: list[dict[str, Any]] = [
    {"decay": "constant"},
    {"decay": "linear", "noise_timing": "paper"},
    {"step": 3.0, "noise_timing": "quiet-start"},
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_noise_is_in_units_of_gradients_whatever_the_schedule(schedule: dict[str, Any]) -> None:
    """nu = S sqrt(T)/mu: every message carries one new gradient, the first included."""
    algorithm = mc.private_frost(setup_of(one_way(), unit="record", **schedule))
    expected = 2 * CLIP / np.array(EXAMPLES) * np.sqrt(EPOCHS) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    assert (algorithm.releases[0].ratio[0] > 0).all()


def test_noise_is_divided_by_the_z_of_its_gradient() -> None:
    algorithm = mc.private_frost(setup_of(one_way()))
    tracker, epochs = algorithm.rounds[1], np.arange(1, EPOCHS + 1)
    weights = row_weights(one_way())
    z = np.array([np.diag(np.linalg.matrix_power(weights, epoch)) for epoch in range(EPOCHS + 1)])
    nu = 2 * CLIP * np.sqrt(EPOCHS) / allowed_mu()
    np.testing.assert_allclose(row_of(tracker.sending.noise, epochs), nu / z[:-1], rtol=1e-9)
    np.testing.assert_allclose(row_of(tracker.receiving.z, epochs), z[:-1], rtol=1e-12)
    np.testing.assert_allclose(row_of(tracker.receiving.next_z, epochs), z[1:], rtol=1e-12)


@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_two_messages_of_which_one_has_noise(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.private_frost(setup_of(one_way()), access=access)
    draws = {"model_draws": "none", "tracker_draws": "noise: normal of a node"}
    assert words_of(algorithm) == {"model_channel": kind, "tracker_channel": kind} | draws
    assert algorithm.channel_uses == 2 * uses
    assert algorithm.settings == {"access": access, "step_factor": 1.0, "publish": "last"}


def test_nodes_may_take_steps_of_their_own() -> None:
    algorithm = mc.private_frost(setup_of(one_way(), decay="constant"), step_factor=FACTORS)
    step = algorithm.rounds[1].receiving.step
    assert step.shape == (EPOCHS, NODES)
    np.testing.assert_allclose(step, np.tile(0.2 * np.array(FACTORS), (EPOCHS, 1)), rtol=1e-14)
    np.testing.assert_allclose(noise_in(algorithm), noise_in(mc.private_frost(setup_of(one_way()))), rtol=1e-14)
    words = algorithm.settings["step_factor"]
    assert isinstance(words, str)
    assert [float(word) for word in words.split()] == FACTORS  # to the last digit


def test_a_ledger_without_its_second_round_is_refused() -> None:
    """Nothing of it is left: neither its tables nor its name."""
    problem = mc.Quadratic.random(NODES, 3, clip=CLIP)
    setup = mc.Setup(network=one_way(), problem=problem, budget=mc.Budget(epsilon=5.0), schedule=mc.Schedule(epochs=4))
    run = mc.run(mc.private_frost(setup), problem)
    assert mc.certify(run).verdict == "kept"
    kept = run.ledger.drop_vars([name for name in run.ledger.variables if str(name).startswith("tracker_")])
    kept.attrs = {name: value for name, value in kept.attrs.items() if not name.startswith("tracker_")}
    kept.attrs["rounds"] = "model"
    for cut in (kept, kept.assign(promised_mu=kept["promised_mu"] * 0)):
        assert caught(with_ledger(run, cut, rounds=["model"]))
