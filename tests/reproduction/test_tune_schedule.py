"""The schedule of the certified setting is chosen on public data."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from murmurcast.data import datasets
from murmurcast.data.base import Dataset
from murmurcast.reproduction import tune_schedule
from murmurcast.reproduction.settings import CERTIFIED_STEPS, OURS, settings
from murmurcast.reproduction.tune_schedule import Choice


def test_the_data_that_is_protected_is_never_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def protected(**_: object) -> Dataset:
        raise AssertionError("a schedule must not be chosen on MNIST: that would cost privacy")

    seen = []

    def judged(data: Dataset, candidate: Choice) -> Choice:
        seen.append(data.name)
        wanted = (candidate.decay, candidate.clip, candidate.step) == ("sqrt", 1.0, 5.3794)
        return candidate._replace(accuracy=0.9 if wanted else 0.5)

    public = replace(datasets.digits(), name="fashion-mnist")
    monkeypatch.setattr(datasets, "mnist", protected)
    monkeypatch.setattr(datasets, "fashion_mnist", lambda: public)
    monkeypatch.setattr(tune_schedule, "tried", judged)
    tune_schedule.main()
    assert set(seen) == {"fashion-mnist"}
    assert len(seen) == 24 + 2 * 4 + 3 * 5
    assert "epsilon 1, 100 epochs, sqrt step 5.3794, clip 1: 0.9000" in capsys.readouterr().out.split("Chosen")[1]


def test_the_public_data_are_cut_as_the_protected_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "fashion_mnist", datasets.digits)
    data, expected = tune_schedule.public_data(), datasets.digits().split(0.2, 0)
    np.testing.assert_array_equal(data.features, expected.features)
    np.testing.assert_array_equal(data.test_targets, expected.test_targets)


def test_the_most_accurate_is_taken_and_the_first_of_equals() -> None:
    tries = [Choice("power-controlled", 1.0, 100, "constant", 1.0, step, 0.8 + 0.1 * (step > 1)) for step in (1, 2, 4)]
    assert tune_schedule.best(iter(tries)) == tries[1]


def test_all_candidates_travel_as_far_whatever_their_clip_and_decay() -> None:
    result = tune_schedule.candidates()
    assert len(set(result)) == len(result) == 24
    for decay, epochs in product(("constant", "sqrt"), (100,)):
        steps = 1 / np.sqrt(np.arange(1, epochs + 1)) if decay == "sqrt" else np.ones(epochs)
        alike = [one for one in result if (one.decay, one.epochs) == (decay, epochs)]
        lengths = sorted(one.step * steps.sum() * one.clip for one in alike)
        assert lengths == pytest.approx(np.repeat([50.0, 100.0, 200.0, 400.0], 3), rel=1e-3)


def test_what_is_run_is_among_what_was_tried() -> None:
    tried = {(one.epochs, one.decay, one.clip) for one in tune_schedule.candidates()}
    for setting in settings("mnist", 5):
        if setting.group == "certified":
            experiment, schedule = setting.experiment, setting.experiment.schedule
            assert (schedule.epochs, schedule.decay, experiment.privacy.clip) in tried
            assert schedule.step == CERTIFIED_STEPS[setting.algorithm][setting.epsilon]
            assert (schedule.noise_timing, experiment.network.z) == ("aligned", "perron")
    [at_one] = [s.experiment for s in settings("mnist", 5) if s.name == f"certified-{OURS}-1"]
    steps = [
        one.step for one in tune_schedule.candidates() if (one.epochs, one.decay, one.clip) == (100, "constant", 1.0)
    ]
    assert at_one.schedule.step in steps


def test_a_candidate_gets_its_accuracy() -> None:
    data = datasets.digits().split(0.2, 0)
    tight, loose = (
        tune_schedule.tried(data, Choice("power-controlled", epsilon, 30, "constant", 1.0, 1.0))
        for epsilon in (0.1, 100.0)
    )
    assert 0 <= tight.accuracy < loose.accuracy - 0.2 <= 1
    assert loose._replace(accuracy=0.0) == Choice("power-controlled", 100.0, 30, "constant", 1.0, 1.0, 0.0)
