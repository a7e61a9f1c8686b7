"""Compiled programs are kept: where, for whom, with which way out; two processes at once do no harm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from murmurcast.engine.compile_cache import VARIABLE

PROGRAM = """
import sys
import numpy as np
import murmurcast as mc
problem = mc.Quadratic.random(3, 4)
plan = mc.plan(mc.topologies.complete(3, seed=1), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=4))
np.save(sys.argv[1], mc.run(mc.power_controlled(plan), problem).published)
"""


def start(folder: Path, name: str, **environment: str) -> "subprocess.Popen[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", VARIABLE))}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(folder / name)],
        env=clean | environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> None:
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints


@pytest.mark.slow
def test_programs_are_kept_shared_and_change_no_bit(tmp_path: Path) -> None:
    at_once = [start(tmp_path, f"{number}.npy", **{VARIABLE: str(tmp_path / "kept")}) for number in (1, 2)]
    for process in at_once:
        finish(process)
    kept = {path.name for path in (tmp_path / "kept" / "compiled").rglob("*-cache")}
    assert any("rounds" in name for name in kept)
    finish(start(tmp_path, "3.npy", **{VARIABLE: str(tmp_path / "kept")}))
    assert {path.name for path in (tmp_path / "kept" / "compiled").rglob("*-cache")} == kept  # nothing compiled anew
    contents = {(tmp_path / f"{number}.npy").read_bytes() for number in (1, 2, 3)}
    assert len(contents) == 1


@pytest.mark.slow
def test_it_can_be_switched_off_and_gives_way(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    finish(start(tmp_path, "off.npy", **{VARIABLE: "off", "XDG_CACHE_HOME": str(tmp_path / "home")}))
    assert not (tmp_path / "home").exists()
    stated = {VARIABLE: str(tmp_path / "kept"), "JAX_COMPILATION_CACHE_DIR": str(elsewhere)}
    finish(start(tmp_path, "jax.npy", **stated))
    assert not (tmp_path / "kept").exists()


@pytest.mark.slow
def test_a_home_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    finish(start(tmp_path, "full.npy", **{VARIABLE: str(tmp_path / "file")}))
