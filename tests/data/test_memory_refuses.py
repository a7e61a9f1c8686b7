"""Data in memory that cannot be taken as it is: an error with a way out, never a traceback, never other data."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import murmurcast as mc

X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
NUMBERS = pd.DataFrame({0: X[:, 0], 3: Y})
MASKED = np.ma.masked_equal(X, 2.0)
MASKED_LABELS = np.ma.masked_array(Y, mask=np.array([False, False, True, False]))


class LazyFrame:
    """As that of polars: it knows its columns, and has none of them yet."""

    columns = ("a", "label")

    def collect(self) -> Any:
        return pd.DataFrame({"a": X[:, 0], "label": Y})

    def __getitem__(self, name: str) -> Any:
        raise TypeError("LazyFrame is not subscriptable")


class Streaming:
    """As Hugging Face's: records one after another."""

    column_names = ("a", "label")

    def __iter__(self) -> Iterator[dict[str, int]]:
        yield {"a": 1, "label": 0}


class Column:
    """A single column, which has a table's protocol and is none."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        raise RuntimeError("non-struct type int64")


class Broken:
    """What cannot be read, whoever asks."""

    columns = ("a", "label")

    def __getitem__(self, name: str) -> Any:
        raise LookupError("gone")

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("requires grad")


def frame(**columns: Any) -> Any:
    return mc.datasets.from_frame(columns, classes=2)


def arrays(x: Any = X, y: Any = Y, **given: Any) -> Any:
    return mc.datasets.from_arrays(x, y, **given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: frame(a=[[1, 2]] * 4, **{"a[0]": Y}, label=Y), '"a[0]" is a column, and a part'),
        (lambda: frame(**{"a[1]": Y}, a=[[1, 2]] * 4, label=Y), '"a[1]" is a column, and a part'),
        (lambda: arrays(MASKED), "x has masked entries"),
        (lambda: arrays(list(MASKED)), "x has masked entries"),
        (lambda: arrays(y=MASKED_LABELS), "y has masked entries"),
        (lambda: arrays(test=(X, MASKED_LABELS)), "y has masked entries"),
        (lambda: arrays(nodes=MASKED_LABELS), 'the column "nodes" has masked entries'),
        (lambda: frame(a=X, label=MASKED_LABELS), 'the column "label" has masked entries'),
        (
            lambda: mc.datasets.Dataset(name="own", features=MASKED, targets=Y, test_features=X, test_targets=Y),  # type: ignore[arg-type]
            "features has masked entries",
        ),
        (lambda: arrays(y=["a", None, "b", "a"]), "example 2 has no label"),
        (lambda: arrays(y=["a", "b", np.nan, "a"]), "example 3 has no label"),
        (lambda: arrays(y=np.array(["a", "b", "b", np.nan], dtype=object)), "example 4 has no label"),
        (lambda: arrays(y=pd.Series(["a", pd.NA, "b", "a"])), "example 2 has no label"),
        (lambda: arrays(y=list("abab"), test=(X, ["a", None, "b", "a"])), "example 2 of the test part has no label"),
        (lambda: frame(a=X, label=["a", float("nan"), "b", "a"]), "example 2 has no label"),
        (lambda: arrays(nodes=["a", pd.NaT, "b", "b"]), "names no node for example 2"),
        (lambda: arrays(nodes=np.array(["2020", "NaT", "2021", "2020"], "datetime64[Y]")), "no node for example 2"),
        (lambda: arrays(nodes=3), "nodes is 3, expected a list"),
        (lambda: mc.datasets.from_frame(LazyFrame()), "LazyFrame has not been computed yet"),
        (lambda: mc.datasets.from_frame(pd.Series(Y)), "Series"),
        (lambda: mc.datasets.from_frame(Column()), "Column cannot be read as a table"),
        (lambda: mc.datasets.from_frame(Streaming()), "one after another"),
        (lambda: mc.datasets.from_frame(Broken()), 'the column "a" of Broken cannot be read: gone'),
        (lambda: frame(a=[1, 2, 3], label=[0, 1]), 'the column "label" has 2 entries, the column "a" 3'),
        (lambda: frame(a=3, label=Y), 'the column "a" is 3, expected a list'),
        (lambda: frame(a=np.array(3), label=Y), 'the column "a" is array(3), expected a list'),
        (lambda: frame(a="0101", label=Y), "the column \"a\" is '0101', expected a list"),
        (lambda: frame(a={3, 1, 2, 0}, label=Y), "expected a list"),
        (lambda: frame(a=[[1, [2, 3]], [4, 5]], label=[0, 1]), "different sizes"),
        (lambda: frame(a=np.empty((0, 3)), label=[]), "no line of data"),
        (lambda: arrays(np.empty((0, 2)), Y[:0]), "nothing to learn from"),
        (lambda: arrays([], []), "x has shape (0,)"),
        (lambda: arrays(Broken()), "x cannot be read: requires grad"),
        (lambda: arrays(y=None, nodes=list("abab")), "y holds"),
        (lambda: arrays(test=(X, Y, Y)), "test is 3 parts, expected two arrays"),
        (lambda: arrays(test=3), "test is int, expected two arrays"),
        (lambda: mc.datasets.from_frame(NUMBERS, target=3), "target is 3, and columns go by their names as words"),  # type: ignore[arg-type]
        (lambda: mc.datasets.from_frame(NUMBERS, target="3", node_column=0), "node_column is 0"),  # type: ignore[arg-type]
    ],
)
def test_what_would_be_lost_or_fail_is_an_error_with_a_hint(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(mc.Error, match=re.escape(words)) as raised:
        make()
    assert raised.value.hint


def polars() -> Any:
    return pytest.importorskip("polars").DataFrame({"a": Y, "label": Y}).lazy()


@pytest.mark.parametrize("make", [LazyFrame, polars])
def test_a_table_that_is_not_computed_is_not_computed_in_passing(make: Callable[[], Any]) -> None:
    with pytest.raises(mc.Error, match="LazyFrame has not been computed yet") as raised:
        mc.datasets.from_frame(make())
    assert ".collect()" in raised.value.hint
    assert mc.datasets.from_frame(make().collect(), classes=2).features.shape == (3, 1)


def test_hints_show_what_to_type() -> None:
    with pytest.raises(mc.Error) as raised:
        mc.datasets.from_frame(NUMBERS, target=3)  # type: ignore[arg-type]
    assert raised.value.hint == 'write target="3"'
    assert mc.datasets.from_frame(NUMBERS, target="3", classes=2).features.shape == (3, 1)


def test_what_only_looks_alike_is_taken() -> None:
    whole = arrays(np.ma.masked_array(X, mask=False), Y, classes=2)
    np.testing.assert_array_equal(whole.features, arrays(X, Y, classes=2).features)
    assert frame(a=[[1, 2]] * 4, **{"a[2]": Y}, label=Y).features.shape == (3, 3)
    assert arrays(y=["None", "nan", "nan", "None"]).label_names == ("None", "nan")  # words that were written
    assert arrays(nodes=["NaT", "b", "b", "NaT"]).holders.names  # as a person's initials
    assert frame(a=Y, label=Y, collect=Y).features.shape == (3, 2)
