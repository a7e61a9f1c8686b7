"""Runs that are cut short, by Ctrl-C or killed, and resumed; through the real entry point."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from murmurcast.errors import Error
from murmurcast.runs.result import load_run
from tests.cli.test_run import NET, OF_A_FILE, TINY, begin, table
from tests.commands import refused, run, wait_for


def test_ctrl_c_and_resume_reach_the_same_numbers_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    cut = begin("tiny.toml", "--json", "--out", "cut", cwd=tmp_path)
    wait_for(tmp_path / "cut" / "checkpoint.npz", cut)
    cut.send_signal(signal.SIGINT)
    _, complaint = cut.communicate()
    assert cut.returncode == 130, complaint
    assert "checkpoint is in cut" in complaint
    assert "Traceback" not in complaint
    assert not (tmp_path / "cut" / "run.json").exists()
    assert "--resume" in refused(run("run", "tiny.toml", "--json", "--out", "cut", cwd=tmp_path))
    resumed = run("run", "tiny.toml", "--json", "--out", "cut", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole = run("run", "tiny.toml", "--json", "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert not (tmp_path / "cut" / "checkpoint.npz").exists()
    tables = [pd.read_csv(tmp_path / name / "metrics.csv").drop(columns="seconds") for name in ("whole", "cut")]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    models = [load_run(tmp_path / name).published for name in ("whole", "cut")]
    np.testing.assert_array_equal(models[0], models[1])


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment on files, and its run, killed after a checkpoint."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "my.toml").write_text(OF_A_FILE)
    (folder / "my.csv").write_text(table())
    (folder / "net.csv").write_text(NET)
    process = begin("my.toml", "--out", "cut", cwd=folder)
    wait_for(folder / "cut" / "checkpoint.npz", process)
    process.kill()
    process.communicate()
    return folder


@pytest.fixture
def spoilt(killed: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(killed, tmp_path / "copy"))


@pytest.mark.slow
def test_a_killed_run_does_not_load(killed: Path) -> None:
    with pytest.raises(Error, match="holds no finished run") as raised:
        load_run(killed / "cut")
    assert "--resume" in raised.value.hint
    assert "holds no finished run" in refused(run("compare", "cut", cwd=killed))


@pytest.mark.slow
def test_resuming_another_experiment_is_refused_and_the_difference_shown(killed: Path) -> None:
    text = refused(run("run", "my.toml", "--out", "cut", "--resume", "--set", "privacy.epsilon=2", cwd=killed))
    assert "privacy.epsilon was 10.0, is 2" in text


def test_resuming_on_other_data_is_refused(spoilt: Path) -> None:
    (spoilt / "my.csv").write_text(table(shift=0.5))
    assert "other data" in refused(run("run", "my.toml", "--out", "cut", "--resume", "--json", cwd=spoilt))


@pytest.mark.slow
def test_resuming_on_another_network_of_the_same_name_is_refused(spoilt: Path) -> None:
    """Models were sent through the first network; the promise would be worked out for the second."""
    (spoilt / "net.csv").write_text(NET.replace("0.9", "0.3"))
    assert "network" in refused(run("run", "my.toml", "--out", "cut", "--resume", "--json", cwd=spoilt))


@pytest.mark.parametrize(
    ("name", "content"),
    [("checkpoint.npz", None), ("checkpoint.npz", b"garbage"), ("experiment.toml", b"\xff\xfe")],
    ids=["truncated checkpoint", "garbage", "experiment not UTF-8"],
)
def test_resuming_from_a_spoilt_folder_is_refused(spoilt: Path, name: str, content: bytes | None) -> None:
    path = spoilt / "cut" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    refused(run("run", "my.toml", "--out", "cut", "--resume", "--json", cwd=spoilt))


def test_nothing_to_resume(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert "no run to resume" in refused(run("run", "tiny.toml", "--resume", cwd=tmp_path))


@pytest.mark.slow
def test_a_run_stopped_by_hand_is_not_certified(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    process = begin("tiny.toml", cwd=tmp_path)
    wait_for(tmp_path / "runs" / "tiny" / "checkpoint.npz", process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    message = refused(run("certify", "runs/tiny", cwd=tmp_path))
    for words in ("after epoch", "not certified", "counts as the whole plan", "run.stop_after"):
        assert words in message
    assert run("plan", "runs/tiny/experiment.toml", "--collusion", "none", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "runs" / "tiny" / "certificate.json").exists()
