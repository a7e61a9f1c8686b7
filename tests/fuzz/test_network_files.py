"""`plan` on network files that are not as they should be."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, dia_array, save_npz

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

GAINS = np.array([[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]])
EDGES = "sender,receiver,gain\n0,1,0.9\n1,0,0.5\n1,2,0.7\n2,1,0.8\n0,2,0.4\n2,0,0.6\n"


def sparse(matrix: Any) -> bytes:
    content = io.BytesIO()
    save_npz(content, matrix)
    return content.getvalue()


WHOLE = {
    "dense.npy": as_npy(GAINS),
    "dense.npz": npz(gains=as_npy(GAINS)),
    "sparse.npz": sparse(csr_array(GAINS)),
    "matrix.csv": "\n".join(",".join(map(str, row)) for row in GAINS.tolist()).encode(),
    "edges.csv": EDGES.encode(),
    "links.csv": b"sender,receiver\n0,1\n1,2\n2,0\n",
}
FORMATS = {"csr": csr_array, "csc": csc_array, "coo": coo_array, "bsr": bsr_array, "dia": dia_array}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("networks")
    for name, content in WHOLE.items():
        (built / name).write_bytes(content)
        model = '\ngain = {kind = "rayleigh"}' if name == "links.csv" else ""
        text = f'[network]\nfile = "{name}"{model}\n[privacy]\nepsilon = 2.0\n[schedule]\nepochs = 5\n'
        (built / f"{name}.toml").write_text(text)
    return built


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_file_is_a_network(folder: Path, name: str) -> None:
    assert call("plan", f"{name}.toml", "--json", folder=folder).code == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
@fuzz(40)
def test_any_accident(folder: Path, name: str, data: st.DataObject) -> None:
    require_plan_or_refusal(folder, name, data.draw(spoilt(WHOLE[name])))


@given(content=npy(), name=st.sampled_from(["gains", "x", "format", "", "../up"]))
@fuzz(60)
def test_any_header(folder: Path, content: bytes, name: str) -> None:
    require_plan_or_refusal(folder, "dense.npy", content)
    require_plan_or_refusal(folder, "dense.npz", npz(**{name: content}))


def test_pickles_are_not_opened(folder: Path) -> None:
    pickled = as_npy(bomb(), pickled=True)
    for name, content in (
        ("dense.npy", pickled),
        ("dense.npz", npz(gains=pickled)),
        ("sparse.npz", npz(format=pickled, shape=pickled, data=pickled, indices=pickled, indptr=pickled)),
    ):
        with replaced(folder / name, content):
            assert call("plan", f"{name}.toml", folder=folder).code == 2
        assert not Bomb.went_off


@given(data=st.data())
@fuzz(80)
def test_any_parts_of_a_sparse_matrix(folder: Path, data: st.DataObject) -> None:
    """Sizes, indices and pointers need not fit; none of it may crash the process."""
    kind = data.draw(st.sampled_from(list(FORMATS)))
    content = io.BytesIO()
    save_npz(content, FORMATS[kind](GAINS))
    with np.load(io.BytesIO(content.getvalue())) as archive:
        parts = dict(archive)
    for name in data.draw(st.lists(st.sampled_from([*parts, "extra"]), min_size=1, max_size=2)):
        numbers = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2, 3, 5, 9, 2**31, 2**62]), max_size=9))
        choices = [np.array(numbers, np.int64), np.array(numbers, np.float64), np.array("csr"), np.zeros((3, 3, 3))]
        parts[name] = data.draw(
            st.sampled_from([*choices, np.array(b"\xff"), np.array(numbers, np.int64).astype(np.int32)])
        )
    if data.draw(st.booleans()):
        del parts[data.draw(st.sampled_from(list(parts)))]
    require_plan_or_refusal(folder, "sparse.npz", npz(**{name: as_npy(part) for name, part in parts.items()}))


CELLS = st.one_of(INTEGERS, FLOATS, WORDS).map(str) | st.integers(0, 3).map(str)


@given(data=st.data())
@fuzz(80)
def test_any_cells(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["matrix.csv", "edges.csv", "links.csv"]))
    rows = [line.split(",") for line in WHOLE[name].decode().strip().split("\n")]
    for _ in range(data.draw(st.integers(1, 3))):
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(CELLS)
    text = "\n".join(",".join(row) for row in rows)
    require_plan_or_refusal(folder, name, text.encode("utf-8", "surrogatepass"))


@given(lines=st.permutations(EDGES.strip().split("\n")[1:]))
@fuzz(10)
def test_the_order_of_links_changes_nothing(folder: Path, lines: list[str]) -> None:
    expected = call("plan", "edges.csv.toml", "--json", folder=folder)
    with replaced(folder / "edges.csv", "\n".join([EDGES.split("\n")[0], *lines]).encode()):
        assert call("plan", "edges.csv.toml", "--json", folder=folder) == expected


@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", WHOLE)
def test_something_else_in_its_place(folder: Path, name: str, kind: str) -> None:
    with stand_in(folder / name, kind):
        assert call("plan", f"{name}.toml", "--json", folder=folder).code == 2
