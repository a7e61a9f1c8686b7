"""Data in memory: arrays, tables of several libraries, and records that already belong to nodes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import murmurcast as mc
from murmurcast.data.assumptions import assumptions, facts_of, partition_warnings
from murmurcast.data.base import Dataset
from murmurcast.data.memory import columns_of
from murmurcast.data.partition import kind_of

DRAW = np.random.default_rng(8)
PULSE, AGE = DRAW.normal(70, 9, 30).round(1), DRAW.integers(20, 80, 30)
ILL = np.where(DRAW.random(30) < 0.4, "yes", "no")
SITE = np.array(["south", "north", "east"])[DRAW.integers(0, 3, 30)]
COLUMNS = {"site": SITE, "pulse": PULSE, "age": AGE, "ill": ILL}
DECLARED: dict[str, Any] = {"target": "ill", "labels": ["no", "yes"], "node_column": "site"}


class HuggingFace:
    """A dataset as Hugging Face's library shows it: columns by name, a schema with the names of labels."""

    class ClassLabel:
        names = ("shirt", "shoe", "bag")

    column_names = ("image", "label")
    features = {"image": None, "label": ClassLabel()}  # noqa: RUF012 - as theirs is

    def __getitem__(self, name: str) -> list[Any]:
        images = np.random.default_rng(1).integers(0, 256, (20, 4, 6)).astype(np.uint8)
        return [Picture(one) for one in images] if name == "image" else [place % 3 for place in range(20)]


class Picture:
    """An image as the usual library shows it to NumPy."""

    def __init__(self, pixels: Any) -> None:
        self.__array_interface__ = pixels.__array_interface__
        self._pixels = pixels


