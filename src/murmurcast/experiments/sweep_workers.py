"""Who carries out a sweep's tasks: worker processes on this machine, or a Ray cluster; and what they tell."""

import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import threading
from typing import IO, Any, NamedTuple, Protocol

from murmurcast.experiments.sweep_task import Done, Failed, Task

_SECONDS_TO_STOP = 60.0  # for a checkpoint; an epoch may be long


class Event(NamedTuple):
    """Something that happened to a task.

    Attributes:
        task: Its name.
        outcome: What became of it; None where it only goes on, or was stopped.
        progress: Epochs done, and of how many.
    """

    task: str
    outcome: Done | Failed | None = None
    progress: tuple[int, int] | None = None


class Workers(Protocol):
    """Carries out tasks, several at a time."""

    @property
    def slots(self) -> int:
        """How many tasks at a time."""
        ...

    def submit(self, task: Task) -> None:
        """Begins a task; there are never more than `slots` at once."""
        ...

    def next_event(self, seconds: float) -> Event | None:
        """What happened next, or None after so many seconds. A worker that died has failed, and can be tried again."""
        ...

    def stop(self) -> None:
        """Ends all workers. Those that are at work write a checkpoint first, where they can."""
        ...


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(share: int) -> dict[str, str]:
    """What holds a worker to its share of the cores, and makes its numbers those of any other with as many.

    Args:
        share: Cores for each worker.
    """
    words = str(share)
    return {
        "JAX_NUM_CPU_DEVICES": words,
        "NPROC": words,  # XLA's own threads
        "OMP_NUM_THREADS": words,
        "OPENBLAS_NUM_THREADS": words,
    }


class _Worker:
    """One process, and the task that it is at."""

    def __init__(self, share: int, events: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        self.task: Task | None = None
        command = [sys.executable, "-m", "murmurcast.experiments.sweep_worker"]
        paths = os.pathsep.join(path for path in sys.path if path)  # methods of the user's own
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # whatever a method prints may be private: no log keeps it
            text=True,
            encoding="utf-8",
            env=os.environ | environment(share) | {"PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is ours: we end their input, and they write checkpoints
        )
        self.thread = threading.Thread(target=self._listen, args=(self.process.stdout, events), daemon=True)
        self.thread.start()

    def begin(self, task: Task) -> None:
        """Sends the task; a worker that has just died is told of by its own event."""
        self.task = task
        try:
            self.stream.write(json.dumps(task._asdict()) + "\n")
            self.stream.flush()
        except OSError:
            return

    @property
    def stream(self) -> IO[str]:
        """Its standard input."""
        assert self.process.stdin is not None  # noqa: S101 - it was asked for
        return self.process.stdin

    def end_input(self) -> None:
        """No more tasks; what is under way is asked to stop."""
        try:
            self.stream.close()
        except OSError:
            return

    def close(self) -> None:
        """Lets go of a process that has ended."""
        self.end_input()
        self.thread.join()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _listen(self, stream: IO[str], events: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        for line in stream:
            if line.endswith("\n"):  # else it was killed within a word
                events.put((self, json.loads(line)))
        self.process.wait()
        events.put((self, None))


class LocalWorkers:
    """Worker processes on this machine; meets `Workers`.

    Each imports everything once and takes task after task; one that dies is replaced when the next task comes.
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._share = slots, max(1, cores() // slots)
        self._events: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self._workers: list[_Worker] = []

    @property
    def slots(self) -> int:
        """How many processes."""
        return self._slots

    @property
    def processes(self) -> tuple[int, ...]:
        """Their numbers in the system."""
        return tuple(worker.process.pid for worker in self._workers)

    def submit(self, task: Task) -> None:
        """Gives the task to an idle worker, or to a new one."""
        idle = next((worker for worker in self._workers if worker.task is None), None)
        if idle is None:
            idle = _Worker(self._share, self._events)
            self._workers.append(idle)
        idle.begin(task)

    def next_event(self, seconds: float) -> Event | None:
        """What a worker says, or that it died."""
        try:
            worker, words = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        task = worker.task
        if words is None:
            self._workers.remove(worker)
            worker.close()
            return None if task is None else Event(task.name, _died(worker))
        if task is None or words["kind"] == "ready":
            return None
        if words["kind"] == "progress":
            return Event(task.name, progress=(int(words["done"]), int(words["of"])))
        worker.task = None
        return Event(task.name, _outcome(words))

    def stop(self) -> None:
        """Lets them write checkpoints, and waits for it; a second Ctrl-C ends them at once."""
        try:
            for worker in self._workers:
                worker.end_input()
            for worker in self._workers:
                # After an epoch that takes longer than anybody waits, what it began is lost, and nothing else.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(_SECONDS_TO_STOP)
        finally:
            for worker in self._workers:
                worker.process.kill()  # those that have ended notice nothing
                worker.process.wait()
                worker.close()
            self._workers.clear()


def _outcome(words: dict[str, Any]) -> Done | Failed | None:
    kind = words.pop("kind")
    if kind == "done":
        value = math.nan if words["value"] is None else words["value"]  # of a run that diverged: JSON has no NaN
        return Done(**words | {"value": value})
    return Failed(**words) if kind == "failed" else None


def _died(worker: _Worker) -> Failed:
    status = worker.process.returncode
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    hint = "memory may be short: use fewer --workers" if status == -9 else "run this point by itself"
    return Failed(f"its worker process {how}", hint, again=True)
