"""Sweeps by real worker processes, some of which are killed."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.experiments.load import with_changes
from murmurcast.experiments.sweep_state import Status, as_watch
from murmurcast.experiments.sweep_task import Done, Failed, Task, run_task
from murmurcast.runs.sweep import Manifest, point_of, write_manifest
from tests.experiments.sweeps import GRID, NAMES, TINY, assert_same, tiny, written

OWN_METHODS = '''
import os, signal
from pathlib import Path
import murmurcast as mc

def deadly(setup):
    """Ends its process, as a lack of memory would."""
    os.kill(os.getpid(), signal.SIGKILL)

def deadly_once(setup):
    """Ends its process, but not twice."""
    marker = Path(os.environ["DEADLY_MARKER"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return mc.dp_dsgd(setup)

def faulty(setup):
    """Has a fault."""
    raise ZeroDivisionError("a fault of the method's own")
'''


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> mc.Sweep:
    folder = tmp_path_factory.mktemp("swept") / "sweep"
    return mc.sweep(tiny(), GRID, mc.SweepOptions(folder=folder, workers=2))


@pytest.mark.slow
def test_every_point_is_an_ordinary_run(swept: mc.Sweep) -> None:
    assert [point.name for point in swept.points] == NAMES
    assert list(swept.runs) == NAMES
    for point in swept.points:
        run = mc.load_run(swept.folder / "runs" / point.name)
        assert run.info["algorithm"] == point.values["algorithm.name"]
        assert run.info["seeds"] == [0, 1]
        result = mc.certify(run)
        assert result.verdict == "kept"
        assert swept.epsilons[point.name] == pytest.approx(result.epsilon.max())
        assert result.epsilon.max() == pytest.approx(point.values["privacy.epsilon"])
    assert not swept.failures
    assert not swept.missing


def test_a_point_gives_the_numbers_of_a_run_by_itself(swept: mc.Sweep, tmp_path: Path) -> None:
    experiment = with_changes(tiny(), {"privacy.epsilon": 4.0, "algorithm.name": "dp-dsgd"})
    problem, algorithm = experiment.build()
    alone = mc.run(algorithm, problem, seeds=range(2), options=mc.RunOptions(folder=tmp_path / "alone"))
    other = swept["epsilon-4_dp-dsgd"]
    # Another number of devices may round the last digits otherwise; the noise is the same.
    np.testing.assert_allclose(alone.published, other.published, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(alone.ledger["promised_mu"], other.ledger["promised_mu"])


def test_one_labelled_data_set_and_a_tidy_table(swept: mc.Sweep) -> None:
    with xr.open_dataset(swept.folder / "sweep.nc") as kept:
        xr.testing.assert_equal(kept.load(), swept.data)
    assert swept.data.sizes == {"privacy.epsilon": 2, "algorithm.name": 2, "seed": 2, "epoch": 6}
    one = swept.data.sel({"privacy.epsilon": 4.0, "algorithm.name": "dp-dsgd"})
    run = swept["epsilon-4_dp-dsgd"]
    np.testing.assert_allclose(one["published_accuracy"], run.metrics["published_accuracy"].mean("node"))
    np.testing.assert_allclose(one["worst_own_loss"], run.final("own_loss").max(axis=1))
    np.testing.assert_allclose(one["worst_own_accuracy"], run.final("own_accuracy").min(axis=1))
    assert float(one["epsilon"]) == pytest.approx(4.0)
    table = pd.read_csv(swept.folder / "sweep.csv")
    assert list(table.columns[:5]) == ["run", "privacy.epsilon", "algorithm.name", "seed", "epochs"]
    assert len(table) == 4 * 2
    mean = table.groupby("run")["final_published_accuracy"].mean()
    assert mean["epsilon-4_dp-dsgd"] == pytest.approx(float(run.final("published_accuracy").mean()))
    pd.testing.assert_frame_equal(swept.to_frame(), table, check_dtype=False)


@pytest.mark.slow
def test_what_is_done_is_never_run_again_and_a_grid_can_grow(swept: mc.Sweep) -> None:
    before = written(swept.folder)
    seen: list[str] = []

    def watch(points: Mapping[str, Status], _: float | None) -> None:
        seen.extend(name for name, one in points.items() if one.state == "running" and one.share > 0)

    grid = {"privacy.epsilon": (4.0, 9.0), "algorithm.name": ("dp-dsgd",)}
    options = mc.SweepOptions(folder=swept.folder, workers=1, on_change=watch)
    grown = mc.sweep(tiny(), grid, options)
    assert {name: when for name, when in written(swept.folder).items() if name in before} == before
    assert set(grown.runs) == {*NAMES, "epsilon-9_dp-dsgd"}
    assert set(seen) <= {"epsilon-9_dp-dsgd"}
    assert np.isnan(grown.data["epsilon"].sel({"privacy.epsilon": 9.0, "algorithm.name": "power-controlled"}))
    again = mc.load_sweep(swept.folder)
    xr.testing.assert_equal(again.data, grown.data)
    assert_same(again["epsilon-1_dp-dsgd"], swept["epsilon-1_dp-dsgd"])


@pytest.mark.parametrize(
    ("change", "grid", "said"),
    [
        ({"schedule.step": 0.7}, GRID, "another experiment: schedule.step was 0.3, is 0.7"),
        ({"run.seeds": 5}, GRID, "run.seeds was 2, is 5"),
        ({}, {"privacy.epsilon": (1.0,)}, "holds another sweep: it varies privacy.epsilon, algorithm.name"),
        ({}, {"privacy.epsilon": (1.0,), "schedule.step": (0.3,)}, "holds another sweep"),
    ],
)
def test_a_folder_of_another_experiment_is_refused_and_stays_as_it_is(
    swept: mc.Sweep, change: dict[str, Any], grid: dict[str, Any], said: str
) -> None:
    kept = {path: path.read_bytes() for path in swept.folder.rglob("*") if path.is_file()}
    with pytest.raises(Error, match=said) as caught:
        mc.sweep(with_changes(tiny(), change), grid, mc.SweepOptions(folder=swept.folder))
    assert "--out" in caught.value.hint
    assert kept == {path: path.read_bytes() for path in swept.folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_data_that_has_changed_is_another_experiment(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{a:.4f},{b:.4f},{int(a + b > 0)}" for a, b in rng.standard_normal((40, 2))]
    text = TINY.replace('name = "logistic"\nexamples = 80\nfeatures = 3\nclasses = 3', 'name = "own.csv"\nclasses = 2')
    (tmp_path / "own.toml").write_text(text)
    (tmp_path / "own.csv").write_text("\n".join(["a,b,label", *rows]))
    options = mc.SweepOptions(folder=tmp_path / "sweep", workers=1)
    assert len(mc.sweep(tmp_path / "own.toml", {"privacy.epsilon": (2.0,)}, options).runs) == 1
    (tmp_path / "own.csv").write_text("\n".join(["a,b,label", *rows[::-1]]))
    with pytest.raises(Error, match=r"own\.csv has changed"):
        mc.sweep(tmp_path / "own.toml", {"privacy.epsilon": (2.0, 3.0)}, options)


@pytest.mark.slow
def test_an_altered_run_is_reported_and_not_run_anew(swept: mc.Sweep, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(swept.folder, copy)
    (copy / "runs" / NAMES[0] / "metrics.csv").write_text("0.99\n")
    before = written(copy)
    with pytest.raises(Error, match=r"metrics\.csv is not what the run wrote"):
        mc.sweep(tiny(), GRID, mc.SweepOptions(folder=copy, workers=1))
    assert written(copy) == before
    with pytest.raises(Error, match=r"metrics\.csv is not what the run wrote"):
        mc.load_sweep(copy)
    (copy / "runs" / NAMES[0] / "run.json").write_text("{}")
    with pytest.raises(Error, match=r"run\.json is not of this version") as caught:
        mc.load_sweep(copy)
    assert f"remove {copy / 'runs' / NAMES[0]}: the command of the sweep" in caught.value.hint
    shutil.rmtree(copy / "runs" / NAMES[0])  # as the hint says, and it is true
    rest = set(mc.load_sweep(copy).runs)  # another test may have let the grid grow
    assert set(NAMES[1:]) <= rest
    assert set(mc.sweep(tiny(), GRID, mc.SweepOptions(folder=copy, workers=1)).runs) == rest | {NAMES[0]} != rest


def test_a_folder_without_its_experiment_says_so(tmp_path: Path) -> None:
    point = point_of({"privacy.epsilon": 1.0})
    write_manifest(tmp_path, Manifest(("privacy.epsilon",), (point,), (), {}))
    options = mc.SweepOptions(folder=tmp_path)
    slips: list[Callable[[], mc.Sweep]] = [
        lambda: mc.load_sweep(tmp_path),
        lambda: mc.sweep(tiny(), {"privacy.epsilon": (1.0,)}, options),
    ]
    for slip in slips:
        with pytest.raises(Error, match=r"experiment\.toml cannot be read: No such file") as caught:
            slip()
        assert caught.value.hint.startswith("restore it")


def test_without_ray_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Error, match="Ray is not installed"):
        mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path / "sweep", ray=True))
    assert not (tmp_path / "sweep").exists()


def test_a_bar_counts_points(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int, str | None]] = []

    class Bar:
        def counted(self, done: int, of: int, words: str | None = None) -> None:
            seen.append((done, of, words))

    points = {"a": Status("done"), "b": Status("running"), "c": Status("failed"), "d": Status()}
    as_watch(mc.SweepOptions(on_change=Bar()).on_change)(points, 3.0)
    assert seen == [(2, 4, "1 running, 1 failed")]
    with mc.progress("sweeping") as bar:
        as_watch(mc.SweepOptions(on_change=bar).on_change)(points, None)
    assert capsys.readouterr().out == ""


def workers_of_ours() -> list[int]:
    """Numbers of the worker processes that this process has started."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (entry / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue
            if parent == os.getpid() and b"sweep_worker" in words:
                result.append(int(entry.name))
    return result


