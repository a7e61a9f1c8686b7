"""`murmurcast report`: a page to show."""

from pathlib import Path
from typing import Annotated

import typer

from murmurcast import _check
from murmurcast.cli._options import OwnMethods, with_runs_of_sweeps


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or of a sweep.", metavar="RUN...", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write the page. An earlier report is overwritten."),
    ] = Path("report.html"),
    method: OwnMethods = None,
) -> None:
    """Write one page about runs: curves, networks, power split, privacy, settings, how to cite.

    The page is one file, opens in any browser, and needs no network.

    Examples:
        murmurcast report runs/ours

        murmurcast report runs/ours runs/rival -o rivals.html

        murmurcast report sweeps/digits -o digits.html
    """
    from murmurcast.algorithms import registry
    from murmurcast.experiments.shown import report as write
    from murmurcast.experiments.sweep import load_sweep
    from murmurcast.reports.runs import require_path
    from murmurcast.runs.result import load_run
    from murmurcast.runs.sweep import is_sweep

    require_path(out)
    own = [registry.own(name) for name in method or []]
    if len(runs) == 1 and is_sweep(runs[0]):
        write(load_sweep(runs[0]), out, own)
    else:
        write([load_run(folder) for one in runs for folder in with_runs_of_sweeps(one)], out, own)
    typer.echo(f"{_check.printable(str(out))}, {out.stat().st_size / 2**20:.1f} MiB")
