"""Channels from files, and from arrays as ray tracers lay them out."""

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.radio import channel_files
from murmurcast.radio.channel_files import from_ray_tracer, read_channel

GAINS = np.random.default_rng(1).normal(size=(5, 3, 3, 2)) @ [1, 1j]
TABLE = "time,sender,receiver,gain_db\n0,0,1,-60\n0,1,0,-66\n0,1,2,-80\n0,2,1,-83\n1,0,1,-63\n1,2,2,7\n"


def traced(receivers: int = 3, rx: int = 1, senders: int = 3, tx: int = 1, *last: int) -> np.ndarray:
    """[receiver, its antenna, sender, its antenna, ...] of which no two entries are the same."""
    shape = (receivers, rx, senders, tx, *(last or (4, 2)))
    return np.asarray(np.arange(1, np.prod(shape) + 1).reshape(shape) * np.exp(0.3j))


def test_complex_gains_with_and_without_company(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", gains=GAINS, positions=np.ones((3, 2)), carrier_hz=5.8e9, interval_s=[0.02])
    np.save(tmp_path / "b.npy", GAINS.astype(np.complex64))
    whole, bare = read_channel(tmp_path / "a.npz"), read_channel(str(tmp_path / "b.npy"))
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(whole.gains[:, off], GAINS[:, off])
    np.testing.assert_allclose(bare.gains, whole.gains, rtol=1e-6)
    assert (whole.carrier_hz, whole.interval_s) == (5.8e9, 0.02)
    assert bare.carrier_hz is None


def test_a_table_in_decibels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    result = read_channel(tmp_path / "a.csv")
    assert result.gains.shape == (2, 3, 3)
    assert result.gains[0, 0, 1] == pytest.approx(1e-3)
    assert result.gains[0, 2, 1] == pytest.approx(10 ** (-83 / 20))
    assert result.gains[1, 0, 1] == pytest.approx(10 ** (-63 / 20))
    assert np.count_nonzero(result.gains) == 5  # a link that is not listed is not heard; 2 -> 2 is no link
    assert not result.has_phases
    (tmp_path / "b.csv").write_text("\ufeffSender, receiver, Gain_dB\n# a remark\n0,1,-60\n1,0,-40\n")
    assert read_channel(tmp_path / "b.csv").gains[0].tolist() == [[0, 1e-3], [1e-2, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sender,receiver,gain\n0,1,1\n", "the columns"),
        ("", "the columns none"),
        ("sender,receiver,gain_db\n", "lists no link"),
        ("sender,receiver,gain_db\n0,1\n", "one number for each"),
        ("sender,receiver,gain_db\n0,1,nan\n", "one number for each"),
        ("sender,receiver,gain_db\n0,1,-inf\n", "one number for each"),
        ("sender,receiver,gain_db\n0,1,-700\n1,0,-60\n", "gain_db goes beyond"),
        ("sender,receiver,gain_db\n0,1.5,-60\n", "whole number"),
        ("sender,receiver,gain_db\n-1,1,-60\n", "whole number"),
        ("sender,receiver,gain_db\n1,2,-60\n2,1,-60\n", "nodes 0 to 2"),
        ("time,sender,receiver,gain_db\n0.5,0,1,-60\n", "whole number"),
        ("time,sender,receiver,gain_db\n0,0,1,-60\n2,0,1,-60\n", "steps 0 to 2"),
        ("time,sender,receiver,gain_db\n0,0,1,-60\n900000000000,1,0,-60\n", "some of the steps"),
        ("sender,receiver,gain_db\n0,1,-60\n0,1,-61\n1,0,-60\n", "twice"),
        ("sender,receiver,gain_db\n0,0,-60\n", "2 nodes"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(Error, match=words) as raised:
        read_channel(tmp_path / "a.csv")
    assert "a.csv" in str(raised.value)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"gain": GAINS}, "did you mean"),
        ({"positions": np.ones((3, 2))}, "no array called gains"),
        ({"gains": GAINS, "carrier_hz": np.ones(2)}, "carrier_hz is not one number"),
        ({"gains": GAINS, "interval_s": np.array("fast")}, "interval_s is not one number"),
        ({"gains": GAINS, "interval_s": -1.0}, "interval_s is -1"),
        ({"gains": GAINS[0]}, "no time axis"),
        ({"gains": np.where(GAINS[2, 1, 0] == GAINS, np.inf, GAINS)}, r"gains\[2, 1, 0\]"),
        ({"gains": np.array([{"a": 1}], dtype=object)}, "cannot be read"),
    ],
)
def test_archives_that_are_none(tmp_path: Path, parts: dict[str, np.ndarray], words: str) -> None:
    np.savez(tmp_path / "a.npz", **parts, allow_pickle=True)
    with pytest.raises(Error) as raised:
        read_channel(tmp_path / "a.npz")
    assert re.search(words, f"{raised.value} {raised.value.hint}")


