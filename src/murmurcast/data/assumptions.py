"""What must be public for a promise about records to hold: the one place where the data room says so in words.

Whatever is worked out from records before training is public by declaration (labels), free of what records say (the
split, the shuffle, numbers as float32), or an assumption that is printed beside the number. The facts behind the words
travel in the ledger, so that a certificate lists them without the data.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from murmurcast.data.features.catalogue import in_words, words_of_section
from murmurcast.data.features.own import Own
from murmurcast.data.files import FORMATS
from murmurcast.data.partition import Partition, kind_of
from murmurcast.errors import Error

# Rules that count records and draw, and never read what is to be predicted.
_COUNTING_RULES = ("iid", "quantity", "drawn")
PARTITIONS = ("sorted", "shards", "dirichlet", *_COUNTING_RULES, "column", "own", "none", "unknown")
LABELS = ("declared", "built in", "records", "values")


class DataFacts(NamedTuple):
    """How what is public about the data came to be known.

    Attributes:
        partition: The kind of the partition rule; "own" for a rule of the user's, "none" for a problem without
            records, "unknown" for a problem that does not say what it holds.
        labels: "declared", "built in", read from "records", or "values" where there are none.
        classes: How many labels there are; 0 where there are none, or where that is not said.
        scaled: Whether features were scaled by constants.
        own_model: Whether shape, start and loss of the model are the user's.
        features: The feature maps that records went through, in words, with all their parameters.
        declared: Of every map of the user's own among them its name, and what was declared of it.
        features_sha256: Of the answers of such maps to fixed public rows; empty where there are none.
    """

    partition: str
    labels: str = "values"
    classes: int = 0
    scaled: bool = False
    own_model: bool = False
    features: tuple[str, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    features_sha256: str = ""

    @property
    def rule_reads_targets(self) -> bool:
        """Whether who holds what depends on what records say; of a rule of the user's, nobody knows."""
        return self.partition not in (*_COUNTING_RULES, "column", "none", "unknown")

    @property
    def labels_are_private(self) -> bool:
        """Whether the labels were read from the records."""
        return self.labels == "records"

    def as_attributes(self) -> dict[str, str | int]:
        """As a ledger holds them."""
        return {
            "data_partition": self.partition,
            "data_labels": self.labels,
            "data_classes": self.classes,
            "data_scaled": int(self.scaled),
            "data_own_model": int(self.own_model),
            **({"data_features": json.dumps(self.features)} if self.features else {}),
            **({"data_declared": json.dumps(self.declared)} if self.declared else {}),
            **({"data_features_sha256": self.features_sha256} if self.features_sha256 else {}),
        }


def facts_of(partition: Partition, *, own_model: bool = False) -> DataFacts:
    """Of a set that was shared out."""
    dataset = partition.dataset
    labels = "values" if dataset.classes is None else dataset.labels_from
    own_maps = [one for one in dataset.maps if isinstance(one, Own)]
    return DataFacts(
        kind_of(partition.rule),
        labels,
        dataset.classes or 0,
        dataset.scaled,
        own_model,
        tuple(in_words(one) for one in dataset.maps),
        tuple((one.name, one.data_free) for one in own_maps),
        " ".join(one.sha256 for one in own_maps),
    )


def facts_of_section(data: Mapping[str, Any], problem: Mapping[str, Any]) -> DataFacts:
    """Of the [data] and [problem] of an experiment file as plain values, without the data."""
    rule, labels = data.get("partition", "sorted"), data.get("labels")
    kind = rule.get("kind", "column" if "column" in rule else None) if isinstance(rule, Mapping) else rule
    scaled = data.get("mean") is not None or data.get("std") is not None
    classes = len(labels) if isinstance(labels, list) else data.get("classes") or 0
    origin = "built in" if Path(str(data.get("name"))).suffix not in FORMATS else "declared" if classes else "records"
    own = problem.get("kind") == "model"
    if problem.get("kind") == "ridge" or (own and problem.get("loss") == "squared-error"):
        origin, classes = "values", 0
    maps = [one for one in data["features"] if isinstance(one, Mapping)] if _has_maps(data) else []
    pinned = [str(one.get("sha256", "")) for one in maps if "map" in one]
    return DataFacts(
        str(kind),
        origin,
        classes,
        scaled,
        own,
        features=tuple(words_of_section(one) for one in maps),
        declared=tuple((str(one["map"]), str(one.get("declared", ""))) for one in maps if "map" in one),
        features_sha256=" ".join(pinned) if all(pinned) else "",
    )