def test_a_worker_that_is_killed_is_replaced_and_the_numbers_stay(swept: mc.Sweep, tmp_path: Path) -> None:
    killed: list[int] = []
    most: dict[str, int] = {}

    def watch(points: Mapping[str, Status], _: float | None) -> None:
        most.update({name: max(one.attempts, most.get(name, 0)) for name, one in points.items()})
        if not killed and any(one.state == "running" for one in points.values()):
            killed.extend(workers_of_ours())
            for process in killed:
                os.kill(process, signal.SIGKILL)

    result = mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path / "sweep", workers=2, on_change=watch))
    assert killed
    assert max(most.values()) == 2
    assert not result.failures
    for name in NAMES:
        assert_same(result[name], swept[name])
    assert workers_of_ours() == []


@pytest.fixture
def own_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "own_methods_of_sweep.py").write_text(OWN_METHODS)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setenv("DEADLY_MARKER", str(tmp_path / "marker"))
    return "own_methods_of_sweep"


@pytest.mark.slow
def test_what_kills_its_worker_every_time_is_reported_and_the_others_go_on(tmp_path: Path, own_methods: str) -> None:
    names = [f"{own_methods}:{name}" for name in ("deadly", "deadly_once", "faulty")]
    grid = {"algorithm.name": [*names, "dp-dsgd"]}
    options = mc.SweepOptions(folder=tmp_path / "sweep", workers=1, retries=1)
    result = mc.sweep(tiny(), grid, options)
    reasons = {one.name.split("-")[1]: one for one in result.failures}
    assert reasons["deadly"].problem == "its worker process was killed by signal 9"
    assert reasons["deadly"].attempts == 2
    said = f'"{own_methods}:faulty" could not make an algorithm: ZeroDivisionError: a fault of the method\'s own'
    assert (reasons["faulty"].problem, reasons["faulty"].attempts) == (said, 1)  # it would fail again
    assert {run.info["algorithm"] for run in result.runs.values()} == {names[1], "dp-dsgd"}
    kept = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert len(kept["failures"]) == 2
    assert {one.name for one in mc.load_sweep(tmp_path / "sweep").failures} == {one.name for one in result.failures}


