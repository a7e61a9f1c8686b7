"""Sets by name, their validation, and what can be made of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmurcast.data import datasets, sources
from murmurcast.data.datasets import Dataset
from murmurcast.errors import Error


def tiny(**changed: Any) -> Dataset:
    given: dict[str, Any] = {
        "name": "tiny",
        "features": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
        "targets": [0, 2, 1],
        "test_features": [[6.0, 7.0]],
        "test_targets": [2],
        "classes": 3,
    }
    return Dataset(**(given | changed))


def test_digits_are_what_scikit_learn_has() -> None:
    result = datasets.digits()
    assert result.features.shape == (1438, 64)
    assert result.test_features.shape == (359, 64)
    assert result.features.dtype == np.float32
    assert result.targets.dtype == np.int32
    assert (result.features.min(), result.features.max()) == (0.0, 1.0)
    assert result.label_names == tuple("0123456789")
    everything = np.concatenate([result.targets, result.test_targets])
    assert np.bincount(everything).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    np.testing.assert_array_equal(result.features, datasets.digits().features)


def test_real_mnist_where_it_is_in_the_cache() -> None:
    if not sources.cache_file(sources.MNIST).exists():
        pytest.skip("MNIST is not in the cache; mnist() or make test-slow fetches it")
    result = datasets.mnist()
    assert result.features.shape == (60000, 784)
    assert result.test_features.shape == (10000, 784)
    assert (result.features.min(), result.features.max()) == (0.0, 1.0)
    # LeCun's counts.
    assert np.bincount(result.targets).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert result.targets[:5].tolist() == [5, 0, 4, 1, 9]
    # The well-known mean and deviation of its pixels.
    assert float(result.features.mean(dtype=np.float64)) == pytest.approx(0.1307, abs=5e-5)
    assert float(result.features.std(dtype=np.float64)) == pytest.approx(0.3081, abs=5e-5)
    paper = result.split(0.2, seed=0)
    assert (len(paper.features), len(paper.test_features)) == (56000, 14000)
    assert paper.partition("sorted", nodes=4).sizes.tolist() == [14000] * 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": [[0.0, 1.0], [2.0, np.nan], [4.0, 5.0]]}, "features is nan in row 1, column 1"),
        ({"features": [[0.0, 1.0], [2.0, 3.0], [-np.inf, 5.0]]}, "features is -inf in row 2, column 0"),
        ({"features": [[0.0, 1.0], [1e300, 3.0], [4.0, 5.0]]}, r"features is 1e\+300 in row 1, column 0"),
        ({"features": [0.0, 1.0, 2.0]}, "expected two dimensions"),
        ({"features": [[0.0, 1.0], [2.0], [4.0, 5.0]]}, "not an array of real numbers"),
        ({"features": [["a", "b"]] * 3}, "not an array of real numbers"),
        ({"features": np.zeros((0, 2)), "targets": []}, "nothing to learn from"),
        ({"targets": [0, 3, 1]}, r"targets\[1\] is 3, expected a label of 0 to 2"),
        ({"targets": [0, -1, 1]}, r"targets\[1\] is -1"),
        ({"targets": [0, 0.5, 1]}, r"targets\[1\] is 0.5"),
        ({"targets": [0, np.nan, 1]}, r"targets\[1\] is nan"),
        ({"targets": [0, 1]}, "features has 3 rows, targets has 2"),
        ({"targets": [[0], [1], [2]]}, "expected one entry per example"),
        ({"test_targets": [3]}, r"test_targets\[0\] is 3"),
        ({"test_features": [[1.0]]}, "features has 2 columns, test_features 1"),
        ({"classes": 1}, "classes is 1"),
        ({"label_names": ("a", "b")}, "2 names for 3 labels"),
        ({"classes": None, "targets": [0.0, np.inf, 1.0]}, r"targets\[1\] is inf, expected a finite number"),
        ({"classes": None, "label_names": ("a",)}, "1 names for no labels"),
    ],
)
def test_bad_sets_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        tiny(**changed)
    assert raised.value.hint


def test_arrays_cannot_be_changed_from_anywhere() -> None:
    features = np.zeros((3, 2), np.float32)
    result = tiny(features=features, optimum=np.zeros(2))
    features[0, 0] = 9.0
    assert result.features[0, 0] == 0.0
    for array in (result.features, result.targets, result.test_features, result.test_targets, result.optimum):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_split_pools_shuffles_and_cuts() -> None:
    result = datasets.digits()
    again = result.split(0.5, seed=3)
    assert len(again.features) == 899  # of 1797, the odd one trains
    pooled = [np.concatenate([one.features, one.test_features]) for one in (result, again)]
    first, second = (part[np.lexsort(part.T)] for part in pooled)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(again.features, result.split(0.5, seed=4).features)
    np.testing.assert_array_equal(again.test_targets, result.split(0.5, seed=3).test_targets)
    assert again.label_names == result.label_names


def test_split_keeps_an_example_with_its_label() -> None:
    rows = np.arange(100, dtype=np.float32)
    built = tiny(
        features=rows[:80, None], targets=rows[:80] % 3, test_features=rows[80:, None], test_targets=rows[80:] % 3
    )
    again = built.split(0.3, seed=1)
    np.testing.assert_array_equal(again.features[:, 0] % 3, again.targets)
    np.testing.assert_array_equal(again.test_features[:, 0] % 3, again.test_targets)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan"), 0.01])
def test_a_split_without_two_parts_is_refused(fraction: float) -> None:
    with pytest.raises(Error, match="test_fraction"):
        tiny().split(fraction, seed=0)


def test_normalised_uses_the_given_constants() -> None:
    result = tiny().normalised(1.0, 2.0)
    np.testing.assert_array_equal(result.features, [[-0.5, 0.0], [0.5, 1.0], [1.5, 2.0]])
    np.testing.assert_array_equal(result.test_features, [[2.5, 3.0]])
    assert result.features.dtype == np.float32
    for mean, std in ((0.0, 0.0), (0.0, -1.0), (float("nan"), 1.0)):
        with pytest.raises(Error):
            tiny().normalised(mean, std)


@pytest.mark.parametrize("name", ["digits", "least-squares", "logistic"])
def test_load_by_name(name: str) -> None:
    assert datasets.load(name).name == name


def test_load_from_a_path(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.eye(10), y=np.arange(10) % 2)
    assert datasets.load(tmp_path / "mine.npz").name == "mine"
    assert datasets.load(str(tmp_path / "mine.npz")).classes == 2


@pytest.mark.parametrize(
    ("name", "hint"),
    [("minst", 'did you mean "mnist"'), ("fashion_mnist", 'did you mean "fashion-mnist"'), ("zzz", "known here: ")],
)
def test_unknown_names_are_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(Error, match="is not a data set") as raised:
        datasets.load(name)
    assert hint in raised.value.hint
    assert ".parquet" in raised.value.hint


def test_missing_files_and_folders_are_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(Error, match="does not exist"):
        datasets.load(str(tmp_path / "none.csv"))
    with pytest.raises(Error, match="is a folder"):
        datasets.load(str(tmp_path))


def test_a_set_shows_itself_in_one_line() -> None:
    assert repr(tiny()) == "Dataset('tiny': 3 training and 1 test examples, 2 features, 3 classes)"
    assert "regression" in repr(replace(tiny(), classes=None, label_names=()))
