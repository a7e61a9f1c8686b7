"""Labels are declared and so public, or read from the records; a record outside the declaration is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.labels import declared_labels
from murmurcast.errors import Error

X = np.arange(40, dtype=np.float64).reshape(20, 2)
WORDS = ["cat", "ant", "bee", "ant"] * 5
NUMBERS = [1, 0, 2, 0] * 5


def write(path: Path, labels: Any, name: str = "label") -> Path:
    import pandas as pd

    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], name: labels})
    if path.suffix == ".npz":
        np.savez(path, x=X, y=np.array(labels))
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.parquet"])
def test_declared_labels_do_not_depend_on_the_records(tmp_path: Path, name: str) -> None:
    """One record less of a label, or none at all: names, order and number stay as declared."""
    declared = ["dog", "cat", "bee", "ant"]
    for labels in (WORDS, ["cat", "bee"] * 10):
        result = mc.datasets.load(write(tmp_path / name, labels), labels=declared)
        assert result.label_names == tuple(declared)
        assert result.classes == 4
        assert result.labels_from == "declared"
        of_row = dict(zip(X[:, 0].tolist(), labels, strict=True))
        for features, target in zip(result.features, result.targets, strict=True):
            assert declared[target] == of_row[float(features[0])]


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.parquet"])
def test_a_number_of_classes_is_the_labels_from_0(tmp_path: Path, name: str) -> None:
    result = mc.datasets.from_file(write(tmp_path / name, NUMBERS), classes=5)
    assert result.label_names == ("0", "1", "2", "3", "4")
    assert set(result.targets.tolist()) <= {0, 1, 2}


def test_numbers_are_told_by_their_value_and_words_by_their_letters(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,u\n" + "1.0,1\n 0 ,2\n2,3\n01,4\n" * 3)
    assert set(mc.datasets.load(tmp_path / "a.csv", classes=3).targets.tolist()) == {0, 1, 2}
    with pytest.raises(Error, match="example 4 is not"):
        mc.datasets.load(tmp_path / "a.csv", labels=["0", "1.0", "2"])


@pytest.mark.parametrize(
    ("labels", "place", "other", "declared"),
    [
        (WORDS, 7, "secret", {"labels": ["ant", "bee", "cat"]}),
        (NUMBERS, 4, 77, {"classes": 3}),
        (NUMBERS, 4, -1, {"classes": 3}),
        (NUMBERS, 19, 77, {"labels": [0, 1, 2]}),
        ([str(number) for number in NUMBERS], 2, "1.5", {"classes": 3}),
        ([str(number) for number in NUMBERS], 2, "nan", {"classes": 3}),
        ([str(number) for number in NUMBERS], 2, "1e400", {"classes": 3}),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_a_record_outside_the_declaration_is_refused_without_its_label(
    tmp_path: Path, name: str, labels: list[Any], place: int, other: Any, declared: dict[str, Any]
) -> None:
    changed = [other if row == place else label for row, label in enumerate(labels)]
    with pytest.raises(Error, match=f"the label of example {place + 1} is not one of the 3") as caught:
        mc.datasets.load(write(tmp_path / name, changed), **declared)
    said = f"{caught.value} {caught.value.hint}".replace(str(tmp_path), "")
    assert f" {other}" not in said
    assert "correct that record" in caught.value.hint


def test_the_test_part_is_held_to_the_declaration_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=np.array(NUMBERS), x_test=X[:3], y_test=np.array([0, 1, 3]))
    with pytest.raises(Error, match="example 3 of the test part is not one of the 3"):
        mc.datasets.load(tmp_path / "a.npz", classes=3)
    assert mc.datasets.load(tmp_path / "a.npz", classes=4).test_targets.tolist() == [0, 1, 3]


@pytest.mark.parametrize("given", [["a"], ["a", "a"], [" a", "a"], [], [3, 3]])
def test_a_list_that_declares_too_little(given: list[Any]) -> None:
    with pytest.raises(Error, match="fewer than two labels, or one of them twice"):
        declared_labels(given, None)


@pytest.mark.parametrize("given", ["ab", 3, ["a", 1], [True, False], [0.5, 1.5], ["a", ""], [None, "a"]])
def test_labels_of_another_kind(given: Any) -> None:
    with pytest.raises(Error, match="list of words, or a list of whole numbers") as caught:
        declared_labels(given, None)
    assert "classes = 2" in caught.value.hint


@pytest.mark.parametrize(
    ("classes", "words"), [(1, "at least 2"), (10**7, "more than 1000000"), ("3", "whole number"), (2.0, "whole")]
)
def test_a_number_of_classes_that_cannot_be(classes: Any, words: str) -> None:
    with pytest.raises(Error, match=words):
        declared_labels(None, classes)


def test_one_declaration_is_enough(tmp_path: Path) -> None:
    with pytest.raises(Error, match="both labels and classes"):
        mc.datasets.load(write(tmp_path / "a.csv", NUMBERS), labels=[0, 1, 2], classes=3)
    with pytest.raises(Error, match="classes has no meaning with the set"):
        mc.datasets.load("digits", classes=10)
    with pytest.raises(Error, match="labels are declared, and there are values"):
        mc.datasets.load(write(tmp_path / "a.csv", X[:, 0], "target"), classes=3)


def test_where_labels_come_from_is_kept(tmp_path: Path) -> None:
    read = mc.datasets.load(write(tmp_path / "a.csv", WORDS))
    assert read.labels_from == "records"
    assert read.split(0.5).labels_from == "records"
    assert read.normalised(0.0, 2.0).labels_from == "records"
    assert not read.scaled
    assert read.normalised(0.0, 2.0).split(0.3).scaled
    assert mc.datasets.digits().labels_from == "built in"
    assert mc.datasets.logistic().split(0.3).labels_from == "built in"
    with pytest.raises(Error, match='labels_from is "somewhere"'):
        replace(read, labels_from="somewhere")  # type: ignore[arg-type]
