"""Gains from files, through the real readers."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from murmurcast.errors import Error
from murmurcast.network.files import EdgeList, read_gains
from murmurcast.network.graph import Network

GAINS = np.array([[0, 0.9, 0], [0.5, 0, 0.7], [0, 0.8, 0]])


def dense(result: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return Network(gains=result).gains.toarray()  # type: ignore[arg-type]


def test_every_format_gives_the_same_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", GAINS)
    np.savez(tmp_path / "b.npz", GAINS)
    np.savez(tmp_path / "c.npz", other=np.ones(3), gains=GAINS)
    save_npz(tmp_path / "d.npz", csr_array(GAINS))
    np.savetxt(tmp_path / "e.csv", GAINS, delimiter=",")
    (tmp_path / "f.csv").write_text("sender,receiver,gain\n0,1,0.9\n1,0,0.5\n1,2,0.7\n2,1,0.8\n")
    for name in ("a.npy", "b.npz", "c.npz", "d.npz", "e.csv", "f.csv"):
        np.testing.assert_array_equal(dense(read_gains(tmp_path / name)), GAINS, err_msg=name)


def test_edge_list_without_gains(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("Sender, Receiver\n0,1\n1,2\n")
    result = read_gains(tmp_path / "links.csv")
    assert isinstance(result, EdgeList)
    assert result.nodes == 3
    assert result.links.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", b"not numpy"),
        ("a.npy", b""),
        ("a.npz", b"PK\x03\x04 broken"),
        ("a.csv", b"0,1\n1"),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv", b"sender,receiver,strength\n0,1,2\n"),
        ("a.csv", b"sender,receiver\n0.5,1\n"),
        ("a.csv", b"sender,receiver\n-1,1\n"),
        ("a.csv", b"sender,receiver\n0,99999999999\n"),
        ("a.csv", b"sender,receiver\n"),
        ("a.csv", b"sender,receiver,gain\n0,1,0.5\n0,1,0.6\n1,0,0.5\n"),
        ("a.mat", b"x"),
    ],
)
def test_broken_files_are_errors_with_a_way_out(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Error) as raised:
        read_gains(tmp_path / name)
    assert raised.value.hint


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(Error):
        read_gains(tmp_path / "a.npy")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(Error, match="does not exist"):
        read_gains(tmp_path / "none.npy")
    with pytest.raises(Error, match="is a folder"):
        read_gains(tmp_path)


def test_an_edge_list_numbered_from_one_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("sender,receiver\n1,2\n2,3\n")
    with pytest.raises(Error, match="nodes 1 to 3, and none of node 0") as raised:
        read_gains(tmp_path / "links.csv")
    assert "subtract 1" in raised.value.hint


def test_channels_of_a_radio_are_refused_without_one(tmp_path: Path) -> None:
    turned = GAINS * np.exp(0.5j)
    np.save(tmp_path / "a.npy", turned)
    np.savez(tmp_path / "b.npz", gains=turned[None], carrier_hz=2.4e9)
    save_npz(tmp_path / "c.npz", csr_array(turned))
    np.savez(tmp_path / "d.npz", gains=GAINS[None])
    (tmp_path / "e.csv").write_text("sender,receiver,gain_db\n0,1,-60\n")
    (tmp_path / "f.csv").write_text("time,sender,receiver,gain_db\n0,0,1,-60\n")
    for name in ("a.npy", "b.npz", "c.npz", "d.npz", "e.csv", "f.csv"):
        with pytest.raises(Error, match="need a radio") as raised:
            read_gains(tmp_path / name)
        assert "add a [radio] section" in raised.value.hint, name
