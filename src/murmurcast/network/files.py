"""Networks from files: gain matrices (.npy, .npz, .csv) and edge lists (.csv)."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, load_npz

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._files import UNREADABLE
from murmurcast.errors import Error

_FORMATS = ".npy, .npz (dense or scipy sparse), or .csv (a matrix, or an edge list headed sender,receiver,gain)"
_AMPLITUDES = "save one matrix of amplitudes: numpy.abs of the channel"
_FROM_ZERO = "number the nodes from 0: subtract 1 from every sender and receiver"


class EdgeList(NamedTuple):
    """Links without gains, for a gain model to fill in."""

    nodes: int
    links: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"


class NeedsRadio(Error):  # noqa: N818 - reads as a verdict, as all errors here
    """The file holds a channel, which `murmurcast.radio.channel_files` reads, and no plain amplitudes."""


def read_gains(path: Path | str) -> FloatArray | csr_array | EdgeList:
    """The gain matrix in a file; for an edge list without a gain column, the links."""
    path = Path(path)
    _check.readable(path)
    readers = {".npy": _read_numpy, ".npz": _read_npz, ".csv": _read_csv}
    if path.suffix not in readers:
        raise Error(f"{path} is not a format of gains", hint=f"use {_FORMATS}")
    try:
        return readers[path.suffix](path)
    except Error:
        raise
    except UNREADABLE as problem:
        raise Error(
            f"{path} cannot be read as {path.suffix}: {_check.short(problem)}", hint=f"use {_FORMATS}"
        ) from None


def _read_numpy(path: Path) -> FloatArray:
    return _matrix(path, np.load(path, allow_pickle=False))


def _matrix(path: Path, array: Any) -> FloatArray:
    if array.dtype.kind in "fiub" and array.ndim in (3, 4):
        raise _of_a_radio(path, "gains over time")
    return _real(path, array)


def _of_a_radio(path: Path, what: str) -> NeedsRadio:
    return NeedsRadio(f"{path} holds {what}, which need a radio", hint=f"add a [radio] section, or {_AMPLITUDES}")


def _real(path: Path, array: Any) -> FloatArray:
    if array.dtype.kind == "c":
        raise _of_a_radio(path, "complex gains")
    if array.dtype.kind not in "fiub":
        raise Error(f"{path} holds {array.dtype}, not real numbers", hint=_AMPLITUDES)
    return np.asarray(array, dtype=np.float64)


def _read_npz(path: Path) -> FloatArray | csr_array:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        names = archive.files
        if "format" not in names:
            if len(names) != 1 and "gains" not in names:
                raise Error(f"{path} holds {', '.join(names)}", hint="keep one array in it, or name it gains")
            return _matrix(path, archive["gains" if "gains" in names else names[0]])
    with path.open("rb") as stream:
        matrix: Any = load_npz(stream)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # indices out of range would crash the process further on
    _real(path, matrix.data)
    if max(matrix.shape) > matrix.nnz + 1:
        raise Error(f"{path} has {max(matrix.shape)} nodes and {matrix.nnz} links: not connected", hint="add the links")
    gains: csr_array = csr_array(matrix, dtype=np.float64)
    return gains


def _is_edge_list(path: Path, header: list[str]) -> bool:
    """Whether the columns are those of an edge list; otherwise it is a matrix without a header."""
    if sorted({*header, "time"}) == ["gain_db", "receiver", "sender", "time"]:
        raise NeedsRadio(
            f"{path} holds gains in dB, which need a radio",
            hint="add a [radio] section, or give a column gain = 10 ** (gain_db / 20)",
        )
    if header[:2] != ["sender", "receiver"]:
        return False
    if header not in (["sender", "receiver"], ["sender", "receiver", "gain"]):
        raise Error(f"{path} has the columns {', '.join(header)}", hint="use sender,receiver or sender,receiver,gain")
    return True


def _read_csv(path: Path) -> FloatArray | csr_array | EdgeList:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        lines = csv.reader(stream)
        header = [cell.strip().lower() for cell in next(lines, [])]
        if not any(row and not row[0].startswith("#") for row in (header, *lines)[header[:1] == ["sender"] :]):
            raise Error(f"{path} lists no link", hint="give one line per link")
    if not _is_edge_list(path, header):
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    table = np.loadtxt(path, delimiter=",", ndmin=2, skiprows=1, encoding="utf-8-sig")
    if table.shape[1] != len(header) or not np.isfinite(table).all() or np.abs(table).max() > 1e15:
        raise Error(f"{path} does not hold one number for each of {', '.join(header)}", hint="complete every line")
    links = table[:, :2].astype(np.int64)
    if (links != table[:, :2]).any() or links.min() < 0:
        raise Error(f"{path} has a node that is not a whole number of 0 or more", hint="number the nodes from 0")
    if links.min() == 1:
        raise Error(f"{path} has links of nodes 1 to {links.max()}, and none of node 0", hint=_FROM_ZERO)
    nodes = int(links.max()) + 1
    if nodes > 2 * len(links) + 1:
        raise Error(
            f"{path} names node {nodes - 1} with only {len(links)} links", hint="number the nodes from 0, gapless"
        )
    if len(header) == 2:
        return EdgeList(nodes, links)
    if len(np.unique(links, axis=0)) < len(links):
        raise Error(f"{path} gives a link twice", hint="keep one line per sender and receiver")
    return csr_array((table[:, 2], (links[:, 0], links[:, 1])), shape=(nodes, nodes))
