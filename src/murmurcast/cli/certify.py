"""`murmurcast certify`: what runs really cost, from what was sent."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, complain, echo_json, json_text
from murmurcast.errors import Altered, Error

if TYPE_CHECKING:
    from murmurcast._check import FloatArray
    from murmurcast.certificates.certify import Certified
    from murmurcast.runs.result import Result

_MADE_BY = "murmurcast certify"
_FORMAT = 1
_NODES_SHOWN = 20


def certify(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...", show_default=False)],
    delta: Annotated[
        float | None, typer.Option(help="Failure probability for epsilon. Default: the runs'.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write it as JSON. Default: RUN/certificate.json, for one run that earns a certificate.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="PACKAGE.MODULE:NAME",
            help="A method of your own whose account may be asked. Repeatable; code that a run names is never run.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute from the ledger what a run cost every node, and compare it with what was promised.

    Several runs on the same data compose. Exit code 1: a promise is broken, or a run was altered.

    Examples:
        murmurcast certify runs/ours

        murmurcast certify runs/ours --delta 1e-6 --json

        murmurcast certify runs/monday runs/tuesday --out both.json
    """
    from murmurcast.algorithms import registry
    from murmurcast.certificates.certify import certify as recompute
    from murmurcast.runs.result import CERTIFICATE, load_run

    own = [registry.own(name) for name in method or []]
    usual = runs[0] / CERTIFICATE if len(runs) == 1 else None
    _require_once(runs)
    for folder in runs:
        _require_not_stopped(folder)
    if out is not None:
        _require_free(out)
    try:
        loaded = [load_run(folder) for folder in runs]
        found = recompute(_named(loaded, runs), delta, own)
        values = _as_dict(found, loaded, runs)
    except Altered as problem:
        for path in (out, *(folder / CERTIFICATE for folder in runs if _is_altered(folder))):
            _withdraw(path)
        complain(str(problem), problem.hint)
        raise typer.Exit(1) from None
    earned = found.verdict == "kept" and found.tier == "tier 1"
    path = out or (usual if earned else None)
    if path is not None:
        _write(path, values)
    if not earned and out != usual:
        _withdraw(usual)
    if as_json:
        echo_json(values)
    else:
        _show(found, runs, path)
    if found.verdict == "broken":
        for line in found.problems:
            complain(line, "do not rely on this run's epsilon; restore its folder, or run it again")
        raise typer.Exit(1)


def _require_once(runs: list[Path]) -> None:
    places = [folder.resolve() for folder in runs]
    for place, folder in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise Error(f"{folder} is given twice", hint="name each run once: it was sent once")


def _is_altered(folder: Path) -> bool:
    """Whether this run by itself is refused."""
    from murmurcast.certificates.recompute import account_of
    from murmurcast.runs.result import load_run

    try:
        account_of(load_run(folder))
    except Altered:
        return True
    return False


def _require_not_stopped(folder: Path) -> None:
    """A run that was stopped by hand has no ledger, and its stop was not fixed beforehand."""
    from murmurcast.runs.result import CHECKPOINT, EXPERIMENT, RUN

    kept = (folder / CHECKPOINT).exists()
    if (folder / RUN).exists() or not (kept or (folder / EXPERIMENT).exists()):
        return
    from murmurcast.runs import checkpoint  # slow to import, with all of JAX

    epoch = f", after epoch {checkpoint.load(folder / CHECKPOINT).point.epoch}," if kept else ""
    finish = "finish it (run --resume), or " if kept else ""  # a run with secure noise leaves no checkpoint
    raise Error(
        f"{folder} was stopped on its way{epoch} and is not certified: a stop that was not fixed before the run may "
        "depend on the data, so it counts as the whole plan",
        hint=f"{finish}count with all that murmurcast plan {folder}/experiment.toml says; a stop fixed beforehand is "
        "run.stop_after",
    )


def _named(loaded: "list[Result]", folders: list[Path]) -> "list[Result]":
    """The runs, called by their folders: that is how the user knows them."""
    from dataclasses import replace

    return [replace(run, info=run.info | {"name": str(folder)}) for run, folder in zip(loaded, folders, strict=True)]


