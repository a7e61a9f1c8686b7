"""The table that shows while a sweep lasts."""

import io

from rich.console import Console

from murmurcast.cli._sweep_table import live_table, render
from murmurcast.experiments.sweep_state import Status
from murmurcast.experiments.sweep_task import Done, Failed

POINTS = {
    "a": Status("done", 1.0, 1, Done(1.0, "", "published_accuracy", 0.71234), 3.2),
    "b": Status("running", 0.5, 2, None, 1.0),
    "c\x1b[31m": Status("failed", 0.0, 3, Failed("no [bold]split[/bold] meets it", "raise epsilon", again=False), 0.1),
    "d": Status(),
}


def shown(rows: int, seconds_left: float | None) -> str:
    out = Console(file=io.StringIO(), width=100)
    out.print(render(POINTS, seconds_left, 65.4, rows))
    text = out.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_every_point_says_how_it_stands() -> None:
    text = shown(20, 95.0)
    assert "published accuracy 0.7123" in text
    assert "running, attempt 2" in text
    assert "██████████░░░░░░░░░░" in text
    assert "no [bold]split[/bold] meets it" in text
    assert "waiting" in text
    assert "1 of 4 done, 1 failed; 0:01:05 so far, time left 0:01:35" in text


def test_names_do_not_steer_the_terminal() -> None:
    assert "\x1b" not in shown(20, None)
    assert "time left not known yet" in shown(20, None)


def test_of_many_points_those_under_way_come_first() -> None:
    lines = [line.split()[0] for line in shown(2, None).splitlines() if "░" in line or "█" in line]
    assert lines[0] == "b"
    assert len(lines) == 2


def test_it_shows_on_a_terminal_only() -> None:
    for terminal in (False, True):
        out = io.StringIO()
        with live_table(Console(file=out, force_terminal=terminal, width=100, height=30)) as watch:
            watch(POINTS, 5.0)
        assert ("published accuracy" in out.getvalue()) is terminal