def test_a_fault_that_nobody_foresaw_is_tried_again_and_its_place_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(folder: Path) -> None:
        raise ZeroDivisionError(f"in {folder.name}")

    monkeypatch.setattr("murmurcast.experiments.sweep_task.load_run", fault)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    result = run_task(Task(NAMES[1], tiny().values, str(tmp_path), str(tmp_path / "run")))
    assert isinstance(result, Failed)
    assert (result.problem, result.again) == ("ZeroDivisionError: in run", True)
    assert "test_sweep.py" in result.details


@pytest.mark.slow
def test_a_point_that_was_stopped_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    experiment = with_changes(tiny(), {"privacy.epsilon": 1.0, "algorithm.name": "dp-dsgd"})
    begun: list[int] = []

    def task(name: str) -> Task:
        return Task(NAMES[1], experiment.values, str(tmp_path), str(tmp_path / name))

    def stop(done: int, of: int, metrics: dict[str, float]) -> None:
        del of, metrics
        begun.append(done)
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_task(task("cut"), stop)
    assert (tmp_path / "cut" / "checkpoint.npz").exists()
    begun.clear()
    assert isinstance(run_task(task("cut"), stop), Done)
    assert begun == [4, 5, 6]
    assert isinstance(run_task(task("whole")), Done)
    assert_same(mc.load_run(tmp_path / "cut"), mc.load_run(tmp_path / "whole"))


