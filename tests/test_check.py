"""Wording and form of refusals."""

from pathlib import Path

import numpy as np
import pytest

from murmurcast import _check, _files
from murmurcast.errors import Error


def test_the_first_offender_is_named() -> None:
    with pytest.raises(Error, match=r"gains\[2\] is -3, expected a number above 0 "):
        _check.positive(gains=[1, 2, -3, -4])
    with pytest.raises(Error, match="clip is nan"):
        _check.positive(clip=np.nan)
    with pytest.raises(Error, match="clip must be numeric"):
        _check.positive(clip="wide")


def test_nearest_word_or_all_of_them() -> None:
    assert _check.nearest("epsilom", ["epsilon", "delta"]) == 'did you mean "epsilon"?'
    assert _check.nearest("quux", ["epsilon", "delta"]) == "known here: delta, epsilon"
    assert _check.nearest("noise_dbm", ["normaliser", "power"]) == "known here: normaliser, power"
    assert _check.nearest("noise_dbm", ["noise_timing", "step"]) == "known here: noise_timing, step"
    assert _check.nearest("nonsense", ["consensus_error"]) == "known here: consensus_error"


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.toml"
    path.write_text("")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Error, match="cannot be read: Permission denied"):
        _check.readable(path)


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.txt").write_text("before")
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(Error, match="No space left"):
        _files.write_atomically(tmp_path / "a.txt", b"after")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "before"
