"""Pairs of worlds whose data are hostile on opposite sides: all labels, all places, all sizes that data may have."""

import copy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast.data.partition import Partition, Sorted
from murmurcast.errors import Error
from murmurcast.privacy.certificate import Unit
from murmurcast.problems.base import Data, Problem
from murmurcast.problems.examples import LARGEST_VALUE

SIZES = (1e-2, 1.0, 1e2, 1e4, LARGEST_VALUE)  # of hostile data
_RECORDS = 32  # of the node among which one is changed: with fewer each counts more, and the sensitivity as much
_MAX_ROWS_TRIED_OFTEN = 1024  # of a node of which every record is changed
_MAX_LABELS = 64  # that are tried, spread over all
_MINIBATCHES = 32  # in which one record is changed
_PLACES = 8  # of rows that are exchanged


class Pair(NamedTuple):
    """Two worlds.

    Attributes:
        problem: Whose gradients are taken.
        worlds: The node's data in both.
        allowed: How far apart the gradients may lie.
        words: What differs.
        tries_all_models: Whether it is worth a gradient at every model.
        enlarged: Whether numbers are as large as data may have, not only those of other rows.
    """

    problem: Problem
    worlds: tuple[Data, Data]
    allowed: float
    words: str
    tries_all_models: bool = True
    enlarged: bool = True


def hostile_pairs(problem: Problem, unit: Unit, rng: np.random.Generator) -> "Iterator[Pair]":
    """All that is tried: by way of the data set where the problem has one, else on the arrays that nodes hold.

    Args:
        problem: Any.
        unit: What differs between the worlds.
        rng: Of directions and places.
    """
    partition = partition_of(problem)
    if partition is None:
        yield from _on_arrays(problem, unit, rng)
        return
    yield from _every_record(problem, partition, rng)
    if unit == "record":
        yield from _one_record(problem, partition, rng)


