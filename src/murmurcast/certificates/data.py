"""What a certificate assumes of the data, from what a run left behind and without the data itself.

The facts stand in the ledger, and in the experiment where there is one. Both must say the same, and labels that were
read from records carry no promise, whoever wrote it down.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np

from murmurcast.certificates.ledger import Ledger, said
from murmurcast.data.assumptions import LABELS, PARTITIONS, DataFacts, assumptions, facts_of_section
from murmurcast.data.features import own
from murmurcast.errors import Altered
from murmurcast.runs.result import Result

_COMPARED = ("partition", "labels", "scaled", "features", "declared")


def assumed_of_data(run: Result, ledger: Ledger) -> tuple[str, ...]:
    """What must be true of the data for the promise of this run.

    Raises:
        Altered: The labels were read from the records, or ledger and experiment contradict each other.
    """
    recorded, written = _in_ledger(ledger), _in_experiment(run, ledger)
    _require_fitting(run, ledger, recorded)
    sources = [recorded] if written is None else [recorded, written]
    if any(facts.labels_are_private for facts in sources):
        ledger.refuse("is of a run that read its labels from the records, on which nothing can be promised")
    if written is not None and recorded.partition not in ("none", "unknown"):
        _require_same(ledger, recorded, written)
        # What a map's answers are, an experiment need not say.
        sources[1] = written._replace(features_sha256=recorded.features_sha256)
    # What either of them says must hold: a problem that does not say what it holds takes nothing back.
    lines = dict.fromkeys(line for facts in sources for line in assumptions(facts, ledger.text("unit")))
    return tuple(lines)


def _in_ledger(ledger: Ledger) -> DataFacts:
    classes, scaled, own_model = (_count(ledger, f"data_{name}") for name in ("classes", "scaled", "own_model"))
    partition, labels = ledger.text("data_partition", PARTITIONS), ledger.text("data_labels", LABELS)
    if scaled > 1 or own_model > 1 or (classes < 2) != (labels == "values"):
        ledger.refuse("contradicts itself about its data")
    features, declared = _listed(ledger, "data_features"), _listed(ledger, "data_declared")
    if not all(isinstance(one, str) for one in features) or not all(_is_declaration(one) for one in declared):
        ledger.refuse("does not say clearly what features its data has")
    named = [one.removeprefix("own(").removesuffix(")") for one in features if one.startswith("own(")]
    if named != [name for name, _ in declared] or not all(words.strip() for _, words in declared):
        ledger.refuse("has a feature map of somebody's own that nobody declared free of data")
    return DataFacts(
        partition,
        labels,
        classes,
        bool(scaled),
        bool(own_model),
        tuple(features),
        tuple((name, words) for name, words in declared),
        " ".join(_fingerprints(ledger, len(declared))),
    )


def require_maps_free_of_data(runs: Sequence[Result]) -> None:
    """A map of somebody's own has the same answers to public rows in all runs, whatever their data is.

    Raises:
        Altered: It has not: it was fitted on data, whatever was declared of it.
    """
    seen: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
    for run in runs:
        attributes, name = run.ledger.attrs, str(said(run, "name"))
        if "data_features_sha256" not in attributes:
            continue
        # Public rows have as many columns as the data; where models differ in size, data may.
        maps = (str(attributes.get("data_features")), run.published.shape[2:])
        fingerprint = str(attributes["data_features_sha256"])
        first, before = seen.setdefault(maps, (name, fingerprint))
        if fingerprint != before:
            raise Altered(
                f'run "{name}": its feature maps {maps[0][:100]} answer other numbers to public rows than in run '
                f'"{first}": a map that changes with the data is not free of data, whatever was declared',
                hint="fit the map on public data only; runs whose data has other columns are certified apart. "
                + own.ONE_BIT,
            )


def _fingerprints(ledger: Ledger, maps: int) -> tuple[str, ...]:
    """Of every map of somebody's own, the SHA-256 of its answers to public rows."""
    written = ledger.data.attrs.get("data_features_sha256", "")
    fingerprints = tuple(written.split()) if isinstance(written, str) else ()
    if len(fingerprints) != maps or not all(re.fullmatch("[0-9a-f]{64}", one) for one in fingerprints):
        ledger.refuse("does not say what its feature maps of somebody's own answer to public rows")
    return fingerprints


def _listed(ledger: Ledger, name: str) -> list[Any]:
    """A list that the ledger writes as JSON; empty where it says nothing of it."""
    written = ledger.data.attrs.get(name, "[]")
    try:
        entries = json.loads(written) if isinstance(written, str) else None
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        ledger.refuse(f"does not say its {name}")
    return list(entries)


def _is_declaration(one: object) -> bool:
    """The name of a map, and what was declared of it."""
    return isinstance(one, list) and len(one) == 2 and all(isinstance(part, str) for part in one)


def _require_fitting(run: Result, ledger: Ledger, recorded: DataFacts) -> None:
    """A problem of the house has the data that it learns from; one of somebody's own may have any."""
    if recorded.own_model:
        return
    kind, shares_records = said(run, "problem", "kind"), recorded.partition not in ("none", "unknown")
    fits = {
        "Quadratic": recorded.partition == "none" and recorded.labels == "values",
        "RidgeRegression": shares_records and recorded.labels == "values",
        "SoftmaxRegression": shares_records and run.published.shape[2:3] == (recorded.classes,),
    }
    if not fits.get(kind, False):
        ledger.refuse(f"contradicts itself about its data, from which run.json says that {kind[:60]} learnt")


def _count(ledger: Ledger, name: str) -> int:
    value = ledger.data.attrs.get(name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        ledger.refuse(f"does not say its {name}")
    return int(value)


def _in_experiment(run: Result, ledger: Ledger) -> DataFacts | None:
    """None where the run was made in Python, with no experiment or with notes of one's own."""
    try:
        written: dict[str, Any] = tomllib.loads(run.experiment)
    except (ValueError, RecursionError):
        return None
    sections = {name: written.get(name) for name in ("data", "problem", "schedule", "run")}
    if not all(isinstance(sections[name], dict) for name in ("schedule", "run")) or sections["data"] is None:
        return None
    data, problem = sections["data"], sections["problem"] or {}
    if not isinstance(data, dict) or not isinstance(problem, dict) or not isinstance(data.get("classes", 0), int):
        ledger.refuse("is of an experiment whose [data] cannot be read")
    return facts_of_section(data, problem)


def _require_same(ledger: Ledger, recorded: DataFacts, written: DataFacts) -> None:
    """Ledger and experiment say the same of the data; how many labels a set by name has, no experiment says."""
    pairs = [(name, getattr(recorded, name), getattr(written, name)) for name in _COMPARED]
    if written.classes:
        pairs.append(("classes", recorded.classes, written.classes))
    for name, in_ledger, in_experiment in pairs:
        if in_ledger != in_experiment:
            ledger.refuse(f"has {name} {in_ledger} for its data, and experiment.toml {in_experiment}")
    if written.features_sha256 not in ("", recorded.features_sha256):
        ledger.refuse("has a feature map of somebody's own that is not the one experiment.toml declares by its SHA-256")
