"""The schedule of the certified setting is chosen without the test part."""

from itertools import product

import numpy as np
import pytest

from murmurcast.data import datasets
from murmurcast.reproduction import tune_schedule
from murmurcast.reproduction.settings import CERTIFIED_STEPS, OURS, settings
from murmurcast.reproduction.tune_schedule import Choice


def test_the_test_part_is_never_looked_at() -> None:
    whole = datasets.digits().split(0.2, 0)
    cut = tune_schedule.held_back(whole)
    parts = [{row.tobytes() for row in part} for part in (cut.features, cut.test_features, whole.test_features)]
    learn, judge, test = parts
    known = {row.tobytes() for row in whole.features}
    assert learn | judge == known
    # A few digits are the same picture; a row of the test part that is no training row must not turn up.
    assert not (learn | judge) & (test - known)
    assert len(cut.features) + len(cut.test_features) == len(whole.features)
    assert len(cut.test_features) == pytest.approx(0.2 * len(whole.features), abs=1)
    np.testing.assert_array_equal(np.sort(np.append(cut.targets, cut.test_targets)), np.sort(whole.targets))


def test_of_those_close_to_the_best_the_shortest_is_taken() -> None:
    def choice(epochs: int, accuracy: float) -> Choice:
        return Choice("power-controlled", 1.0, epochs, "constant", 1.0, 1.0, accuracy)

    tries = [choice(200, 0.9), choice(100, 0.8985), choice(100, 0.899), choice(100, 0.897)]
    assert tune_schedule.best(tries) == tries[2]
    assert tune_schedule.best([tries[0], tries[3]]) == tries[0]


def test_all_candidates_travel_as_far_whatever_their_clip_and_decay() -> None:
    found = tune_schedule.candidates()
    assert len(set(found)) == len(found) == 48
    for decay, epochs in product(("constant", "sqrt"), (100, 200)):
        steps = 1 / np.sqrt(np.arange(1, epochs + 1)) if decay == "sqrt" else np.ones(epochs)
        alike = [one for one in found if (one.decay, one.epochs) == (decay, epochs)]
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
    data = tune_schedule.held_back(datasets.digits().split(0.2, 0))
    tight, loose = (
        tune_schedule.tried(data, Choice("power-controlled", epsilon, 30, "constant", 1.0, 1.0))
        for epsilon in (0.1, 100.0)
    )
    assert 0 <= tight.accuracy < loose.accuracy - 0.2 <= 1
    assert loose._replace(accuracy=0.0) == Choice("power-controlled", 100.0, 30, "constant", 1.0, 1.0, 0.0)
