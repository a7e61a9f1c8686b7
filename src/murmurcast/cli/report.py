"""`murmurcast report`: a page to show."""

from pathlib import Path
from typing import Annotated

import typer

from murmurcast import _check
from murmurcast.cli._options import OwnMethods


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...", show_default=False)],
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
    """
    from murmurcast.algorithms import registry
    from murmurcast.experiments.shown import report as write
    from murmurcast.reports.runs import require_path
    from murmurcast.runs.result import load_run

    require_path(out)
    write([load_run(folder) for folder in runs], out, [registry.own(name) for name in method or []])
    typer.echo(f"{_check.printable(str(out))}, {out.stat().st_size / 2**20:.1f} MiB")
