"""How a sweep stands: what waits, what is under way, what is done, what failed, and how long the rest will take."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from murmurcast import _files
from murmurcast.errors import NotWritten
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.sweep_points import in_turns
from murmurcast.experiments.sweep_task import Done, Failed, Task
from murmurcast.runs.sweep import LOG, Failure, Point, is_done, run_folder

if TYPE_CHECKING:
    from murmurcast.reports.progress_bar import CountInWords

_GO_ON = "free some space; the same command then goes on with what is left"
_ENOUGH = 0.05  # of a point's epochs, to say how long it takes


class Status(NamedTuple):
    """How one point stands.

    Attributes:
        state: Of the point.
        share: How much of its epochs is done.
        attempts: How often it was begun.
        outcome: What became of it; None before it ended.
        seconds: What it took, or has taken so far.
    """

    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    share: float = 0.0
    attempts: int = 0
    outcome: Done | Failed | None = None
    seconds: float = 0.0


@runtime_checkable
class Watch(Protocol):
    """Is told how a sweep stands; whatever it does changes no number."""

    def __call__(self, points: Mapping[str, Status], seconds_left: float | None, /) -> None:
        """All points by name, and the time that is left as far as can be said."""
        ...


@runtime_checkable
class CountsPoints(Protocol):
    """Shows how many are done, and not how each of them stands, as what `murmurcast.progress` yields."""

    @property
    def counted(self) -> "CountInWords":
        """Told how many are done, of how many, and words."""
        ...


def as_watch(on_change: Watch | CountsPoints) -> Watch:
    """Whom to tell of every change."""
    if not isinstance(on_change, CountsPoints):
        return on_change
    bar = on_change

    def count(points: Mapping[str, Status], seconds_left: float | None, /) -> None:
        del seconds_left
        states = [one.state for one in points.values()]
        failed = states.count("failed")
        words = f"{states.count('running')} running" + (f", {failed} failed" if failed else "")
        bar.counted(states.count("done") + failed, len(states), words)

    return count


class State:
    """How all tasks stand."""

    def __init__(
        self, folder: Path, place: Path, wanted: Sequence[Point], experiments: Mapping[str, Experiment], retries: int
    ) -> None:
        self.folder, self.place, self.experiments, self.retries = folder, place, experiments, retries
        self.waiting = deque(in_turns(wanted))
        self.by_name = {point.name: point for point in wanted}
        self.statuses = {point.name: Status() for point in wanted}
        self.done_before = {point.name for point in wanted if is_done(folder, point)}  # found done in no time
        self.begun: dict[str, float] = {}
        self.log: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether anything is left."""
        return bool(self.waiting or self.begun)

    @property
    def done(self) -> dict[str, Done]:
        """What finished runs came to, by point."""
        return {name: one.outcome for name, one in self.statuses.items() if isinstance(one.outcome, Done)}

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Points that are not tried again, and why."""
        return tuple(
            Failure(name, one.outcome.problem, one.outcome.hint, one.attempts)
            for name, one in self.statuses.items()
            if one.state == "failed" and isinstance(one.outcome, Failed)
        )

    def has_room(self, slots: int) -> bool:
        """Whether another task can begin."""
        return bool(self.waiting) and len(self.begun) < slots

    def next_task(self) -> Task:
        """The task that begins now."""
        point = self.waiting.popleft()
        status = self.statuses[point.name]
        self.statuses[point.name] = status._replace(state="running", share=0.0, attempts=status.attempts + 1)
        self.begun[point.name] = time.monotonic()
        folder = run_folder(self.folder, point)
        values = self.experiments[point.name].values
        return Task(point.name, values, str(self.place.resolve()), str(folder.resolve()))

    def goes_on(self, name: str, progress: tuple[int, int]) -> None:
        """So many epochs are done, of so many."""
        seconds = time.monotonic() - self.begun[name]
        self.statuses[name] = self.statuses[name]._replace(share=progress[0] / max(progress[1], 1), seconds=seconds)

    def ended(self, name: str, outcome: Done | Failed | None) -> None:
        """A task came to an end: it is done, is tried again, or has failed."""
        seconds, status = time.monotonic() - self.begun.pop(name), self.statuses[name]
        if isinstance(outcome, Failed) and outcome.details:
            self.log.append(f"{name}, attempt {status.attempts}: {outcome.problem}\n{outcome.details}\n")
        if isinstance(outcome, Failed) and outcome.is_full:
            raise NotWritten(
                f"{outcome.problem}; {len(self.done)} of {len(self.statuses)} points are done and kept", hint=_GO_ON
            )
        again = outcome is None or (isinstance(outcome, Failed) and outcome.again)
        if again and status.attempts <= self.retries:
            self.statuses[name] = status._replace(state="waiting", outcome=outcome, share=0.0)
            self.waiting.append(self.by_name[name])
            return
        state: Literal["done", "failed"] = "done" if isinstance(outcome, Done) else "failed"
        outcome = outcome or Failed("its worker stopped", "try again", again=False)
        self.statuses[name] = status._replace(state=state, outcome=outcome, share=1.0, seconds=seconds)

    def seconds_left(self, slots: int) -> float | None:
        """By what tasks took so far; None before anything can be said."""
        statuses = [one for name, one in self.statuses.items() if name not in self.done_before]
        taken = [one.seconds for one in statuses if one.state == "done"]
        taken = taken or [one.seconds / one.share for one in statuses if one.share > _ENOUGH]
        if statuses and not taken:
            return None
        open_shares = sum(1 - one.share for one in statuses if one.state in ("waiting", "running"))
        return open_shares * sum(taken) / max(1, len(taken)) / min(slots, max(1, len(statuses)))

    def write_log(self) -> None:
        """Where in the code tasks failed, if any did; no values."""
        if self.log:
            _files.write_atomically(self.folder / LOG, "\n".join(self.log).encode(errors="backslashreplace"))
