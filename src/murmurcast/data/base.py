"""What a data set is: a training part, a test part, and labels or values to predict."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Stage
from murmurcast.data.features.apply import applied
from murmurcast.data.features.base import FeatureMap, ImageShape
from murmurcast.data.features.cache import Parts
from murmurcast.data.features.catalogue import maps_of
from murmurcast.data.holders import Holders
from murmurcast.data.labels import LabelSource
from murmurcast.data.optimum import optimum_of
from murmurcast.data.partition import Column, Partition, PartitionRule, make_partition
from murmurcast.data.sources import shown
from murmurcast.errors import Error

Features = NDArray[np.float32]
Targets = NDArray[np.int32] | NDArray[np.float32]
Numbers = NDArray[np.int64]
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
        image_shape: (height, width) where every row is an image, pixel by pixel; None where it is none, or not known.
        maps: The feature maps that the examples went through, in their order.
        holders: Which node every record already belongs to, where that is known.
        preprocessed: Whether `mc.preprocess` centred or whitened the rows: its partition carries what that cost, and
            nothing else is made of them.
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
    image_shape: ImageShape | None = None
    maps: tuple[FeatureMap, ...] = ()
    holders: Holders | None = None
    preprocessed: bool = False

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
        if self.holders is not None:
            self.holders.require_length(len(self.targets), len(self.test_targets))
        object.__setattr__(self, "image_shape", _checked_shape(self.image_shape, self.features.shape[1]))
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
        self.require_raw()
        resplit = from_pool(
            self.name,
            np.concatenate([self.features, self.test_features]),
            np.concatenate([self.targets, self.test_targets]),
            classes=self.classes,
            label_names=self.label_names,
            solve=self.optimum is not None,
            test_fraction=test_fraction,
            seed=seed,
        )
        if self.holders is None:
            return _as_before(resplit, self)
        rows = split_rows(len(self.features) + len(self.test_features), test_fraction, seed)
        return replace(_as_before(resplit, self), holders=self.holders.pooled(*rows))

    def normalised(self, mean: float, std: float) -> "Dataset":
        """The same set with features (x - mean) / std.

        Both must be PUBLIC constants, such as 0.1307 and 0.3081 for MNIST. Constants computed from the private data
        would leak, and no promise of a plan covers that.
        """
        self.require_raw()
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

    def with_features(self, maps: "Iterable[str | FeatureMap]", *, on_stage: Stage | None = None) -> "Dataset":
        """The same examples, described by fixed maps that see each of them alone: `with_features(["deskew", "hog"])`.

        Both parts go through the same maps. What was computed before comes from the cache. `optimum` is not known
        afterwards.

        Args:
            maps: Names, or maps of `mc.features`, in their order.
            on_stage: Told how far it has come; None shows it on a terminal's stderr.

        Guarantees:
            A record's features are a function of that record alone. A promise about one record of the set therefore
            holds on its features as it does without them, if the maps were chosen without looking at the records;
            that of `mc.features.Own` is declared by whoever gives it.
        """
        self.require_raw()
        parts = Parts(self.features, self.test_features)
        with shown(on_stage) as tell:
            mapped = applied(maps_of(maps), parts, self.image_shape, tell)
        return replace(
            self,
            features=mapped.parts.training,
            test_features=mapped.parts.test,
            image_shape=mapped.shape,
            maps=(*self.maps, *mapped.maps),
            optimum=None,
        )

    def partition(
        self, rule: "str | Column | PartitionRule", nodes: "int | Sequence[str] | None" = None, seed: int = 0
    ) -> Partition:
        """Shares the training examples out among nodes, each to exactly one; "drawn" gives nodes copies.

        Args:
            rule: A rule of `murmurcast.data.partition`, or the name of one: sorted, iid, shards, dirichlet, quantity,
                drawn, or column, where every record already belongs to a node.
            nodes: How many nodes, or their names in the order of the network: `network.names`. With "column" it may
                be left out: the names are then those of the column, sorted.
            seed: Of the rule's draws; "sorted" and "column" draw nothing.
        """
        self.require_raw()
        return make_partition(self, rule, nodes, seed)

    def require_raw(self) -> None:
        """These rows cost nothing to make: whatever is made of rows that cost something would lose the cost."""
        if self.preprocessed:
            raise Error(
                "this data was centred or whitened by what its nodes released: only the partition that mc.preprocess "
                "gave carries what that cost, and nothing else can be made of its rows",
                hint="start from the data as it was before; partition first, then mc.preprocess(partition, budget)",
            )


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
    features = checked_features("features", features)  # before the shuffle: an error names the row as it was given
    targets = checked_targets("targets", targets, classes)
    _same_length("features", features, "targets", targets)
    training, test = split_rows(len(features), test_fraction, seed)
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


def split_rows(examples: int, test_fraction: float, seed: int) -> tuple[Numbers, Numbers]:
    """The rows of the training part and of the test part, by their number and the seed only."""
    _check.fraction(test_fraction=test_fraction)
    _check.at_least(0, seed=seed)
    order = np.random.default_rng([seed, _SPLIT]).permutation(examples)
    kept = examples - round(test_fraction * examples)
    if not 0 < kept < examples:
        raise Error(
            f"test_fraction {test_fraction:g} of {examples} examples leaves one part empty",
            hint="choose a fraction nearer to a half, or bring more examples",
        )
    return order[:kept], order[kept:]


def with_origin(dataset: Dataset, labels_from: LabelSource, image_shape: ImageShape | None = None) -> Dataset:
    """The same set, where its labels come from, and what its rows are; what was checked is not checked again."""
    known = copy(dataset)
    object.__setattr__(known, "labels_from", labels_from)
    object.__setattr__(known, "image_shape", image_shape)
    return known


def _as_before(dataset: Dataset, old: Dataset) -> Dataset:
    """The same set, with all that was known of the one it comes from."""
    known = with_origin(dataset, old.labels_from, old.image_shape)
    object.__setattr__(known, "scaled", old.scaled)
    object.__setattr__(known, "maps", old.maps)
    return known


def _taken(array: NDArray[Any], rows: Numbers) -> NDArray[Any]:
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
    _check.unmasked(**{name: value})
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


def _checked_shape(shape: object, columns: int) -> ImageShape | None:
    if shape is None:
        return None
    if isinstance(shape, tuple | list) and len(shape) == 2 and all(isinstance(side, int) for side in shape):
        height, width = shape
        if min(height, width) > 0 and height * width == columns:
            return height, width
    raise Error(
        f"image_shape is {shape}, and examples have {columns} numbers",
        hint="give height and width, whose product is the number of pixels: (28, 28) for 784",
    )


def _names(classes: int | None, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return tuple(str(label) for label in range(classes or 0))
    if len(names) != (classes or 0):
        raise Error(
            f"label_names has {len(names)} names for {classes or 'no'} labels", hint="give one name per label, or none"
        )
    return tuple(str(name) for name in names)