def _every_record(problem: Problem, partition: Partition, rng: np.random.Generator) -> "Iterator[Pair]":
    """All records of the largest node: wherever a clip is missed, it is missed here."""
    dataset, family = partition.dataset, None
    rows, labels = partition.rows[int(np.argmax(partition.sizes))], _labels(partition)
    every = [("all labels", np.resize(order, len(rows))) for order in (labels, labels[::-1])]
    alike = [(f"label {label:g}", np.full(len(rows), label)) for label in labels[:: max(1, len(labels) // 3)]]
    for size in SIZES[1:]:
        for whose, targets in (*every, *(alike if len(rows) <= _MAX_ROWS_TRIED_OFTEN else ())):
            directions = len(labels) if whose == "all labels" else 1
            pull = direction(rng, (directions, dataset.features.shape[1]), size)
            features = np.resize(pull, (len(rows), pull.shape[1]))
            values = targets if dataset.classes is not None else np.full(len(rows), size)
            words = f"{len(rows)} records of size {size:g} and {whose}"
            pair = _pair(problem, (features, values, -features, values), words)
            family = family or pair.problem
            yield pair._replace(problem=family)


def _one_record(problem: Problem, partition: Partition, rng: np.random.Generator) -> "Iterator[Pair]":
    """One record among as many as a batch has, so that each of them is drawn; and in many minibatches."""
    dataset, batch, family = partition.dataset, getattr(problem, "batch", None), None
    rows = partition.rows[int(np.argmax(partition.sizes))][: batch or _RECORDS]
    labels = _labels(partition)
    plain = [(size, label) for size in SIZES for label in labels]
    drawn = [(1e2, labels[number % len(labels)]) for number in range(_MINIBATCHES if batch else 0)]
    for number, (size, label) in enumerate([*plain, *drawn]):
        place = int(rng.integers(len(rows))) if number % 3 else (0, len(rows) - 1)[number % 2]
        pull = direction(rng, (dataset.features.shape[1],), size)
        both: list[Any] = []
        for sign in (1, -1):
            features, targets = dataset.features[rows].copy(), dataset.targets[rows].copy()
            features[place] = sign * pull
            targets[place] = label if dataset.classes is not None else size * label
            both += [features, targets]
        words = f"one record of size {size:g} and label {label:g}, at place {place}"
        pair = _pair(problem, tuple(both), words)
        family = family or pair.problem
        allowed = float(family.gradient_clip.sensitivity("record", 1)[0])
        yield pair._replace(problem=family, allowed=allowed, tries_all_models=number < len(plain))


def _pair(problem: Problem, both: "tuple[Any, ...]", words: str) -> Pair:
    """A node with such records and nothing else: features and targets of one world, and of the other."""
    features, targets, other_features, other_targets = both
    one, other = _alone(problem, features, targets), _alone(problem, other_features, other_targets)
    first, second = (jax.tree.map(lambda leaf: leaf[0], world.local_data()) for world in (one, other))
    sampled = getattr(one, "sampled", None)  # more than the batch that is expected may join, up to its room
    most = 1.0 if sampled is None else sampled.room / sampled.batch
    return Pair(one, (first, second), most * float(one.gradient_clip.sensitivity("node", 1)[0]), words)


def _alone(problem: Problem, features: Any, targets: Any) -> Problem:
    """The same problem with one node that holds these records."""
    partition = partition_of(problem)
    if partition is None:
        raise Error("the problem holds no partition", hint="ask for its arrays instead")
    dataset = partition.dataset
    values: Any = np.asarray(targets, dataset.targets.dtype)
    rows = features.astype(np.float32)  # of our own
    data = replace(dataset, features=rows, targets=values, optimum=None, holders=None, preprocessed=False)
    alone: Problem = with_partition(problem, Partition(dataset=data, rule=Sorted(), rows=(np.arange(len(features)),)))
    return alone


def _labels(partition: Partition) -> NDArray[Any]:
    """All labels, or as many as are tried; of values, two signs."""
    classes = partition.dataset.classes
    if classes is None:
        return np.array([1.0, -1.0])
    return np.unique(np.linspace(0, classes - 1, min(classes, _MAX_LABELS)).astype(np.int64))


def direction(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> NDArray[np.float32]:
    """Random directions whose largest entry is `size`."""
    drawn = rng.standard_normal(shape)
    return np.asarray(size * drawn / np.abs(drawn).max(axis=-1, keepdims=True), np.float32)


def _parts(problem: Any) -> dict[str, Any]:
    if is_dataclass(problem):
        return {field.name: getattr(problem, field.name) for field in fields(problem)}
    return dict(getattr(problem, "__dict__", {}))


def partition_of(problem: Any) -> Partition | None:
    """The data set a problem is about: its own, or that of a problem inside it."""
    parts = _parts(problem)
    for part in parts.values():
        if isinstance(part, Partition):
            return part
    inside = (partition_of(part) for part in parts.values() if hasattr(part, "gradient_at_public"))
    return next((part for part in inside if part is not None), None)


def with_partition(problem: Any, partition: Partition) -> Any:
    """The same problem on other data, wherever inside it the data are."""
    changed: dict[str, Any] = {}
    for name, part in _parts(problem).items():
        if isinstance(part, Partition):
            changed[name] = partition
        elif hasattr(part, "gradient_at_public") and partition_of(part) is not None:
            changed[name] = with_partition(part, partition)
    if is_dataclass(problem) and not isinstance(problem, type):
        return replace(problem, **changed)
    other = copy.copy(problem)
    vars(other).update(changed)
    return other


def _on_arrays(problem: Problem, unit: Unit, rng: np.random.Generator) -> "Iterator[Pair]":
    """Of a problem that keeps its data in a way of its own: on the arrays themselves."""
    arrays = jax.tree.map(np.asarray, problem.local_data())
    leaves, tree = jax.tree.leaves(arrays), jax.tree.structure(arrays)
    if unit == "record":
        yield from _rows_of_arrays(problem, leaves, tree, rng)
        return
    allowed = float(problem.gradient_clip.sensitivity("node", 1)[0])
    for place, leaf in enumerate(leaves):
        if not np.issubdtype(leaf.dtype, np.floating):
            continue
        for size in SIZES:
            pull = direction(rng, leaf[0].shape or (1,), size).reshape(leaf[0].shape)
            first, second = (
                jax.tree.unflatten(
                    tree, [sign * pull if one == place else other[0] for one, other in enumerate(leaves)]
                )
                for sign in (1, -1)
            )
            yield Pair(problem, (first, second), allowed, f"array {place} of size {size:g}")


def _rows_of_arrays(
    problem: Problem, leaves: "list[NDArray[Any]]", tree: Any, rng: np.random.Generator
) -> "Iterator[Pair]":
    """Rows of the first node: exchanged for rows of all nodes, and with larger numbers where nothing hangs on them."""
    count = problem.examples_per_node
    longest = [leaf.shape[1] for leaf in leaves if leaf.ndim > 1]
    if count is None or not longest:
        return
    rows = max(set(longest), key=longest.count)
    allowed = float(problem.gradient_clip.sensitivity("record", problem.nodes)[0])
    axes = [leaf.shape[1:].index(rows) if rows in leaf.shape[1:] else None for leaf in leaves]
    free = not _derived(leaves)
    last = min(rows, int(count[0])) - 1
    for number in range(_PLACES * len(SIZES)):
        size, place = SIZES[number % len(SIZES)], (0, last, int(rng.integers(last + 1)))[number % 3]
        node, row = (int(rng.integers(limit)) for limit in (problem.nodes, last + 1))
        worlds: list[list[Any]] = [[], []]
        for which, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
            mine = leaf[0].copy(), leaf[0].copy()
            if axis is not None:
                at = (*(slice(None),) * axis, place)
                taken = np.take(leaf[node], row, axis=axis)
                if free and np.issubdtype(leaf.dtype, np.floating) and not _is_mask(leaf):
                    pull = direction(rng, taken.shape or (1,), size).reshape(taken.shape)
                    # Not all at once: where two are multiplied, their signs would cancel.
                    mine[0][at], mine[1][at] = pull, -pull if (number + which) % 2 else pull
                else:
                    mine[0][at] = taken
            for world, array in zip(worlds, mine, strict=True):
                world.append(array)
        first, second = (jax.tree.unflatten(tree, world) for world in worlds)
        words = f"one row of size {size:g}, at place {place}" if free else f"one row exchanged, at place {place}"
        yield Pair(problem, (first, second), allowed, words, enlarged=free)


def _is_mask(leaf: NDArray[Any]) -> bool:
    return bool(np.isin(leaf, (0, 1)).all())


def _derived(leaves: "list[NDArray[Any]]") -> bool:
    """Whether an array follows from another, as norms of rows and transposed copies do: then rows hang together."""
    numbers = [leaf for leaf in leaves if np.issubdtype(leaf.dtype, np.floating) and not _is_mask(leaf)]
    for one in numbers:
        for other in numbers:
            if one is not other and one.ndim == other.ndim == 3 and one.shape[1:] == other.shape[:0:-1]:
                return True
            if one.ndim == 2 and other.ndim == 3 and one.shape == other.shape[:2]:
                rest = one.astype(np.float64) ** 2 - np.square(other, dtype=np.float64).sum(axis=2)
                if np.ptp(rest[one > 0]) <= 1e-4 * float(np.square(one).max()):
                    return True
    return False
