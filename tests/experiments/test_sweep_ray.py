"""Sweeps on a Ray instance that the test starts itself: the numbers are those of local processes.

Ray is large, so it is installed only for this: make test-ray.
"""

import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import murmurcast as mc
from murmurcast.errors import Error
from tests import commands
from tests.experiments.sweeps import GRID, NAMES, TINY, assert_same, tiny, written

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("default")  # those of Ray are its own
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - so it is called; else they get no turn on a busy machine


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """An instance of two processors, which sweeps find running."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> mc.Sweep:
    return mc.sweep(tiny(), GRID, mc.SweepOptions(folder=tmp_path_factory.mktemp("local") / "sweep", workers=2))


@pytest.mark.usefixtures("cluster")
def test_ray_gives_the_numbers_of_local_processes(local: mc.Sweep, tmp_path: Path) -> None:
    options = mc.SweepOptions(folder=tmp_path / "sweep", workers=2, ray=True)
    result = mc.sweep(tiny(), GRID, options)
    assert list(result.runs) == NAMES
    for name in NAMES:
        assert_same(result[name], local[name])
        assert mc.certify(result[name]).verdict == "kept"
        key = tmp_path / "sweep" / "runs" / name / "data.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert result.epsilons == pytest.approx(local.epsilons)
    before = written(tmp_path / "sweep")
    again = mc.sweep(tiny(), GRID, options)
    assert written(tmp_path / "sweep") == before
    assert again.epsilons == result.epsilons


def ray_workers() -> list[int]:
    """Processes of Ray that are at a task of ours."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(b"ray::run_elsewhere"):
                result.append(int(entry.name))
    return result


@pytest.mark.usefixtures("cluster")
def test_a_worker_of_the_cluster_that_is_killed_is_replaced(local: mc.Sweep, tmp_path: Path) -> None:
    killed: list[int] = []
    over = threading.Event()

    def kill_the_first() -> None:  # a thread: a task may be done before the sweep looks at it again
        while not killed and not over.is_set():
            for process in ray_workers():
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    killing = threading.Thread(target=kill_the_first)
    killing.start()
    try:
        options = mc.SweepOptions(folder=tmp_path / "sweep", workers=2, ray=True)
        result = mc.sweep(tiny(), {"privacy.epsilon": (1.0,), "algorithm.name": ("dp-dsgd",)}, options)
    finally:
        over.set()
        killing.join()
    assert killed
    assert not result.failures
    assert_same(result[NAMES[1]], local[NAMES[1]])


@pytest.mark.usefixtures("cluster")
def test_points_that_fail_on_the_cluster_are_reported(tmp_path: Path) -> None:
    options = mc.SweepOptions(folder=tmp_path / "sweep", workers=1, ray=True)
    result = mc.sweep(tiny(), {"privacy.clip": (1e-30,)}, options)
    assert result.failures[0].attempts == 1
    assert "clip is 1e-30" in result.failures[0].problem
    assert not result.runs


def test_the_command_starts_an_instance_and_ends_it(local: mc.Sweep, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    words = ("--grid", "privacy.epsilon=4.0", "--grid", "algorithm.name=dp-dsgd", "--ray", "--workers", "2")
    done = commands.run("sweep", "tiny.toml", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 points" in done.stdout
    assert_same(mc.load_run(tmp_path / "sweeps" / "tiny" / "runs" / NAMES[3]), local[NAMES[3]])


def test_a_cluster_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    words = ("--grid", "privacy.epsilon=4.0", "--ray-address", "127.0.0.1:1")
    assert "no Ray cluster at 127.0.0.1:1" in commands.refused(commands.run("sweep", "tiny.toml", *words, cwd=tmp_path))
    words = ("--grid", "privacy.epsilon=4.0", "--ray-address", "nowhere")
    assert "not the address of a Ray" in commands.refused(commands.run("sweep", "tiny.toml", *words, cwd=tmp_path))
    with pytest.raises(Error, match="Ray is not asked for"):
        mc.SweepOptions(ray_address="127.0.0.1:1")