def _require_free(path: Path) -> None:
    """The file can be written, and nobody else's is lost."""
    from murmurcast import _files

    _files.require_writable(path)
    if path.exists() and not _is_ours(path):
        raise Error(f"{path} was not written by {_MADE_BY}", hint="choose another file with --out")


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("made_by") == _MADE_BY


def _write(path: Path, values: dict[str, Any]) -> None:
    from murmurcast import _files

    _require_free(path)
    _files.write_atomically(path, (json_text(values, indent=2) + "\n").encode())


def _withdraw(path: Path | None) -> None:
    """A certificate that a run once earned does not outlive it."""
    if path is not None and path.is_file() and _is_ours(path):
        path.unlink()
        typer.echo(f"withdrawn: {_check.printable(str(path))}", err=True)


def _as_dict(found: "Certified", loaded: "list[Result]", folders: list[Path]) -> dict[str, Any]:
    """All that was found, and of which files."""
    import platform
    from importlib.metadata import version

    from murmurcast.runs.result import EXPERIMENT, LEDGER, file_hashes

    numbers = {name: getattr(found, name).tolist() for name in ("mu", "epsilon", "promised_mu")}
    weaker = [{"against": who, "epsilon": epsilon.tolist()} for who, epsilon in found.weaker]
    hashes = [file_hashes(folder) for folder in folders]
    return {
        "made_by": _MADE_BY,
        "format": _FORMAT,
        **found._asdict(),
        **numbers,
        "weaker": weaker,
        "versions": {package: version(package) for package in ("murmurcast", "numpy", "scipy")}
        | {"python": platform.python_version()},
        "runs": [
            {
                "name": run.info.get("name"),
                "algorithm": run.info["algorithm"],
                "epochs": int(run.ledger.attrs["epochs"]),
                "seeds": run.info["seeds"],
                "versions": run.info.get("versions"),
                "sha256": {name: held[name] for name in (EXPERIMENT, LEDGER)},
            }
            for run, held in zip(loaded, hashes, strict=True)
        ],
    }


def _show(found: "Certified", runs: list[Path], path: Path | None) -> None:
    """Every node's cost, and what stands behind it."""
    from murmurcast.cli import _tables

    console = _tables.console()
    what = f"{runs[0]}, from its ledger" if len(runs) == 1 else f"{len(runs)} runs, from their ledgers"
    if found.verdict != "nothing is promised":
        headings = ("node", "mu promised", "mu recomputed", f"epsilon at delta {found.delta:g}", "verdict")
        left_out = len(found.mu) - _NODES_SHOWN
        note = f"the {left_out} nodes that pay least are left out; all of them: --json" if left_out > 0 else ""
        _tables.show_table(console, f"What it cost: {what}", _rows(found), headings, note)
    lines = (
        ("Verdict", f"{found.verdict}{_worst(found)}"),
        ("Basis", found.basis),
        *((("Unit", found.hidden), ("Against", found.adversary)) if found.tier != "none" else ()),
        *(("Assumed" if place == 0 else "", line) for place, line in enumerate(found.assumptions)),
        *(("Besides", _besides(who, epsilon, found.delta)) for who, epsilon in found.weaker),
        ("Note", found.note),
        *((("Kept in", str(path)),) if path is not None else ()),
    )
    for heading, line in lines:
        console.print(f"[bold]{heading:<8}[/bold] {_tables.plain(line)}", soft_wrap=True)


def _besides(who: str, epsilon: "FloatArray", delta: float) -> str:
    return f"against an {who} only: epsilon {epsilon.max():.4g} at delta {delta:g} for the node that pays most"


def _rows(found: "Certified") -> list[tuple[str, ...]]:
    """The nodes that pay most; those whose promise is broken first."""
    order = sorted(range(len(found.mu)), key=lambda node: (found.verdicts[node] == "kept", -found.mu[node]))
    numbers = (found.promised_mu, found.mu, found.epsilon)
    return [
        (str(node), *(f"{values[node]:.4g}" for values in numbers), found.verdicts[node])
        for node in sorted(order[:_NODES_SHOWN])
    ]


def _worst(found: "Certified") -> str:
    if found.verdict != "kept":
        return ""
    node = int((found.mu >= found.mu.max() * (1 - 1e-9)).argmax())  # the first of those that differ by rounding only
    return f": epsilon {found.epsilon[node]:.4g} at delta {found.delta:g} for node {node}, which pays most"
