"""Sweeps that go on, after a stop or with other words, and points whose runs diverge."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.experiments.load import with_changes
from murmurcast.experiments.sweep_state import State
from murmurcast.experiments.sweep_task import Done, Failed, Task, run_task
from murmurcast.runs.sweep import point_of
from murmurcast.runs.sweep_data import curves
from tests.experiments.sweeps import TINY, tiny, written

HOLDER = """
import sys
from pathlib import Path
from murmurcast.runs.folder_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_keys_in_another_order_are_the_same_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    options = mc.SweepOptions(folder=folder, workers=2, seeds=1)
    first = mc.sweep(tiny(), {"privacy.epsilon": (1.0, 4.0), "algorithm.name": ("dp-dsgd",)}, options)
    before = written(folder)
    again = mc.sweep(tiny(), {"algorithm.name": ("dp-dsgd",), "privacy.epsilon": (4.0, 9.0)}, options)
    assert {name: when for name, when in written(folder).items() if name in before} == before
    names = [point.name for point in again.points]
    assert sorted(names) == ["epsilon-1_dp-dsgd", "epsilon-4_dp-dsgd", "epsilon-9_dp-dsgd"]
    assert set(again.runs) == set(names)
    assert again.axes == first.axes
    assert len(again.to_frame()) == 3
    assert {one["name"] for one in json.loads((folder / "sweep.json").read_text())["points"]} == set(names)


@pytest.mark.slow
def test_a_point_that_diverges_is_done_and_has_no_numbers(tmp_path: Path) -> None:
    """On a terminal too, where the table shows what it came to."""
    (tmp_path / "tiny.toml").write_text(TINY.replace('unit = "record"', 'unit = "record"\nclip = 1e20'))
    words = ("--grid", "schedule.step=0.3,1e18", "--seeds", "1", "--workers", "1")
    code = (
        "import os, pty, sys\n"
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, '-m', 'murmurcast', *sys.argv[1:]])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "sweep", "tiny.toml", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done
    assert "2 of 2 points" in done.stdout
    swept = mc.load_sweep(tmp_path / "sweeps" / "tiny")
    final = swept.data["final_published_loss"].squeeze("seed")
    assert np.isfinite(final.sel({"schedule.step": 0.3}))
    assert not np.isfinite(final.sel({"schedule.step": 1e18}))


def test_one_node_that_diverged_leaves_no_mean() -> None:
    """Curves and finals say the same."""
    problem, algorithm = with_changes(tiny(), {"algorithm.name": "dp-dsgd"}).build()
    run = mc.run(algorithm, problem, seeds=range(2))
    run.metrics["published_loss"][1, -1, 2] = np.nan
    mean = curves(run)["published_loss"]
    assert np.isfinite(mean[0]).all()
    assert np.isnan(mean[1, -1])
    (row,) = mc.compare(run, metric="published_loss", target=float(mean[0].max())).rows
    assert np.isnan(row.final)
    assert row.epochs is None or row.epochs < int(run.metrics["epoch"][-1])


def test_a_task_waits_for_the_worker_of_before(tmp_path: Path) -> None:
    """After a sweep is killed its workers still write their checkpoints for a while."""
    folder = tmp_path / "run"
    folder.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    outcomes: list[Done | Failed] = []
    task = Task("run", with_changes(tiny(), {"run.seeds": 1}).values, str(tmp_path), str(folder))
    waiting = threading.Thread(target=lambda: outcomes.append(run_task(task)))
    waiting.start()
    waiting.join(0.5)
    assert not outcomes
    holder.communicate()
    waiting.join()
    assert isinstance(outcomes[0], Done), outcomes


def test_the_time_left_counts_no_point_that_was_done_before(tmp_path: Path) -> None:
    points = [point_of({"privacy.epsilon": epsilon}) for epsilon in (1.0, 2.0, 3.0)]
    (tmp_path / "runs" / points[0].name).mkdir(parents=True)
    (tmp_path / "runs" / points[0].name / "run.json").touch()
    state = State(tmp_path, tmp_path, points, {point.name: tiny() for point in points}, retries=0)
    done = Done(1.0, "", "published_accuracy", 0.5)
    begun = [state.next_task().name for _ in points]
    assert sorted(begun) == sorted(point.name for point in points)
    state.ended(points[0].name, done)
    assert state.seconds_left(slots=1) is None
    state.ended(points[1].name, done)
    left = state.seconds_left(slots=1)
    assert left == pytest.approx(state.statuses[points[1].name].seconds)
    state.ended(points[2].name, done)
    assert state.seconds_left(slots=1) == 0
