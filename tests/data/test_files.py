"""Sets from the user's files, through the real readers."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmurcast.data.datasets import from_file
from murmurcast.errors import Error

X = np.arange(40, dtype=np.float64).reshape(20, 2)
WORDS = np.array(["cat", "ant", "bee", "ant"] * 5)


def write_table(path: Path, columns: dict[str, Any]) -> None:
    import pandas as pd

    frame = pd.DataFrame(columns)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)


def test_every_format_gives_the_same_set(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=WORDS)
    write_table(tmp_path / "a.csv", {"u": X[:, 0], "label": WORDS, "v": X[:, 1]})
    write_table(tmp_path / "a.parquet", {"u": X[:, 0], "v": X[:, 1], "label": WORDS})
    first, *others = (from_file(tmp_path / name) for name in ("a.npz", "a.csv", "a.parquet"))
    assert first.label_names == ("ant", "bee", "cat")
    assert len(first.features) == 16
    row = int(first.features[0, 0]) // 2
    assert first.label_names[first.targets[0]] == WORDS[row]
    for other in others:
        assert other.label_names == first.label_names
        np.testing.assert_array_equal(other.features, first.features)
        np.testing.assert_array_equal(other.targets, first.targets)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_numbers_are_sorted_by_value(tmp_path: Path, suffix: str) -> None:
    write_table(tmp_path / f"a{suffix}", {"label": [10, 9, 100, 9] * 5, "u": X[:, 0]})
    assert from_file(tmp_path / f"a{suffix}").label_names == ("9", "10", "100")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_targets_are_values(tmp_path: Path, suffix: str) -> None:
    write_table(tmp_path / f"a{suffix}", {"target": X[:, 0] / 2, "u": X[:, 0], "yes": X[:, 1] > 9})
    result = from_file(tmp_path / f"a{suffix}")
    assert result.classes is None
    assert result.label_names == ()
    np.testing.assert_array_equal(result.targets * 2, result.features[:, 0])
    assert set(result.features[:, 1].tolist()) == {0.0, 1.0}


def test_floats_in_an_archive_are_values_and_a_test_part_is_kept(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=X[:, 0], x_test=X[:3], y_test=X[:3, 0])
    result = from_file(tmp_path / "a.npz")
    assert result.classes is None
    np.testing.assert_array_equal(result.features, X)
    np.testing.assert_array_equal(result.test_targets, X[:3, 0])


def test_labels_of_both_parts_share_their_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=np.arange(20) % 2 * 7, x_test=X[:2], y_test=[3, 7])
    result = from_file(tmp_path / "a.npz")
    assert result.label_names == ("0", "3", "7")
    assert result.test_targets.tolist() == [1, 2]


def test_words_that_tables_take_for_gaps_are_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufefflabel, u\n" + "NA,1\nNone,2\nnan,3\n" * 4, encoding="utf-8")
    assert from_file(tmp_path / "a.csv").label_names == ("NA", "None", "nan")


def test_fraction_and_seed_are_the_users(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=WORDS)
    result = from_file(tmp_path / "a.npz", test_fraction=0.5, seed=4)
    assert len(result.features) == 10
    assert not np.array_equal(result.features, from_file(tmp_path / "a.npz", test_fraction=0.5, seed=5).features)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("label,u\n", "no line"),
        ("u,v\n1,2\n", "has the columns u, v"),
        ("label,target,u\na,1,2\n", "label and target"),
        ("label\na\nb\n", "no column beside label"),
        ("label,u,u\na,1,2\n", 'two columns "u"'),
        ("label,label,u\na,b,2\n", 'two columns "label"'),
        ("label,u\na,1\nb,x\n", "column u of example 2 is not"),
        ("label,u\na,1\nb,\n", "column u of example 2 is not"),
        ("label,u\na,1\nb,nan\n", "column u of example 2 is not"),
        ("label,u\na,1\nb,inf\n", "column u of example 2 is not"),
        ("label,u\na,1\nb,1e39\n", "column u of example 2 is not"),
        ("label,u\na,1\n,2\n", "example 2 has no label"),
        ("label,u\na,1\nb\n", "column u of example"),
        ("label,u\na,1\nb,2,3\n", "cannot be read|longer"),
        ("label,u\na,1,4\nb,2,3\n", "cannot be read|longer"),
        ("label,u\n1.5,1\n2,2\n", 'label "1.5" is a number but not a whole one'),
        ("label,u\na,1\na,2\n", 'every label is "a"'),
        ("target,u\n1,1\nx,2\n", "column target of example 2 is not"),
        ("target,u\n1,1\n", "leaves one part empty"),
        ('label,u\na,"1\n', "cannot be read"),
    ],
)
def test_bad_tables_are_errors_with_a_way_out(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(Error, match=message) as raised:
        from_file(tmp_path / "a.csv")
    assert raised.value.hint
    assert "a.csv" in str(raised.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "holds x"),
        ({"x": X, "y": WORDS, "x_test": X}, "holds x, x_test, y"),
        ({"x": X, "y": WORDS[:5]}, "x has 20 rows, y 5"),
        ({"x": X[:, 0], "y": WORDS}, r"x has shape \(20,\)"),
        ({"x": X, "y": X}, r"y \(20, 2\)"),
        ({"x": X[:0], "y": WORDS[:0]}, "no data"),
        ({"x": X + 1j, "y": WORDS}, "not an array of real numbers"),
        ({"x": X.astype(str), "y": WORDS}, "not an array of real numbers"),
        ({"x": X, "y": X[:, 0] * 1j}, "y holds complex"),
        ({"x": np.where(X == 7, np.nan, X), "y": WORDS}, "features is nan in row 3, column 1"),
        ({"x": X, "y": WORDS, "x_test": X, "y_test": X[:, 0]}, "two kinds"),
        ({"x": X, "y": WORDS, "x_test": X[:, :1], "y_test": WORDS}, "columns"),
    ],
)
def test_bad_archives_are_errors_with_a_way_out(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(Error, match=message) as raised:
        from_file(tmp_path / "a.npz")
    assert raised.value.hint


def test_broken_files_are_errors_with_a_way_out(tmp_path: Path) -> None:
    np.savez(tmp_path / "whole.npz", x=X, y=WORDS)
    np.save(tmp_path / "single.npy", X)
    whole = (tmp_path / "whole.npz").read_bytes()
    contents = {
        "cut.npz": whole[: len(whole) // 2],
        "damaged.npz": whole[:200] + b"\xff" * 50 + whole[250:],
        "empty.npz": b"",
        "text.npz": b"not an archive",
        "single.npz": (tmp_path / "single.npy").read_bytes(),
        "binary.csv": b"label,u\n\xff\xfe\x00,1\n",
        "text.parquet": b"not parquet",
        "empty.parquet": b"",
        "a.mat": b"x",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Error) as raised:
            from_file(tmp_path / name)
        assert raised.value.hint, name
    with pytest.raises(Error, match="does not exist"):
        from_file(tmp_path / "none.csv")
    with pytest.raises(Error, match="is a folder"):
        from_file(tmp_path)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=np.array([{"a": 1}] * 20, dtype=object))
    with pytest.raises(Error, match="cannot be read"):
        from_file(tmp_path / "a.npz")


def test_gaps_and_text_in_parquet_are_refused(tmp_path: Path) -> None:
    for columns, message in (
        ({"label": WORDS[:4], "u": [1.0, None, 3.0, 4.0]}, "of example 2 is not"),
        ({"label": ["a", None, "b", "a"], "u": X[:4, 0]}, "example 2 has no label"),
        ({"label": WORDS[:4], "u": ["1", "2", "3", "4"]}, "column u of example 1 is not"),
    ):
        write_table(tmp_path / "a.parquet", columns)
        with pytest.raises(Error, match=message):
            from_file(tmp_path / "a.parquet")


def test_without_pyarrow_the_hint_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    with pytest.raises(Error, match="needs pyarrow") as raised:
        from_file(tmp_path / "a.parquet")
    assert raised.value.hint == "pip install murmurcast[parquet]"
