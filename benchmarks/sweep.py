"""Wall time of a sweep of twelve runs of the digits, with all programs compiled before."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.planning import COMMAND, show

GRID = ("privacy.epsilon=0.5,1,2,4,7,10", "algorithm.name=power-controlled,dp-dsgd")
RUNS, BAR = 12, 30.0


def bench() -> None:
    """Once to compile, and once to be timed."""
    with tempfile.TemporaryDirectory() as folder:
        text = subprocess.run([COMMAND, "plan", "--example", "digits"], check=True, capture_output=True, text=True)
        (Path(folder) / "digits.toml").write_text(text.stdout)
        _sweep(folder, "compiling")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        show(f"a sweep of {RUNS} runs of the digits, {cores} cores, wall time", _sweep(folder, "timed"), BAR)


def _sweep(folder: str, out: str) -> float:
    grid = [word for axis in GRID for word in ("--grid", axis)]
    begun = time.perf_counter()
    done = subprocess.run(
        [COMMAND, "sweep", "digits.toml", *grid, "--out", out], cwd=folder, capture_output=True, text=True
    )
    if done.returncode or f"{RUNS} of {RUNS} points" not in done.stdout:
        sys.exit(done.stderr)
    return time.perf_counter() - begun
