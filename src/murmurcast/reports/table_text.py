"""A table as text for other programs: Markdown, and LaTeX with booktabs."""

import re
from collections.abc import Sequence

from murmurcast import _check

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_NUMBER = re.compile(r"(?<![\w.])([+-]\d[\d.]*)")


def markdown(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table in Markdown, columns of numbers to the right.

    Args:
        title: A line above it.
        headings: One per column.
        rows: Their cells.
        notes: Lines below it.
    """
    sides = ["---:" if one else "---" for one in _numeric(rows, len(headings))]
    lines = ("| " + " | ".join(map(_in_markdown, line)) + " |" for line in (headings, *rows))
    head, *body = lines
    below = [f"{_in_markdown(note[:1].upper() + note[1:])}." for note in notes]
    table = "\n".join([head, "|" + "|".join(sides) + "|", *body])
    return "\n\n".join([f"**{_in_markdown(title)}**", table, *below])


def latex(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table in LaTeX, to be put into a `table`; it needs the package booktabs.

    Args:
        title: A comment above it.
        headings: One per column.
        rows: Their cells.
        notes: Comments below it.
    """
    columns = "".join("r" if one else "l" for one in _numeric(rows, len(headings)))
    head, *body = (" & ".join(map(_in_latex, line)) + r" \\" for line in (headings, *rows))
    lines = [
        f"% {_plain(title)}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *(f"% {_plain(note)}" for note in notes),
    ]
    return "\n".join(lines)


def _numeric(rows: Sequence[Sequence[str]], columns: int) -> list[bool]:
    """Whether a column has numbers; "-", "never" and nothing stand where there is none."""
    of_columns = [[row[at] for row in rows if row[at] not in ("", "-", "never")] for at in range(columns)]
    return [bool(cells) and all(re.match(r"[-+]?\.?\d", cell) for cell in cells) for cells in of_columns]


def _plain(text: str) -> str:
    """On one line, without control characters."""
    return " ".join(_check.printable(text).split())


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", _plain(text))


def _in_latex(text: str) -> str:
    escaped = "".join(_LATEX.get(character, character) for character in _plain(text))
    return _NUMBER.sub(r"$\1$", escaped)  # a minus sign, not a hyphen
