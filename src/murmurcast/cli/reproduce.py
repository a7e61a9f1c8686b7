"""`murmurcast reproduce`: the paper's figures, its theory, and the honest picture beside them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, echo_json

if TYPE_CHECKING:
    from rich.console import Console

    from murmurcast.reports.progress_bar import Bar
    from murmurcast.reproduction.outcome import Reproduction
    from murmurcast.reproduction.reproduce import Watching
    from murmurcast.reproduction.settings import Setting
    from murmurcast.runs.run import Progress as OnEpochs

_COLOURS = {"held": "green", "did not hold": "red", "for information": "dim"}


def reproduce(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write it all.")] = Path("reproduction"),
    seeds: Annotated[
        int,
        typer.Option(metavar="N", help="Runs of each setting that has noise; certified ones have at most 3.", min=1),
    ] = 5,
    data: Annotated[
        Literal["mnist", "digits"] | None,
        typer.Option(help="What to learn from. Default: MNIST, and digits where it cannot be got.", show_default=False),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Try the certified setting elsewhere too: more nodes, a ring, a small network."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper: its figures, four settings side by side, its theory measured, a network that refutes it.

    Takes about five minutes on two cores, and with --full much longer. An earlier reproduction in the folder is
    replaced when the new one is ready.

    Examples:
        murmurcast reproduce

        murmurcast reproduce --seeds 10 --out ten-seeds

        murmurcast reproduce --data digits --seeds 2 --out quick

        murmurcast reproduce --full --out everything
    """
    from rich.console import Console

    from murmurcast.reports import progress_bar
    from murmurcast.reproduction.reproduce import reproduce as make

    seconds: dict[str, float] = {}
    with progress_bar.stages(console := Console(stderr=True, highlight=False), "starting") as bar:
        try:
            reproduction = make(out, data, seeds, _watching(bar, console, seconds), full=full)
        except KeyboardInterrupt:
            typer.echo(f"stopped; {_check.printable(str(out))} is as it was", err=True)
            raise
    if as_json:
        from murmurcast.reproduction.writing import as_dict

        echo_json({"folder": str(out), **as_dict(reproduction), "seconds": seconds})
        return
    _show(reproduction, out, seconds)


def _watching(bar: "Bar", console: "Console", seconds: dict[str, float]) -> "Watching":
    """A bar on a terminal; lines for what is done, which a log keeps too."""
    from rich.markup import escape

    from murmurcast.reproduction.reproduce import Watching
    from murmurcast.reproduction.run_tables import metric_of

    def run(setting: "Setting") -> "OnEpochs":
        def epochs(done: int, of: int, latest: dict[str, float]) -> None:
            metric = metric_of(setting.group)
            reached = f", accuracy {latest[metric]:.3f}" if metric in latest else ""
            bar.counted(done, of, f"{setting.label}{reached}")
            if done == of:
                console.print(f"  {escape(setting.label)}{reached}", soft_wrap=True)

        return epochs

    def part_done(part: str, taken: float) -> None:
        seconds[part] = taken
        console.print(f"{escape(part)}: {taken:.1f} s", soft_wrap=True)

    return Watching(bar.stage, run, part_done)


def _show(reproduction: "Reproduction", folder: Path, seconds: dict[str, float]) -> None:
    """What came out: first lines, the main table, what held, where it is, how long it took."""
    from rich.markup import escape

    from murmurcast.reports import text_tables

    console = text_tables.console()
    for line in reproduction.first_lines:
        console.print(f"[bold]{escape(line)}[/bold]", soft_wrap=True)
    main = reproduction.chapters[0].tables[0]
    text_tables.show_table(console, main.title, main.rows, main.headings, main.note)
    for chapter in reproduction.chapters:
        console.print(f"\n[bold]{escape(chapter.title)}[/bold]")
        for finding in chapter.findings:
            colour = _COLOURS[finding.outcome]
            console.print(f"[{colour}]{finding.outcome}:[/{colour}] {escape(finding.text)}", soft_wrap=True)
    console.print(f"\n[bold]Written to {text_tables.plain(str(folder))}[/bold]")
    console.print("report.html to look at, summary.md to read, figures/ to print, tables/ and curves/ to use, runs/")
    total = sum(seconds.values())
    text_tables.show_table(
        console,
        f"Time: {total:.0f} s",
        [(part, f"{taken:.1f}") for part, taken in seconds.items()],
        ("part", "seconds"),
    )
