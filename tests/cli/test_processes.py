"""`murmurcast run` over several processes, which are real, and really killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.result import CHECKPOINT, Result, load_run
from tests.commands import COMMAND, refused, run

LARGE = """
[network]
topology = "geometric"
nodes = 260
seed = 1
z = "perron"
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 3
[schedule]
epochs = {epochs}
step = 0.001
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Experiments, and one run of each in a single process."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "large.toml").write_text(LARGE.format(epochs=12))
    (folder / "long.toml").write_text(LARGE.format(epochs=900) + "[run]\nevaluate_every = 300\n")
    (folder / "few.toml").write_text(LARGE.format(epochs=12).replace("260", "3"))
    return folder


def finished(place: Path, out: str, *words: str, file: str = "large.toml") -> Result:
    done = run("run", file, "--out", out, *words, cwd=place)
    assert done.returncode == 0, done
    assert "Gloo" not in done.stdout
    return load_run(place / out)


def same(one: Result, other: Result) -> None:
    """Models to the bit, metrics to rounding, what was sent and what it costs exactly."""
    assert one.published.tobytes() == other.published.tobytes()
    assert one.ledger.identical(other.ledger)
    for name in one.metrics:
        if name != "seconds":
            np.testing.assert_allclose(one.metrics[name], other.metrics[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("processes", "method"), [(2, "power-controlled"), (3, "private-frost")])
def test_processes_give_the_bits_of_one(processes: int, method: str, place: Path) -> None:
    words = ("--set", f"algorithm.name={method}")
    alone = finished(place, f"{method}-1", *words)
    together = finished(place, f"{method}-{processes}", *words, "--processes", str(processes))
    same(together, alone)
    cut = together.info["processes"]
    assert cut["count"] == processes
    assert 0 < cut["signals_across"] < 260 * (processes - 1)
    assert "processes" not in alone.info


WIRED = """
[network]
topology = "geometric"
nodes = 300
seed = 1
z = "perron"
[data]
name = "digits"
partition = "iid"
[privacy]
epsilon = 20.0
unit = "record"
[schedule]
epochs = 50
step = 0.001
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["power-controlled", "private-frost"])
def test_many_epochs_on_data_give_the_bits_of_one(method: str, tmp_path: Path) -> None:
    (tmp_path / "wired.toml").write_text(WIRED)
    words = ("--set", f"algorithm.name={method}")
    alone = finished(tmp_path, "alone", *words, file="wired.toml")
    certified = mc.certify(alone)
    assert certified.verdict == "kept"
    for processes in ("2", "3"):
        together = finished(tmp_path, processes, *words, "--processes", processes, file="wired.toml")
        same(together, alone)
        found = mc.certify(together)
        assert (found.verdict, found.epsilon.tolist()) == ("kept", certified.epsilon.tolist())


RADIO = """
[network]
topology = "geometric"
nodes = 300
size_m = 200.0
seed = 2
z = "{z}"
gain = {{kind = "indoor"}}
[data]
name = "digits"
partition = "iid"
[problem]
radius = 10.0
[privacy]
epsilon = 3.0
unit = "record"
[schedule]
epochs = 50
step = 0.01
[radio]
power_dbm = 10.0
bandwidth_hz = 1e6
carrier_hz = 2.4e9
access = "own-slot"
fading = "{fading}"
speed_mps = 1.0
"""


@pytest.mark.slow
@pytest.mark.parametrize("fading", ["none", "jakes"])
def test_over_a_radio_too(fading: str, tmp_path: Path) -> None:
    text = RADIO.format(fading=fading, z="mean" if fading == "jakes" else "perron")
    (tmp_path / "radio.toml").write_text(text if fading == "jakes" else text.replace("speed_mps = 1.0\n", ""))
    alone = finished(tmp_path, "alone", file="radio.toml")
    for processes in ("2", "3"):
        same(finished(tmp_path, processes, "--processes", processes, file="radio.toml"), alone)


@contextlib.contextmanager
def started(place: Path, *words: str) -> "Iterator[subprocess.Popen[str]]":
    """A command that goes on; in an interpreter of its own, because it gets signals."""
    process = subprocess.Popen(
        [str(COMMAND), "run", "long.toml", *words], cwd=place, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(what: Path, process: "subprocess.Popen[str]") -> None:
    while not what.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """The processes that train, in their order."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return sorted(map(int, found))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes as Linux lists them")
@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_killed_process_ends_all_and_the_run_goes_on(victim: int, place: Path) -> None:
    out = place / f"killed-{victim}"
    with started(place, "--out", str(out), "--processes", "2") as process:
        wait_for(out / CHECKPOINT, process)
        workers = workers_of(process)
        assert len(workers) == 2
        os.kill(workers[victim], signal.SIGKILL)
        _, errors = process.communicate()
    assert process.returncode == 2
    lines = errors.strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "hint"], errors
    assert f"process {victim} of 2 was ended from outside (signal 9)" in lines[0]
    assert "--resume" in lines[1]
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    processes = () if victim else ("--processes", "3")
    resumed = finished(place, out.name, "--resume", *processes, file="long.toml")
    if not (place / "long-alone" / "run.json").exists():
        finished(place, "long-alone", file="long.toml")
    same(resumed, load_run(place / "long-alone"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals as Linux has them")
def test_ctrl_c_keeps_a_checkpoint(place: Path) -> None:
    out = place / "stopped"
    with started(place, "--out", str(out), "--processes", "2") as process:
        wait_for(out / CHECKPOINT, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert (out / CHECKPOINT).exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--processes", "0"), "--processes is 0"),
        (("--processes", "2", "--process-id", "0", "--num-processes", "2", "--coordinator", "a:1"), "starts all"),
        (("--process-id", "0"), "--coordinator and --num-processes are missing"),
        (("--coordinator", "nowhere", "--process-id", "0", "--num-processes", "2"), "--coordinator is"),
        (("--coordinator", "a:1", "--process-id", "2", "--num-processes", "2"), "--process-id is 2"),
        (("--connect-within", "0"), "--connect-within"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(words: tuple[str, ...], message: str, place: Path) -> None:
    assert message in refused(run("run", "large.toml", "--out", "refused", *words, cwd=place))
    assert not (place / "refused").exists()


def test_there_are_no_more_processes_than_nodes(place: Path) -> None:
    assert "5 processes for 3 nodes" in refused(run("run", "few.toml", "--out", "few", "--processes", "5", cwd=place))


def test_a_method_that_needs_everybody_at_once_is_refused(place: Path) -> None:
    words = ("--processes", "2", "--set", "algorithm.name=central-dp")
    assert "does not run over several processes" in refused(run("run", "large.toml", "--out", "no", *words, cwd=place))


def test_a_coordinator_that_never_answers_is_given_up(place: Path) -> None:
    """Nobody listens at the discard port of this machine, and the time to wait is ours to set."""
    words = ("--coordinator", "127.0.0.1:9", "--process-id", "1", "--num-processes", "2", "--connect-within", "3")
    message = refused(run("run", "large.toml", "--out", "lonely", *words, cwd=place))
    assert "process 1" in message
    assert "within 3 s" in message
