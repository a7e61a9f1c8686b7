"""A sweep's tasks on a Ray cluster, or on a Ray instance of this machine's own.

A task runs in a folder of its own where the cluster puts it, and its finished run comes back as files: machines need
share no disk. What an experiment names (data, networks, methods of one's own) must be there on every machine.
"""

import socket
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from murmurcast._files import write_atomically
from murmurcast.errors import Error, NotWritten
from murmurcast.experiments.sweep_task import Done, Failed, Task, run_task
from murmurcast.experiments.sweep_workers import Event, cores, environment
from murmurcast.runs.folder_lock import LOCK, locked
from murmurcast.runs.result import DATA_KEY, RUN, require_folder

_SECONDS_TO_ANSWER = 10.0
_HINT = "give the address of a running cluster, such as --ray-address 10.0.0.1:6379, or leave it out"


class Finished(NamedTuple):
    """What comes back from a machine of the cluster.

    Attributes:
        outcome: What became of the task.
        files: Of its run's folder, where it is done.
    """

    outcome: Done | Failed
    files: dict[str, bytes]


def run_elsewhere(values: dict[str, Any]) -> Finished:
    """The remote function: the same task, in a folder that is gone afterwards."""
    task = Task(**values)
    with tempfile.TemporaryDirectory(prefix="murmurcast-") as folder:
        kept = Path(folder) / task.name
        outcome = run_task(task._replace(folder=str(kept)))
        if not isinstance(outcome, Done):
            return Finished(outcome, {})
        files = {path.name: path.read_bytes() for path in kept.iterdir() if path.is_file() and path.name != LOCK}
        return Finished(outcome, files)


class RayWorkers:
    """Tasks of a Ray cluster; meets `murmurcast.experiments.sweep_workers.Workers`."""

    def __init__(self, address: str | None, slots: int | None) -> None:
        self._ray = _imported()
        share = 1 if slots is None else max(1, cores() // slots)
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            _connect(self._ray, address, None if address else (slots or cores()) * share)
        self._slots = slots or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        options = {"num_cpus": share, "max_retries": 0, "runtime_env": {"env_vars": environment(share)}}
        self._remote = self._ray.remote(**options)(run_elsewhere)
        self._under_way: dict[Any, Task] = {}
        self._here: deque[Event] = deque()

    @property
    def slots(self) -> int:
        """As many as the cluster has cores, or as were asked for."""
        return self._slots

    def submit(self, task: Task) -> None:
        """Hands the task to the cluster; a run that is here already is only looked at."""
        if (Path(task.folder) / RUN).exists():
            self._here.append(Event(task.name, run_task(task)))
            return
        self._under_way[self._remote.remote(task._asdict())] = task

    def next_event(self, seconds: float) -> Event | None:
        """The next task that came to an end."""
        if self._here:
            return self._here.popleft()
        if not self._under_way:
            time.sleep(min(seconds, 0.1))
            return None
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=seconds)
        if not ready:
            return None
        task = self._under_way.pop(ready[0])
        try:
            finished: Finished = self._ray.get(ready[0])
        except self._ray.exceptions.RayError as problem:
            words = f"its worker on the cluster died ({type(problem).__name__})"
            return Event(task.name, Failed(words, "see the cluster's own logs", again=True))
        return Event(task.name, _kept(task, finished))

    def stop(self) -> None:
        """Cancels what is under way; an instance that was started here ends."""
        for reference in self._under_way:
            self._ray.cancel(reference, force=True)
        self._under_way.clear()
        if self._is_ours:
            self._ray.shutdown()


def _kept(task: Task, finished: Finished) -> Done | Failed:
    """Writes a run's files where they belong, the one that makes it complete last."""
    if isinstance(finished.outcome, Failed):
        return finished.outcome
    folder = Path(task.folder)
    try:
        require_folder(folder)
        with locked(folder):
            for name in sorted(finished.files, key=lambda name: name == RUN):
                write_atomically(folder / name, finished.files[name])
                if name == DATA_KEY:
                    (folder / name).chmod(0o600)
    except NotWritten as problem:
        return Failed(str(problem), problem.hint, again=False, is_full=True)
    except Error as problem:
        return Failed(str(problem), problem.hint, again=False)
    return finished.outcome


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise Error("Ray is not installed", hint='install it: pip install "murmurcast[ray]"') from None
    return ray


def _connect(ray: Any, address: str | None, processors: int | None) -> None:
    """Joins the cluster at an address, or starts an instance here that nobody else can reach."""
    if address is not None and address != "auto":
        _require_answer(address)
    try:
        ray.init(
            address=address or "local",
            num_cpus=processors,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
    except (ConnectionError, ValueError, RuntimeError, OSError) as problem:
        words = " ".join(str(problem).split())[:200]
        raise Error(
            f"there is no Ray cluster at {address}: {words}" if address else f"Ray does not start: {words}", hint=_HINT
        ) from None


def _require_answer(address: str) -> None:
    """Somebody answers there: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise Error(f'"{address}" is not the address of a Ray cluster', hint=_HINT)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as problem:
        words = problem.strerror or "no answer"
        raise Error(f"there is no Ray cluster at {address}: {words}", hint=_HINT) from None
