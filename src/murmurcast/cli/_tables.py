"""Tables in the terminal, of one look."""

import sys
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmurcast import _check


def console() -> Console:
    """Standard output; in a pipe, where no terminal says how wide it is, 120 columns."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def plain(text: str) -> str:
    """Text as it is: neither markup nor control characters in it have any effect."""
    return escape(_check.printable(text))


def show_table(
    console: Console, title: str, rows: Iterable[Iterable[str]], headings: Iterable[str], note: str = ""
) -> None:
    """A titled table, columns of words to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    listed = [list(row) for row in rows]
    for column, heading in enumerate(headings):
        words = any(row[column][:1].isalpha() for row in listed)
        table.add_column(plain(heading), justify="left" if words else "right")
    for row in listed:
        table.add_row(*map(plain, row))
    console.print(f"\n[bold]{plain(title)}[/bold]")
    console.print(table)
    if note:
        console.print(note, style="dim", markup=False)
