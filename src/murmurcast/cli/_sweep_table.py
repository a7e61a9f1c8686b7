"""A table on stderr while a sweep lasts: every point, how far it has come, and the time left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from murmurcast import _check
from murmurcast.experiments.sweep_state import Status, Watch
from murmurcast.experiments.sweep_task import Done, Failed

_BAR = 20  # characters
_MARGIN = 6  # lines of the terminal besides the points
_STYLES = {"waiting": "dim", "running": "", "done": "green", "failed": "red"}


@contextmanager
def live_table(console: Console) -> Iterator[Watch]:
    """Shows how a sweep stands, and nothing where the console is no terminal."""
    if not console.is_terminal:
        yield _nobody
        return
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        begun = console.get_time()

        def show(points: Mapping[str, Status], seconds_left: float | None) -> None:
            rows = max(3, console.height - _MARGIN)
            live.update(render(points, seconds_left, console.get_time() - begun, rows))

        yield show


def render(points: Mapping[str, Status], seconds_left: float | None, passed: float, rows: int) -> Group:
    """The table: points that are under way first, then those that failed, are done, and wait."""
    order = {"running": 0, "failed": 1, "done": 2, "waiting": 3}
    listed = list(points.items())
    if len(listed) > rows:
        listed = sorted(listed, key=lambda item: order[item[1].state])[:rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, justify in (("point", "left"), ("", "left"), ("", "left"), ("s", "right")):
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for name, status in listed:
        seconds = f"{status.seconds:.1f}" if status.state != "waiting" else ""
        words = Text(_words(status), style=_STYLES[status.state])
        table.add_row(Text(_check.printable(name)), Text(_bar(status)), words, seconds)
    return Group(table, Text(_summary(points, seconds_left, passed)))


def _words(status: Status) -> str:
    if isinstance(status.outcome, Done) and status.state == "done":
        return f"{status.outcome.metric.replace('_', ' ')} {status.outcome.value:.4f}"
    if isinstance(status.outcome, Failed) and status.state == "failed":
        return _check.printable(status.outcome.problem)[:60]
    tried = f", attempt {status.attempts}" if status.attempts > 1 else ""
    return f"{status.state}{tried}"


def _bar(status: Status) -> str:
    filled = round(_BAR * status.share) if status.state in ("running", "done") else 0
    return "█" * filled + "░" * (_BAR - filled)


def _summary(points: Mapping[str, Status], seconds_left: float | None, passed: float) -> str:
    counts = {state: sum(one.state == state for one in points.values()) for state in _STYLES}
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    left = "not known yet" if seconds_left is None else str(timedelta(seconds=round(seconds_left)))
    return f"{counts['done']} of {len(points)} done{failed}; {timedelta(seconds=int(passed))} so far, time left {left}"


def _nobody(points: Mapping[str, Status], seconds_left: float | None, /) -> None:
    """Nobody looks."""
    del points, seconds_left
