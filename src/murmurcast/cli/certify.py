"""`murmurcast certify`: what runs really cost, from what was sent."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from murmurcast import _check
from murmurcast.cli import _verification
from murmurcast.cli._options import AsJson, OwnMethods, complain, echo_json
from murmurcast.errors import Altered, Error
from murmurcast.privacy.rounding import at_most

if TYPE_CHECKING:
    from murmurcast._check import FloatArray
    from murmurcast.algorithms.method import Method
    from murmurcast.certificates.certify import Certified
    from murmurcast.certificates.document import Certifiable

_MADE_BY = "murmurcast certify"
_NODES_SHOWN = 20


def certify(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs; after an archived certificate, the folders it is about.",
            metavar="[CERTIFICATE] RUN...",
            show_default=False,
        ),
    ],
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
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the certificate as a page to print, .html, or .pdf by Chromium."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Show that the data, whose files lie here, is the run's. Default: it is looked for near the run.",
        ),
    ] = None,
    method: OwnMethods = None,
    as_json: AsJson = False,
) -> None:
    """Recompute from the ledger what a run cost every node, and compare it with what was promised and planned.

    Several runs on the same data compose. With a certificate, compare it with the folders it is about. Exit code 1: a
    promise is broken, a run was altered, or the certificate does not hold.

    Examples:
        murmurcast certify runs/ours

        murmurcast certify runs/ours --delta 1e-6 --json

        murmurcast certify runs/monday runs/tuesday --out both.json

        murmurcast certify runs/ours --page ours.html

        murmurcast certify ours.html runs/ours
    """
    from murmurcast.algorithms import registry

    own = [registry.own(name) for name in method or []]
    if runs[0].is_file():
        if not (delta is None and out is None and page is None):
            raise Error(
                "--delta, --out and --page write a certificate anew, and this one is to be verified",
                hint="leave them out, or name folders only",
            )
        _verification.verify(runs[0], runs[1:], own, data, as_json)
        return
    _require_once(runs)
    for folder in runs:
        _require_not_stopped(folder)
    _require_places(out, page)
    if data is not None:
        _verification.require_data(runs, data)
    _certify(Wanted(runs, delta, out, page, data, as_json), own)


class Wanted(NamedTuple):
    """What to certify, and where to write it."""

    runs: list[Path]
    delta: float | None
    out: Path | None
    page: Path | None
    data: Path | None
    as_json: bool


def _certify(wanted: Wanted, own: "list[Method]") -> None:
    """Recomputes, writes and shows; exit code 1 where a promise is broken or a run was altered."""
    from murmurcast.certificates.document import earned

    certified, values, usual = _recomputed(wanted, own)
    if earned(certified):
        kept = _write_certificate(values, wanted.out or usual, wanted.page)
    else:
        kept = _write_other(values, wanted)
    if wanted.as_json:
        echo_json(values)
    else:
        _show(certified, wanted.runs, kept)
    if certified.verdict == "broken":
        for line in certified.problems:
            complain(line, "do not rely on this run's epsilon; restore its folder, or run it again")
        raise typer.Exit(1)
    if wanted.page is not None and not earned(certified):
        raise Error(
            f"no page is written, because this is not a certificate: {certified.basis.split(':')[0]}",
            hint="leave --page out; --out writes what there is to say as JSON",
        )


def _recomputed(wanted: Wanted, own: "list[Method]") -> "tuple[Certified, dict[str, Any], Path | None]":
    """What was found, how it is written down, and where; what altered runs once earned is withdrawn."""
    from murmurcast.certificates.document import contents
    from murmurcast.experiments.certify import certify as recompute

    try:
        pieces = _verification.pieces(wanted.runs, _verification.names_of(wanted.runs))
        usual = _usual(pieces, wanted)
        certified = recompute([piece.run for piece in pieces], wanted.delta, own, wanted.data)
        return certified, contents(certified, pieces), usual
    except Altered as problem:
        altered = [folder for folder in wanted.runs if _is_altered(folder, own, wanted.data)]
        for path in (wanted.out, wanted.page, *(kept for folder in altered for kept in _kept_in(folder))):
            _withdraw(path)
        complain(str(problem), problem.hint)
        raise typer.Exit(1) from None


def _write_certificate(values: dict[str, Any], path: Path | None, page: Path | None) -> list[Path]:
    if path is not None:
        _write(path, values)
    if page is not None:
        from murmurcast.reports import certificates

        certificates.write(values, page)
    return [one for one in (path, page) if one is not None]


def _write_other(values: dict[str, Any], wanted: Wanted) -> list[Path]:
    """What is no certificate is written where it is asked for, and takes the place of none."""
    if wanted.out is not None:
        _write(wanted.out, values)
    for kept in (wanted.page, *(_kept_in(wanted.runs[0]) if len(wanted.runs) == 1 else ())):
        if kept != wanted.out:
            _withdraw(kept)
    return [] if wanted.out is None else [wanted.out]


def _usual(pieces: "list[Certifiable]", wanted: Wanted) -> Path | None:
    """Where a run's certificate belongs; one of another delta never takes the place of its own."""
    from murmurcast.runs.result import CERTIFICATE

    places = [folder / CERTIFICATE for folder in wanted.runs]
    other = wanted.delta is not None and any(wanted.delta != piece.run.ledger.attrs["delta"] for piece in pieces)
    if other and wanted.out is not None and wanted.out.resolve() in [place.resolve() for place in places]:
        raise Error(
            f"{wanted.out} is for the certificate of the run's own delta", hint="choose another file with --out"
        )
    if len(places) > 1:
        return None
    return places[0].with_name(f"certificate-delta-{wanted.delta!r}.json") if other else places[0]


