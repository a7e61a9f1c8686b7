"""A plan calls its number a certificate only where a run of the same file would."""

import json
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.nominal import why_nominal
from tests.cli.test_plan import run

UNPROMISED = {
    "unclipped": ("problem.clipping=none", "gradients are not clipped"),
    "noiseless": ("algorithm.name=noiseless", "no noise is sent"),
    "weak links": ("algorithm.name=mped2fl", "carry no noise"),
    "own point": ("algorithm.gradient_at=own", "mixed point"),
    "clipped by node": ("problem.clipping=node", "every example's gradient clipped"),
    "trusted server": ("algorithm.name=central-dp", "trusted server"),
    "nothing sent": ("algorithm.name=local-only", "sends nothing"),
}


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Unit record on an asymmetric network, planned without loading data."""
    path = tmp_path / "digits.toml"
    path.write_text(experiment_files.example("digits"))
    return path


def planned(path: Path, *sets: str) -> tuple[dict[str, Any], str]:
    options = [word for one in (*sets, "schedule.epochs=5") for word in ("--set", one)]
    result, shown = (run("plan", path, "--collusion", "all", *options, *more) for more in (("--json",), ()))
    assert result.returncode == shown.returncode == 0, result.stderr + shown.stderr
    values: dict[str, Any] = json.loads(result.stdout)
    return values, " ".join(shown.stdout.split())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", UNPROMISED)
def test_where_nothing_is_promised_the_plan_says_nominal(digits: Path, case: str) -> None:
    changed, reason = UNPROMISED[case]
    values, shown = planned(digits, changed)
    assert values["certificate"] is None
    assert reason in values["nominal"]["reason"]
    assert len(values["nominal"]["mu"]) == len(values["nominal"]["epsilon"]) == values["nodes"]
    assert "nominal, worst node" in shown
    assert reason in shown
    for word in ("ertified:", "epsilon certified", "certified, worst", "holds against everybody", "right at most"):
        assert word not in shown


@pytest.mark.parametrize("name", ["power-controlled", "orthogonal"])
def test_where_it_is_promised_the_plan_says_certified(digits: Path, name: str) -> None:
    values, shown = planned(digits, f"algorithm.name={name}", "run.stop_after=3")
    assert values["nominal"] is None
    assert max(values["certificate"]["epsilon"]) == pytest.approx(10, rel=1e-6)
    assert max(values["certificate"]["best_guess"]) == pytest.approx(0.8413, abs=1e-3)
    assert "certified, worst node" in shown
    assert "one record was used" in shown
    assert "84.2 % of the time" in shown
    assert "nominal" not in shown


def test_unclipped_unit_node_is_nominal_too(tmp_path: Path) -> None:
    path = tmp_path / "paper-1.toml"
    path.write_text(experiment_files.example("paper-1"))
    assert planned(path)[0]["certificate"] is None
    assert planned(path, "problem.clipping=node", "algorithm.gradient_at=own")[0]["nominal"] is None


def test_a_plan_and_its_run_ask_the_same_place(digits: Path) -> None:
    for changed, promised in ((["problem.clipping=none"], False), ([], True)):
        overrides = dict(one.split("=") for one in (*changed, "schedule.epochs=3"))
        experiment = experiment_files.load(digits, overrides)
        problem, algorithm = experiment.build(digits.parent)
        reason = why_nominal(experiment, algorithm.plan)
        privacy = mc.run(algorithm, problem).info["privacy"]
        assert (privacy["epsilon"] is not None) == promised == (not reason)
        assert privacy["basis"].startswith(reason)


def test_a_plan_in_python_says_why_its_number_is_nominal() -> None:
    network = mc.Network(gains=mc.gains.paper(1), power=1.0)
    data = mc.datasets.digits().partition("iid", nodes=4)
    rest = mc.Budget(epsilon=1.0), mc.Schedule(epochs=3)
    reasons = [
        mc.plan(network, mc.SoftmaxRegression(data=data, clipping=clipping), *rest).why_nominal
        for clipping in ("none", "node", "example")
    ]
    assert reasons == ["gradients are not clipped", "", ""]
    by_hand = mc.ClippedGradients(clip=1.0, clipping="none")
    assert mc.plan(network, by_hand, *rest).why_nominal == "gradients are not clipped"
