"""`murmurcast compare`: runs side by side."""

from pathlib import Path
from typing import Annotated

import typer

from murmurcast.cli._options import AsJson, OwnMethods, echo_json, require_figure


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...", show_default=False)],
    metric: Annotated[
        str | None,
        typer.Option(help="What to compare, such as published_accuracy. Default: own_accuracy, or own_loss."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Time how soon runs reach this. Default: what the weakest ends with.")
    ] = None,
    mark: Annotated[float | None, typer.Option(hidden=True, help="The former name of --target.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curves as .png, .pdf or .svg.")] = None,
    method: OwnMethods = None,
    as_json: AsJson = False,
) -> None:
    """Set runs side by side: where they ended, how far seeds and nodes lie apart, how soon they reached a target.

    Examples:
        murmurcast compare runs/ours runs/rival

        murmurcast compare runs/* --metric published_accuracy --target 0.8

        murmurcast compare runs/ours runs/rival --figure curves.pdf
    """
    from murmurcast.algorithms import registry
    from murmurcast.experiments.shown import compare as side_by_side
    from murmurcast.runs.result import load_run

    if figure is not None:
        require_figure(figure)
    loaded = [load_run(folder) for folder in runs]
    own = [registry.own(name) for name in method or []]
    found = side_by_side(*loaded, metric=metric, target=mark if target is None else target, methods=own)
    if figure is not None:
        from murmurcast.reports import plots

        plots.save(plots.curves_figure(loaded, found.metric), figure)
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
