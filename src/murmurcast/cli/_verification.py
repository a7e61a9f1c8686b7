"""An archived certificate, and data, against the folders of runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from murmurcast.cli._options import complain, echo_json
from murmurcast.errors import Altered, Error

if TYPE_CHECKING:
    from murmurcast.algorithms.method import Method
    from murmurcast.certificates.document import Certifiable
    from murmurcast.certificates.verify import Archived
    from murmurcast.problems.base import Problem
    from murmurcast.runs.result import Result

_LINES_SHOWN = 20


def verify(path: Path, folders: list[Path], own: "list[Method]", data: Path | None, as_json: bool) -> None:
    """Compares a certificate with the folders it is about; exit code 1 where it does not hold."""
    from murmurcast.certificates.verify import read_archived

    archived = read_archived(path)
    if len(folders) != len(archived.names):
        raise Error(
            f"{path} is about {len(archived.names)} runs, and {len(folders)} folders are given",
            hint=f"name the folders of {', '.join(archived.names)} after it",
        )
    try:
        differences = _differences(archived, folders, own, data)
    except Altered as problem:
        complain(str(problem), problem.hint)
        raise typer.Exit(1) from None
    if as_json:
        echo_json({"certificate": str(path), "holds": not differences, "differences": differences})
    elif not differences:
        _show(archived, path, folders)
    if differences:
        shown = differences[:_LINES_SHOWN]
        more = [f"{len(differences) - len(shown)} more differences"] if len(differences) > len(shown) else []
        wrote = archived.values.get("versions")
        version = wrote.get("murmurcast") if isinstance(wrote, dict) else None
        complain(
            f"{path} does not hold:\n  " + "\n  ".join((*shown, *more)),
            "do not rely on it: certificate and folder are not of one run, one of them was changed, or another version "
            f"of murmurcast wrote it ({version})",
        )
        raise typer.Exit(1)
    if data is not None:
        require_data(folders, data)


def pieces(folders: list[Path], names: list[str]) -> "list[Certifiable]":
    """The runs, called by these names: that is how the user knows them."""
    from dataclasses import replace

    from murmurcast.certificates.document import Certifiable
    from murmurcast.runs.result import file_hashes, load_run

    loaded = [load_run(folder) for folder in folders]
    called = [replace(run, info=run.info | {"name": name}) for run, name in zip(loaded, names, strict=True)]
    hashes = [file_hashes(folder) for folder in folders]
    return [Certifiable(*parts) for parts in zip(names, called, hashes, strict=True)]


def names_of(folders: list[Path]) -> list[str]:
    """What folders are called, without the way there unless two of them share a name."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) and all(short) else list(map(str, folders))


def require_data(folders: list[Path], data: Path) -> None:
    """The data is the one that the runs were committed to; exit code 1 where it is not."""
    from murmurcast.runs import commitment
    from murmurcast.runs.result import load_run

    for folder in folders:
        run, key = load_run(folder), commitment.read_key(folder)
        committed = run.info.get("data_commitment")
        if committed is None or not run.experiment:
            raise Error(
                f"{folder} does not say which data it was made from",
                hint="only runs of an experiment file say so; in Python, see murmurcast.runs.commitment.opens",
            )
        problem = _problem(run, data)
        if not commitment.opens(problem, key, committed):
            complain(
                f"the data is not what {folder} was committed to",
                "give the very files of the run (--data), and the data.key that was written with it",
            )
            raise typer.Exit(1)
        typer.echo(f"the data is what {folder} was committed to", err=True)


def _problem(run: "Result", data: Path) -> "Problem":
    """What a run's experiment says of its problem, with data files from this folder."""
    import tomllib

    import tomli_w

    from murmurcast.experiments.load import parse

    try:
        written = tomllib.loads(run.experiment)
    except (ValueError, RecursionError):
        raise Error("the run's experiment.toml cannot be read", hint="restore the run's folder") from None
    written.pop("algorithm", None)  # it may name code, and code that a folder names is never run
    section = written.get("problem")
    if isinstance(section, dict) and ":" in str(section.get("module", "")):  # so does this; the data is the same
        written["problem"] = {"kind": "ridge" if section.get("loss") == "squared-error" else "softmax"}
    experiment = parse(tomli_w.dumps(written).encode(), "experiment.toml")
    return experiment.build_problem(int(run.info["problem"]["nodes"]), data)


def _differences(archived: "Archived", folders: list[Path], own: "list[Method]", data: Path | None) -> list[str]:
    from murmurcast import _files
    from murmurcast.certificates.document import contents
    from murmurcast.certificates.verify import differences
    from murmurcast.experiments.certify import certify
    from murmurcast.runs.result import load_run

    # A folder may have been renamed; a run keeps the name it was made under.
    names = [
        name if name in (short, load_run(folder).name) else short
        for name, short, folder in zip(archived.names, names_of(folders), folders, strict=True)
    ]
    runs = pieces(folders, names)
    fresh = contents(certify([one.run for one in runs], archived.values["delta"], own, data), runs)
    mismatches = differences(archived.values, fresh)
    if mismatches or not archived.page:
        return mismatches
    from murmurcast.reports.certificates import page_of

    try:
        same = page_of(archived.values) == archived.page
    except _files.UNREADABLE:  # of a date or of versions that are none
        same = False
    return [] if same else ["the page does not read as the certificate inside it does"]


def _show(archived: "Archived", path: Path, folders: list[Path]) -> None:
    from murmurcast.privacy.rounding import at_most
    from murmurcast.reports import text_tables

    console, values = text_tables.console(), archived.values
    known = [value for value in values["epsilon"] if value is not None]
    cost = f": epsilon {at_most(max(known))} at delta {values['delta']:g}" if known else ""
    lines = (
        ("Holds", f"{path} says what {' and '.join(map(str, folders))} {'say' if len(folders) > 1 else 'says'}"),
        ("Verdict", f"{values['verdict']}{cost}"),
        ("Means", values["sentence"]),
        *text_tables.headed("Assumed", (*values["assumptions"], *values["not_compared"])),
        ("Note", values["note"]),
    )
    for heading, line in lines:
        console.print(f"[bold]{heading:<8}[/bold] {text_tables.plain(line)}", soft_wrap=True)
