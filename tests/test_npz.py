"""Arrays in files, some rows at a time: the same as NumPy writes and reads at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmurcast import _npz
from murmurcast._npz import InPieces, in_one_piece, taken_together

ARRAYS: dict[str, Any] = {
    "models": np.random.default_rng(0).standard_normal((7, 2, 3)).astype(np.float32),
    "numbers": np.arange(5),
    "word": np.array("some words"),
    "nothing": np.empty((0, 4)),
    "turned": np.arange(12.0).reshape(3, 4).T,
}


def written(path: Path) -> dict[str, str]:
    with path.open("wb") as stream, _npz.writer(stream) as add:
        rows = ARRAYS["models"]
        pieces = InPieces(rows.shape, rows.dtype, iter((rows[:3], rows[3:4], rows[4:])))
        others = {name: in_one_piece(array) for name, array in ARRAYS.items() if name != "models"}
        return {name: add(name, array) for name, array in ({"models": pieces} | others).items()}


def same(result: Any) -> None:
    assert set(result) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(result[name], array, strict=True)


def test_pieces_make_an_array() -> None:
    rows = ARRAYS["models"]
    assert taken_together(in_one_piece(rows)) is rows
    np.testing.assert_array_equal(taken_together(InPieces(rows.shape, rows.dtype, iter((rows[:3], rows[3:])))), rows)


@pytest.mark.parametrize("mapped_from", [1, 2**20])
def test_what_was_written_is_read(mapped_from: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_npz, "_MAPPED_FROM", mapped_from)
    fingerprints = written(tmp_path / "some.npz")
    result = _npz.read(tmp_path / "some.npz")
    same(result)
    assert isinstance(result["models"], np.memmap) == (mapped_from == 1)
    assert {name: _npz.fingerprint(name, array) for name, array in result.items()} == fingerprints
    assert len(set(fingerprints.values())) == len(ARRAYS)


def test_numpy_reads_it_and_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "ours.npz")
    with np.load(tmp_path / "ours.npz") as archive:
        same(dict(archive))
    monkeypatch.setattr(_npz, "_MAPPED_FROM", 1)
    plain: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    np.savez(tmp_path / "theirs.npz", **plain)
    same(_npz.read(tmp_path / "theirs.npz") | {"word": ARRAYS["word"]})


def test_a_file_that_ends_too_soon_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_npz, "_MAPPED_FROM", 1)
    written(tmp_path / "some.npz")
    content = (tmp_path / "some.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(Exception, match="zip"):
        _npz.read(tmp_path / "cut.npz")
    np.savez(tmp_path / "objects.npz", bad=np.array([{}, []], object))
    with pytest.raises(ValueError, match=r"rows of numbers|pickle"):
        _npz.read(tmp_path / "objects.npz")
