"""The line that shows while work lasts."""

import re
import time
from io import StringIO

from rich.console import Console

from murmurcast.reports import progress_bar

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def last_line(shown: StringIO) -> str:
    """What stands in the terminal now: the last words that were written."""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    return plain.replace("\r", "\n").strip().split("\n")[-1]


def wait_for(shown: StringIO, *parts: str) -> str:
    """The line, as soon as it has these parts; it is written anew ten times a second."""
    deadline = time.monotonic() + 300  # only so that a bar that is wrong does not stop all tests
    while not all(part in last_line(shown) for part in parts):
        assert time.monotonic() < deadline, last_line(shown)
        time.sleep(0.02)
    return last_line(shown)


def test_every_stage_has_its_own_count_and_all_have_one_clock() -> None:
    shown, now = StringIO(), [0.0]
    console = Console(file=shown, force_terminal=True, width=100, get_time=lambda: now[0])
    with progress_bar.stages(console, "reading") as bar:
        wait_for(shown, "reading", "0:00:00")
        now[0] = 4.0
        bar.stage("running")
        bar.counted(20, 20)
        wait_for(shown, "running", "20/20", "0:00:04")
        now[0] = 7.0  # the count is full, and the stage goes on
        line = wait_for(shown, "running", "20/20", "0:00:07")
        assert line[0] in SPINNER
        now[0] = 62.0
        bar.stage("guessing [b]")
        line = wait_for(shown, "guessing [b]", "0:01:02")
        shown.truncate(0)  # what is written from here on shows this stage and no other
        line = wait_for(shown, "guessing [b]", "0:01:02")
        assert "running" not in shown.getvalue()
        assert line[0] in SPINNER
        assert "/" not in line
        bar.counted(3, 9, "other words")
        wait_for(shown, "other words", "3/9")


def test_off_a_terminal_nothing_is_shown() -> None:
    shown = StringIO()
    with progress_bar.stages(Console(file=shown), "reading") as bar:
        bar.stage("running")
        bar.counted(1, 2)
    assert shown.getvalue() == ""
