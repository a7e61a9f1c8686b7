"""Runs that go on from a checkpoint on another number of processes; small networks, which alone go another way."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from murmurcast.cli import _processes
from murmurcast.cli.run import Asked, _words
from murmurcast.engine.membership import Membership
from murmurcast.runs.result import CHECKPOINT, RUN, load_run
from tests.cli.test_processes import LARGE, finished, same
from tests.commands import COMMAND, refused, run, wait_for

if not sys.platform.startswith("linux"):
    pytest.skip("signals as Linux has them", allow_module_level=True)

SMALL = LARGE.replace("260", "20")

SEED_BY_SEED = """
import pathlib
import murmurcast as mc
from murmurcast.runs import run

run.seed_groups = lambda *_: (1, 1)
program_of = run.train.program

def program(algorithm, problem, seeds, dtype):
    pathlib.Path(f"begun-{seeds[0]}").touch()
    return program_of(algorithm, problem, seeds, dtype)

run.train.program = program

def method(plan: mc.Plan):
    return mc.power_controlled(plan)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "small.toml").write_text(SMALL.format(epochs=3000) + "[run]\nevaluate_every = 1000\n")
    (folder / "seed_by_seed.py").write_text(SEED_BY_SEED)
    return folder


def stop_at(mark: Path, place: Path, *words: str) -> None:
    """Begins a run and sends Ctrl-C once a file is there."""
    environment = os.environ | {"PYTHONPATH": str(place)}
    process = subprocess.Popen(
        [str(COMMAND), "run", *words],
        cwd=place,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    wait_for(mark, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors


@pytest.mark.slow
def test_a_small_network_goes_on_alone_as_several_processes_began_it(place: Path) -> None:
    stop_at(place / "two" / CHECKPOINT, place, "small.toml", "--out", "two", "--processes", "2")
    resumed = finished(place, "two", "--resume", file="small.toml")
    same(resumed, finished(place, "two-whole", "--processes", "2", file="small.toml"))


@pytest.mark.slow
def test_what_one_process_began_in_its_loop_is_not_shared_out(place: Path) -> None:
    words = ("small.toml", "--set", "run.checkpoint_every=50", "--set", "schedule.epochs=200000")
    stop_at(place / "one" / CHECKPOINT, place, *words, "--out", "one")
    several = run("run", *words, "--out", "one", "--resume", "--processes", "2", cwd=place)
    assert "--resume without --processes" in refused(several)
    assert (place / "one" / CHECKPOINT).exists()


@pytest.mark.slow
def test_groups_of_seeds_that_are_done_go_on_too(place: Path) -> None:
    """Only the process that leads has what the first group published."""
    words = ("--seeds", "2", "--set", "algorithm.name=seed_by_seed:method", "--processes", "2")
    stop_at(place / "begun-1", place, "small.toml", "--out", "groups", *words)
    (place / "begun-1").unlink()
    environment = os.environ | {"PYTHONPATH": str(place)}
    for out, more in (("groups", ("--resume",)), ("groups-whole", ())):
        done = run("run", "small.toml", "--out", out, *words, *more, cwd=place, env=environment)
        assert done.returncode == 0, done
    whole, resumed = (load_run(place / name) for name in ("groups-whole", "groups"))
    same(resumed, whole)
    assert resumed.published.shape[:2] == (2, 20)


def as_srun_says(rank: int) -> dict[str, str]:
    """The environment of one of two processes on this machine, of a job of its own."""
    step = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_NTASKS": "2", "SLURM_PROCID": str(rank)}
    return os.environ | step | {"SLURM_LOCALID": str(rank), "SLURM_STEP_NODELIST": "127.0.0.1"}


@pytest.mark.slow
def test_time_to_meet_can_be_set_under_a_launcher(place: Path) -> None:
    """With a first process that never comes."""
    done = run("run", "small.toml", "--out", "lonely", "--connect-within", "3", cwd=place, env=as_srun_says(1))
    assert "within 3 s" in refused(done)


@pytest.mark.slow
def test_a_step_of_slurm_trains_together_and_listens_to_this_machine_only(place: Path) -> None:
    words = ("run", "small.toml", "--set", "schedule.epochs=40", "--set", "run.evaluate_every=40")
    started = [
        subprocess.Popen(
            [str(COMMAND), *words, "--out", "srun"],
            cwd=place,
            env=as_srun_says(rank),
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    addresses: set[str] = set()
    while any(process.poll() is None for process in started):
        addresses |= listening_at(61440 + 31 * os.getpid() % 4096)
    said = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert addresses == {"0000000000000000FFFF00000100007F"}  # 127.0.0.1, as IPv6 writes it
    alone = finished(place, "srun-alone", *words[2:], "--processes", "2", file="small.toml")
    same(load_run(place / "srun"), alone)


def listening_at(port: int) -> set[str]:
    """The addresses at which somebody listens to a port, in hexadecimal digits as Linux has them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    places = [line[1].split(":") for line in lines if line[3] == "0A"]
    return {address for address, at in places if int(at, 16) == port}


def test_a_process_is_told_all_but_which_it_is(tmp_path: Path) -> None:
    words = _words(Asked(file=tmp_path / "my.toml", seeds=3, connect_within=7, resume=True, sets=["a=b"]))
    assert words == [str(tmp_path / "my.toml"), "--set", "a=b", "--seeds", "3", "--connect-within", "7", "--resume"]


def test_nobody_is_told_to_remove_a_finished_run(tmp_path: Path) -> None:
    member = Membership("127.0.0.1:29400", 1, 2)
    assert f"remove {tmp_path}" in _processes._way_on(tmp_path, member)
    (tmp_path / CHECKPOINT).touch()
    assert "--resume" in _processes._way_on(tmp_path, member)
    (tmp_path / CHECKPOINT).unlink()
    (tmp_path / RUN).touch()
    assert _processes._way_on(tmp_path, member).startswith("the run was finished before that")