def test_a_task_in_a_folder_of_another_run_fails_and_leaves_it(swept: mc.Sweep, tmp_path: Path) -> None:
    experiment = with_changes(tiny(), {"privacy.epsilon": 2.0})
    folder = swept.folder / "runs" / NAMES[0]
    before = written(swept.folder)
    stated = run_task(Task("x", experiment.values, str(tmp_path), str(folder)))
    assert isinstance(stated, Failed)
    assert "another experiment: " in stated.problem
    assert not stated.again
    assert written(swept.folder) == before


@pytest.mark.slow
def test_a_grid_may_stand_in_the_file(tmp_path: Path) -> None:
    section = """
    [sweep]
    seeds = 1
    random = 2
    seed = 4
    [sweep.grid]
    privacy.epsilon = [2.0]
    "algorithm.name" = ["dp-dsgd"]
    [sweep.ranges]
    schedule.step = {low = 0.1, high = 0.4, scale = "log"}
    """
    (tmp_path / "tiny.toml").write_text(TINY + section)
    result = mc.sweep(tmp_path / "tiny.toml", options=mc.SweepOptions(folder=tmp_path / "sweep", workers=1))
    assert result.axes == ("privacy.epsilon", "algorithm.name", "schedule.step")
    assert result.drawn == ("schedule.step",)
    assert result.data.sizes["point"] == 2
    assert result.data.sizes["seed"] == 1
    steps = result.data["schedule.step"].values
    assert ((steps >= 0.1) & (steps <= 0.4)).all()
    for point in result.points:
        assert f"step = {point.values['schedule.step']}" in result[point.name].experiment
        assert "[sweep" not in result[point.name].experiment


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"privacy.epsilom": (1,)}, "unknown key privacy.epsilom"),
        ({"privcy.epsilon": (1,)}, "unknown key privcy"),
        ({"epsilon": (1,)}, "unknown key epsilon"),
        ({"privacy.epsilon.much": (1,)}, "privacy.epsilon.much: epsilon is not a section"),
        ({"privacy.epsilon": ("much",)}, "privacy.epsilon is much"),
        ({"algorithm.name": ("dp-dsdg",)}, 'algorithm.name is "dp-dsdg"'),
        ({"algorithm.step_facto": (1,)}, "unknown key algorithm.step_facto"),
        ({"privacy.noise_source": ("secure",)}, "no secure noise"),
        ({}, "nothing to vary"),
    ],
)
def test_bad_grids_are_refused_before_anything_is_made(tmp_path: Path, grid: dict[str, Any], said: str) -> None:
    with pytest.raises(Error, match=said) as caught:
        mc.sweep(tiny(), grid, mc.SweepOptions(folder=tmp_path / "sweep"))
    assert caught.value.hint
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("given", [{"workers": 0}, {"retries": -1}, {"ray_address": "here:1"}, {"wrokers": 2}])
def test_bad_options_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Error):
        mc.SweepOptions(**given)


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Error, match="not empty, and holds no sweep"):
        mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(Error, match="is not a folder"):
        mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path / "notes.txt"))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"made_by": "murmurcast sweep", "format": 99}', "\0", "[" * 100000])
def test_a_manifest_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(Error, match="not of this version"):
        mc.load_sweep(tmp_path)
    with pytest.raises(Error, match="not of this version"):
        mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path))
    assert (tmp_path / "sweep.json").read_text() == text