def _kept_in(folder: Path) -> list[Path]:
    """All certificates of a run that are kept with it."""
    from murmurcast.runs.result import CERTIFICATE

    return [folder / CERTIFICATE, *sorted(folder.glob("certificate-delta-*.json"))]


def _require_once(runs: list[Path]) -> None:
    places = [folder.resolve() for folder in runs]
    for place, folder in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise Error(f"{folder} is given twice", hint="name each run once: it was sent once")


def _is_altered(folder: Path, methods: "list[Method]", data: Path | None) -> bool:
    """Whether this run by itself is refused."""
    from murmurcast.experiments.certify import certify as recompute
    from murmurcast.runs.result import load_run

    try:
        recompute(load_run(folder), None, methods, data)
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


def _require_places(out: Path | None, page: Path | None) -> None:
    """Before the work, not after it."""
    if out is not None:
        _require_free(out)
    if page is not None:
        from murmurcast.reports import certificates

        certificates.require_page(page)


def _require_free(path: Path) -> None:
    """The file can be written, and nobody else's is lost."""
    from murmurcast import _files

    _files.require_writable(path)
    if path.exists() and not _is_ours(path):
        raise Error(f"{path} was not written by {_MADE_BY}", hint="choose another file with --out")


def _is_ours(path: Path) -> bool:
    try:
        if path.suffix == ".html":
            from murmurcast.reports.certificates import is_certificate

            return is_certificate(path)
        document = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("made_by") == _MADE_BY


def _write(path: Path, values: dict[str, Any]) -> None:
    from murmurcast import _files
    from murmurcast.certificates.document import as_text

    _require_free(path)
    _files.write_atomically(path, as_text(values).encode())


def _withdraw(path: Path | None) -> None:
    """A certificate that a run once earned does not outlive it."""
    if path is not None and path.is_file() and _is_ours(path):
        path.unlink()
        typer.echo(f"withdrawn: {_check.printable(str(path))}", err=True)


def _show(certified: "Certified", runs: list[Path], kept: list[Path]) -> None:
    """Every node's cost, and what stands behind it."""
    from murmurcast.privacy.best_guess import in_words
    from murmurcast.reports import text_tables

    console = text_tables.console()
    what = f"{runs[0]}, from its ledger" if len(runs) == 1 else f"{len(runs)} runs, from their ledgers"
    if certified.verdict != "nothing is promised":
        headings = ("node", "mu promised", "mu recomputed", f"epsilon at delta {at_most(certified.delta)}", "verdict")
        left_out = len(certified.mu) - _NODES_SHOWN
        note = f"the {left_out} nodes that pay least are left out; all of them: --json" if left_out > 0 else ""
        text_tables.show_table(console, f"What it cost: {what}", _rows(certified), headings, note)
    lines = (
        ("Verdict", f"{certified.verdict}{_worst(certified)}"),
        *(
            (("Means", in_words(float(certified.best_guess.max()), certified.hidden)),)
            if certified.verdict == "kept"
            else ()
        ),
        ("Basis", certified.basis),
        *((("Unit", certified.hidden), ("Against", certified.adversary)) if certified.tier != "none" else ()),
        *text_tables.headed("Assumed", (*certified.assumptions, *certified.not_compared)),
        *((("Chosen", f"settings: {certified.settings_chosen}"),) if certified.verdict == "kept" else ()),
        *(("Besides", _besides(who, epsilon, certified.delta)) for who, epsilon in certified.weaker),
        ("Note", certified.note),
        *(("Kept in" if place == 0 else "", str(path)) for place, path in enumerate(kept)),
    )
    for heading, line in lines:
        console.print(f"[bold]{heading:<8}[/bold] {text_tables.plain(line)}", soft_wrap=True)
    for line in certified.warnings:
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}", soft_wrap=True)


def _besides(who: str, epsilon: "FloatArray", delta: float) -> str:
    numbers = f"epsilon {at_most(epsilon.max())} at delta {at_most(delta)}"
    return f"against an {who} only: {numbers} for the node that pays most"


def _rows(certified: "Certified") -> list[tuple[str, ...]]:
    """The nodes that pay most; those whose promise is broken first."""
    order = sorted(range(len(certified.mu)), key=lambda node: (certified.verdicts[node] == "kept", -certified.mu[node]))
    numbers = (certified.promised_mu, certified.mu, certified.epsilon)
    return [
        (str(node), *(at_most(values[node]) for values in numbers), certified.verdicts[node])
        for node in sorted(order[:_NODES_SHOWN])
    ]


def _worst(certified: "Certified") -> str:
    if certified.verdict != "kept":
        return ""
    from murmurcast.certificates.document import worst_node

    node = worst_node(certified)
    numbers = f"epsilon {at_most(certified.epsilon[node])} at delta {at_most(certified.delta)}"
    return f": {numbers} for node {node}, which pays most"
