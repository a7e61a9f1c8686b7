"""Data files that are not as they should be: in a user's folder, and in the cache."""

import io
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.data import sources
from murmurcast.data.idx import parse_idx, written_idx
from tests.fuzz.corruptions import (
    FLOATS,
    INTEGERS,
    STAND_INS,
    WORDS,
    Bomb,
    as_npy,
    bomb,
    call,
    fuzz,
    npy,
    npz,
    replaced,
    spoilt,
    stand_in,
)
from tests.fuzz.plans import require_plan_or_refusal

rng = np.random.default_rng(3)
X, Y = rng.standard_normal((20, 2)), np.arange(20) % 2
TABLE = pd.DataFrame({"one": X[:, 0], "two": X[:, 1], "label": Y})
EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 2.0
unit = "record"
[schedule]
epochs = 3
[problem]
radius = 2.0
[data]
partition = "iid"
classes = 2
name = "{name}"
"""


def parquet(table: Any) -> bytes:
    content = io.BytesIO()
    table.to_parquet(content)
    return content.getvalue()


WHOLE = {
    "my.npz": npz(x=as_npy(X), y=as_npy(Y)),
    "parts.npz": npz(x=as_npy(X), y=as_npy(Y), x_test=as_npy(X), y_test=as_npy(Y)),
    "my.csv": TABLE.to_csv(index=False).encode(),
    "my.parquet": parquet(TABLE),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("data")
    for name, content in WHOLE.items():
        (built / name).write_bytes(content)
        (built / f"{name}.toml").write_text(EXPERIMENT.format(name=name))
    return built


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_file_is_a_set(folder: Path, name: str) -> None:
    assert call("plan", f"{name}.toml", "--json", folder=folder).code == 0


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
@fuzz(40)
def test_any_accident(folder: Path, name: str, data: st.DataObject) -> None:
    require_plan_or_refusal(folder, name, data.draw(spoilt(WHOLE[name])))


@given(x=npy(), y=npy(), which=st.integers(0, 2))
@fuzz(80)
def test_any_header(folder: Path, x: bytes, y: bytes, which: int) -> None:
    whole = {"x": as_npy(X), "y": as_npy(Y)}
    require_plan_or_refusal(folder, "my.npz", npz(**(whole | [{"x": x}, {"y": y}, {"x": x, "y": y}][which])))


def test_pickles_are_not_opened(folder: Path) -> None:
    pickled = as_npy(bomb(), pickled=True)
    for parts in ({"x": pickled, "y": pickled}, {"x": as_npy(X), "y": pickled}, {"x": pickled, "y": as_npy(Y)}):
        with replaced(folder / "my.npz", npz(**parts)):
            assert call("plan", "my.npz.toml", folder=folder).code == 2
        assert not Bomb.went_off


CELLS = st.one_of(INTEGERS, FLOATS, WORDS).map(str) | st.sampled_from(["label", "target", "one", "0", "1"])


@given(data=st.data())
@fuzz(100)
def test_any_cells(folder: Path, data: st.DataObject) -> None:
    rows = [line.split(",") for line in WHOLE["my.csv"].decode().strip().split("\n")]
    for _ in range(data.draw(st.integers(1, 3))):
        row = rows[data.draw(st.sampled_from([0, 0, 1, 2, len(rows) - 1]))]
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(CELLS)
    text = "\n".join(",".join(row) for row in rows)
    require_plan_or_refusal(folder, "my.csv", text.encode("utf-8", "surrogatepass"))


COLUMNS: list[Any] = [
    X[:, 0],
    Y,
    Y.astype(bool),
    Y.astype(str),
    Y.astype(np.uint64) + 2**63,
    np.full(20, np.nan),
    np.full(20, 1e308),
    np.full(20, 5e-324),
    [None, *X[1:, 0]],
    [None] * 20,
    [b"\xff"] * 20,
    [{"a": 1}] * 20,
    [[1, 2]] * 20,
    pd.date_range("2020-01-01", periods=20),
    pd.to_timedelta(np.arange(20), unit="s"),
    pd.Categorical(["\x1b[31m", "b"] * 10),
    pd.array([1, None] * 10, dtype="Int64"),
    ["9" * 30] * 20,
]


@given(data=st.data())
@fuzz(60)
def test_any_columns(folder: Path, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(["one", "label", "target", "LABEL ", "\x1b[1m"]) | WORDS, max_size=4))
    names = [name for name in dict.fromkeys(names) if name.isascii()]
    table = pd.DataFrame({name: COLUMNS[data.draw(st.integers(0, len(COLUMNS) - 1))] for name in names})
    require_plan_or_refusal(folder, "my.parquet", parquet(table))


@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", WHOLE)
def test_something_else_in_its_place(folder: Path, name: str, kind: str) -> None:
    with stand_in(folder / name, kind):
        assert call("plan", f"{name}.toml", "--json", folder=folder).code == 2


def test_labels_reach_neither_terminal_nor_figure_as_commands(tmp_path: Path) -> None:
    words = np.array(["\x1b[31mred", "[/bold]$\\frac{"])
    (tmp_path / "my.npz").write_bytes(npz(x=as_npy(X), y=as_npy(words[Y])))
    declared = 'labels = ["\\u001b[31mred", "[/bold]$\\\\frac{"]'
    text = EXPERIMENT.format(name="my.npz").replace("classes = 2", declared)
    (tmp_path / "my.toml").write_text(text)
    done = call("run", "my.toml", "--out", "made", "--figure", "labels.png", folder=tmp_path)
    assert done.code == 0
    assert "[/bold]" in done.out
    assert (tmp_path / "labels.png").exists()


@given(data=st.data(), zipped=st.booleans())
@fuzz(200)
def test_any_idx_file(data: st.DataObject, zipped: bool) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    try:
        result = parse_idx(data.draw(spoilt(written_idx(array, zipped=zipped))))
    except ValueError:
        return
    assert result.dtype == np.uint8


IMAGES = sources.Images(
    *(
        rng.integers(0, 255, (size, 28, 28), np.uint8) if part == "x" else np.arange(size, dtype=np.uint8) % 10
        for part, size in (("x", 40), ("y", 40), ("x", 20), ("y", 20))
    )
)
NAMES = [f"{name}.gz" if place == 0 else name for place, name in enumerate(sources._FILES)]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MNIST: its four files in a folder, and its arrays in the cache."""
    built = tmp_path_factory.mktemp("images")
    (built / "own").mkdir()
    for place, (name, array) in enumerate(zip(NAMES, IMAGES, strict=True)):
        (built / "own" / name).write_bytes(written_idx(array, zipped=place == 0))
    (built / "cache").mkdir()
    np.savez(built / "cache" / "mnist.npz", **IMAGES._asdict())
    (built / "my.toml").write_text(EXPERIMENT.format(name="mnist").replace("classes = 2\n", ""))
    return built


