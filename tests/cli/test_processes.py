"""`murmurcast run` over several processes, which are real, and really killed."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.runs.folder_lock import locked
from murmurcast.runs.result import CHECKPOINT, Result, load_run
from tests.commands import COMMAND, refused, run, wait_for

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


@pytest.fixture(scope="module", autouse=True)
def compiled_as_for_users() -> Iterator[None]:
    """What the commands start runs for longer than it compiles."""
    with pytest.MonkeyPatch.context() as change:
        change.delenv("XLA_FLAGS", raising=False)
        yield


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


@pytest.mark.one_in(2)
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


IN_PLACE = """
import murmurcast as mc
from murmurcast.engine import large

large._SPACIOUS_BYTES = 0

def method(plan: mc.Plan):
    return mc.power_controlled(plan)
"""


@pytest.mark.slow
def test_they_do_in_place_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As networks train whose models are too large for signals to have room of their own."""
    (place / "in_place.py").write_text(IN_PLACE)
    monkeypatch.setenv("PYTHONPATH", str(place))
    words = ("--set", "algorithm.name=in_place:method")
    alone = finished(place, "in-place-1", *words)
    for processes in ("2", "3"):
        same(finished(place, f"in-place-{processes}", *words, "--processes", processes), alone)


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
        outcome = mc.certify(together)
        assert (outcome.verdict, outcome.epsilon.tolist()) == ("kept", certified.epsilon.tolist())


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
@pytest.mark.parametrize("rounds", ["1", "2"])
@pytest.mark.parametrize("fading", ["none", "jakes"])
def test_over_a_radio_too(fading: str, rounds: str, tmp_path: Path) -> None:
    text = RADIO.format(fading=fading, z="mean" if fading == "jakes" else "perron")
    (tmp_path / "radio.toml").write_text(text if fading == "jakes" else text.replace("speed_mps = 1.0\n", ""))
    words = ("--set", f"schedule.rounds={rounds}")
    alone = finished(tmp_path, "alone", *words, file="radio.toml")
    for processes in ("2", "3"):
        same(finished(tmp_path, processes, *words, "--processes", processes, file="radio.toml"), alone)


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


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """The processes that train, in their order."""
    outcome = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return sorted(map(int, outcome))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes as Linux lists them")
@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 1])
@pytest.mark.slow
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


@pytest.fixture(scope="module")
def stopped(place: Path) -> subprocess.CompletedProcess[str]:
    """A run of long.toml in the folder "stopped", after Ctrl-C."""
    if not sys.platform.startswith("linux"):
        pytest.skip("signals as Linux has them")
    with started(place, "--out", "stopped", "--processes", "2") as process:
        wait_for(place / "stopped" / CHECKPOINT, process)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


@pytest.mark.slow
def test_ctrl_c_keeps_a_checkpoint(stopped: subprocess.CompletedProcess[str], place: Path) -> None:
    assert stopped.returncode == 130, stopped
    assert "--resume" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert (place / "stopped" / CHECKPOINT).exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--processes", "0"), "--processes is 0"),
        (("--processes", "100000"), "--processes is 100000, and the memory of this machine has room for"),
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


def by_hand(
    place: Path, file: str, *processes: tuple[str, ...], size: int = 2
) -> list[subprocess.CompletedProcess[str]]:
    """Commands that meet at a port of this machine, on another one where somebody else was quicker to take it."""
    for _ in range(5):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = listening.getsockname()[1]
        meeting = ("--coordinator", f"127.0.0.1:{port}", "--num-processes", str(size))
        with ThreadPoolExecutor(len(processes)) as at_once:
            commands = [at_once.submit(run, "run", file, *meeting, *words, cwd=place) for words in processes]
        ended = [command.result() for command in commands]
        if not any("try another port" in one.stderr for one in ended):
            break
    return ended


def test_processes_that_were_given_different_runs_are_refused(place: Path) -> None:
    """The ledger that the first one writes would not be true of the other's nodes."""
    one = ("--process-id", "0", "--out", "different-0")
    other = ("--process-id", "1", "--out", "different-1", "--set", "schedule.step=0.002")
    ended = by_hand(place, "large.toml", one, other)
    assert all("different experiments, data or settings" in refused(one) for one in ended), ended


@pytest.mark.slow
def test_processes_that_would_go_on_from_different_epochs_are_refused(
    stopped: subprocess.CompletedProcess[str], place: Path
) -> None:
    assert stopped.returncode == 130
    one = ("--process-id", "0", "--out", "stopped", "--resume")
    other = ("--process-id", "1", "--out", "not-the-same-folder")
    ended = by_hand(place, "long.toml", one, other)
    assert all("do not go on from the same epoch" in refused(one) for one in ended), ended
    assert (place / "stopped" / CHECKPOINT).exists()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.slow
def test_two_processes_with_one_id_are_refused(size: int, place: Path) -> None:
    """With one that is missing, all wait for it; with all there, one too many comes."""
    words = ("--out", f"twice-{size}", "--connect-within", "5")
    three = (("--process-id", number, *words) for number in ("0", "1", "1"))
    ended = by_hand(place, "large.toml", *three, size=size)
    assert all("--process-id" in refused(one) for one in ended), ended
    assert not any("remove" in one.stderr for one in ended), ended


SLOW_SAVE = """
import atexit, pathlib, time
import jax
import murmurcast as mc
from murmurcast.runs.result import Outcome

save = Outcome.save

def slowly(self, folder):
    time.sleep(3)
    save(self, folder)
    pathlib.Path("saved").touch()

Outcome.save = slowly
atexit.register(lambda: pathlib.Path(f"left-{jax.process_index()}").write_text(str(pathlib.Path("saved").exists())))

def method(plan: mc.Plan):
    return mc.power_controlled(plan)
"""


@pytest.mark.slow
def test_nobody_leaves_while_the_run_is_saved(place: Path) -> None:
    """JAX ends all processes of which some have left and others have not, after a while."""
    (place / "slow_save.py").write_text(SLOW_SAVE)
    words = ("--out", "slowly", "--processes", "2", "--set", "algorithm.name=slow_save:method")
    done = run("run", "large.toml", *words, cwd=place, env={**os.environ, "PYTHONPATH": str(place)})
    assert done.returncode == 0, done
    assert [(place / f"left-{number}").read_text() for number in (0, 1)] == ["True", "True"]


@pytest.mark.slow
def test_what_only_the_first_process_meets_is_said_once_and_at_once(place: Path) -> None:
    (place / "taken").mkdir()
    with locked(place / "taken"):
        done = run("run", "large.toml", "--out", "taken", "--processes", "2", cwd=place)
    assert "another process is writing to taken" in refused(done)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--processes", "5"), "5 processes for 3 nodes"),
        (("--processes", "2", "--set", "algorithm.name=central-dp"), "does not run over several processes"),
    ],
)
@pytest.mark.slow
def test_what_does_not_fit_is_refused_and_leaves_no_folder(words: tuple[str, ...], message: str, place: Path) -> None:
    assert message in refused(run("run", "few.toml", "--out", "corrected", *words, cwd=place))
    assert not (place / "corrected").exists()  # so that the corrected command finds it free


@pytest.mark.slow
def test_a_coordinator_that_never_answers_is_given_up(place: Path) -> None:
    """Nobody listens at the discard port of this machine, and the time to wait is ours to set."""
    words = ("--coordinator", "127.0.0.1:9", "--process-id", "1", "--num-processes", "2", "--connect-within", "3")
    message = refused(run("run", "large.toml", "--out", "lonely", *words, cwd=place))
    assert "process 1" in message
    assert "within 3 s" in message
