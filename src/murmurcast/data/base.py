"""What a data set is: a training part, a test part, and labels or values to predict."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.data.labels import LabelSource
from murmurcast.data.optimum import optimum_of
from murmurcast.data.partition import Partition, PartitionRule, make_partition
from murmurcast.errors import Error

Features = NDArray[np.float32]
Targets = NDArray[np.int32] | NDArray[np.float32]
_SPLIT = 1  # the purpose of the draw, beside the seed


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Examples to learn from and examples to test on. All arrays are read-only.

    Attributes:
        name: What the set is called.
        features: [examples, features] float32, the training part.
        targets: [examples], int32 labels 0..classes-1, or float32 values where `classes` is None.
        test_features: [test examples, features] float32.
        test_targets: [test examples], as `targets`.
        classes: How many labels there are; None for regression.
        label_names: One name per label; the numbers themselves where none are given. Empty for regression.
        optimum: The parameters that minimise the mean loss over all training examples, without an L2 term. Known for
            synthetic sets only: [features] for least squares, [classes, features + 1] with the bias last for logistic
            regression. `split` and `normalised` solve for it anew; None where there is no optimum.
        labels_from: Whether `classes` is public: "declared" by whoever made the set, "built in" for the sets by name,
            or read from "records", which nothing can be promised on.
        scaled: Whether features went through `normalised`, whose constants must be public.
    """

    name: str
    features: Features
    targets: Targets
    test_features: Features
    test_targets: Targets
    classes: int | None = None
    label_names: tuple[str, ...] = ()
    optimum: FloatArray | None = None
    labels_from: LabelSource = "declared"
    scaled: bool = False

    def __post_init__(self) -> None:
        if self.classes is not None:
            _check.at_least(2, classes=self.classes)
        _check.one_of(("declared", "built in", "records"), labels_from=self.labels_from)
        object.__setattr__(self, "features", checked_features("features", self.features))
        object.__setattr__(self, "test_features", checked_features("test_features", self.test_features))
        object.__setattr__(self, "targets", checked_targets("targets", self.targets, self.classes))
        object.__setattr__(self, "test_targets", checked_targets("test_targets", self.test_targets, self.classes))
        _same_length("features", self.features, "targets", self.targets)
        _same_length("test_features", self.test_features, "test_targets", self.test_targets)
        if self.features.shape[1] != self.test_features.shape[1]:
            raise Error(
                f"features has {self.features.shape[1]} columns, test_features {self.test_features.shape[1]}",
                hint="give both parts the same columns",
            )
        object.__setattr__(self, "label_names", _names(self.classes, self.label_names))
        if self.optimum is not None:
            object.__setattr__(self, "optimum", _check.frozen(np.array(self.optimum, dtype=np.float64)))

    def __repr__(self) -> str:
        kind = "regression" if self.classes is None else f"{self.classes} classes"
        parts = f"{len(self.features)} training and {len(self.test_features)} test examples"
        return f"Dataset({self.name!r}: {parts}, {self.features.shape[1]} features, {kind})"

    def split(self, test_fraction: float, seed: int = 0) -> "Dataset":
        """Pools both parts, shuffles by the seed, and cuts the last `test_fraction` off as the test part.

        The paper's 80/20 of MNIST is `mnist().split(0.2, seed)`: 56,000 and 14,000 images.
        """
        found = from_pool(
            self.name,
            np.concatenate([self.features, self.test_features]),
            np.concatenate([self.targets, self.test_targets]),
            classes=self.classes,
            label_names=self.label_names,
            solve=self.optimum is not None,
            test_fraction=test_fraction,
            seed=seed,
        )
        return with_origin(found, self.labels_from, self.scaled)

    def normalised(self, mean: float, std: float) -> "Dataset":
        """The same set with features (x - mean) / std.

        Both must be PUBLIC constants, such as 0.1307 and 0.3081 for MNIST. Constants computed from the private data
        would leak, and no promise of a plan covers that.
        """
        if not np.isfinite(mean):
            raise Error(f"mean is {mean:g}, expected a finite number", hint="give a public constant")
        _check.positive(std=std)
        shift, scale = np.float32(mean), np.float32(std)
        features = (self.features - shift) / scale
        features.flags.writeable = False
        test_features = (self.test_features - shift) / scale
        test_features.flags.writeable = False
        optimum = None if self.optimum is None else optimum_of(features, self.targets, self.classes)
        return replace(self, features=features, test_features=test_features, optimum=optimum, scaled=True)

    def partition(self, rule: "str | PartitionRule", nodes: int, seed: int = 0) -> Partition:
        """Shares the training examples out among nodes, each to exactly one.

        Args:
            rule: A rule of `murmurcast.data.partition`, or the name of one: sorted, iid, shards, dirichlet, quantity.
            nodes: How many nodes.
            seed: Of the rule's draws; "sorted" draws nothing.
        """
        return make_partition(self, rule, nodes, seed)


