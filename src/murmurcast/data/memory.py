"""Sets from what is in memory: arrays, tables of pandas, polars and others, and Hugging Face's datasets as they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast import _check
from murmurcast.data.base import Dataset
from murmurcast.data.files import Part, assembled, from_table
from murmurcast.data.holders import Holders, holder_names
from murmurcast.data.labels import Label, declared_labels
from murmurcast.errors import Error

_TABLES = "a table of pandas, polars or Arrow, a Hugging Face dataset, or a dict of columns"


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    labels: Iterable[Label] | None = None,
    classes: int | None = None,
    nodes: Sequence[object] | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A set from arrays, or from anything that NumPy takes for one.

    Args:
        x: [examples, features], or [examples, height, width] for images.
        y: [examples]: whole numbers or strings are labels, floats are values to predict.
        test: x and y of the test part; without it, one is cut off.
        labels: All labels there can be, declared without looking at the records, as in `from_file`.
        classes: Instead of labels, how many there can be: 0 to classes - 1.
        nodes: [examples] the node that each record belongs to, for the partition "column".
        test_fraction: Cut off as the test part where none is given.
        seed: Of the shuffle before that.
    """
    declared = declared_labels(labels, classes)
    holders = None if nodes is None else Holders("nodes", holder_names("nodes", nodes))
    if holders is not None:
        holders.require_length(len(_array("y", y)), 0)
    parts = [_part(x, y)._replace(holders=holders)]
    if test is not None:
        parts.append(_part(*test))
    dataset = assembled("arrays", parts, declared, test_fraction, seed)
    shape = _array("x", x).shape[1:]
    return replace(dataset, image_shape=shape) if len(shape) == 2 else dataset


