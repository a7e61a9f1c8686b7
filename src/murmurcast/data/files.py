"""Sets from the user's own files: .npz arrays, .csv and .parquet tables."""

import csv
import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._files import UNREADABLE
from murmurcast.data.base import Dataset, from_pool, split_rows, with_origin
from murmurcast.data.features.base import ImageShape
from murmurcast.data.holders import Holders, holder_names
from murmurcast.data.labels import (
    Label,
    declared_labels,
    places_of,
    read_from,
    require_declared,
    whole_numbers_or_words,
)
from murmurcast.errors import Error

FORMATS = (".npz", ".csv", ".parquet")
_HINT = (
    "use .npz with arrays x and y (and x_test, y_test), or .csv or .parquet with a column label or target "
    "and numbers in all others"
)


class Part(NamedTuple):
    """The training part as it was found, or the test part.

    Attributes:
        features: [examples, features].
        targets: [examples] numbers, or strings.
        classify: Whether targets are labels.
        untyped: Whether labels are words whatever they stand for, as those of a table are.
        holders: The node of every record, where a column names it.
    """

    features: NDArray[Any]
    targets: NDArray[Any]
    classify: bool
    untyped: bool = False
    holders: Holders | None = None


def from_file(
    path: Path | str,
    *,
    labels: Iterable[Label] | None = None,
    classes: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    image_shape: ImageShape | None = None,
    node_column: str | None = None,
) -> Dataset:
    """A set from a .npz, .csv or .parquet file.

    A .npz holds x [examples, features] and y [examples], and optionally x_test and y_test. Whole numbers or strings in
    y are labels, other numbers are values. A table has one column "label" (whole numbers or strings) or one column
    "target" (numbers), and numbers in every other column.

    Labels are private: whatever is promised needs them declared, without looking at the records. Undeclared ones are
    read from the records and sorted, by value if all are whole numbers; nothing can be promised then.

    Args:
        path: The file.
        labels: All labels there can be, words or whole numbers; the model knows them in this order.
        classes: Instead of labels, how many there can be: 0 to classes - 1.
        test_fraction: Cut off as the test part where the file has none.
        seed: Of the shuffle before that.
        image_shape: (height, width), where every example is an image, pixel by pixel.
        node_column: Of a table: the column that names the node each record belongs to, for the partition "column". It
            is no feature.
    """
    declared = declared_labels(labels, classes)
    path = required_path(path)
    _check.readable(path)
    readers = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise Error(f"{path} is not a format of data", hint=_HINT)
    try:
        parts = readers[path.suffix](path, node_column)
    except Error:
        raise
    except UNREADABLE as problem:
        raise Error(f"{path} cannot be read as {path.suffix}: {_check.short(problem)}", hint=_HINT) from None
    try:
        dataset = assembled(path.stem, parts, declared, test_fraction, seed)
        return dataset if image_shape is None else replace(dataset, image_shape=image_shape)
    except Error as problem:
        raise Error(f"{path}: {problem}", hint=problem.hint) from None


def required_path(path: object) -> Path:
    """This names a file, and is not the data itself."""
    if not isinstance(path, str | os.PathLike):
        raise Error(
            f"{type(path).__name__} is given, expected the name of a set or of a file",
            hint="a table in memory goes into mc.datasets.from_frame, arrays into mc.datasets.from_arrays",
        )
    return Path(path)


