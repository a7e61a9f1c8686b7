"""`murmurcast sweep` through its real entry point, stopped, killed and with a full disk."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from murmurcast.cli import _processes
from murmurcast.cli.run import Asked, _start_processes
from murmurcast.engine.membership import Membership
from murmurcast.errors import Error
from murmurcast.runs.result import load_run
from murmurcast.runs.sweep import Manifest, write_manifest
from tests import commands
from tests.experiments.sweeps import TINY, assert_same, written

GRID = ("--grid", "privacy.epsilon=1,4", "--grid", "algorithm.name=power-controlled,dp-dsgd")
# A point that is done at once, and one that would take hours.
LONG = ("--grid", "schedule.epochs=4,3000000", "--set", "run.evaluate_every=200", "--workers", "1")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "tiny.toml").write_text(TINY)
    done = commands.run("sweep", "tiny.toml", *GRID, "--figure", "tiny.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # the table shows on a terminal only
    return folder, done.stdout


@pytest.mark.slow
def test_one_table_says_what_was_varied_reached_and_what_it_costs(swept: tuple[Path, str]) -> None:
    folder, shown = swept
    lines = [line.split() for line in shown.splitlines() if "dp-dsgd" in line or "power-controlled" in line]
    assert [line[:2] for line in lines] == [
        ["1", "power-controlled"],
        ["1", "dp-dsgd"],
        ["4", "power-controlled"],
        ["4", "dp-dsgd"],
    ]
    run = load_run(folder / "sweeps" / "tiny" / "runs" / "epsilon-4_dp-dsgd")
    assert lines[-1][2] == f"{run.final('published_accuracy').mean():.4f}"
    assert lines[-1][-1] == "4"
    assert "not paid: a comparison, not a release" in shown
    assert "Kept in  sweeps/tiny: 4 of 4 points" in shown
    assert (folder / "tiny.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in (folder / "sweeps" / "tiny").iterdir()} == {
        "experiment.toml",
        "runs",
        "sweep.csv",
        "sweep.json",
        "sweep.nc",
    }


@pytest.mark.slow
def test_json_is_one_object_and_nothing_is_run_again(swept: tuple[Path, str]) -> None:
    folder, _ = swept
    before = written(folder / "sweeps" / "tiny")
    done = commands.run("sweep", "tiny.toml", *GRID, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert written(folder / "sweeps" / "tiny") == before
    values = json.loads(done.stdout)
    assert values["axes"] == ["privacy.epsilon", "algorithm.name"]
    assert [one["epsilon"] for one in values["points"]] == pytest.approx([1, 1, 4, 4])
    assert values["points"][3]["values"] == {"privacy.epsilon": 4, "algorithm.name": "dp-dsgd"}
    assert (values["failures"], values["missing"]) == ([], [])


@pytest.mark.slow
def test_compare_and_report_take_a_sweep(swept: tuple[Path, str]) -> None:
    folder, _ = swept
    done = commands.run("compare", "sweeps/tiny", "--figure", "against.svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert all(f"epsilon-{epsilon}_dp-dsgd" in done.stdout for epsilon in (1, 4))
    assert "epsilon" in (folder / "against.svg").read_text()
    done = commands.run("compare", "sweeps/tiny", "--figure", "e.png", "--against", "algorithm.name", cwd=folder)
    assert done.returncode == 0, done.stderr
    done = commands.run("compare", "sweeps/tiny", "--figure", "e.png", "--against", "epoch", cwd=folder)
    assert done.returncode == 0, done.stderr
    one = "sweeps/tiny/runs/epsilon-1_dp-dsgd"
    done = commands.run("compare", "sweeps/tiny", one, "--json", cwd=folder)
    assert len(json.loads(done.stdout)["runs"]) == 5
    done = commands.run("report", "sweeps/tiny", "-o", "tiny.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Sweep tiny" in (folder / "tiny.html").read_text()
    done = commands.run("certify", one, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_metric_that_no_run_has_hides_nothing(swept: tuple[Path, str]) -> None:
    folder, shown = swept
    done = commands.run("sweep", "tiny.toml", *GRID, "--metric", "foo", "--figure", "foo.png", cwd=folder)
    assert done.returncode == 2
    assert done.stdout == shown
    assert '"foo" is not a metric of all runs' in done.stderr
    assert not (folder / "foo.png").exists()


@pytest.mark.slow
def test_bad_input_of_compare_is_refused(swept: tuple[Path, str]) -> None:
    folder, _ = swept
    arguments = ("compare", "sweeps/tiny", "--figure", "e.png", "--against", "privacy.epsilom")
    assert "was not varied" in commands.refused(commands.run(*arguments, cwd=folder))
    assert "--figure" in commands.refused(commands.run("compare", "sweeps/tiny", "--against", "epoch", cwd=folder))
    (folder / "empty").mkdir()
    assert "holds no finished run" in commands.refused(commands.run("report", "empty", cwd=folder))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--grid", "privacy.epsilom=1,2"), "unknown key privacy.epsilom"),
        (("--grid", "privacy.epsilon"), "a key and its values are expected"),
        (("--grid", "privacy.epsilon=1,1"), "twice"),
        (("--grid", "privacy.epsilon=-1"), "epsilon"),
        ((), "nothing to vary"),
        (("--random", "3"), "nothing to vary"),
        (("--range", "schedule.step=1:2"), "no number of draws"),
        (("--random", "2", "--range", "schedule.step=2:1"), "2 to 1"),
        (("--grid", "privacy.epsilon=1,2", "--seeds", "0"), "run.seeds is 0"),
        (("--grid", "privacy.epsilon=1,2", "--workers", "0"), "workers is 0"),
        (("--grid", "privacy.epsilon=1,2", "--out", "tiny.toml"), "is not a folder"),
        (("--grid", "privacy.epsilon=1,2", "--figure", "x.doc"), "not a plot's name"),
        (("--grid", "privacy.epsilon=1,2", "--set", "privacy.noise_source=secure"), "no secure noise"),
    ],
)
def test_refusals_say_what_is_wrong_and_keep_nothing(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert said in commands.refused(commands.run("sweep", "tiny.toml", *words, cwd=tmp_path))
    assert not (tmp_path / "sweeps").exists()


def test_a_run_does_not_train_into_a_sweeps_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    folder = tmp_path / "sweeps" / "tiny"
    folder.mkdir(parents=True)
    write_manifest(folder, Manifest((), (), (), {}))
    (folder / "experiment.toml").write_text(TINY)
    for words in ((), ("--resume",)):
        done = commands.run("run", "tiny.toml", "--out", "sweeps/tiny", *words, cwd=tmp_path)
        assert "sweeps/tiny holds a sweep" in commands.refused(done)


def test_more_processes_than_nodes_are_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_processes, "run_on_this_machine", lambda *_: pytest.fail("something was started"))
    for setting in ("run.seeds=2", "network={topology='ring', nodes=4}"):
        with pytest.raises(Error, match="there are 5 processes for 4 nodes") as caught:
            _start_processes(Asked(file=Path("tiny.toml"), processes=5, sets=[setting]), None)
        assert caught.value.hint == "start at most 4: every process holds some node"


def test_a_signal_while_processes_are_started_ends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def start(member: Membership, words: list[str], place: Path, cores: list[int]) -> _processes._Process:
        del words, cores
        command = [sys.executable, "-c", "input()"]
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        begun.append((running, place))
        os.kill(os.getpid(), signal.SIGTERM)
        return _processes._Process(member, running, place / "said", None)

    monkeypatch.setattr(_processes, "_start", start)
    before = signal.getsignal(signal.SIGTERM)
    members = [Membership("127.0.0.1:1", rank, 3) for rank in range(3)]
    assert _processes._watch(members, [[], [], []], tmp_path) == 130
    ((running, place),) = begun
    assert running.poll() is not None
    assert not place.exists()
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
def test_points_that_cannot_be_planned_are_reported_and_the_others_kept(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    words = ("--grid", "privacy.clip=1.0,1e-30", "--workers", "1")
    done = commands.run("sweep", "tiny.toml", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "1 of 2 points failed" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("hint: ")
    assert "Failed" in done.stdout
    assert "1 of 2 points" in done.stdout
    assert "Traceback" not in done.stderr


def begin(*arguments: object, cwd: Path, most_bytes: int | None = None) -> "subprocess.Popen[str]":
    words = [str(commands.COMMAND), "sweep", *map(str, arguments)]
    if most_bytes is not None:  # by a shell: JAX complains of whatever else runs between fork and exec
        words = ["/bin/sh", "-c", f'ulimit -f {most_bytes // 512}; exec "$0" "$@"', *words]
    return subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until_long_one_is_under_way(folder: Path, process: "subprocess.Popen[str]") -> Path:
    """The first point is done, the second has begun."""
    second = folder / "sweeps" / "tiny" / "runs" / "epochs-3000000"
    while not (second / "data.commitment").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return folder / "sweeps" / "tiny" / "runs" / "epochs-4"


def children(process: int) -> list[int]:
    outcome = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == process:
                outcome.append(int(entry.name))
    return outcome


def is_alive(process: int) -> bool:
    """Running, and not only waiting to be collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    cut = begin("tiny.toml", *LONG, cwd=tmp_path)
    first = wait_until_long_one_is_under_way(tmp_path, cut)
    at_work = children(cut.pid)
    before = load_run(first)
    cut.send_signal(signal.SIGINT)
    shown, complaint = cut.communicate()
    assert cut.returncode == 130, complaint
    assert "The same command goes on" in complaint
    assert "Traceback" not in complaint
    assert shown == ""
    assert not any(is_alive(one) for one in at_work)
    assert (tmp_path / "sweeps" / "tiny" / "runs" / "epochs-3000000" / "checkpoint.npz").exists()
    kept = written(first.parents[1])
    done = commands.run("sweep", "tiny.toml", "--grid", "schedule.epochs=4,5", *LONG[2:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {name: when for name, when in written(first.parents[1]).items() if name in kept} == kept
    assert_same(load_run(first), before)


@pytest.mark.slow
def test_a_sweep_that_is_killed_takes_its_workers_along_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    cut = begin("tiny.toml", *LONG, cwd=tmp_path)
    first = wait_until_long_one_is_under_way(tmp_path, cut)
    at_work = children(cut.pid)
    assert at_work
    os.kill(cut.pid, signal.SIGKILL)
    cut.communicate()
    while any(is_alive(one) for one in at_work):
        time.sleep(0.02)
    before = written(first.parents[1])
    done = commands.run("sweep", "tiny.toml", "--grid", "schedule.epochs=4,5", *LONG[2:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {name: when for name, when in written(first.parents[1]).items() if name in before} == before


@pytest.mark.slow
def test_a_full_disk_stops_it_and_loses_nothing(tmp_path: Path) -> None:
    """As far as a process can tell: no file may grow beyond a size, which the second point's metrics need."""
    (tmp_path / "tiny.toml").write_text(TINY)
    words = ("tiny.toml", "--grid", "schedule.epochs=4,900", "--set", "run.evaluate_every=1", "--workers", "1")
    full = begin(*words, cwd=tmp_path, most_bytes=120_000)
    shown, complaint = full.communicate()
    assert full.returncode == 2, (shown, complaint)
    assert shown == ""
    assert "cannot be written: File too large; 1 of 2 points are done and kept" in complaint
    assert "hint: free some space; the same command then goes on" in complaint
    assert "Traceback" not in complaint
    folder = tmp_path / "sweeps" / "tiny"
    before = written(folder)
    first = {name: when for name, when in before.items() if "epochs-4/" in name}
    load_run(folder / "runs" / "epochs-4")
    done = commands.run("sweep", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {name: when for name, when in written(folder).items() if name in first} == first
    assert "2 of 2 points" in done.stdout


@pytest.mark.slow
def test_two_sweeps_do_not_write_to_one_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    first = begin("tiny.toml", *LONG, cwd=tmp_path)
    wait_until_long_one_is_under_way(tmp_path, first)
    refused = commands.refused(commands.run("sweep", "tiny.toml", *LONG, cwd=tmp_path))
    assert "another process is writing to sweeps/tiny" in refused
    first.send_signal(signal.SIGINT)
    first.communicate()