def from_pool(
    name: str,
    features: Features,
    targets: Targets,
    *,
    classes: int | None,
    label_names: tuple[str, ...] = (),
    solve: bool = False,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A set from examples without a test part: shuffled by the seed, the last `test_fraction` cut off as test.

    Args:
        name: What the set is called.
        features: [examples, features], all of them.
        targets: [examples].
        classes: As in `Dataset`.
        label_names: As in `Dataset`.
        solve: Whether to find the optimum of the training part.
        test_fraction: Between 0 and 1.
        seed: Of the shuffle.
    """
    _check.fraction(test_fraction=test_fraction)
    _check.at_least(0, seed=seed)
    features = checked_features("features", features)  # before the shuffle: an error names the row as it was given
    targets = checked_targets("targets", targets, classes)
    _same_length("features", features, "targets", targets)
    order = np.random.default_rng([seed, _SPLIT]).permutation(len(features))
    kept = len(features) - round(test_fraction * len(features))
    if not 0 < kept < len(features):
        raise Error(
            f"test_fraction {test_fraction:g} of {len(features)} examples leaves one part empty",
            hint="choose a fraction nearer to a half, or bring more examples",
        )
    training, test = order[:kept], order[kept:]
    return Dataset(
        name=name,
        features=_taken(features, training),
        targets=_taken(targets, training),
        test_features=_taken(features, test),
        test_targets=_taken(targets, test),
        classes=classes,
        label_names=label_names,
        optimum=optimum_of(features[training], targets[training], classes) if solve else None,
    )


def with_origin(dataset: Dataset, labels_from: LabelSource, scaled: bool = False) -> Dataset:
    """The same set, and where its labels and its scale come from; what was checked is not checked again."""
    known = copy(dataset)
    object.__setattr__(known, "labels_from", labels_from)
    object.__setattr__(known, "scaled", scaled)
    return known


def _taken(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    part = array[rows]
    part.flags.writeable = False
    return part


def _own(given: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """The same numbers, read-only, in C order; what the caller could still write to is copied."""
    array = np.ascontiguousarray(given, dtype=dtype)
    if array.flags.writeable and np.may_share_memory(array, given):
        array = array.copy()
    array.flags.writeable = False
    return array


def checked_features(name: str, value: ArrayLike) -> Features:
    """Read-only float32 [examples, features], all finite."""
    given = _numbers(name, value)
    if given.ndim != 2:
        raise Error(
            f"{name} has shape {given.shape}, expected two dimensions: examples and features",
            hint="flatten every example to one row: x.reshape(len(x), -1)",
        )
    if 0 in given.shape:
        raise Error(f"{name} has shape {given.shape}: nothing to learn from", hint="give at least one row and column")
    with np.errstate(over="ignore"):
        array = _own(given, np.float32)
    within = np.isfinite(array)
    if not within.all():
        row, column = np.argwhere(~within)[0]
        shown = f"{name} is {given[row, column]:g} in row {row}, column {column} (from 0)"
        raise Error(f"{shown}, expected a finite number", hint="remove or fill in such examples first")
    return array


def checked_targets(name: str, value: ArrayLike, classes: int | None) -> Targets:
    """Read-only [examples]: int32 labels, or finite float32 values where classes is None."""
    given = _numbers(name, value)
    if given.ndim != 1:
        raise Error(f"{name} has shape {given.shape}, expected one entry per example", hint=f"give {name} as a list")
    if classes is None:
        with np.errstate(over="ignore"):
            values = _own(given, np.float32)
        within, expected, hint = np.isfinite(values), "a finite number", "remove or fill in such examples first"
    else:
        within = (given >= 0) & (given < classes) & (given == np.floor(given))
        expected, hint = f"a label of 0 to {classes - 1}", "number the labels from 0, without gaps"
        values = _own(np.where(within, given, 0), np.int32)
    if not within.all():
        row = np.flatnonzero(~within)[0]
        raise Error(f"{name}[{row}] is {given[row]:g}, expected {expected}", hint=hint)
    return values


def _numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise Error(f"{name} is not an array of real numbers", hint="give every example the same number of numbers")
    return array


def _same_length(one: str, first: NDArray[Any], other: str, second: NDArray[Any]) -> None:
    if len(first) != len(second):
        raise Error(f"{one} has {len(first)} rows, {other} has {len(second)}", hint="give one target per example")


def _names(classes: int | None, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return tuple(str(label) for label in range(classes or 0))
    if len(names) != (classes or 0):
        raise Error(
            f"label_names has {len(names)} names for {classes or 'no'} labels", hint="give one name per label, or none"
        )
    return tuple(str(name) for name in names)