@pytest.mark.parametrize(
    ("name", "content"), [("a.npy", b"x"), ("a.npz", b"PK\x03\x04"), ("a.csv", b"\xff"), ("a.mat", b"")]
)
def test_files_that_are_something_else(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Error) as raised:
        read_channel(tmp_path / name)
    assert raised.value.hint
    with pytest.raises(Error, match="does not exist"):
        read_channel(tmp_path / "none.npz")


def test_what_would_not_fit_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", gains=np.zeros((1000, 10, 10), complex))
    monkeypatch.setattr(channel_files, "MAX_FILE_BYTES", 10**6)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.infolist()[0].compress_size < 10**4
    with pytest.raises(Error, match="GiB of gains"):
        read_channel(tmp_path / "a.npz")


def test_frequency_responses_become_blocks() -> None:
    response = traced()
    result = from_ray_tracer(response, layout="frequency", positions=np.ones((3, 3)), carrier_hz=3.5e9, interval_s=0.1)
    assert result.gains.shape == (4, 3, 3, 2)
    for time, sender, receiver, block in ((0, 0, 1, 0), (3, 2, 0, 1), (2, 1, 2, 1)):
        assert result.gains[time, sender, receiver, block] == response[receiver, 0, sender, 0, time, block]
    assert (result.carrier_hz, result.interval_s) == (3.5e9, 0.1)
    single = from_ray_tracer(response[..., 1:], layout="frequency")
    np.testing.assert_array_equal(single.gains, result.gains[..., 1])


def test_paths_are_added_with_their_phases() -> None:
    """A path and its echo half a wavelength later leave nothing."""
    response = traced(3, 1, 3, 1, 2, 4)  # two paths, four steps
    result = from_ray_tracer(response, layout="paths")
    assert result.gains.shape == (4, 3, 3)
    assert result.gains[3, 2, 0] == response[0, 0, 2, 0, 0, 3] + response[0, 0, 2, 0, 1, 3]
    response[1, 0, 0, 0, 1] = -response[1, 0, 0, 0, 0]
    assert not from_ray_tracer(response, layout="paths").gains[:, 0, 1].any()


def test_no_mean_is_taken_over_antennas() -> None:
    response = traced(3, 2, 3, 4)
    with pytest.raises(Error, match="2 antennas and rx_antenna is not given") as raised:
        from_ray_tracer(response, layout="frequency", tx_antenna=1)
    assert "no mean" in raised.value.hint
    with pytest.raises(Error, match="4 antennas and tx_antenna is not given"):
        from_ray_tracer(response, layout="frequency", rx_antenna=1)
    result = from_ray_tracer(response, layout="frequency", rx_antenna=1, tx_antenna=3)
    assert result.gains[2, 0, 1, 1] == response[1, 1, 0, 3, 2, 1]
    for wrong, words in ((4, "there are 4"), (-1, "at least 0")):
        with pytest.raises(Error, match=words):
            from_ray_tracer(response, layout="frequency", rx_antenna=1, tx_antenna=wrong)


@pytest.mark.parametrize(
    ("response", "layout", "words"),
    [
        (traced()[None], "frequency", "7 axes"),
        (traced()[..., 0], "paths", "5 axes, expected .* path, time"),
        (traced(3, 1, 4), "frequency", "3 receivers and 4 senders"),
        (traced(), "taps", 'layout is "taps"'),
        (traced().astype(str), "frequency", "not numbers"),
        (traced() * np.nan, "frequency", "not a finite"),
    ],
)
def test_responses_that_are_none(response: np.ndarray, layout: Any, words: str) -> None:
    with pytest.raises(Error, match=words) as raised:
        from_ray_tracer(response, layout=layout)
    assert raised.value.hint
