"""Tables in the terminal, of one look."""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmurcast import _check

_LONGEST_WORD = 16  # longer ones, such as paths, may be folded


class _Column(NamedTuple):
    """One column, and how wide it may be.

    Attributes:
        heading: Above it.
        cells: One for every row.
        words: Whether it holds words, which may wrap; numbers may not.
        widest: At which nothing wraps.
        narrowest: At which headings and words wrap, and numbers are still whole.
    """

    heading: str
    cells: list[str]
    words: bool
    widest: int
    narrowest: int


def console() -> Console:
    """Standard output; in a pipe, where no terminal says how wide it is, 120 columns."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def plain(text: str) -> str:
    """Text as it is: neither markup nor control characters in it have any effect."""
    return escape(_check.printable(text))


def show_table(
    console: Console, title: str, rows: Iterable[Iterable[str]], headings: Iterable[str], note: str = ""
) -> None:
    """A titled table, columns of words to the left.

    Where it is wider than the console, it is cut between columns, and goes on below behind its first column.
    """
    listed = [[_check.printable(cell) for cell in row] for row in rows]
    columns = [_column(_check.printable(head), [row[at] for row in listed]) for at, head in enumerate(headings)]
    console.print(f"\n[bold]{plain(title)}[/bold]")
    for part in _parts(columns, console.width):
        console.print(_table(part, console.width))
    if note:
        console.print(note, style="dim", markup=False)


def headed(heading: str, lines: Iterable[str]) -> list[tuple[str, str]]:
    """Lines with a heading before the first of them."""
    return [(heading if place == 0 else "", line) for place, line in enumerate(lines)]


def _column(heading: str, cells: list[str]) -> _Column:
    words = any(cell[:1].isalpha() for cell in cells)
    widest = max(map(cell_len, (heading, *cells)))
    pieces = (heading.split(), *(cell.split() if words else [cell] for cell in cells))
    narrowest = max((cell_len(piece) for piece in chain(*pieces)), default=0)
    return _Column(heading, cells, words, widest, min(narrowest, _LONGEST_WORD) if words else narrowest)


def _parts(columns: list[_Column], room: int) -> Iterator[list[_Column]]:
    """All columns at once, if need be with words wrapped; else as many at a time as fit without."""
    if _outer([column.narrowest for column in columns]) <= room:
        yield columns
        return

    def wanted(column: _Column) -> int:
        return min(column.widest, max(column.narrowest, room // 3)) if column.words else column.widest

    first, *others = columns
    part = [first]
    for column in others:
        if len(part) > 1 and _outer([*map(wanted, part), wanted(column)]) > room:
            yield part
            part = [first]
        part.append(column)
    yield part


def _table(columns: list[_Column], room: int) -> Table:
    # A terminal of very few columns folds even numbers; nothing is ever cut off.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, _widths(columns, room), strict=True):
        justify = "left" if column.words else "right"
        table.add_column(escape(column.heading), justify=justify, overflow="fold", width=width)  # type: ignore[arg-type]
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(escape, row))
    return table


def _widths(columns: list[_Column], room: int) -> list[int]:
    """What every column gets. Headings of numbers wrap first, then words; the widest of them before all others."""
    widths = [column.widest for column in columns]
    headings_wrapped = [column.widest if column.words else column.narrowest for column in columns]
    for least in (headings_wrapped, [column.narrowest for column in columns], [1] * len(columns)):
        while _outer(widths) > room and widths != least:
            _, at = max((width, at) for at, width in enumerate(widths) if width > least[at])
            widths[at] -= 1
    return widths


def _outer(widths: list[int]) -> int:
    """Of a table with columns of these widths: three characters between them, one at each edge."""
    return sum(widths) + 3 * (len(widths) - 1) + 2
