"""What plan, run, certify and compare print beside an epsilon."""

import json
from pathlib import Path

import pytest

from murmurcast.experiments import load as experiment_files
from tests.cli.test_plan import run

SETS = ("--set", "privacy.epsilon=1.00049", "--set", "schedule.epochs=3", "--seeds", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words")
    (path / "digits.toml").write_text(experiment_files.example("digits"))
    return path


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """What a run prints whose epsilon is a little above 1."""
    done = run("run", "digits.toml", *SETS, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_rounds_up_and_says_what_it_means_and_covers(printed: str) -> None:
    assert "epsilon 1.001, delta 1e-05: certificate" in printed
    assert "Means    whoever guesses whether one record was used" in printed
    assert "55.4 % of the time" in printed  # Phi(0.268 / 2) = 0.5533...
    assert "no noise covers own models" in printed


@pytest.mark.usefixtures("printed")
def test_certify_says_it_too_and_asks_how_settings_were_chosen(folder: Path) -> None:
    done = run("certify", "runs/digits", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "kept: epsilon 1.001 at delta 1e-05" in done.stdout
    assert "55.4 % of the time" in done.stdout
    assert "Chosen   settings: not stated" in done.stdout
    assert 'warning: run "digits" does not state how its settings were chosen' in done.stdout
    kept = json.loads((folder / "runs/digits/certificate.json").read_text())
    assert kept["settings_chosen"] == "not stated"
    assert kept["warnings"][0].startswith('run "digits" does not state')
    assert max(kept["best_guess"]) == pytest.approx(0.5533, abs=1e-4)


@pytest.mark.usefixtures("printed")
@pytest.mark.slow
def test_compare_shows_an_epsilon_beside_published_models_only(folder: Path) -> None:
    own = run("compare", "runs/digits", cwd=folder)
    published = run("compare", "runs/digits", "--metric", "published_accuracy", cwd=folder)
    assert "1.01 (record)" in published.stdout
    assert "epsilon" not in own.stdout.split("spread: standard deviation")[0]
    assert "--metric published_accuracy" in own.stdout
    rows = json.loads(run("compare", "runs/digits", "--json", cwd=folder).stdout)["runs"]
    assert "epsilon" not in rows[0]


@pytest.mark.slow
def test_a_run_that_protects_nobody_is_warned_about(folder: Path) -> None:
    sets = ("--set", "privacy.epsilon=5000", "--set", "privacy.delta=0.5", "--set", "schedule.epochs=2", "--seeds", "1")
    done = run("run", "digits.toml", *sets, "--out", "runs/empty", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "warning: delta without meaning: 0.5" in done.stdout
    assert "warning: epsilon without meaning" in done.stdout
    certified = run("certify", "runs/empty", cwd=folder).stdout
    assert "warning: delta without meaning" in certified
    assert "warning: epsilon without meaning" in certified


def test_a_clip_that_float32_cannot_keep_is_refused(folder: Path) -> None:
    done = run("run", "digits.toml", "--set", "privacy.clip=1e-24", "--out", "runs/tiny", cwd=folder)
    assert done.returncode == 2
    assert "error: clip is 1e-24, and float32 can clip 650 parameters to" in done.stderr
    assert not (folder / "runs/tiny").exists()
    planned = run("plan", "digits.toml", "--set", "privacy.clip=1e-24", "--set", "problem.dim=650", cwd=folder)
    assert "float32 cannot clip to 1e-24" in " ".join(planned.stdout.split())