@pytest.fixture
def small(images: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Only this folder and this cache are known."""
    hashes = tuple(sha256(array.tobytes()).hexdigest() for array in IMAGES)
    known = replace(sources.MNIST, hashes=hashes, mirrors=(), clients=(), system=())  # type: ignore[arg-type]
    monkeypatch.setattr(sources, "MNIST", known)
    monkeypatch.setenv(sources.DATA_VARIABLE, str(images / "own"))
    monkeypatch.setenv(sources.CACHE_VARIABLE, str(images / "cache"))
    return images


def require_these_images(code: int) -> None:
    """Whatever a source held, what is used is what was published."""
    if code:
        return
    for result, expected in zip(sources.obtain(sources.MNIST), IMAGES, strict=True):
        np.testing.assert_array_equal(result, expected)


@given(data=st.data())
@fuzz(40)
def test_images_that_are_spoilt(small: Path, data: st.DataObject) -> None:
    """One of the four files, or the cache, or both."""
    path = small / "own" / data.draw(st.sampled_from(NAMES))
    cache = small / "cache" / "mnist.npz"
    ours = data.draw(spoilt(path.read_bytes()))
    theirs = data.draw(spoilt(cache.read_bytes())) if data.draw(st.booleans()) else cache.read_bytes()
    whole = theirs == cache.read_bytes()
    with replaced(path, ours), replaced(cache, theirs):
        done = call("plan", "my.toml", "--json", folder=small)
        assert done.code == 0 or not whole
        require_these_images(done.code)


@pytest.mark.parametrize("kind", STAND_INS)
def test_something_else_in_the_place_of_images(small: Path, kind: str) -> None:
    with stand_in(small / "own" / NAMES[1], kind):
        assert call("plan", "my.toml", "--json", folder=small).code == 0
        with stand_in(small / "cache" / "mnist.npz", kind):
            assert call("plan", "my.toml", "--json", folder=small).code == 2


def test_pickles_in_the_cache_are_not_opened(small: Path) -> None:
    pickled = as_npy(bomb(), pickled=True)
    with replaced(small / "cache" / "mnist.npz", npz(**dict.fromkeys(sources.Images._fields, pickled))):
        assert call("plan", "my.toml", "--json", folder=small).code == 0
    assert not Bomb.went_off
