"""The scripts of examples/ run as they stand, and say what they promise to say."""

import os
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from tests import commands

ROOT = Path(__file__).parents[1]
SAYS = {
    "own_network": "certified epsilon of every node: [1. 1. 1. 1.]",
    "own_data": "certify says: kept",
    "own_method": "kept: epsilon 8, tier 1",
    "own_model": "certify says: kept epsilon 8",
    "own_channel": "fading, with receiver noise: ",
    "equinox_model": "certify says: kept epsilon 8",
    "torch_model": "certify says: kept epsilon 8",
}
NEEDS_TORCH = {"torch_model"}  # which `make test-torch` installs
NEEDS_MORE = {"ray_tracer"}  # than is installed here
TRIED_ELSEWHERE = {"tensorboard_log"}  # in test_loggers.py
TAKES_MINUTES = {"radio_plots"}  # unless it is asked to be quick


def call(script: Path, *words: str, folder: Path, path: str = "") -> str:
    done = commands.run_script(script, *words, cwd=folder, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_some_plots_of_a_radio_are_made_quickly(tmp_path: Path) -> None:
    plots = ROOT / "examples" / "radio_plots.py"
    said = call(plots, "--quick", "--out", "plots", "--only", "slots", folder=tmp_path)
    assert "slots on geometric networks of (10, 30) nodes" in said
    assert {path.stem for path in (tmp_path / "plots").glob("*.png")} == {"slots"}


@pytest.mark.slow
def test_all_plots_of_a_radio_are_made(tmp_path: Path) -> None:
    said = call(ROOT / "examples" / "radio_plots.py", "--quick", "--out", "plots", folder=tmp_path)
    assert "dB after aligned; 10 lg d is 9.5 dB" in said
    assert "own slot                 epsilon 2" in said
    assert "reference renewed every 20 epochs: median" in said
    names = {"access", "compensation", "fading", "slots", "time-and-energy"}
    assert {path.stem for path in (tmp_path / "plots").glob("*.png")} == names


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "own_model" else name for name in SAYS]
)
def test_an_example_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    if name in NEEDS_TORCH and find_spec("torchax") is None:
        pytest.skip("make test-torch runs it")
    assert SAYS[name] in call(ROOT / "examples" / f"{name}.py", folder=tmp_path)


def test_every_example_is_tried() -> None:
    tried = set(SAYS) | NEEDS_MORE | TAKES_MINUTES | TRIED_ELSEWHERE
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == tried


def test_the_array_of_a_ray_tracer_becomes_a_channel(tmp_path: Path) -> None:
    """All of the example but the tracing itself, for which nothing is installed."""
    text = (ROOT / "examples" / "ray_tracer.py").read_text()
    assert "Nobody needs to run this" in text
    example = runpy.run_path(str(ROOT / "examples" / "ray_tracer.py"))
    nodes, steps, blocks = len(example["POSITIONS"]), example["STEPS"], len(example["BLOCKS_HZ"])
    rng = np.random.default_rng(3)
    response = rng.normal(size=(nodes, 1, nodes, 1, steps, blocks, 2)) @ [1e-4, 1e-4j]
    channel = example["to_channel"](response)
    assert channel.gains.shape == (steps, nodes, nodes, blocks)
    assert channel.gains[7, 3, 1, 2] == response[1, 0, 3, 0, 7, 2]
    channel.save(tmp_path / "channel.npz")
    read = mc.read_channel(tmp_path / "channel.npz")
    np.testing.assert_array_equal(read.gains, channel.gains)
    assert (read.carrier_hz, read.interval_s) == (example["CARRIER_HZ"], example["INTERVAL_S"])
    assert read.network(power=0.1).links == nodes * (nodes - 1)


def test_a_method_of_ones_own_goes_from_file_to_certificate(tmp_path: Path) -> None:
    """By its name in an experiment file; `certify` asks its account only where it is told to."""
    examples = str(ROOT / "examples")
    text = call(commands.COMMAND, "plan", "--example", "ring", folder=tmp_path)
    (tmp_path / "mine.toml").write_text(text)
    settings = {
        "algorithm.name": "own_method:METHOD",
        "schedule.epochs": "8",
        "problem.kind": "quadratic",
        "problem.dim": "3",
        "privacy.target": "certificate",
        "privacy.unit": "node",
        "schedule.noise_to_step": "auto",
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    call(commands.COMMAND, "run", "mine.toml", *sets, "--out", "run", folder=tmp_path, path=examples)
    own = ("--method", "own_method:METHOD")
    said = call(commands.COMMAND, "certify", "run", *own, folder=tmp_path, path=examples)
    assert "kept: epsilon" in said
    done = commands.run("certify", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "--method" in done.stderr
