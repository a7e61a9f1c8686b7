"""Channels over time in experiment files, through the real entry point: planned with, played back, certified."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.result import load_run
from tests.cli.test_plan import refused, run
from tests.radio.traces import POWER_DBM, STEPS, gains, left_perron, weights_by_hand

EPOCHS, DIM = 8, 4  # two steps are played three times, one twice
TEXT = f"""
[radio]
trace = "channel.npz"
repeat = true
power_dbm = {list(POWER_DBM)}
noise_figure_db = -400.0
self_interference_db = 400.0
duplex = "full"
[privacy]
epsilon = 8.0
clip = 1000.0
[problem]
kind = "quadratic"
dim = {DIM}
radius = 50.0
[schedule]
epochs = {EPOCHS}
step = 0.02
noise_timing = "aligned"
[run]
precision = "float64"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("trace")
    np.savez(built / "channel.npz", gains=gains(), positions=np.arange(10).reshape(5, 2), interval_s=10.0)
    (built / "my.toml").write_text(TEXT)
    for name in ("power-controlled", "noiseless"):
        done = run("run", "my.toml", "--set", f"algorithm.name={name}", "--out", f"runs/{name}", cwd=built)
        assert done.returncode == 0, done.stderr
    return built


def test_a_run_is_the_trace_played_back(folder: Path) -> None:
    """A plain NumPy loop over the file's gains, from i to j; the transposed would give other models."""
    task = mc.Quadratic.random(5, DIM, clip=1e3, ball=50.0)
    power = 10 ** (np.array(POWER_DBM) / 10) / 1000
    outcome = load_run(folder / "runs" / "noiseless").published[0]

    def models(channel: Any) -> Any:
        weights = [weights_by_hand(channel[epoch % STEPS], np.sqrt(power)) for epoch in range(EPOCHS)]
        z, own = left_perron(np.mean(weights, axis=0)), np.zeros((5, DIM))
        for epoch, now in enumerate(weights):
            mixed = now @ own
            gradient = np.einsum("kij,kj->ki", task.curvature, mixed - task.centre)
            own = mixed - 0.02 / np.sqrt(epoch + 1) * gradient / z[:, None]
        return mixed

    np.testing.assert_allclose(outcome, models(gains()), rtol=1e-9, atol=1e-11)
    assert np.abs(outcome - models(gains().swapaxes(1, 2))).max() > 1e-3


def test_the_certificate_is_the_plan_s_and_recomputed(folder: Path) -> None:
    stated = json.loads(run("certify", "runs/power-controlled", "--json", cwd=folder).stdout)
    assert (stated["verdict"], stated["not_compared"]) == ("kept", [])
    np.testing.assert_allclose(stated["epsilon"], 8.0, rtol=1e-6)
    named = json.loads(load_run(folder / "runs" / "power-controlled").ledger.attrs["model_radio"])
    assert named["trace"] == mc.ChannelTrace(gains=gains()).sha256
    assert named["repeat"] is True
    assert not (folder / "runs" / "power-controlled" / "channel.npz").exists()


@pytest.mark.slow
def test_without_the_file_it_is_said_what_was_not_compared(folder: Path, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    shutil.copytree(folder / "runs" / "power-controlled", deep)
    stated = json.loads(run("certify", str(deep), "--json", cwd=tmp_path).stdout)
    assert stated["verdict"] == "kept"
    (line,) = stated["not_compared"]
    assert "channel.npz" in line
    assert mc.ChannelTrace(gains=gains()).sha256[:16] in line
    done = run("certify", str(deep), "--data", str(folder), "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["not_compared"] == []
    np.savez(deep / "channel.npz", gains=2 * gains())
    altered = run("certify", str(deep), cwd=tmp_path)
    assert altered.returncode == 1
    assert "its trace has SHA-256" in altered.stderr


@pytest.mark.slow
def test_a_trace_that_is_too_short_is_refused_before_training(folder: Path) -> None:
    words = refused(run("run", "my.toml", "--set", "radio.repeat=false", "--out", "runs/short", cwd=folder))
    assert f"the channel ends with epoch {STEPS}, and epoch {EPOCHS} is asked for" in words
    assert "repeat = true" in words
    assert not (folder / "runs" / "short").exists()
    changed = ("--set", "radio.repeat=false", "--set", f"schedule.epochs={STEPS}")
    assert run("plan", "my.toml", *changed, cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"network.topology": "ring", "network.nodes": "5"}, "links are given twice: by network.topology and by"),
        ({"network.nodes": "5"}, "network.nodes has no meaning with radio.trace"),
        ({"network.power": "2"}, "power is given twice"),
        ({"radio.fading": "iid"}, "fading has no meaning beside a trace"),
        ({"radio.trace": "other.npz"}, "other.npz does not exist"),
        ({"radio.trace": "blocks.npz"}, "the trace has 2 blocks of the band"),
        ({"network.z": "predicted"}, 'z is "predicted", and nothing says how much of a trace'),
    ],
)
def test_what_contradicts_a_trace_is_refused(folder: Path, settings: dict[str, str], words: str) -> None:
    np.savez(folder / "blocks.npz", gains=np.stack([gains(), gains()], axis=3))
    changed = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    assert words in refused(run("plan", "my.toml", *changed, cwd=folder))


def test_link_shows_the_mean_and_the_weakest_step(folder: Path) -> None:
    noisy = ("--set", "radio.noise_figure_db=7", "--set", "radio.self_interference_db=110")
    stated = json.loads(run("link", "my.toml", *noisy, "--json", cwd=folder).stdout)
    sender, receiver = np.array(stated["sender"]), np.array(stated["receiver"])
    power, noise = 10 ** (np.array(POWER_DBM) / 10) / 1000, 10 ** (np.array(stated["noise_dbm"]) / 10) / 1000
    amplitude = np.abs(gains())[:, sender, receiver]
    rms = np.sqrt(np.mean(amplitude**2, axis=0))
    np.testing.assert_allclose(stated["snr_db"], 10 * np.log10(rms**2 * power[sender] / noise[receiver]), rtol=1e-9)
    weakest = amplitude.min(axis=0)
    for given, expected, at in zip(stated["weakest_snr_db"], weakest, range(len(sender)), strict=True):
        if expected == 0:
            assert given is None
            continue
        assert given == pytest.approx(10 * np.log10(expected**2 * power[sender[at]] / noise[receiver[at]]))
    shown = run("link", "my.toml", *noisy, cwd=folder).stdout
    assert f"{STEPS} steps" in shown
    assert "1 of 14 links are not heard at some step" in " ".join(shown.split())
    assert "are 10 s apart" in " ".join(shown.split())


@pytest.mark.slow
def test_reports_audits_and_recordings_know_the_trace(folder: Path, tmp_path: Path) -> None:
    done = run("report", "runs/power-controlled", "-o", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (
        "a channel is played back, one step an epoch; after the last comes the first again"
        in (folder / "page.html").read_text()
    )
    shutil.copytree(folder / "runs" / "power-controlled", tmp_path / "moved")
    words = "channel.npz, the channel of moved, is neither there nor in this folder"
    assert words in refused(run("audit", "moved", cwd=tmp_path))
    assert words in refused(run("export-iq", "moved", "--node", "1", cwd=tmp_path))
    shutil.copy(folder / "channel.npz", tmp_path)
    done = run("export-iq", "moved", "--node", "1", "--epochs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
