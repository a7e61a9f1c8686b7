"""What a certificate says when it is written down: numbers, words, hashes, and how to check them again.

The same dictionary is `certificate.json`, what `certify --json` prints, and what the page shows. Whatever is no
certificate is written with the same keys, and says so by its `tier` and `verdict`.
"""

import platform
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from murmurcast._json import json_text
from murmurcast.certificates.certify import Certified
from murmurcast.privacy.rounding import at_most, percent_at_most
from murmurcast.privacy.settings_chosen import NOT_STATED
from murmurcast.runs.result import EXPERIMENT, LEDGER, MODELS, Result

MADE_BY = "murmurcast certify"
FORMAT = 2
HASHED = (EXPERIMENT, LEDGER, MODELS)


class Certifiable(NamedTuple):
    """A run as a certificate names it.

    Attributes:
        name: Of its folder, without the way there, which is nobody's business.
        run: As it was read.
        sha256: Of its files, by their names.
    """

    name: str
    run: Result
    sha256: dict[str, str]


def contents(certified: Certified, runs: Sequence[Certifiable]) -> dict[str, Any]:
    """All that a certificate says, ready for JSON but for numbers that are not finite."""
    worst = worst_node(certified)
    chance = float(certified.best_guess[worst])
    return {
        "made_by": MADE_BY,
        "format": FORMAT,
        "sentence": _sentence(certified, chance),
        "headline": {
            "epsilon": float(at_most(float(certified.epsilon[worst]))),
            "delta": certified.delta,
            "best_guess": chance,
            "node": worst,
            "hidden": certified.hidden,
        },
        **certified._asdict(),
        **{name: getattr(certified, name).tolist() for name in ("mu", "epsilon", "promised_mu", "best_guess")},
        "weaker": [{"against": who, "epsilon": epsilon.tolist()} for who, epsilon in certified.weaker],
        "runs": [_of_run(one) for one in runs],
        "commands": _commands([one.name for one in runs]),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {package: version(package) for package in ("murmurcast", "numpy", "scipy")}
        | {"python": platform.python_version()},
    }


def earned(certified: Certified) -> bool:
    """Whether this is a certificate."""
    return certified.verdict == "kept" and certified.tier == "tier 1"


def worst_node(certified: Certified) -> int:
    """The first of those that pay most, if they differ by rounding only."""
    return int((certified.mu >= certified.mu.max() * (1 - 1e-9)).argmax())


def as_text(values: dict[str, Any]) -> str:
    """As it is written to files: JSON, in which numbers that are not finite are null."""
    return f"{json_text(values, indent=2)}\n"


def _sentence(certified: Certified, chance: float) -> str:
    """What it means, for people."""
    if certified.tier == "none":
        return "The promise is broken." if certified.verdict == "broken" else "Nothing is promised."
    if certified.tier == "nothing sent":
        return "Nothing is sent and nothing published: nobody can do better than toss a coin."
    what = {
        "node": "one node's data was used, or other data in its place",
        "record": "one record was used, or another in its place",
    }.get(certified.hidden, f"the records of one {certified.hidden} were used, or others in their place")
    right = f"right at most {percent_at_most(chance)} of the time. A coin is right 50 % of the time."
    if certified.tier == "tier 1":
        return (
            "Somebody who sees all that was sent and published, knows all other data, and guesses whether "
            f"{what}, is {right}"
        )
    return f"Guesses by {certified.adversary}, on whether {what}, are {right}"


def _of_run(one: Certifiable) -> dict[str, Any]:
    info = one.run.info
    return {
        "name": one.name,
        "algorithm": info["algorithm"],
        "nodes": info["problem"]["nodes"],
        "epochs": int(one.run.ledger.attrs["epochs"]),
        "seeds": info["seeds"],
        "settings_chosen": _settings_chosen(one.run),
        "versions": info.get("versions"),
        "sha256": {name: one.sha256[name] for name in HASHED},
        "data_commitment": info.get("data_commitment"),
    }


def _settings_chosen(run: Result) -> str:
    return str(run.ledger.attrs.get("settings_chosen", NOT_STATED))


def _commands(names: Sequence[str]) -> list[dict[str, str]]:
    """How anybody who has the folders checks it again; CERTIFICATE stands for this page or certificate.json."""
    folders = " ".join(map(shlex.quote, names))
    files = " ".join(shlex.quote(f"{name}/{file}") for name in names for file in HASHED)
    return [
        {"checks": "every number and every hash", "command": f"murmurcast certify CERTIFICATE {folders}"},
        {"checks": "the hashes alone", "command": f"sha256sum {files}"},
        {
            "checks": "the data, by whoever keeps it with data.key",
            "command": f"murmurcast certify CERTIFICATE {folders} --data FOLDER-OF-DATA-FILES",
        },
    ]
