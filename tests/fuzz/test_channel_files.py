"""Channels whose files are not as they should be: a channel or a refusal, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.errors import Error
from murmurcast.radio.channel_files import read_channel
from murmurcast.radio.trace import ChannelTrace
from tests.fuzz.corruptions import (
    FLOATS,
    INTEGERS,
    STAND_INS,
    WORDS,
    Bomb,
    as_npy,
    bomb,
    fuzz,
    npy,
    npz,
    replaced,
    spoilt,
    stand_in,
)

GAINS = np.random.default_rng(2).normal(size=(4, 3, 3, 2)) @ [1, 1j]
TABLE = "time,sender,receiver,gain_db\n0,0,1,-60\n0,1,0,-66\n0,1,2,-80\n0,2,1,-83\n1,0,1,-63\n1,2,0,-70.5\n"
WHOLE = {
    "a.npy": as_npy(GAINS),
    "a.npz": npz(gains=as_npy(GAINS), positions=as_npy(np.ones((3, 2))), carrier_hz=as_npy(2.4e9)),
    "a.csv": TABLE.encode(),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("channels")
    for name, content in WHOLE.items():
        (built / name).write_bytes(content)
    return built


def require_channel_or_refusal(path: Path, content: bytes) -> None:
    with replaced(path, content):
        try:
            result = read_channel(path)
        except Error:  # which has a hint, by construction
            return
        assert isinstance(result, ChannelTrace)
        assert np.isfinite(result.gains).all()
        assert not result.gains.flags.writeable


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
@fuzz(100)
def test_any_accident(folder: Path, name: str, data: st.DataObject) -> None:
    require_channel_or_refusal(folder / name, data.draw(spoilt(WHOLE[name])))


@given(content=npy(), name=st.sampled_from(["gains", "positions", "carrier_hz", "interval_s", "x", "../up"]))
@fuzz(100)
def test_any_header(folder: Path, content: bytes, name: str) -> None:
    require_channel_or_refusal(folder / "a.npy", content)
    members = {"gains": as_npy(GAINS), name: content}
    require_channel_or_refusal(folder / "a.npz", npz(**members))


@given(data=st.data())
@fuzz(100)
def test_any_cells(folder: Path, data: st.DataObject) -> None:
    rows = [line.split(",") for line in TABLE.strip().split("\n")]
    for _ in range(data.draw(st.integers(1, 3))):
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        row[data.draw(st.integers(0, len(row) - 1))] = str(data.draw(st.one_of(INTEGERS, FLOATS, WORDS)))
    text = "\n".join(",".join(row) for row in rows)
    require_channel_or_refusal(folder / "a.csv", text.encode("utf-8", "surrogatepass"))


def test_pickles_are_not_opened(folder: Path) -> None:
    pickled = as_npy(bomb(), pickled=True)
    for name, content in (("a.npy", pickled), ("a.npz", npz(gains=pickled))):
        with replaced(folder / name, content), pytest.raises(Error):
            read_channel(folder / name)
    assert not Bomb.went_off


@pytest.mark.parametrize("kind", STAND_INS)
@pytest.mark.parametrize("name", WHOLE)
def test_something_else_in_its_place(folder: Path, name: str, kind: str) -> None:
    with stand_in(folder / name, kind), pytest.raises(Error):
        read_channel(folder / name)
