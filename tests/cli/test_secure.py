"""Secure noise through the real commands."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.result import load_run
from tests.cli.test_run import DIGITS, NETWORK
from tests.commands import COMMAND, refused, run, wait_for

SECURE = ("--set", "privacy.noise_source=secure", "--set", "run.precision=float64", "--set", "run.seeds=1")
TINY = f"""{NETWORK}z = "perron"
[privacy]
epsilon = 10.0
noise_source = "secure"
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 3000000
[run]
precision = "float64"
"""


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "digits.toml"
    path.write_text(DIGITS)
    return path


def test_plan_run_and_certify(digits: Path, tmp_path: Path) -> None:
    shown = run("plan", str(digits), *SECURE, cwd=tmp_path)
    assert "Noise    secure: discrete Gaussian on a grid" in shown.stdout
    assert "a run of this file is refused" not in shown.stdout
    plans = [json.loads(run("plan", str(digits), *more, "--json", cwd=tmp_path).stdout) for more in (SECURE, ())]
    assert [plan["noise_source"] for plan in plans] == ["secure", "seeded"]
    for plan in plans:
        assert np.allclose(plan["certificate"]["epsilon"], 10)
    assert (np.array(plans[0]["noise_to_step"]) > np.array(plans[1]["noise_to_step"])).all()
    trained = run("run", str(digits), *SECURE, "--out", "secure", cwd=tmp_path)
    assert "only the certificate is claimed" in trained.stdout
    assert "discrete Gaussian's bound" in trained.stdout
    stated = json.loads((tmp_path / "secure" / "run.json").read_text())
    assert stated["privacy"]["noise_source"] == "secure"
    certified = run("certify", "secure", cwd=tmp_path)
    assert "Verdict  kept: epsilon 10 at delta 1e-05" in certified.stdout
    assert "only the certificate is claimed" in certified.stdout
    assert "the seed is known" not in certified.stdout
    outcome = json.loads((tmp_path / "secure" / "certificate.json").read_text())
    assert np.allclose(outcome["mu"], plans[0]["certificate"]["mu"])
    ledger = load_run(tmp_path / "secure").ledger
    assert (np.frexp(ledger["model_sending_spacing"])[0] == 0.5).all()


def test_what_is_refused_says_how_it_would_work(digits: Path, tmp_path: Path) -> None:
    only = ("--set", "privacy.noise_source=secure")
    assert "float64" in refused(run("run", str(digits), *only, cwd=tmp_path))
    warned = run("plan", str(digits), *only, cwd=tmp_path).stdout
    assert 'secure noise needs run.precision = "float64": a run of this file is refused' in " ".join(warned.split())
    assert "power-controlled" in refused(
        run("run", str(digits), *SECURE, "--set", "algorithm.name=mped2fl", cwd=tmp_path)
    )
    assert "checkpoint" in refused(run("run", str(digits), *SECURE, "--set", "run.checkpoint_every=2", cwd=tmp_path))
    assert "one seed" in refused(run("run", str(digits), *SECURE, "--seeds", "2", cwd=tmp_path))
    warned = run("plan", str(digits), *SECURE, "--set", "run.seeds=[4,5]", cwd=tmp_path).stdout
    assert "secure noise is for one seed: a run of this file is refused" in " ".join(warned.split())
    assert "cannot be resumed" in refused(run("run", str(digits), *SECURE, "--resume", cwd=tmp_path))
    assert not (tmp_path / "runs").exists()
    assert "noise_source" in refused(run("plan", str(digits), "--set", "privacy.noise_source=dice", cwd=tmp_path))


@pytest.mark.slow
def test_a_stopped_run_leaves_nothing_to_go_on_from(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    running = subprocess.Popen(
        [str(COMMAND), "run", "tiny.toml"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = tmp_path / "runs" / "tiny"
    wait_for(folder, running)
    time.sleep(6)
    os.kill(running.pid, signal.SIGINT)
    _, words = running.communicate()
    assert running.returncode != 0
    assert "Traceback" not in words
    assert "counts as the whole plan" in words
    assert sorted(path.name for path in folder.iterdir()) == ["experiment.toml"]


def test_a_stopped_run_is_told_from_a_folder_that_is_none(tmp_path: Path) -> None:
    """With secure noise no checkpoint tells of it, but its experiment does."""
    (tmp_path / "experiment.toml").write_text("[run]\n")
    done = run("certify", tmp_path)
    assert done.returncode == 2
    assert "counts as the whole plan" in done.stderr
    assert "--resume" not in done.stderr


def test_too_little_noise_is_refused_before_training(tmp_path: Path) -> None:
    built = mc.Quadratic.random(3, dim=3, seed=1)
    schedule = mc.Schedule(epochs=60, step=0.1, noise_timing="aligned", noise_to_step=2.0)
    budget = mc.Budget(epsilon=1e4, target="per-epoch", noise_source="secure")
    plan = mc.plan(mc.topologies.ring(3, seed=1), built, budget, schedule)
    assert np.isinf(plan.certificate.epsilon).any()
    with pytest.raises(mc.Error, match="bounds nothing"):
        mc.run(mc.power_controlled(plan), built, precision="float64", options=mc.RunOptions(folder=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
