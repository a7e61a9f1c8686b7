"""A worker process of a sweep: `python -m murmurcast.experiments.sweep_worker`.

Tasks come in on standard input and what became of them goes out on standard output, a JSON object a line. The process
imports everything once. When its input ends, because the sweep stops or because whoever started it was killed, it
writes a checkpoint of what it is at, and ends.
"""

import contextlib
import io
import json
import os
import queue
import signal
import sys
import threading
import time
from typing import IO, Any

from murmurcast._json import finite
from murmurcast.experiments.sweep_task import Done, Task, run_task

_SECONDS_BETWEEN = 0.25  # of words on progress


def main() -> None:
    """Works until the input ends."""
    out = _own_output()
    tasks: queue.Queue[Task | None] = queue.Queue()
    busy = threading.Event()
    threading.Thread(target=_read, args=(sys.stdin, tasks, busy), daemon=True).start()
    _tell(out, {"kind": "ready"})
    while (task := tasks.get()) is not None:
        busy.set()
        try:
            outcome = run_task(task, _Teller(out))
        except KeyboardInterrupt:
            _tell(out, {"kind": "stopped"})
            return
        finally:
            busy.clear()
        _tell(out, {"kind": "done" if isinstance(outcome, Done) else "failed", **outcome._asdict()})


class _Teller:
    """Tells how far a run has come, a few times a second."""

    def __init__(self, out: IO[str]) -> None:
        self.out, self.last = out, 0.0

    def __call__(self, done: int, of: int, metrics: dict[str, float], /) -> None:
        """Epochs done, of how many, and the latest metrics."""
        del metrics  # own models' are nobody's business
        if time.monotonic() - self.last > _SECONDS_BETWEEN:
            self.last = time.monotonic()
            _tell(self.out, {"kind": "progress", "done": done, "of": of})


def _read(stream: IO[str], tasks: "queue.Queue[Task | None]", busy: threading.Event) -> None:
    """Takes in tasks; at the end of the input asks a run that is under way to stop at its next epoch."""
    for line in stream:
        tasks.put(Task(**json.loads(line)))
    tasks.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGINT)


def _own_output() -> IO[str]:
    """The standard output for ourselves: whatever a library or a method prints goes to the standard error."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return io.TextIOWrapper(os.fdopen(ours, "wb", buffering=0), encoding="utf-8", write_through=True)


def _tell(out: IO[str], words: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more: the input has ended too
        out.write(json.dumps(finite(words)) + "\n")


if __name__ == "__main__":
    main()