def assembled(
    name: str, parts: list[Part], declared: tuple[Label, ...] | None, test_fraction: float, seed: int
) -> Dataset:
    """A set from its parts, labels as places among those that are declared, or that occur."""
    classes: int | None = None
    names: tuple[str, ...] = ()
    targets = [part.targets for part in parts]
    if parts[0].classify:
        known, targets = read_from(_typed(parts)) if declared is None else _encoded(declared, targets)
        names, classes = tuple(map(str, known)), len(known)
    elif declared is not None:
        raise Error(
            "labels are declared, and there are values to predict: a column target, or floats in y",
            hint="give labels as words or whole numbers, in a column label or in y; or declare no labels",
        )
    if len(parts) == 1:
        dataset = from_pool(
            name,
            parts[0].features,
            targets[0],
            classes=classes,
            label_names=names,
            test_fraction=test_fraction,
            seed=seed,
        )
    else:
        dataset = Dataset(
            name=name,
            features=parts[0].features,
            targets=targets[0],
            test_features=parts[1].features,
            test_targets=targets[1],
            classes=classes,
            label_names=names,
        )
    dataset = with_origin(dataset, "records" if declared is None and classes is not None else "declared")
    if parts[0].holders is None:
        return dataset
    if len(parts) == 1:
        training, test = split_rows(len(parts[0].features), test_fraction, seed)
        return replace(dataset, holders=parts[0].holders.cut(training, test))
    return replace(dataset, holders=parts[0].holders)


def _encoded(
    declared: tuple[Label, ...], columns: list[NDArray[Any]]
) -> tuple[tuple[Label, ...], list[NDArray[np.int64]]]:
    """The declared labels, and every column as places among them."""
    placed = []
    for column, part in zip(columns, ("", " of the test part"), strict=False):
        placed.append(places_of(declared, column))
        require_declared(declared, placed[-1], part)
    return declared, placed


def _typed(parts: list[Part]) -> list[NDArray[Any]]:
    """Labels by what all of them look like; a declaration says so instead, whatever the records look like."""
    return [whole_numbers_or_words(part.targets) if part.untyped else part.targets for part in parts]


