"""`murmurcast compare`: runs side by side."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurcast.cli._options import AsJson, OwnMethods, echo_json, require_figure, with_options, with_runs_of_sweeps
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.runs.compare import Comparison
    from murmurcast.runs.result import Result


class Format(StrEnum):
    """What a comparison is printed as."""

    LATEX = "latex"
    CSV = "csv"
    MD = "md"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command takes."""

    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs or of sweeps.", metavar="RUN...", show_default=False)
    ]
    metric: Annotated[
        str | None,
        typer.Option(help="What to compare, such as published_accuracy. Default: own_accuracy, or own_loss."),
    ] = None
    target: Annotated[
        float | None, typer.Option(help="Time how soon runs reach this. Default: what the weakest ends with.")
    ] = None
    mark: Annotated[float | None, typer.Option(hidden=True, help="The former name of --target.")] = None
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves as .png, .pdf or .svg.")] = None
    against: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Of a sweep: draw against this key, or against epoch. Default: the budget."),
    ] = None
    method: OwnMethods = None
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Print the table for a paper or a program: LaTeX, CSV in full, or Markdown."),
    ] = None
    as_json: AsJson = False


@with_options
def compare(asked: Asked) -> None:
    """Set runs side by side: where they ended, how sure that is, how soon they reached a target.

    Examples:
        murmurcast compare runs/ours runs/rival

        murmurcast compare runs/* --metric published_accuracy --target 0.8

        murmurcast compare runs/ours runs/rival --figure curves.pdf

        murmurcast compare runs/ours runs/rival --metric published_accuracy --format latex > table.tex

        murmurcast compare sweeps/digits --figure accuracy.pdf --against schedule.step
    """
    from murmurcast.algorithms import registry
    from murmurcast.experiments.shown import compare as side_by_side
    from murmurcast.runs.result import load_run

    _require_sense(asked)
    loaded = [load_run(folder) for one in asked.runs for folder in with_runs_of_sweeps(one)]
    own = [registry.own(name) for name in asked.method or []]
    target = asked.mark if asked.target is None else asked.target
    comparison = side_by_side(*loaded, metric=asked.metric, target=target, methods=own)
    if asked.figure is not None:
        _draw(asked, asked.figure, comparison, loaded)
    if asked.as_json:
        echo_json({"metric": comparison.metric, "target": comparison.target, "runs": comparison.records})
    else:
        _print(comparison, asked.form)


def _require_sense(asked: Asked) -> None:
    """Before anything is read: options that fit together, and a place for the plot."""
    if asked.form is not None and asked.as_json:
        raise Error(f"--json and --format {asked.form} are two formats", hint="leave one of them out")
    if asked.figure is not None:
        require_figure(asked.figure)
    if asked.against is not None and (asked.figure is None or not _is_one_sweep(asked)):
        raise Error("--against is about the plot of one sweep", hint="name one sweep, and a file with --figure")


def _is_one_sweep(asked: Asked) -> bool:
    from murmurcast.runs.sweep import is_sweep

    return len(asked.runs) == 1 and is_sweep(asked.runs[0])


def _draw(asked: Asked, path: Path, comparison: "Comparison", loaded: "list[Result]") -> None:
    """The curves of runs; of a sweep its metric against what was varied."""
    from murmurcast.experiments.sweep import load_sweep
    from murmurcast.reports import plots

    if _is_one_sweep(asked) and asked.against != "epoch":
        drawn = plots.sweep_figure(load_sweep(asked.runs[0]), comparison.metric, asked.against)
    else:
        drawn = plots.curves_figure(loaded, comparison.metric)
    plots.save(drawn, path)


def _print(comparison: "Comparison", form: Format | None) -> None:
    from murmurcast.reports import table_text, text_tables

    if form is Format.CSV:
        typer.echo(comparison.to_frame().to_csv(index=False, lineterminator="\n"), nl=False)
        return
    notes = (*comparison.notes, *_about_privacy(comparison))
    title = f"At the end, {comparison.metric}"
    if form is None:
        text_tables.show_table(text_tables.console(), title, comparison.cells, comparison.headings, "\n".join(notes))
        return
    written = table_text.latex if form is Format.LATEX else table_text.markdown
    typer.echo(written(title, comparison.headings, comparison.cells, notes))


def _about_privacy(comparison: "Comparison") -> tuple[str, ...]:
    if not comparison.is_covered:
        return ("no noise covers own models; beside an epsilon: --metric published_accuracy, or published_loss",)
    return (
        "epsilon: of what is sent and published; no noise covers own models",
        "not certified: the run's account does not hold; murmurcast certify says why",
    )
