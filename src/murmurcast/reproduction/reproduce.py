"""The whole reproduction, part after part: data, runs, theory, counterexample, and what they come to.

Everything is written aside first and put in its place when all of it is there.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from murmurcast import _check
from murmurcast._progress import Stage, quiet
from murmurcast.data import datasets
from murmurcast.errors import Error
from murmurcast.reproduction import chapters, run_tables, writing
from murmurcast.reproduction.counterexample import run_counterexample
from murmurcast.reproduction.further import Row, run_further
from murmurcast.reproduction.outcome import Reproduction
from murmurcast.reproduction.settings import GROUP_TITLES, PAPER_BUDGETS, DataName, settings
from murmurcast.reproduction.theory import run_theory
from murmurcast.reproduction.training import Run, Watch, train, unwatched
from murmurcast.reproduction.unequal_data import run_unequal_data
from murmurcast.runs.result import require_folder, require_place

ENOUGH_SEEDS = 5  # for the comparison of the published setting


class Watching(NamedTuple):
    """Whom to tell what.

    Attributes:
        stage: A few words on what begins.
        run: Given a setting, whom to tell about its epochs.
        part_done: A part is finished: its name and seconds.
    """

    stage: Stage = quiet
    run: Watch = unwatched
    part_done: Callable[[str, float], None] = quiet


def reproduce(
    folder: Path, data: DataName | None, seeds: int, watching: Watching, *, full: bool = False
) -> Reproduction:
    """Makes everything and writes it to `folder`.

    Args:
        folder: New, or made by an earlier reproduction, which is replaced once the new one is complete.
        data: "mnist" or "digits"; None takes MNIST, and digits where it cannot be got.
        seeds: Runs of each setting that has noise.
        watching: Whom to tell about the progress.
        full: Whether to try the certified setting elsewhere too, which takes longer than all the rest.
    """
    _check.at_least(1, seeds=seeds)
    require_replaceable(folder)
    with _timed("getting the data", watching):
        data_name, notice = obtained(data, watching.stage)
    if full and data_name != "mnist":
        raise Error(
            "the full reproduction needs MNIST and Fashion-MNIST", hint="leave --full out, or give --data mnist"
        )
    with _beside(folder) as beside:
        reproduction = _reproduction(beside, data_name, notice, seeds, watching)
        if full:
            with _timed("the certified setting elsewhere", watching):
                reproduction = _with_further(
                    reproduction, run_further(beside / writing.RUNS / "further", watching.stage)
                )
        with _timed("figures and report", watching):
            writing.write(reproduction, beside, watching.stage)
        _put_in_place(beside, folder)
    return reproduction


def _reproduction(folder: Path, data: DataName, notice: str, seeds: int, watching: Watching) -> Reproduction:
    runs: tuple[Run, ...] = ()
    for group, title in GROUP_TITLES.items():
        with _timed(title, watching):
            of_group = [setting for setting in settings(data, seeds) if setting.group == group]
            runs += train(of_group, folder / writing.RUNS, watching.stage, watching.run)
    with _timed("theory", watching):
        theory = run_theory(watching.stage)
    with _timed("counterexample", watching):
        counterexample = run_counterexample(watching.stage)
    with _timed("unequal data", watching):
        duels = run_unequal_data(watching.stage)
    all_chapters = (
        chapters.accuracy(runs),
        chapters.privacy(runs),
        chapters.theory(theory),
        chapters.corollary(counterexample),
        chapters.better_inputs(runs),
        chapters.on_a_radio(runs),
        chapters.unequal_data(duels),
    )
    return Reproduction(data, seeds, first_lines(notice, seeds, runs), runs, all_chapters)


def _with_further(reproduction: Reproduction, rows: tuple[Row, ...]) -> Reproduction:
    """With the rows that take long, in the chapter on better inputs."""
    fuller = chapters.better_inputs(reproduction.runs, rows)
    replaced = tuple(fuller if one.title == fuller.title else one for one in reproduction.chapters)
    return reproduction._replace(chapters=replaced)


def obtained(wanted: DataName | None, on_stage: Stage) -> tuple[DataName, str]:
    """What to learn from, and what must be said about it."""
    if wanted == "digits":
        return "digits", "This is not the paper's data: digits stand in for MNIST, as asked."
    try:
        datasets.load("mnist", on_stage=on_stage)
    except Error:
        if wanted == "mnist":
            raise
        return "digits", (
            "This is not the paper's data: digits stand in for MNIST, which could not be got (--data mnist says where "
            "it was looked for)."
        )
    return "mnist", ""


def first_lines(notice: str, seeds: int, runs: Sequence[Run]) -> tuple[str, ...]:
    """What a reader must know first: other data, too few seeds, and whether the paper's main claim held."""
    claims = [run_tables.above_the_rival(runs, budget) for budget in PAPER_BUDGETS]
    broken = [f"The paper's main claim did NOT hold. {claim.text}" for claim in claims if not claim.holds]
    few = f"Only {seeds} seed{'s' if seeds > 1 else ''}: at least {ENOUGH_SEEDS} are needed for the comparison."
    confirmed = (
        f"The paper's main claim held as published: from epoch {run_tables.FROM_EPOCH} on Algorithm 1 lies above "
        "mPED2FL with both budgets."
    )
    return tuple(
        line for line in (notice, *broken, few if seeds < ENOUGH_SEEDS else "", "" if broken else confirmed) if line
    )


def require_replaceable(folder: Path) -> None:
    """The folder is new or empty, or holds an earlier reproduction."""
    require_place(folder)
    if folder.exists() and any(folder.iterdir()) and not writing.is_ours(folder):
        raise Error(
            f"{folder} holds something else than a reproduction", hint="choose another folder with --out, or empty it"
        )


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A place to work in, inside the folder and so on the same disk; it goes when the work is done or has failed."""
    is_new = not folder.exists()
    require_folder(folder)
    beside = Path(tempfile.mkdtemp(prefix=".making-", dir=folder))
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def _put_in_place(beside: Path, folder: Path) -> None:
    """Entry by entry, each in the place of its forerunner; the mark, without which nothing counts, goes first and last.

    Other files in the folder stay.
    """
    (folder / writing.MARK).unlink(missing_ok=True)
    for entry in sorted(beside.iterdir(), key=lambda entry: entry.name == writing.MARK):
        earlier = folder / entry.name
        if earlier.is_dir() and not earlier.is_symlink():
            shutil.rmtree(earlier)
        elif entry.is_dir():  # a folder does not take the place of a file or a link by itself
            earlier.unlink(missing_ok=True)
        entry.replace(earlier)


@contextmanager
def _timed(part: str, watching: Watching) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    watching.part_done(part, time.perf_counter() - begun)
