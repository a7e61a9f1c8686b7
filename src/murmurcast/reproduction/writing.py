"""Writes a reproduction: a summary to read, a page to show, figures to print, tables and curves to use.

Nothing in these files depends on when or how fast they were made: the same seeds on the same machine give the same
tables.
"""

import csv
import io
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from murmurcast._files import write_atomically
from murmurcast._progress import Stage
from murmurcast.reports import plots
from murmurcast.reproduction.document import Curve, Finding, Table
from murmurcast.reproduction.outcome import Reproduction
from murmurcast.reproduction.report import page

RUNS, MARK = "runs", "reproduction.json"
_FORMATS = (".pdf", ".png")


def write(reproduction: Reproduction, folder: Path, on_stage: Stage) -> None:
    """All files but the runs', which are there already; the mark that makes it a reproduction comes last."""
    for part in ("figures", "tables", "curves"):
        (folder / part).mkdir()
    for chapter in reproduction.chapters:
        on_stage(f"drawing: {chapter.title}")
        for picture in chapter.pictures:
            for ending in _FORMATS:
                plots.save(picture.figure, folder / "figures" / f"{picture.name}{ending}")
        for table in chapter.tables:
            write_atomically(folder / "tables" / f"{table.name}.csv", _csv(table).encode())
        for name, curve in chapter.curves.items():
            write_atomically(folder / "curves" / f"{name}.dat", dat(curve).encode())
    on_stage("writing the report")
    write_atomically(folder / "summary.md", summary(reproduction).encode())
    write_atomically(folder / "report.html", page(reproduction, folder / "figures").encode())
    write_atomically(folder / MARK, (json.dumps(as_dict(reproduction), indent=2) + "\n").encode())


def is_ours(folder: Path) -> bool:
    """Whether a folder holds a reproduction."""
    if not (folder / MARK).is_file():  # a pipe would keep us waiting for ever
        return False
    try:
        return str(json.loads((folder / MARK).read_text(encoding="utf-8"))["made_by"]).startswith("murmurcast ")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def summary(reproduction: Reproduction) -> str:
    """What held and what did not, with all tables."""
    lines = ["# The paper, reproduced", "", *(f"{line}\n" for line in reproduction.first_lines)]
    for chapter in reproduction.chapters:
        lines += [f"## {chapter.title}", "", *map(_line, chapter.findings), ""]
        lines += [_markdown(table) for table in chapter.tables]
    return "\n".join(lines)


def dat(curve: Curve) -> str:
    """Columns under a line of headings, as pgfplots reads them."""
    rows = (" ".join(f"{value:.8g}" for value in row) for row in curve.columns)
    return "\n".join((" ".join(curve.headings), *rows, ""))


def _line(finding: Finding) -> str:
    return f"- **{finding.outcome.capitalize()}.** {finding.text}"


def _markdown(table: Table) -> str:
    head = f"| {' | '.join(table.headings)} |\n|{'---|' * len(table.headings)}"
    rows = "\n".join(f"| {' | '.join(row)} |" for row in table.rows)
    return f"### {table.title}\n\n{head}\n{rows}\n" + (f"\n{table.note}\n" if table.note else "")


def _csv(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.headings, *table.rows])
    return text.getvalue()


def as_dict(reproduction: Reproduction) -> dict[str, Any]:
    """For programs."""
    return {
        "made_by": f"murmurcast {version('murmurcast')}",
        "data": reproduction.data,
        "seeds": reproduction.seeds,
        "first_lines": list(reproduction.first_lines),
        "findings": {chapter.title: _findings(chapter.findings) for chapter in reproduction.chapters},
    }


def _findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{"held": finding.holds, "text": finding.text} for finding in findings]
