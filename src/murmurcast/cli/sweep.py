"""`murmurcast sweep`: one experiment at many points."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure, with_options
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.runs.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command takes."""

    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)]
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=V,V,...", help="Values of a key; all combinations are run. Repeatable."),
    ] = None
    random: Annotated[
        int | None, typer.Option(metavar="N", help="Draw N times from the ranges, for every combination.")
    ] = None
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="KEY=LOW:HIGH", help="A range to draw from; LOW:HIGH:log for ratios. Repeatable."
        ),
    ] = None
    draw_seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the draws. Default: 0, or as in the file.")
    ] = None
    seeds: Annotated[int | None, typer.Option(help="Run seeds 0 to N-1 at every point.", metavar="N")] = None
    sets: Sets = None
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to keep it. Default: sweeps/NAME-OF-FILE.")] = (
        None
    )
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Points at a time. Default: one per core; they share the cores.")
    ] = None
    retries: Annotated[int, typer.Option(metavar="N", help="How often a point is tried again whose worker died.")] = 2
    ray: Annotated[bool, typer.Option("--ray", help="Let Ray do the work; needs the extra ray.")] = False
    ray_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The Ray cluster. Default: an instance of this machine's.")
    ] = None
    metric: Annotated[
        str | None, typer.Option(help="What the table shows. Default: published_accuracy, or published_loss.")
    ] = None
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the metric against what was varied, as .png, .pdf, .svg.")
    ] = None
    as_json: AsJson = False


@with_options
def sweep(asked: Asked) -> None:
    """Run an experiment at many points, side by side, and make one labelled data set of it.

    What is done is kept, and never run again: the same command goes on after Ctrl-C, a crash or a full disk, and with
    further values runs those only. The grid may also stand in the file, under sweep.

    Examples:
        murmurcast plan --example digits > digits.toml

        murmurcast sweep digits.toml --grid privacy.epsilon=1,3,10 --grid algorithm.name=power-controlled,dp-dsgd

        murmurcast sweep digits.toml --random 20 --range schedule.step=0.05:1:log --out sweeps/steps

        murmurcast compare sweeps/digits --figure accuracy.pdf
    """
    from rich.console import Console

    from murmurcast.cli._sweep_table import live_table
    from murmurcast.experiments import load as experiment_files
    from murmurcast.experiments.sweep import SweepOptions
    from murmurcast.experiments.sweep import sweep as carry_out
    from murmurcast.experiments.sweep_points import parse_grid, parse_ranges

    if asked.figure is not None:
        require_figure(asked.figure)
    experiment = experiment_files.load(asked.file, overrides(asked.sets))
    folder = asked.out or Path("sweeps") / asked.file.stem
    with live_table(Console(stderr=True)) as watch:
        options = SweepOptions(
            ranges=parse_ranges(asked.ranges or []),
            random=asked.random,
            seed=asked.draw_seed,
            seeds=asked.seeds,
            folder=folder,
            workers=asked.workers,
            retries=asked.retries,
            ray=asked.ray or asked.ray_address is not None,
            ray_address=asked.ray_address,
            on_change=watch,
        )
        try:
            sweep_result = carry_out(experiment, parse_grid(asked.grid or []), options, asked.file.parent)
        except KeyboardInterrupt:
            where = _check.printable(str(folder))
            typer.echo(f"stopped; what is done is in {where}. The same command goes on", err=True)
            raise
    metric, unknown = _metric(sweep_result, asked.metric)
    _show(sweep_result, metric, asked.as_json)
    if unknown is not None:
        raise unknown
    if asked.figure is not None and sweep_result.runs:
        from murmurcast.reports import plots

        plots.save(plots.sweep_figure(sweep_result, metric), asked.figure)
    if failures := sweep_result.failures:
        raise Error(
            f"{len(failures)} of {len(sweep_result.points)} points failed: {failures[0].problem}",
            hint=f"{failures[0].hint}; the same command tries them again",
        )


def _metric(sweep_result: "Sweep", asked: str | None) -> tuple[str, Error | None]:
    """The metric to show, and what is wrong with the one that was asked for: only runs say which ones there are."""
    from murmurcast.reports.sweep_table import shown_metric

    try:
        return shown_metric(sweep_result, asked if sweep_result.runs else None), None
    except Error as problem:
        return shown_metric(sweep_result, None), problem


def _show(sweep_result: "Sweep", metric: str, as_json: bool) -> None:
    from murmurcast.reports.sweep_table import cells, failed, headings, note

    if as_json:
        echo_json(as_dict(sweep_result, metric))
        return
    from murmurcast.reports import text_tables

    console = text_tables.console()
    if sweep_result.runs:
        texts = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in cells(sweep_result, metric)]
        columns = headings(sweep_result, metric)
        text_tables.show_table(console, f"At the end, {metric}", texts, columns, note(sweep_result))
    if sweep_result.failures:
        text_tables.show_table(console, "Failed", failed(sweep_result), ("point", "why", "attempts"))
    done = f"{len(sweep_result.runs)} of {len(sweep_result.points)} points"
    typer.echo(f"\nKept in  {_check.printable(str(sweep_result.folder))}: {done}")


def as_dict(sweep_result: "Sweep", metric: str) -> dict[str, Any]:
    """The sweep for programs."""
    from murmurcast.reports.sweep_table import summary

    rows = [
        {"name": point.name, "values": point.values, **summary(sweep_result, point, metric)._asdict()}
        for point in sweep_result.done
    ]
    return {
        "folder": str(sweep_result.folder),
        "axes": list(sweep_result.axes),
        "metric": metric,
        "points": rows,
        "failures": [one._asdict() for one in sweep_result.failures],
        "missing": [point.name for point in sweep_result.missing],
    }
