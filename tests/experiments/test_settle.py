"""Epochs, rounds and step that follow from channel uses and travel, in files and on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.settle import settle
from tests.commands import run as run_command

RING = """
[network]
topology = "ring"
nodes = 12
seed = 3

[privacy]
epsilon = 3.0
unit = "record"
settings_chosen = "fixed beforehand"

[schedule]
{schedule}

[data]
name = "digits"
partition = "sorted"

[run]
seeds = 1
"""


def written(folder: Path, schedule: str, **replaced: str) -> Path:
    text = RING.format(schedule=schedule)
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "ring.toml"
    path.write_text(text)
    return path


def test_uses_become_epochs_and_rounds(tmp_path: Path) -> None:
    experiment = mc.load(written(tmp_path, "uses = 60"))
    assert (experiment.schedule.epochs, experiment.schedule.rounds, experiment.schedule.uses) == (10, 6, None)
    plan = experiment.build_plan()
    assert (plan.schedule.epochs, plan.schedule.rounds) == (10, 6)
    # What is written down chooses nothing anew.
    again = experiment_files.parse(experiment.as_toml().encode(), "experiment.toml")
    assert again.schedule == experiment.schedule == settle(again).schedule


def test_travel_becomes_a_step(tmp_path: Path) -> None:
    experiment = mc.load(written(tmp_path, 'uses = 60\ntravel = 5.0\ndecay = "constant"'))
    assert experiment.schedule.step == pytest.approx(0.5)
    plain = mc.load(written(tmp_path, "epochs = 40\ntravel = 5.0"))
    assert plain.build_plan().schedule.steps.sum() == pytest.approx(5.0)


def test_slots_of_a_radio_count(tmp_path: Path) -> None:
    path = written(tmp_path, "uses = 60")
    path.write_text(path.read_text().replace("seed = 3", "seed = 3\nsize_m = 50.0") + "\n[radio]\n")
    experiment = mc.load(path)
    assert (experiment.schedule.epochs, experiment.schedule.rounds) != (10, 6)
    assert experiment.schedule.epochs * experiment.schedule.rounds <= 60 // 3


@pytest.mark.parametrize(
    ("schedule", "sets", "expected"),
    [
        ("epochs = 40\nrounds = 2", {"schedule.uses": "60"}, (10, 6)),
        ("uses = 60", {"schedule.epochs": "8"}, (8, 1)),
        ("uses = 60", {"schedule.rounds": "3"}, (100, 3)),
        ("uses = 60", {"schedule.uses": "20"}, (10, 2)),
        ("uses = 600", {"schedule.accelerated": "true"}, (100, 6)),
        ("uses = 600", {}, (100, 6)),
        ("uses = 600", {"schedule.accelerated": "false"}, (30, 20)),
        ("uses = 600", {"network.z": "recursive"}, (30, 20)),
    ],
)
def test_what_is_set_replaces_what_is_given_instead(
    tmp_path: Path, schedule: str, sets: dict[str, str], expected: tuple[int, int]
) -> None:
    result = mc.load(written(tmp_path, schedule), sets).schedule
    assert (result.epochs, result.rounds) == expected


def test_rounds_are_accelerated_where_that_is_known_to_help(tmp_path: Path) -> None:
    path = written(tmp_path, "uses = 60")
    assert mc.load(path).schedule.accelerated is True
    assert mc.load(path, {"schedule.accelerated": "false"}).schedule.accelerated is False
    assert mc.load(path, {"network.z": "recursive"}).schedule.accelerated is False
    assert mc.load(path, {"network.topology": "complete"}).schedule.accelerated is False
    assert mc.load(written(tmp_path, "epochs = 60\nrounds = 3")).build_plan().schedule.accelerated is False


def test_with_one_round_nothing_is_accelerated(tmp_path: Path) -> None:
    path = written(tmp_path, "uses = 30\naccelerated = true", ring="complete")
    assert mc.load(path).schedule.accelerated is False


@pytest.mark.parametrize(
    ("schedule", "sets", "says"),
    [
        ("uses = 60\nepochs = 10", {}, "schedule.uses and schedule.epochs"),
        ("uses = 60\nrounds = 2", {}, "schedule.uses and schedule.rounds"),
        ("travel = 6.0\nstep = 1.0", {}, "schedule.travel and schedule.step"),
        ("epochs = 5", {"schedule.uses": "60", "schedule.epochs": "4"}, "schedule.uses and schedule.epochs"),
        ("uses = 1", {}, "two epochs need 2"),
        ("uses = -4", {}, "uses is -4"),
        ("travel = 0.0", {}, "travel is 0"),
        ("uses = 60", {"algorithm.name": "dp-dsgd"}, "dp-dsgd has no such rounds"),
        ("uses = 60", {"privacy.noise_source": "secure"}, "secure noise has no such rounds"),
        ("epochs = 5\naccelerated = true", {}, "there is one"),
        ("uses = 60\naccelerated = true", {"network.z": "recursive"}, "rounds are accelerated"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(
    tmp_path: Path, schedule: str, sets: dict[str, str], says: str
) -> None:
    given = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    done = run_command("plan", str(written(tmp_path, schedule)), *given)
    assert done.returncode == 2
    assert says in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unsettled_experiment_is_not_run() -> None:
    experiment = experiment_files.parse(RING.format(schedule="uses = 60").encode(), "ring.toml")
    with pytest.raises(mc.Error, match="settled"):
        experiment.build_plan()


def test_the_plan_says_what_it_chose(tmp_path: Path) -> None:
    path = written(tmp_path, "uses = 600\naccelerated = true")
    done = run_command("plan", str(path))
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "100 epochs of 6 accelerated rounds" in words
    assert "of a disagreement, those of an epoch" in words
    result: dict[str, Any] = json.loads(run_command("plan", str(path), "--json").stdout)["schedule"]
    assert (result["epochs"], result["rounds"], result["accelerated"]) == (100, 6, True)
    assert result["disagreement_left"]["by_epoch"] <= 0.2 < result["disagreement_left"]["by_round"]


@pytest.mark.slow
def test_such_a_run_is_certified_and_audited(tmp_path: Path) -> None:
    path = written(tmp_path, "uses = 40\naccelerated = true")
    out = tmp_path / "run"
    done = run_command("run", str(path), "--out", str(out))
    assert done.returncode == 0, done.stderr
    kept = run_command("certify", str(out))
    assert kept.returncode == 0, kept.stderr
    assert "kept" in kept.stdout
    assert "uses" not in (out / "experiment.toml").read_text().split("[schedule]")[1].split("[")[0]
