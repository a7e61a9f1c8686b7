"""What a certificate assumes of the data, from what a run left behind and without the data itself.

The facts stand in the ledger, and in the experiment where there is one. Both must say the same, and labels that were
read from records carry no promise, whoever wrote it down.
"""

import tomllib
from typing import Any

import numpy as np

from murmurcast.certificates.ledger import Ledger
from murmurcast.data.assumptions import LABELS, PARTITIONS, DataFacts, assumptions, facts_of_section
from murmurcast.runs.result import Result


def assumed_of_data(run: Result, ledger: Ledger) -> tuple[str, ...]:
    """What must be true of the data for the promise of this run.

    Raises:
        Altered: The labels were read from the records, or ledger and experiment contradict each other.
    """
    held, told = _in_ledger(ledger), _in_experiment(run, ledger)
    found = [held] if told is None else [held, told]
    if any(facts.labels_are_private for facts in found):
        ledger.refuse("is of a run that read its labels from the records, on which nothing can be promised")
    if told is not None and held.partition not in ("none", "unknown"):
        _require_same(ledger, held, told)
    # What either of them says must hold: a ledger without a word on records takes nothing back.
    lines = dict.fromkeys(line for facts in found for line in assumptions(facts, ledger.text("unit")))
    return tuple(lines)


def _in_ledger(ledger: Ledger) -> DataFacts:
    classes, scaled, own_model = (_count(ledger, f"data_{name}") for name in ("classes", "scaled", "own_model"))
    partition, labels = ledger.text("data_partition", PARTITIONS), ledger.text("data_labels", LABELS)
    if scaled > 1 or own_model > 1 or (classes < 2) != (labels == "values"):
        ledger.refuse("contradicts itself about its data")
    return DataFacts(partition, labels, classes, bool(scaled), bool(own_model))


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


def _require_same(ledger: Ledger, held: DataFacts, told: DataFacts) -> None:
    """Ledger and experiment say the same of the data; how many labels a set by name has, no experiment says."""
    pairs = [(name, getattr(held, name), getattr(told, name)) for name in ("partition", "labels", "scaled")]
    if told.classes:
        pairs.append(("classes", held.classes, told.classes))
    for name, in_ledger, in_experiment in pairs:
        if in_ledger != in_experiment:
            ledger.refuse(f"has {name} {in_ledger} for its data, and experiment.toml {in_experiment}")
