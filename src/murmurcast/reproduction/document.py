"""What every part of the reproduction hands over: tables, findings, figures and curves."""

from typing import NamedTuple

from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.reports.page import Outcome


class Table(NamedTuple):
    """A table in words and numbers.

    Attributes:
        name: Stem of its file.
        title: What it shows.
        headings: One per column.
        rows: Cells as they are read.
        note: What must be said beside it.
    """

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


class Finding(NamedTuple):
    """A sentence computed from numbers.

    Attributes:
        holds: True or False where something was claimed, None for information.
        text: The sentence.
    """

    holds: bool | None
    text: str

    @property
    def outcome(self) -> Outcome:
        """In words."""
        return "for information" if self.holds is None else "held" if self.holds else "did not hold"


class Curve(NamedTuple):
    """Columns of numbers, as pgfplots reads them.

    Attributes:
        headings: One word per column.
        columns: [rows, columns].
    """

    headings: tuple[str, ...]
    columns: FloatArray


class Picture(NamedTuple):
    """A printed figure.

    Attributes:
        name: Stem of its files.
        caption: What it shows, in a sentence or two.
        figure: One IEEE column wide.
    """

    name: str
    caption: str
    figure: Figure


class Chapter(NamedTuple):
    """All there is on one subject.

    Attributes:
        title: The subject.
        findings: What held and what did not.
        pictures: In order.
        tables: In order.
        curves: By the stems of their files.
    """

    title: str
    findings: tuple[Finding, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]
    curves: dict[str, Curve]
