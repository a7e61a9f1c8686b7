"""Whole epochs of training by this version and by an earlier one, in turn, each in a process of its own.

With the source folder of the earlier version in BEFORE: BEFORE=../old/src make bench PART=training. What is timed is
what that version's own benchmarks/training.py calls its side of a workload.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROUNDS = 15
SLOWER = 1.03
AT_LEAST = 0.5  # seconds in one timing, so that it does not end before it is begun


class _Version:
    """A workload of one version, waiting in its process to be timed."""

    def __init__(self, source: Path, work: str) -> None:
        path = os.pathsep.join((str(source), str(source.parent)))
        words = [sys.executable, "-P", __file__, work]
        environment = os.environ | {"PYTHONPATH": path}
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._line()  # is compiled

    def timed(self) -> "NDArray[np.float64]":
        """Seconds of some epochs and one more, and of one epoch; and how many some are."""
        print("go", file=self.process.stdin)
        return np.array(self._line().split(), np.float64)

    def end(self) -> None:
        """No more is asked of it."""
        self.process.communicate()

    def _line(self) -> str:
        line = "" if self.process.stdout is None else self.process.stdout.readline()
        if not line:
            sys.exit("error: this version ended\nhint: its own message stands above")
        return line


def compare(source: Path, works: tuple[str, ...]) -> None:
    """One line per workload: milliseconds per epoch of both, and their ratio."""
    for work in works:
        here, before = (_Version(each, work) for each in (Path(__file__).parents[1] / "src", source.resolve()))
        taken = np.array([(here.timed(), before.timed()) for _ in range(ROUNDS)])
        here.end()
        before.end()
        # The quickest of each: the difference of one slow and one quick call would be less than any epoch takes.
        ours, theirs = ((many - one) / count for many, one, count in taken.min(axis=0))
        verdict = "within" if ours <= SLOWER * theirs else "OVER"
        print(f"{work}: {ours * 1e3:.4g} ms per epoch, before {theirs * 1e3:.4g}, ratio {ours / theirs:.3f}", end="")
        print(f", {verdict} {SLOWER:g}", flush=True)


def serve(work: str) -> None:
    """Times the workload whenever a line arrives, and prints the seconds of an epoch."""
    from benchmarks.training import WORKS, Ours

    built = WORKS[work]()
    ours, count = Ours(built), built.epochs
    ours(1)
    longer = int(count * AT_LEAST / _timed(ours, count))
    count = min(built.plan.schedule.epochs - 1, max(count, longer))
    print("ready", flush=True)
    for _ in sys.stdin:
        # Setting up is not an epoch: one epoch's call is taken off.
        print(_timed(ours, count + 1), _timed(ours, 1), count, flush=True)


def _timed(side: Callable[[int], object], epochs: int) -> float:
    begun = time.perf_counter()
    side(epochs)
    return time.perf_counter() - begun


if __name__ == "__main__":
    serve(sys.argv[1])