def _has_maps(data: Mapping[str, Any]) -> bool:
    """Whether `features` lists maps: for a synthetic set it is how many there are."""
    return isinstance(data.get("features"), list | tuple)


def assumptions(facts: DataFacts, unit: str) -> tuple[str, ...]:
    """What must be true of the data for a promise about this unit, a line each."""
    own = ("shape, start and loss of the model were chosen without looking at the data",) if facts.own_model else ()
    if facts.partition == "none":
        return own
    if facts.partition == "unknown":
        return ("whatever the problem takes from its records before training (sizes, labels, scales) is public", *own)
    lines = [
        "what records say may differ, not how many there are: the number of records of every node, their columns and "
        "their order in the file are public"
    ]
    if facts.labels == "declared":
        lines.append(f"the {facts.classes} labels were declared without looking at the records")
    if facts.scaled:
        lines.append("the constants that scale the features were chosen without looking at the records")
    lines += _about_features(facts)
    if facts.partition == "drawn":
        lines.append("several nodes may hold copies of one record: the promise is about one node's copy")
    if facts.partition == "column":
        lines.append("which node a record belongs to is public, and stays the same whatever the record says")
    if facts.rule_reads_targets:
        lines.append(
            f"who holds which record is given: the partition {_rule(facts)} {_reads(facts)}, so one record of the file "
            f"can move others from node to node; the promise is about {_protected(unit)}"
        )
    lines.append(
        "records of the test part are not covered, and neither are metrics: they show those records and own models"
    )
    return (*lines, *own)


def partition_warnings(facts: DataFacts, unit: str) -> list[str]:
    """A line where a promise might be taken for one about the whole file."""
    if not facts.rule_reads_targets:
        return []
    return [
        f"the partition {_rule(facts)} {_reads(facts)}: given the partition, the promise is about {_protected(unit)}; "
        "one record that changes in the file can change what several nodes hold, which is not covered"
    ]


def require_public_labels(facts: DataFacts, name: str) -> None:
    """A promise can be made on these labels.

    The hint does not list the labels that occur: a declaration that is copied from the records is no declaration.
    """
    if facts.labels_are_private:
        raise Error(
            f'the labels of "{name}" are read from its records, so one record with a label of its own would change the '
            "shape of all models: nothing can be promised",
            hint='declare all labels that can occur, without looking at the records: data.labels = ["no", "yes"], or '
            'data.classes = 10 for 0 to 9; in Python mc.datasets.load(path, labels=["no", "yes"])',
        )


def require_declared_maps(facts: DataFacts) -> None:
    """A promise can be made on what these feature maps give."""
    for name, declared in facts.declared:
        if not declared.strip():
            raise Error(
                f"nobody has declared that the feature map {name} is free of data: nothing can be promised",
                hint='declare it in your words: mc.features.Own(function=..., data_free="I chose it without looking at '
                'the records"), or declared = "..." in a file',
            )


def _about_features(facts: DataFacts) -> list[str]:
    """A line on maps of the house, and one for every map of the user's own."""
    ours = [name for name in facts.features if not name.startswith("own(")]
    lines = [f"the features {', '.join(ours)} were chosen without looking at the records"] if ours else []
    hashes = facts.features_sha256.split() or [""] * len(facts.declared)
    return lines + [
        f'the feature map {name} is declared free of data: "{words}"{_fingerprint(sha256)}'
        for (name, words), sha256 in zip(facts.declared, hashes, strict=True)
    ]


def _fingerprint(sha256: str) -> str:
    """What shows a map that changes with the data: whoever has other data can compare."""
    return f"; its answers to public rows have SHA-256 {sha256}, whatever the data" if sha256 else ""


def _rule(facts: DataFacts) -> str:
    return "rule of your own" if facts.partition == "own" else f'"{facts.partition}"'


def _reads(facts: DataFacts) -> str:
    what = "values" if facts.labels == "values" else "labels"
    return f"may read {what}" if facts.partition == "own" else f"reads {what}"


def _protected(unit: str) -> str:
    return "one record of one node" if unit == "record" else "the data of one node"
