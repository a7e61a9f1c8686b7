"""`murmurcast compare`: runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurcast.cli._options import AsJson, OwnMethods, echo_json, require_figure, with_runs_of_sweeps
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.runs.sweep import Sweep


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs or of sweeps.", metavar="RUN...", show_default=False)
    ],
    metric: Annotated[
        str | None,
        typer.Option(help="What to compare, such as published_accuracy. Default: own_accuracy, or own_loss."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Time how soon runs reach this. Default: what the weakest ends with.")
    ] = None,
    mark: Annotated[float | None, typer.Option(hidden=True, help="The former name of --target.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves as .png, .pdf or .svg.")] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Of a sweep: draw against this key, or against epoch. Default: the budget."),
    ] = None,
    method: OwnMethods = None,
    as_json: AsJson = False,
) -> None:
    """Set runs side by side: where they ended, how far seeds and nodes lie apart, how soon they reached a target.

    Examples:
        murmurcast compare runs/ours runs/rival

        murmurcast compare runs/* --metric published_accuracy --target 0.8

        murmurcast compare runs/ours runs/rival --figure curves.pdf

        murmurcast compare sweeps/digits --figure accuracy.pdf --against schedule.step
    """
    from murmurcast.algorithms import registry
    from murmurcast.experiments.shown import compare as side_by_side
    from murmurcast.runs.result import load_run
    from murmurcast.runs.sweep import is_sweep

    if figure is not None:
        require_figure(figure)
    if against is not None and (figure is None or not (len(runs) == 1 and is_sweep(runs[0]))):
        raise Error("--against is about the figure of one sweep", hint="name one sweep, and a file with --figure")
    loaded = [load_run(folder) for one in runs for folder in with_runs_of_sweeps(one)]
    own = [registry.own(name) for name in method or []]
    found = side_by_side(*loaded, metric=metric, target=mark if target is None else target, methods=own)
    if figure is not None:
        from murmurcast.reports import plots

        if len(runs) == 1 and is_sweep(runs[0]) and against != "epoch":
            drawn = plots.sweep_figure(_sweep(runs[0]), found.metric, against)
        else:
            drawn = plots.curves_figure(loaded, found.metric)
        plots.save(drawn, figure)
    if as_json:
        # An epsilon covers published models only, and stands beside no other.
        of_privacy = () if found.is_covered else ("epsilon", "delta", "unit", "caveat", "against", "weaker")
        left_out = (*of_privacy, *(() if found.has_radio else ("radio", "air_seconds", "joules")))
        rows = [{key: value for key, value in row._asdict().items() if key not in left_out} for row in found.rows]
        echo_json({"metric": found.metric, "target": found.target, "runs": rows})
        return
    from murmurcast.cli import _tables

    note = "mean over nodes and seeds; spread: standard deviation over seeds; uses: of the channel\n"
    if found.has_radio:
        note += "s, mJ: time and a node's mean energy up to the same epoch, over a radio\n"
    note += (
        "epsilon: of what is sent and published; no noise covers own models\n"
        "not certified: the run's account does not hold; murmurcast certify says why"
        if found.is_covered
        else "no noise covers own models; beside an epsilon: --metric published_accuracy, or published_loss"
    )
    _tables.show_table(_tables.console(), f"At the end, {found.metric}", found.cells, found.headings, note)


def _sweep(folder: Path) -> "Sweep":
    from murmurcast.experiments.sweep import load_sweep

    return load_sweep(folder)
