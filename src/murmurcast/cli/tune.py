"""`murmurcast tune`: choose clip, steps and epochs on public data."""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from murmurcast import _check, _files
from murmurcast.cli._options import AsJson, Sets, echo_json, overrides
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.experiments.build import Experiment
    from murmurcast.experiments.tune import TuneOptions
    from murmurcast.experiments.tuning import Tuning

_WRITTEN = "written.json"  # hashes of the files that were written, which may be replaced
_TRIED = {"clip": "clips", "step": "steps", "epochs": "epochs", "decay": "decays"}


def tune(
    file: Annotated[Path, typer.Argument(help="The experiment about private data, a TOML file.", show_default=False)],
    public: Annotated[
        str, typer.Option(metavar="DATASET", help="Public data: a set by name, or a .npz, .csv or .parquet file.")
    ],
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="KEY=VALUE,VALUE",
            help="What to try of clip, step, epochs or decay, and nothing else of it. Repeatable.",
        ),
    ] = None,
    sets: Sets = None,
    seeds: Annotated[int, typer.Option(help="Seeds that every value is a mean of.", metavar="N")] = 3,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the experiment. Default: NAME-tuned.toml.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file at --out, whatever it is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose clip, step, decay and epochs on public data, at no cost of privacy.

    The public set takes the place of the private one, which is not read: the same network, partition, features,
    problem, method and budget. A coarse grid is tried, then what lies around its best. The choice is written into a
    copy of the experiment, with its origin, which certificates print. What was tried is kept in tuning/NAME-OF-FILE:
    the same command goes on where it stopped.

    Examples:
        murmurcast plan --example certified > certified.toml

        murmurcast tune certified.toml --public fashion-mnist

        murmurcast run certified-tuned.toml

        murmurcast tune mine.toml --public public.csv --try epochs=10,30 --try clip=0.3 --seeds 5
    """
    from rich.console import Console

    from murmurcast.experiments import load as experiment_files
    from murmurcast.experiments.tune import TuneOptions
    from murmurcast.reports.progress_bar import stages
    from murmurcast.runs.result import require_place

    given = _Given(file, overrides(sets), public)
    kept, goal = Path("tuning") / file.stem, out or file.with_name(f"{file.stem}-tuned.toml")
    experiment = experiment_files.load(file, given.changed)
    text = file.read_text(encoding="utf-8-sig")
    require_place(kept)
    _require_free(goal, kept, overwrite)
    with stages(Console(stderr=True), "loading") as bar:
        tried: dict[str, Any] = _tried(tries or [])
        options = TuneOptions(**tried, seeds=seeds, folder=kept, on_stage=bar.stage, on_try=bar.counted)
        tuning = _tune(experiment, given, options)
    comments_kept = _write(tuning, given, text, goal, kept)
    if as_json:
        echo_json({**tuning.as_dict(), "file": str(goal), "comments_kept": comments_kept, "folder": str(kept)})
        return
    _show(tuning, goal, comments_kept)


class _Given(NamedTuple):
    """What the command was given: the experiment's file, its values that --set changes, and the public set."""

    file: Path
    changed: dict[str, str]
    public: str


def _tried(items: list[str]) -> "dict[str, tuple[Any, ...]]":
    """The values of --try by the options they are of."""
    values: dict[str, tuple[Any, ...]] = {}
    for item in items:
        key, equals, listed = item.partition("=")
        key, words = key.strip(), [word.strip() for word in listed.split(",")]
        if key not in _TRIED or not equals:
            raise Error(
                f"--try {item}: expected KEY=VALUE,VALUE",
                hint=f"{_check.nearest(key, _TRIED)} Write it as --try clip=0.1,0.3",
            )
        if _TRIED[key] in values:
            raise Error(f"--try {key} is given twice", hint=f"write all values at once: --try {key}=1,2")
        read = {"clip": float, "step": float, "epochs": int, "decay": str}[key]
        try:
            values[_TRIED[key]] = tuple(read(word) for word in words)
        except ValueError:
            raise Error(
                f"--try {item}: a value is not {'a whole number' if read is int else 'a number'}",
                hint="write numbers with commas between them, such as --try epochs=10,30",
            ) from None
    return values


def _tune(experiment: "Experiment", given: _Given, options: "TuneOptions") -> "Tuning":
    from murmurcast.experiments.tune import tune as choose

    try:
        return choose(experiment, public=given.public, options=options, place=given.file.parent)
    except KeyboardInterrupt:
        shown = _check.printable(str(options.folder))
        typer.echo(f"stopped; what was tried is kept in {shown}. The same command goes on from there", err=True)
        raise


def _require_free(goal: Path, kept: Path, overwrite: bool) -> None:
    """Nothing is replaced but what this command wrote before, unchanged since."""
    _files.require_writable(goal)
    if not goal.exists() or overwrite:
        return
    ours = _written(kept).get(str(goal.resolve()))
    if not goal.is_file() or ours != hashlib.sha256(goal.read_bytes()).hexdigest():
        raise Error(
            f"{goal} exists, and this command did not write it as it is",
            hint="choose another file with --out, or replace it with --overwrite",
        )


def _written(kept: Path) -> dict[str, Any]:
    """The hashes of files that were written before."""
    try:
        digests = json.loads((kept / _WRITTEN).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return digests if isinstance(digests, dict) else {}


def _write(tuning: "Tuning", given: _Given, text: str, goal: Path, kept: Path) -> bool:
    """Writes the experiment with the chosen settings; whether its author's comments are still there."""
    from murmurcast.experiments.load import override
    from murmurcast.experiments.tuned_file import moved_paths, tuned_file

    before, values = tomllib.loads(text), tomllib.loads(text)
    override(values, given.changed)
    keys = {(section, key) for part in (before, values) for section, entries in part.items() for key in entries}
    was, now = ({(section, key): part.get(section, {}).get(key) for section, key in keys} for part in (before, values))
    changes = {place: now[place] for place in sorted(keys) if now[place] != was[place]}
    changes |= tuning.changes | moved_paths(values, given.file.parent, goal.parent)
    header = (
        f"--public {Path(given.public).name}: {tuning.metric} {tuning.chosen.value:.4f} there, the best of "
        f"{len(tuning.tries)} settings"
    )
    tuned = tuned_file(text, changes, _check.printable(header))
    content = tuned.text.encode()
    _files.write_atomically(goal, content)
    digests = _written(kept) | {str(goal.resolve()): hashlib.sha256(content).hexdigest()}
    _files.write_atomically(kept / _WRITTEN, json.dumps(digests).encode())
    return tuned.comments_kept


def _show(tuning: "Tuning", goal: Path, comments_kept: bool) -> None:
    from murmurcast.reports import text_tables

    console = text_tables.console()
    seeds = "1 seed" if tuning.seeds == 1 else f"{tuning.seeds} seeds"
    note = (
        f"{tuning.metric}: of published models, mean over nodes and {seeds}; spread: standard deviation over seeds\n"
        f"{tuning.part}\nno record of the private set was read: the choice costs nothing of its budget"
    )
    text_tables.show_table(console, f"Tried on {tuning.public}", tuning.cells, tuning.headings, note)
    console.print(f"\n[bold]Chosen[/bold]: {text_tables.plain(tuning.chosen.setting.in_words())}", soft_wrap=True)
    lost = () if comments_kept else ("comments of the file are lost: it is written in a way that cannot be followed",)
    for line in (*tuning.warnings, *lost):
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}", soft_wrap=True)
    typer.echo(_check.printable(str(goal)))
