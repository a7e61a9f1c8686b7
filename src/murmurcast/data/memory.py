"""Sets from what is in memory: arrays, tables of pandas, polars and others, and Hugging Face's datasets as they are."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
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
    parts = [_part(x, y)._replace(holders=holders)]
    if holders is not None:
        holders.require_length(len(parts[0].targets), 0)
    if test is not None:
        if not isinstance(test, tuple | list) or len(test) != 2:
            given = f"{len(test)} parts" if isinstance(test, tuple | list) else type(test).__name__
            raise Error(f"test is {given}, expected two arrays", hint="write test=(x_test, y_test)")
        parts.append(_part(*test, " of the test part"))
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
    for argument, name in (("target", target), ("node_column", node_column)):
        if not isinstance(name, str | None):
            raise Error(
                f"{argument} is {name!r:.60}, and columns go by their names as words",
                hint=f'write {argument}="{name!s:.60}"',
            )
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
    if callable(getattr(frame, "collect", None)):  # before its columns, which may take long
        raise Error(f"{type(frame).__name__} has not been computed yet", hint="give what it comes to: frame.collect()")
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if isinstance(frame, Mapping) and names is None:
        names = list(frame)
    if isinstance(names, Iterable) and not isinstance(names, str | Mapping):
        if not hasattr(frame, "__getitem__"):
            raise Error(
                f"{type(frame).__name__} gives its records one after another, and no column at once",
                hint="load it into memory first; of Hugging Face, without streaming=True",
            )
        listed = [str(name) for name in names]
        if len(set(listed)) < len(listed):
            raise Error("the table has two columns of the same name", hint="give every column its own name")
        return _same_lengths({name: _values(name, frame, key) for name, key in zip(listed, names, strict=True)})
    if not isinstance(frame, type) and (hasattr(frame, "__dataframe__") or hasattr(frame, "__arrow_c_stream__")):
        return columns_of(_interchanged(frame))
    raise Error(f"{type(frame).__name__} is not a table", hint=f"give {_TABLES}; arrays go into from_arrays")


def _interchanged(frame: Any) -> Any:
    import pandas as pd

    try:
        return pd.api.interchange.from_dataframe(frame)
    except ImportError:
        raise Error("reading this table needs pyarrow", hint="pip install murmurcast[parquet]") from None
    except Exception as problem:  # noqa: BLE001 - a single column has the protocol too, and says so in many ways
        raise Error(
            f"{type(frame).__name__} cannot be read as a table: {_check.short(problem)}",
            hint=f"give {_TABLES}; arrays go into from_arrays",
        ) from None


def _values(name: str, frame: Any, key: Any) -> NDArray[Any]:
    """One column; lists and images of equal size become arrays of several dimensions."""
    try:
        column = frame[key]
        values = column.to_numpy() if hasattr(column, "to_numpy") else column
    except Exception as problem:  # noqa: BLE001 - anything may happen in a table that is not ours
        raise Error(
            f'the column "{name}" of {type(frame).__name__} cannot be read: {_check.short(problem)}',
            hint=f"give {_TABLES}",
        ) from None
    _check.unmasked(**{f'the column "{name}"': values})
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping | Set) or not _dimensions(values):
        raise Error(f'the column "{name}" is {values!r:.60}, expected a list', hint="give it one entry per record")
    if not isinstance(values, np.ndarray) or (values.dtype == object and len(values) and _is_nested(values[0])):
        try:
            listed = [np.asarray(one) if _is_nested(one) else one for one in values]
            values = np.asarray(listed)
        except ValueError:
            raise Error(
                f'the column "{name}" holds examples of different sizes', hint="give every example the same size"
            ) from None
        if values.dtype.kind == "U":  # words; among them None or NaN stays what it is
            values = np.asarray(listed, dtype=object)
    return np.asarray(values)


def _dimensions(values: Any) -> int:
    """Of an array; a list has one at least."""
    return int(getattr(values, "ndim", 1))


def _same_lengths(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same columns, in which every record has an entry."""
    first = next(iter(columns), "")
    for name, values in columns.items():
        if len(values) != len(columns[first]):
            raise Error(
                f'the column "{name}" has {len(values)} entries, the column "{first}" {len(columns[first])}',
                hint="give every column one entry per record",
            )
    return columns


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
        parts = {name: values}
        if values.ndim > 1:
            several = values.reshape(len(values), math.prod(values.shape[1:]))
            parts = {f"{name}[{place}]": several[:, place] for place in range(several.shape[1])}
        if clash := parts.keys() & flat.keys():
            raise Error(
                f'"{min(clash)}" is a column, and a part of the lists in another', hint="give one of them another name"
            )
        flat |= parts
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
    _check.unmasked(**{name: value})
    try:
        return np.asarray(value)
    except ValueError:
        raise Error(f"{name} has rows of different lengths", hint="give every example the same size") from None
    except Exception as problem:  # noqa: BLE001 - anything may happen in an array that is not ours
        raise Error(f"{name} cannot be read: {_check.short(problem)}", hint=f"give {name} as a NumPy array") from None


def _part(x: ArrayLike, y: ArrayLike, where: str = "") -> Part:
    features, targets = _array("x", x), _array("y", y)
    _require_labels(y, targets, where)
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
    if 0 in features.shape:
        raise Error(f"x has shape {features.shape}: nothing to learn from", hint="give at least one example and number")
    return Part(features.reshape(len(features), -1), targets, targets.dtype.kind != "f")


def _require_labels(y: ArrayLike, targets: NDArray[Any], where: str) -> None:
    """Among words none is missing; in an array of words None and NaN would be two of them."""
    if targets.dtype.kind not in "OU" or targets.ndim != 1:
        return
    import pandas as pd

    missing = np.asarray(pd.isna(targets if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)))
    if missing.any():
        raise Error(f"example {int(missing.argmax()) + 1}{where} has no label", hint="give every example a label")
