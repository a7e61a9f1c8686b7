"""A line on stderr while work lasts: what goes on, how far it has come, and the time since it began."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple, Protocol

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from murmurcast._progress import Stage


class CountInWords(Protocol):
    """Told how many are done, of how many, and of what where the words change."""

    def __call__(self, done: int, of: int, words: str | None = None) -> None:
        """How many, of how many; words where they change."""
        ...


class Bar(NamedTuple):
    """Whom to tell of a stage that begins, and of how far it has come."""

    stage: Stage
    counted: CountInWords


class _Spinner(SpinnerColumn):
    """Turns as long as the bar shows: a stage may go on after its count is full."""

    def render(self, task: Task) -> RenderableType:
        return self.spinner.render(task.get_time())


class _Clock(ProgressColumn):
    """Time since the bar began. A task's own clock stops when its count is full."""

    def __init__(self, began: float) -> None:
        super().__init__()
        self.began = began

    def render(self, task: Task) -> Text:
        passed = timedelta(seconds=int(task.get_time() - self.began))
        return Text(str(passed), style="progress.elapsed")


@contextmanager
def stages(console: Console, first: str) -> Iterator[Bar]:
    """Shows stages one after another, and nothing where the console is no terminal.

    Args:
        console: Where to show them.
        first: The stage that begins at once.
    """
    words, count = TextColumn("{task.description}"), TextColumn("{task.fields[count]}")
    columns = (_Spinner(), words, BarColumn(), count, _Clock(console.get_time()))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        # A task that once had a total keeps it, so every stage is a task of its own.
        task = bar.add_task(escape(first), total=None, count="")

        def stage(words: str) -> None:
            nonlocal task
            bar.remove_task(task)
            task = bar.add_task(escape(words), total=None, count="")

        def counted(done: int, of: int, words: str | None = None) -> None:
            description = None if words is None else escape(words)
            bar.update(task, completed=done, total=of, description=description, count=f"{done}/{of}")

        yield Bar(stage, counted)
