"""Runs that do not fit into memory say so, before they begin or when it is gone."""

from pathlib import Path

import jax
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.engine.team import Team
from murmurcast.errors import Error
from murmurcast.runs import free_memory, memory
from tests.conftest import asymmetric_network

FLOAT = np.dtype(np.float32)


def algorithm_and_problem() -> "tuple[mc.Algorithm, mc.Quadratic]":
    problem = mc.Quadratic.random(5, 6, clip=1.0)
    plan = mc.plan(asymmetric_network(2, 5), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    return mc.power_controlled(plan), problem


def test_seeds_go_together_as_far_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    models = 5 * 6 * 4
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * 3 * memory.MODEL_COPIES * models)
    assert memory.seed_groups(*algorithm_and_problem(), FLOAT, 7) == (3, 2, 2)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**9)
    assert memory.seed_groups(*algorithm_and_problem(), FLOAT, 7) == (7,)


def test_what_cannot_fit_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 100)
    with pytest.raises(Error, match="one seed needs at least") as raised:
        memory.seed_groups(*algorithm_and_problem(), FLOAT, 1)
    assert "several machines" in raised.value.hint


MACHINE = "MemTotal: 900 kB\nMemAvailable:     800 kB\n"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, 800 * 1024),
        ({"/sys/fs/cgroup/memory.max": "max", "/sys/fs/cgroup/memory.current": "5"}, 800 * 1024),
        ({"/sys/fs/cgroup/memory.max": "105\n", "/sys/fs/cgroup/memory.current": "5\n"}, 100),
        # A job within a slice: the tighter of both limits holds.
        (
            {
                "/proc/self/cgroup": "0::/slurm/job_7\n",
                "/sys/fs/cgroup/slurm/job_7/memory.max": "max",
                "/sys/fs/cgroup/slurm/job_7/memory.current": "30",
                "/sys/fs/cgroup/slurm/memory.max": "500",
                "/sys/fs/cgroup/slurm/memory.current": "40",
            },
            460,
        ),
        # The first version, as older systems have it.
        (
            {
                "/proc/self/cgroup": "9:memory:/slurm/job_7\n4:cpu,cpuacct:/slurm\n",
                "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "300",
                "/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes": "50",
            },
            250,
        ),
        (
            {
                "/proc/self/limits": "Max cpu time  unlimited\nMax address space         700000   700000   bytes\n",
                "/proc/self/status": "VmPeak: 9 kB\nVmSize:     100 kB\n",
            },
            700_000 - 102_400,
        ),
        ({"/proc/self/limits": "Max address space         unlimited            unlimited  bytes\n"}, 800 * 1024),
        ({"/sys/fs/cgroup/memory.max": "100", "/sys/fs/cgroup/memory.current": "105"}, 0),
    ],
)
def test_machine_container_job_and_limit_count(
    stated: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"/proc/meminfo": MACHINE} | stated
    monkeypatch.setattr(free_memory, "_text", lambda path: texts.get(str(path), ""))
    assert free_memory.free_memory() == expected


def test_a_system_that_says_nothing_has_some_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "_GROUPS", Path("/nowhere/at/all"))
    monkeypatch.setattr(free_memory, "_text", lambda _: "")
    assert free_memory.free_memory() > 0


def test_processes_of_one_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    models = 5 * 6 * 4
    monkeypatch.setattr(memory, "free_memory", lambda: memory.MODEL_COPIES * models * 4)
    assert memory.seed_groups(*algorithm_and_problem(), FLOAT, 2) == (2,)
    monkeypatch.setattr(Team, "here", property(lambda _: 2))
    assert memory.seed_groups(*algorithm_and_problem(), FLOAT, 2) == (1, 1)


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError("Unable to allocate 54 GiB"),
        jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory"),
        RuntimeError("can't start new thread"),
    ],
)
def test_memory_that_is_gone_is_no_traceback(problem: Exception) -> None:
    with pytest.raises(Error, match="more memory than there is") as raised, memory.enough_memory():
        raise problem
    assert raised.value.hint
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), memory.enough_memory():
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")
