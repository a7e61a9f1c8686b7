"""`murmurcast.progress`: how far a call from Python has come, in a terminal or in a notebook.

rich draws the line in a terminal, and knows a notebook when it sees one. There it would need ipywidgets;
what is shown here instead is a line of the cell's own output, which is written anew as work goes on.
"""

import html
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from rich.console import Console

from murmurcast._progress import Stage
from murmurcast.reports.page import fragment_of
from murmurcast.reports.progress_bar import Bar, CountInWords, stages

_SHOWN = ("published_accuracy", "published_distance", "published_loss")
_SECONDS_BETWEEN = 0.2  # lines of a notebook


class Telling(NamedTuple):
    """Whom to tell: itself, how far work has come, and `stage` what begins.

    Attributes:
        stage: Told a few words on what begins.
        counted: Told how many are done, of how many, and words.
    """

    stage: Stage
    counted: CountInWords

    def __call__(self, done: int, of: int, latest: Mapping[str, float] | str | None = None, /) -> None:
        """How many are done, of how many; and what there is to say, the latest metrics or words."""
        self.counted(done, of, _in_words(latest))


@contextmanager
def progress(words: str = "training") -> Iterator[Telling]:
    """Shows how far a call has come, as long as it lasts.

        with mc.progress() as bar:
            run = mc.run(algorithm, problem, options=mc.RunOptions(on_progress=bar))

    What it yields may be `on_progress` of a run, `on_epoch` of an audit, `on_score` of a ranking or `on_try` of a
    search; its `stage` may be `on_stage`. In a notebook the last line stays, in a terminal it goes. Elsewhere, as in a
    pipe, nothing is shown.

    Args:
        words: What goes on.
    """
    console = Console(stderr=True)
    with _in_notebook(words) if console.is_jupyter else stages(console, words) as bar:
        current = words

        def stage(begun: str, /) -> None:
            nonlocal current
            current = begun
            bar.stage(begun)

        def counted(done: int, of: int, words: str | None = None) -> None:
            bar.counted(done, of, f"{current}, {words}" if words else None)

        yield Telling(stage, counted)


@contextmanager
def _in_notebook(first: str) -> Iterator[Bar]:
    """The same as `stages`, as a line of a cell's output."""
    from IPython.display import HTML, display

    began = time.monotonic()
    line, shown_at = _Line(first), began
    shown = display(HTML(line.as_html(0.0)), display_id=True)

    def show(new: _Line, at_once: bool) -> None:
        nonlocal line, shown_at
        line, now = new, time.monotonic()
        if at_once or now - shown_at >= _SECONDS_BETWEEN:
            shown_at = now
            shown.update(HTML(line.as_html(now - began)))

    def stage(words: str, /) -> None:
        show(_Line(words), at_once=True)

    def counted(done: int, of: int, words: str | None = None) -> None:
        show(_Line(words or line.words, done, of), at_once=done >= of)

    try:
        yield Bar(stage, counted)
    except BaseException:
        show(line._replace(words=f"stopped: {line.words}"), at_once=True)
        raise
    show(line, at_once=True)


class _Line(NamedTuple):
    """What stands in a notebook now."""

    words: str
    done: int | None = None
    of: int | None = None

    def as_html(self, seconds: float) -> str:
        clock = timedelta(seconds=int(seconds))
        if self.done is None or self.of is None:
            return fragment_of(f"<p>{html.escape(self.words)} · {clock}</p>")
        bar = f'<progress value="{self.done}" max="{self.of}"></progress>'
        return fragment_of(f"<p>{bar}{self.done}/{self.of} · {clock} · {html.escape(self.words)}</p>")


def _in_words(latest: Mapping[str, float] | str | None) -> str | None:
    if latest is None or isinstance(latest, str):
        return latest
    return ", ".join(f"{name.replace('_', ' ')} {latest[name]:.4g}" for name in _SHOWN if name in latest) or None