def from_frame(
    frame: Any,
    *,
    target: str | None = None,
    test: Any = None,
    labels: Iterable[Label] | None = None,
    classes: int | None = None,
    node_column: str | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A set from a table in memory: every column but the target and the nodes' is a feature.

    Args:
        frame: A table of pandas, polars or Arrow, anything with the dataframe interchange protocol, a dict of columns,
            or a Hugging Face dataset, whose columns may hold lists or images. Nothing is scaled.
        target: The column to predict; a column "label" or "target" where it is left out. Whole numbers or words are
            labels, floats are values, and whatever labels are declared for are labels.
        test: Another such table as the test part; without it, one is cut off.
        labels: All labels there can be, declared without looking at the records, as in `from_file`. Where neither is
            given, the names of a Hugging Face dataset's ClassLabel are the declaration.
        classes: Instead of labels, how many there can be: 0 to classes - 1.
        node_column: The column that names the node each record belongs to, for the partition "column".
        test_fraction: Cut off as the test part where none is given.
        seed: Of the shuffle before that.
    """
    tables = [columns_of(frame)]
    if test is not None:
        tables.append(_in_order(columns_of(test), tables[0], node_column))
    target = _target(target, list(tables[0]))
    names = _class_names(frame, target) if labels is None and classes is None else ()
    declared = declared_labels(labels, len(names) or classes)
    parts = [_from_columns(one, target, node_column, declared is not None) for one in tables[:1]]
    # Nobody asks whose the test part's records are.
    parts += [_from_columns(one, target, None, declared is not None) for one in tables[1:]]
    dataset = assembled("frame", parts, declared, test_fraction, seed)
    shape = _image_shape(tables[0], target, node_column)
    return replace(dataset, image_shape=shape, label_names=names or dataset.label_names)


def columns_of(frame: Any) -> dict[str, NDArray[Any]]:
    """The columns of any table by name, each an array with the records first."""
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if isinstance(frame, Mapping) and names is None:
        names = list(frame)
    if isinstance(names, Iterable) and not isinstance(names, str | Mapping):
        listed = [str(name) for name in names]
        if len(set(listed)) < len(listed):
            raise Error("the table has two columns of the same name", hint="give every column its own name")
        return {name: _values(name, frame[key]) for name, key in zip(listed, names, strict=True)}
    if not isinstance(frame, type) and (hasattr(frame, "__dataframe__") or hasattr(frame, "__arrow_c_stream__")):
        return columns_of(_interchanged(frame))
    raise Error(f"{type(frame).__name__} is not a table", hint=f"give {_TABLES}; arrays go into from_arrays")


def _interchanged(frame: Any) -> Any:
    import pandas as pd

    try:
        return pd.api.interchange.from_dataframe(frame)
    except ImportError:
        raise Error("reading this table needs pyarrow", hint="pip install murmurcast[parquet]") from None


def _values(name: str, column: Any) -> NDArray[Any]:
    """One column; lists and images of equal size become arrays of several dimensions."""
    values = column.to_numpy() if hasattr(column, "to_numpy") else column
    if not isinstance(values, np.ndarray) or (values.dtype == object and len(values) and _is_nested(values[0])):
        try:
            values = np.asarray([np.asarray(one) if _is_nested(one) else one for one in values])
        except ValueError:
            raise Error(
                f'the column "{name}" holds examples of different sizes', hint="give every example the same size"
            ) from None
    return np.asarray(values)


def _is_nested(value: Any) -> bool:
    """Whether it holds several numbers: a list, an array, or an image."""
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "__array_interface__")


def _target(given: str | None, columns: list[str]) -> str:
    usual = [column for column in columns if column.lower() in ("label", "target")]
    if given is not None and given not in columns:
        raise Error(f'the table has no column "{given}"', hint=_check.nearest(given, columns))
    if given is None and len(usual) != 1:
        shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
        raise Error(f"which column to predict is not said; there are {shown}", hint='name it: target="digit"')
    return given if given is not None else usual[0]


def _in_order(
    columns: dict[str, NDArray[Any]], order: Iterable[str], node_column: str | None
) -> dict[str, NDArray[Any]]:
    """The columns of the test part in the order of the training part's, without that of the nodes."""
    needed = [name for name in order if name != node_column]
    missing = [name for name in needed if name not in columns]
    further = [name for name in columns if name not in (*needed, node_column)]
    if missing or further:
        what = f'lacks the column "{missing[0]}"' if missing else f'has a further column "{further[0]}"'
        raise Error(f"the test part {what}", hint="give both parts the same columns")
    return {name: columns[name] for name in needed}


def _from_columns(columns: dict[str, NDArray[Any]], target: str, node_column: str | None, declared: bool) -> Part:
    import pandas as pd

    flat: dict[str, Any] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            flat[name] = values
        else:
            several = values.reshape(len(values), -1)
            flat |= {f"{name}[{place}]": several[:, place] for place in range(several.shape[1])}
    if target not in flat:
        raise Error(f'the column "{target}" holds several numbers a record', hint="predict one label or value")
    classify = declared or columns[target].dtype.kind != "f"
    return from_table("the table", pd.DataFrame(flat, copy=False), target, node_column, classify)


def _image_shape(columns: dict[str, NDArray[Any]], target: str, node_column: str | None) -> tuple[int, int] | None:
    """Height and width where the only feature is a grey image."""
    features = [values for name, values in columns.items() if name not in (target, node_column)]
    if len(features) == 1 and features[0].ndim == 3:
        return int(features[0].shape[1]), int(features[0].shape[2])
    return None


def _class_names(frame: Any, target: str) -> tuple[str, ...]:
    """The names that a Hugging Face dataset declares for its labels."""
    features = getattr(frame, "features", None)
    names = getattr(features[target], "names", None) if isinstance(features, Mapping) and target in features else None
    return tuple(map(str, names)) if isinstance(names, list | tuple) and len(names) > 1 else ()


def _array(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        raise Error(f"{name} has rows of different lengths", hint="give every example the same size") from None


def _part(x: ArrayLike, y: ArrayLike) -> Part:
    features, targets = _array("x", x), _array("y", y)
    if targets.dtype == object:
        targets = targets.astype(np.str_)
    if targets.dtype.kind not in "fiubU" or targets.ndim != 1:
        raise Error(
            f"y holds {targets.dtype} of shape {targets.shape}, expected one label or value per example",
            hint="give labels as whole numbers or strings, values as floats",
        )
    if features.ndim not in (2, 3) or len(features) != len(targets):
        raise Error(
            f"x has shape {features.shape} for {len(targets)} labels or values",
            hint="give x as [examples, features], or [examples, height, width] for images",
        )
    return Part(features.reshape(len(features), -1), targets, targets.dtype.kind != "f")