def _read_npz(path: Path, node_column: str | None) -> list[Part]:
    if node_column is not None:
        raise Error(
            f'{path} has no columns, so none can be "{node_column}"',
            hint="use a table, .csv or .parquet; in Python mc.datasets.from_arrays(x, y, nodes=[...])",
        )
    with path.open("rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise Error(f"{path} is a single array, not an archive", hint="write it by numpy.savez(path, x=x, y=y)")
        names = set(archive.files)
        if names not in ({"x", "y"}, {"x", "y", "x_test", "y_test"}):
            listing = ", ".join(sorted(names)) or "nothing"
            raise Error(f"{path} holds {listing}", hint="name the arrays x and y (and x_test and y_test, or neither)")
        parts = [_part(path, "x", archive["x"], "y", archive["y"])]
        if len(names) == 4:
            parts.append(_part(path, "x_test", archive["x_test"], "y_test", archive["y_test"]))
    if len({part.classify for part in parts}) > 1 or len({part.targets.dtype.kind in "US" for part in parts}) > 1:
        raise Error(f"{path} has labels of two kinds in y and y_test", hint="give both the same type")
    return parts


def _part(path: Path, x_name: str, x: NDArray[Any], y_name: str, y: NDArray[Any]) -> Part:
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if y.dtype.kind not in "fiubU":
        raise Error(
            f"{path}: {y_name} holds {y.dtype}", hint="give labels as whole numbers or strings, values as floats"
        )
    if x.ndim != 2 or y.ndim != 1:
        raise Error(
            f"{path}: {x_name} has shape {x.shape} and {y_name} {y.shape}, expected two dimensions and one",
            hint="give x one row per example, x.reshape(len(x), -1), and y one entry per example",
        )
    if len(x) != len(y):
        raise Error(f"{path}: {x_name} has {len(x)} rows, {y_name} {len(y)}", hint="give one label or value per row")
    if 0 in x.shape:
        raise Error(f"{path}: {x_name} has shape {x.shape}: no data", hint="give at least one example and one feature")
    return Part(x, y, y.dtype.kind != "f")


def _read_csv(path: Path, node_column: str | None) -> list[Part]:
    import pandas as pd

    with path.open(newline="", encoding="utf-8-sig") as stream:
        header = [cell.strip() for cell in next(csv.reader(stream), [])]
    if not header:
        raise Error(f"{path} is empty", hint=_HINT)
    target = _target_column(path, header)
    words = [target] if target.lower() == "label" else []
    text = {header.index(column): str for column in (*words, node_column) if column in header}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # longer lines than the header: never cut them
        try:
            frame = pd.read_csv(
                path,
                header=None,
                skiprows=1,
                names=range(len(header)),
                dtype=text,
                index_col=False,
                keep_default_na=False,
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
            )
        except pd.errors.ParserWarning:
            raise Error(
                f"{path} has lines longer than its header", hint="give every line one cell per column"
            ) from None
        except pd.errors.EmptyDataError:
            raise Error(f"{path} has a header and no line", hint="give one line per example") from None
    frame.columns = header
    return [from_table(str(path), frame, target, node_column)]


def _read_parquet(path: Path, node_column: str | None) -> list[Part]:
    import pandas as pd

    if find_spec("pyarrow") is None:
        raise Error(f"reading {path} needs pyarrow", hint="pip install murmurcast[parquet]")
    with path.open("rb") as stream:
        frame = pd.read_parquet(stream, engine="pyarrow")
    frame.columns = [str(column).strip() for column in frame.columns]
    return [from_table(str(path), frame, _target_column(path, list(frame.columns)), node_column)]


def _target_column(path: Path, columns: list[str]) -> str:
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise Error(f'{path} has two columns "{twice}"', hint="give every column its own name")
    target_columns = [column for column in columns if column.lower() in ("label", "target")]
    if len(target_columns) != 1:
        listing = " and ".join(target_columns) or ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
        raise Error(f"{path} has the columns {listing}", hint='name exactly one column "label" or "target"')
    if len(columns) == 1:
        raise Error(f"{path} has no column beside {target_columns[0]}", hint="add at least one column of numbers")
    return target_columns[0]


def from_table(
    path: str, frame: Any, target: str, node_column: str | None = None, classify: bool | None = None
) -> Part:
    """Features and targets of a pandas table, in which every other column is a feature.

    Args:
        path: What to call it in errors.
        frame: The table.
        target: The column to predict.
        node_column: The column that names every record's node.
        classify: Whether the target is a label; None says so by its name, "label" or "target".
    """
    if not len(frame):
        raise Error(f"{path} has no line of data", hint="give one line per example")
    holders = None
    if node_column is not None:
        if node_column == target or node_column not in frame.columns:
            raise Error(f'{path} has no column "{node_column}" beside {target}', hint="check the column of the nodes")
        holders = Holders(node_column, holder_names(node_column, frame[node_column]))
    others = [column for column in frame.columns if column not in (target, node_column)]
    if not others:
        raise Error(f"{path} has no column of features", hint="add at least one column of numbers")
    features = np.empty((len(frame), len(others)), dtype=np.float32)
    for place, column in enumerate(others):
        features[:, place] = _column(path, frame[column], column)
    if (target.lower() != "target") if classify is None else classify:
        return Part(features, _words(path, frame[target]), True, untyped=True, holders=holders)
    return Part(features, _column(path, frame[target], target), False, holders=holders)


def _column(path: str, column: Any, name: str) -> NDArray[np.float32]:
    """A column of finite numbers; otherwise an error that names the first cell at fault."""
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)
    if numeric:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:  # some cell is no number; where all look like numbers, they are quoted or text by type
        values = pd.to_numeric(column.astype(str), errors="coerce").to_numpy(dtype=np.float64)
        values = values if not np.isfinite(values).all() else np.full(len(values), np.nan)
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    within = np.isfinite(small)
    if not within.all():
        row = int(np.flatnonzero(~within)[0])
        raise Error(
            f"{path}: column {name} of example {row + 1} is not a finite number",
            hint="remove or fill in such examples, and code words as numbers",
        )
    return np.asarray(small)


def _words(path: str, column: Any) -> NDArray[np.str_]:
    """Labels as they are written; none is left out."""
    words = np.array([str(value).strip() for value in column], dtype=np.str_)
    blank = column.isna().to_numpy() | (words == "")
    if blank.any():
        raise Error(
            f"{path}: example {int(np.flatnonzero(blank)[0]) + 1} has no label", hint="give every example a label"
        )
    return words