class Interchange:
    """Nothing but the dataframe interchange protocol."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, *arguments: Any, **named: Any) -> Any:
        return self._frame.__dataframe__(*arguments, **named)


def polars(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def arrow(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


@pytest.mark.parametrize("make", [pd.DataFrame, polars, arrow, dict], ids=["pandas", "polars", "arrow", "dict"])
def test_tables_of_all_libraries_give_the_same_set(make: Callable[[Any], Any], tmp_path: Path) -> None:
    pd.DataFrame(COLUMNS).rename(columns={"ill": "label"}).to_csv(tmp_path / "frame.csv", index=False)
    expected = mc.datasets.load(tmp_path / "frame.csv", labels=["no", "yes"], node_column="site")
    result = mc.datasets.from_frame(make(COLUMNS), **DECLARED)
    for name in ("features", "targets", "test_features", "test_targets"):
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
    assert result.features.shape == (24, 2)
    assert (result.labels_from, result.label_names) == ("declared", ("no", "yes"))
    assert result.holders is not None
    assert expected.holders is not None
    np.testing.assert_array_equal(result.holders.training, expected.holders.training)


@pytest.mark.filterwarnings("ignore:.*interchange.*")
def test_whatever_has_only_the_interchange_protocol_is_read_by_it() -> None:
    if not hasattr(pd.DataFrame, "__dataframe__"):
        pytest.skip("this pandas has no interchange protocol")
    result = columns_of(Interchange(pd.DataFrame({"pulse": PULSE, "age": AGE})))
    np.testing.assert_array_equal(result["pulse"], PULSE)
    np.testing.assert_array_equal(result["age"], AGE)


def test_hugging_face_datasets_are_taken_as_they_are() -> None:
    result = mc.datasets.from_frame(HuggingFace())
    assert result.label_names == ("shirt", "shoe", "bag")
    assert result.labels_from == "declared"
    assert result.image_shape == (4, 6)
    assert result.features.shape == (16, 24)
    assert 1 < result.features.max() <= 255  # nothing is scaled
    assert result.with_features([mc.features.Hog(cells=2)]).features.shape == (16, 32)


def test_arrays_with_images_labels_and_a_test_part() -> None:
    x, y = DRAW.random((12, 3, 5)), np.arange(12) % 3
    result = mc.datasets.from_arrays(x[:8], y[:8], test=(x[8:], y[8:]), classes=3)
    assert result.image_shape == (3, 5)
    np.testing.assert_array_equal(result.features, x[:8].reshape(8, 15).astype(np.float32))
    np.testing.assert_array_equal(result.test_targets, y[8:])
    assert mc.datasets.from_arrays(x.reshape(12, 15), y).labels_from == "records"
    assert mc.datasets.from_arrays(x.reshape(12, 15).tolist(), y * 0.5).classes is None
    words = mc.datasets.from_arrays(x, np.array(["a", "b"] * 6, dtype=object), labels=["b", "a"])
    assert words.label_names == ("b", "a")


def test_values_to_predict_and_another_table_as_the_test_part() -> None:
    frame = pd.DataFrame({"age": AGE, "pulse": PULSE})
    result = mc.datasets.from_frame(frame[:20], target="pulse", test=frame[20:][["pulse", "age"]])  # in another order
    assert result.classes is None
    np.testing.assert_allclose(result.test_targets, PULSE[20:], rtol=1e-6)
    np.testing.assert_array_equal(result.features[:, 0], AGE[:20])
    sites = mc.datasets.from_frame(FRAME[:20], test=FRAME[20:][["age", "ill", "pulse"]], **DECLARED)
    np.testing.assert_array_equal(sites.test_features, np.stack([PULSE, AGE], axis=1)[20:].astype(np.float32))
    assert sites.partition("column").names == ("east", "north", "south")
    with pytest.raises(mc.Error, match="cannot be pooled"):
        sites.split(0.3)
    with pytest.raises(mc.Error, match='has a further column "site"'):
        mc.datasets.from_frame(FRAME[["age", "ill"]], test=FRAME[["age", "ill", "site"]], target="ill")


def kept(dataset: Dataset) -> dict[str, set[float]]:
    parts = dataset.partition("column")
    return {name: set(dataset.features[rows, 0].tolist()) for name, rows in zip(parts.names, parts.rows, strict=True)}


def test_records_stay_with_the_node_that_their_column_names() -> None:
    result = mc.datasets.from_frame(pd.DataFrame(COLUMNS), **DECLARED)
    owner = {np.float32(pulse): site for pulse, site in zip(PULSE, SITE, strict=True)}
    for dataset in (result, result.split(0.4, 7), result.normalised(0.0, 1.0)):
        parts = kept(dataset)
        assert list(parts) == ["east", "north", "south"]
        assert {owner[np.float32(pulse)] for pulse in parts["north"]} == {"north"}
        assert sum(map(len, parts.values())) == len(dataset.features)
    in_order = result.partition(mc.datasets.Column(column="site"), nodes=("south", "east", "north"))
    assert in_order.names == ("south", "east", "north")
    np.testing.assert_array_equal(in_order.rows[2], result.partition("column", nodes=3).rows[1])
    assert "north" in in_order.as_text()
    facts = facts_of(in_order)
    assert (kind_of(in_order.rule), facts.partition) == ("column", "column")
    assert partition_warnings(facts, "record") == []
    assert any("stays the same whatever the record says" in line for line in assumptions(facts, "record"))


def test_nodes_of_arrays_by_number_are_in_the_order_of_their_numbers() -> None:
    x, y = DRAW.random((24, 2)), np.arange(24) % 2
    result = mc.datasets.from_arrays(x, y, classes=2, nodes=[float(place % 12) for place in range(24)])
    assert result.holders is not None
    assert result.holders.names == tuple(sorted(set(result.holders.training.tolist()), key=int))


def test_other_rules_keep_names_too() -> None:
    parts = mc.datasets.digits().partition("sorted", nodes=["hall", "attic", "cellar"])
    assert parts.names == ("hall", "attic", "cellar")
    assert parts.warnings[0].startswith("node hall has no examples")
    assert parts.as_text().splitlines()[1].split()[0] == "hall"


FRAME = pd.DataFrame(COLUMNS)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mc.datasets.from_frame(3), "int is not a table"),
        (lambda: mc.datasets.from_frame(FRAME), "which column to predict is not said"),
        (lambda: mc.datasets.from_frame(FRAME, target="il"), 'no column "il"'),
        (lambda: mc.datasets.from_frame(FRAME, target="ill"), "column site of example 1 is not a finite number"),
        (lambda: mc.datasets.from_frame(FRAME, target="ill", node_column="sit"), 'no column "sit"'),
        (lambda: mc.datasets.from_frame(FRAME[["ill"]], target="ill"), "no column of features"),
        (lambda: mc.datasets.from_frame({"a": [[1, 2], [3]], "label": [0, 1]}), "different sizes"),
        (lambda: mc.datasets.from_frame({"a": [1, 2], "label": [[0, 1], [1, 0]]}), "several numbers a record"),
        (lambda: mc.datasets.from_frame(FRAME, test=FRAME[["age"]], **DECLARED), 'lacks the column "pulse"'),
        (lambda: mc.datasets.from_arrays([[1.0], [2.0]], [[0], [1]]), "expected one label or value per example"),
        (lambda: mc.datasets.from_arrays([[1.0], [2.0]], [0, 1, 1]), "for 3 labels or values"),
        (lambda: mc.datasets.from_arrays([[1.0], [2.0, 3.0]], [0, 1]), "different lengths"),
        (lambda: mc.datasets.from_arrays([[1.0], [2.0]], [0, 1], nodes=["a"]), "1 names of nodes"),
        (lambda: mc.datasets.from_arrays([[1.0], [2.0]], [0, 1], nodes=["a", ""]), "names no node for example 2"),
        (lambda: mc.datasets.digits().partition("column", nodes=3), "needs a column that names the node"),
        (
            lambda: mc.datasets.from_frame(FRAME, **DECLARED).partition("column", nodes=4),
            "names 3 nodes, and the network",
        ),
        (
            lambda: mc.datasets.from_frame(FRAME, **DECLARED).partition("column", nodes=("a", "b", "c")),
            "which is not a node",
        ),
        (
            lambda: mc.datasets.from_frame(FRAME, **DECLARED).partition(mc.datasets.Column(column="town"), nodes=3),
            'the set has "site"',
        ),
        (lambda: mc.datasets.digits().partition("iid"), "how many nodes"),
        (lambda: mc.datasets.digits().partition("iid", nodes=("a", "a")), "1 different names are given for 2 nodes"),
    ],
)
def test_what_does_not_fit_is_an_error_with_a_hint(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(mc.Error, match=re.escape(words)) as raised:
        make()
    assert raised.value.hint


def test_archives_have_no_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "my.npz", x=np.ones((4, 2)), y=np.arange(4) % 2)
    with pytest.raises(mc.Error, match="has no columns"):
        mc.datasets.load(tmp_path / "my.npz", classes=2, node_column="site")
