"""`murmurcast rank`: all methods at equal cost."""

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, echo_json

if TYPE_CHECKING:
    from rich.console import Console

    from murmurcast.reports.page import Row
    from murmurcast.runs.ranking import Ranking, Score


def rank(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A total budget. Repeatable. Default: 1 and 3.", show_default=False)
    ] = None,
    uses: Annotated[
        list[int] | None, typer.Option(help="Channel uses in all. Repeatable. Default: 40 and 200.", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds that every score is a mean of.", metavar="N")] = 5,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between them. Default: all.", metavar="NAME,NAME")
    ] = None,
    with_unprotected: Annotated[
        bool, typer.Option("--with-unprotected", help="Show methods that promise nothing, in tables of their own.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to keep it. Default: rankings/NAME-OF-FILE.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rank methods on an experiment's network and problem, at equal epsilon and equal channel uses.

    Every method is tuned alike on a part of the training data, never on the test part. That choice is not paid for:
    this compares methods, and releases nothing. Tables, plots and a page are kept in a folder. What is done is kept
    too: the same command goes on where it stopped.

    Examples:
        murmurcast plan --example digits-sparse > digits-sparse.toml

        murmurcast rank digits-sparse.toml

        murmurcast rank digits-sparse.toml --epsilon 1 --uses 100 --seeds 10

        murmurcast rank digits-sparse.toml --methods power-controlled,dp-dsgd,muffliato --out rankings/three
    """
    from rich.console import Console

    from murmurcast.experiments import load as experiment_files
    from murmurcast.experiments.rank import RankOptions
    from murmurcast.experiments.rank import rank as rank_methods
    from murmurcast.reports import ranking as pages
    from murmurcast.reports.progress_bar import stages
    from murmurcast.runs.result import require_folder, require_place

    folder = out or Path("rankings") / file.stem
    require_place(folder)
    experiment = experiment_files.load(file)
    with stages(Console(stderr=True), "loading") as bar:
        options = RankOptions(
            epsilons=tuple(epsilon or (1.0, 3.0)),
            uses=tuple(uses or (40, 200)),
            seeds=seeds,
            methods=tuple(name.strip() for name in methods.split(",")) if methods is not None else (),
            unprotected=with_unprotected,
            folder=folder,
            on_score=bar.counted,
        )
        ranking = rank_methods(experiment, options, file.parent)._replace(name=file.stem)
        bar.stage("writing the page")
        require_folder(folder)
        written = pages.write(ranking, folder)
    if as_json:
        echo_json(ranking.as_dict())
        return
    _show(ranking)
    typer.echo("\n" + "\n".join(_check.printable(str(path)) for path in written))


def _show(ranking: "Ranking") -> None:
    from murmurcast.reports import text_tables
    from murmurcast.reports.ranking import APART, LEADING, headings, leaders
    from murmurcast.runs.ranking import NOBODY, NOT_PAID

    console = text_tables.console()
    for against, epsilon, uses in product(ranking.adversaries, ranking.epsilons, ranking.uses):
        title = f"Against {against}: epsilon {epsilon:g} (delta {ranking.delta:g}, unit {ranking.hidden}), {uses} uses"
        scores, ceiling = ranking.table(against, epsilon, uses), ranking.ceiling(epsilon, uses)
        _show_table(console, title, ranking, scores, ceiling)
    if any(score.against == NOBODY for score in ranking.scores):
        for uses in ranking.uses:
            _show_table(console, f"No privacy: {uses} uses", ranking, (), ranking.unprotected(uses))
    if ranking.left_out:
        rows = [(one.method, one.reason) for one in ranking.left_out]
        text_tables.show_table(console, "Not ranked", rows, ("method", "why"))
    _show_rows(console, "Who leads", leaders(ranking), headings(ranking, LEADING), APART)
    note = (
        f"{ranking.metric}: of published models on the test part, mean over nodes and {ranking.seeds} seeds; spread: "
        "standard deviation over seeds\nepsilon: recomputed from the ledger, for the node that pays most; rows without "
        f"a place are for comparison\n{NOT_PAID}"
    )
    console.print(note, style="dim", markup=False)


def _show_table(
    console: "Console", title: str, ranking: "Ranking", scores: "tuple[Score, ...]", below: "tuple[Score, ...]"
) -> None:
    from murmurcast.reports.ranking import cells, headings

    rows = [*cells(ranking, scores), *cells(ranking, below, ranked=False)]
    _show_rows(console, title, rows, headings(ranking))


def _show_rows(console: "Console", title: str, rows: "list[Row]", heads: tuple[str, ...], note: str = "") -> None:
    from murmurcast.reports import text_tables
    from murmurcast.reports.page import Cell

    texts = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]
    text_tables.show_table(console, title, texts, heads, note)
