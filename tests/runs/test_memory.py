"""Runs that do not fit into memory say so, before they begin or when it is gone."""

from pathlib import Path

import jax
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.runs import memory
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


def test_a_container_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "/proc/meminfo": "MemTotal: 900 kB\nMemAvailable:     800 kB\n",
        "/sys/fs/cgroup/memory.max": "max\n",
        "/sys/fs/cgroup/memory.current": "5\n",
    }
    monkeypatch.setattr(memory, "_text", lambda path: told.get(str(path), ""))
    assert memory.free_memory() == 800 * 1024
    told["/sys/fs/cgroup/memory.max"] = "105\n"
    assert memory.free_memory() == 100
    del told["/proc/meminfo"]
    assert memory.free_memory() > 0
    assert memory._text(Path("/nowhere/at/all")) == ""


@pytest.mark.parametrize(
    "problem",
    [MemoryError("Unable to allocate 54 GiB"), jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")],
)
def test_memory_that_is_gone_is_no_traceback(problem: Exception) -> None:
    with pytest.raises(Error, match="more memory than there is") as raised, memory.enough_memory():
        raise problem
    assert raised.value.hint
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), memory.enough_memory():
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")
