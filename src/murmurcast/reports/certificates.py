"""A certificate on paper: one page that says in words and numbers what holds, if what, and how to check it again."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from murmurcast import _files
from murmurcast.certificates.document import as_text
from murmurcast.certificates.verify import EMBEDDED, read_archived
from murmurcast.errors import Error
from murmurcast.privacy.rounding import at_most, percent_at_most
from murmurcast.reports import printing
from murmurcast.reports.page import Block, Checklist, Embedded, Facts, Section, Text, Verdict, sheet
from murmurcast.runs.result import CERTIFICATE

_UNPAID = "What looking at this data to choose them would cost is not in the number, unless it is named here as paid."
_LIMITS = (
    "The data's line is a keyed hash (HMAC-SHA256). Without the file data.key, which stays with the data, it tells "
    "nothing about the data, however few the possible records are; with it and the data, anybody can check that these "
    "were named when the run was made. Whoever has the key can try guesses: never hand it on with this page. No hash "
    "shows that the run was trained on this data and no other."
)


def require_page(path: Path) -> None:
    """Before the work, not after it: a certificate's page can be written there, and nobody else's file is lost."""
    if path.suffix not in (".html", ".pdf"):
        raise Error(f"{path} is not the name of a page", hint="end it in .html, or in .pdf where there is a browser")
    _files.require_writable(path)
    if path.suffix == ".pdf":
        printing.browser()
        if path.exists():
            raise Error(f"{path} exists, and a PDF is never overwritten", hint="choose another name")
    elif path.exists() and not is_certificate(path):
        raise Error(f"{path} exists and is not the page of a certificate", hint="choose another name")


def is_certificate(path: Path) -> bool:
    """Whether a file is the page of a certificate."""
    try:
        return bool(read_archived(path).page)
    except Error:
        return False


def write(values: dict[str, Any], path: Path) -> None:
    """Writes the page of a certificate, as .html or by a browser as .pdf."""
    require_page(path)
    content = page_of(values)
    _files.write_atomically(path, printing.as_pdf(content) if path.suffix == ".pdf" else content)


def page_of(values: dict[str, Any]) -> bytes:
    """The page of what a certificate says, and nothing else: the same values give the same bytes."""
    names = ", ".join(one["name"] for one in values["runs"])
    count = len(values["runs"])
    lead = (values["sentence"], f"{'Run' if count == 1 else f'{count} runs'} {names} · certified on {values['date']}")
    sections = (
        Section("The number", (*_simulation(values), _numbers(values)), "numbers"),
        Section("What is promised", _promise(values)),
        Section("It holds if", (Text(("Tick what you have checked; each must be true.",)), _assumed(values))),
        Section("Which files", _files_of(values)),
        Section("Check it again", _commands(values)),
        Section("For programs", (Embedded("The same as JSON", as_text(values), EMBEDDED),)),
    )
    return sheet(f"Privacy certificate of {names}", lead, sections).encode(errors="backslashreplace")


def _simulation(values: dict[str, Any]) -> tuple[Verdict, ...]:
    """What must not be overlooked: numbers of a simulation are those that secret noise would give."""
    note = values["note"]
    return (Verdict(f"{note[:1].upper()}{note[1:]}.", "warning"),) if note.startswith("simulation") else ()


def _numbers(values: dict[str, Any]) -> Facts:
    headline = values["headline"]
    return Facts(
        (
            ("epsilon, at most", (at_most(headline["epsilon"]),)),
            ("delta", (at_most(headline["delta"]),)),
            ("hides one", (headline["hidden"],)),
            ("best guess, at most", (percent_at_most(headline["best_guess"]),)),
        )
    )


def _promise(values: dict[str, Any]) -> tuple[Block, ...]:
    epsilon = sorted(values["epsilon"])
    pays = f"node {values['headline']['node']} pays most"
    if len(epsilon) > 1 and epsilon[0] < epsilon[-1] * (1 - 1e-9):
        pays += f"; the {len(epsilon)} nodes pay epsilon {at_most(epsilon[0])} to {at_most(epsilon[-1])}"
    rows = [
        ("Against", (values["adversary"],)),
        ("For the whole of", tuple(map(_in_short, values["runs"]))),
        ("Cost", (f"mu {at_most(max(values['mu']))} of Gaussian differential privacy; {pays}",)),
        ("By", (values["basis"],)),
        ("Settings chosen", (values["settings_chosen"], _UNPAID)),
        *(() if _simulation(values) else (("Note", (values["note"],)),)),
    ]
    if values["weaker"]:
        besides = [
            f"epsilon {at_most(max(one['epsilon']))} against an {one['against']} only" for one in values["weaker"]
        ]
        rows.insert(3, ("Besides", tuple(besides)))
    return (Facts(tuple(rows)),)


def _in_short(run: dict[str, Any]) -> str:
    seeds = "seed" if len(run["seeds"]) == 1 else "seeds"
    listed = _several([str(seed) for seed in run["seeds"]])
    return f"{run['name']}: {run['algorithm']}, {run['nodes']} nodes, {run['epochs']} epochs, {seeds} {listed}"


def _several(words: Sequence[str], most: int = 12) -> str:
    return ", ".join(words) if len(words) <= most else f"{', '.join(words[:most])} and {len(words) - most} more"


def _assumed(values: dict[str, Any]) -> Checklist:
    return Checklist(
        tuple(f"{line[:1].upper()}{line[1:]}" for line in (*values["assumptions"], *values["not_compared"]))
    )


def _files_of(values: dict[str, Any]) -> tuple[Block, ...]:
    several = len(values["runs"]) > 1
    rows = [
        (f"{run['name']}/{name}" if several else name, (digest,))
        for run in values["runs"]
        for name, digest in (*run["sha256"].items(), ("data", run["data_commitment"] or "not committed to"))
    ]
    rows.append((CERTIFICATE, (hashlib.sha256(as_text(values).encode()).hexdigest(),)))
    return Facts(tuple(rows), mono=True), Text((f"SHA-256 of each file. {_LIMITS}",))


def _commands(values: dict[str, Any]) -> tuple[Block, ...]:
    lines = tuple((one["checks"].capitalize(), (one["command"],)) for one in values["commands"])
    versions = ", ".join(f"{package} {version}" for package, version in values["versions"].items())
    run_versions = tuple(
        f"{run['name']}: {', '.join(f'{name} {version}' for name, version in (run['versions'] or {}).items())}"
        for run in values["runs"]
    )
    return (
        Text((f"CERTIFICATE is this page as .html, or {CERTIFICATE}. Commands are run where the run's folder is.",)),
        Facts(lines, mono=True),
        Facts((("Certified with", (versions,)), ("Run with", run_versions))),
        Facts((("Checked by", ("_" * 34,)), ("On, signature", ("_" * 34,)))),
    )
