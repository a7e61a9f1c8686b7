"""Networks to test on, asymmetric, so that a transposed index cannot pass; and algorithms with parts exchanged."""

import os
import shutil
import signal
from collections.abc import Callable, Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import settings
from jax.experimental.compilation_cache import compilation_cache
from xdist.scheduler import LoadFileScheduling

from murmurcast.algorithms.base import Algorithm
from murmurcast.engine.compile_cache import use_compile_cache
from murmurcast.network.graph import Network

# Everybody tries the same examples, however long they take: no test fails by chance. With FUZZ they are other ones.
settings.register_profile("repeatable", derandomize="FUZZ" not in os.environ, deadline=None)
settings.load_profile("repeatable")

MakeNetwork = Callable[[int], Network]
_MAX_PROGRAM_BYTES = 2**30


def asymmetric_network(seed: int, nodes: int | None = None) -> Network:
    """A connected random network of 3 to 7 nodes with unequal gains and powers."""
    rng = np.random.default_rng(seed)
    count = nodes or int(rng.integers(3, 8))
    support = np.triu(rng.random((count, count)) < 0.5, 1)
    order = rng.permutation(count)
    for a, b in pairwise(order):  # a path through all nodes keeps it connected
        support[min(a, b), max(a, b)] = True
    support = support | support.T
    return Network(gains=support * rng.uniform(0.3, 1.2, (count, count)), power=rng.uniform(0.5, 2.0, count))


def changed(algorithm: Algorithm, **parts: Any) -> Algorithm:
    """The algorithm with other parts of its only round."""
    (only,) = algorithm.rounds
    return algorithm._replace(rounds=(only._replace(**parts),))


@pytest.fixture(scope="session", autouse=True)
def prepare_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests and their commands keep compiled programs; fonts are listed once for all; Ctrl-C works everywhere."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what goes on in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = use_compile_cache()
    if kept is not None:
        _keep_all_programs(kept.parents[1] / "tests" / kept.name)
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one for all workers
    os.environ["MPLCONFIGDIR"] = str(base / "fonts")


def _keep_all_programs(folder: Path) -> None:
    """A cache beside the users': the tests compile more than theirs holds, so that it would forget each in turn.

    Without a bound JAX does not read the age of every entry whenever it adds one. A bound is kept here instead.
    """
    size = sum(path.stat().st_size for path in folder.glob("*")) if folder.exists() else 0
    if size > _MAX_PROGRAM_BYTES and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Any] = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": -1,
        "jax_persistent_cache_min_compile_time_secs": 0.01,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    for name, value in chosen.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)
    compilation_cache.reset_cache()


@pytest.fixture
def make_network() -> MakeNetwork:
    return asymmetric_network


# Files whose tests share nothing, and which are long: any process may take any of their tests.
_TEST_BY_TEST = ("recorded/test_recorded.py", "test_docs.py", "test_examples.py", "cli/test_processes.py")


class _ByFile(LoadFileScheduling):  # type: ignore[misc]
    """Tests of a file go to one process, which keeps what they share, but for those that share nothing."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return nodeid if file.removeprefix("tests/") in _TEST_BY_TEST else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """Called by pytest-xdist."""
    return _ByFile(config, log)


# Begun first, so that no process is left alone with one of them at the end.
_LONGEST = (
    *("audits/test_random_preprocessed.py", "audits/test_random_networks.py", "cli/test_reproduce.py"),
    *("test_docs.py", "cli/test_processes.py", "recorded/test_recorded.py", "test_examples.py", "audits/test_audit.py"),
    *("experiments/test_rank.py", "algorithms/test_over_radio.py", "audits/test_controls_of_radio.py"),
    *("cli/test_run.py", "cli/test_run_resumed.py", "cli/test_audit.py", "certificates/test_forged_folders.py"),
    *("runs/test_run.py", "audits/test_controls.py", "fuzz/test_run_folders.py", "audits/test_receivers_of_radio.py"),
    *("certificates/test_accounting.py", "certificates/test_certify.py", "cli/test_sweep.py"),
    *("experiments/test_tune.py", "engine/test_large.py", "problems/test_per_example.py", "channels/test_radio_air.py"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first."""
    order = {f"tests/{name}": place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.split("::")[0], len(order)))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Leaves all but one in n cases of a test marked `one_in(n)` to the slow tests: together they take minutes."""
    result = yield
    for place, case in enumerate(result if isinstance(result, list) else ()):
        sampled = case.get_closest_marker("one_in")
        if sampled is not None and place % sampled.args[0]:
            case.add_marker(pytest.mark.slow)
    return result
