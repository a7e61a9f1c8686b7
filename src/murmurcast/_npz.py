"""Files of named arrays, as NumPy's .npz: written some rows at a time, and read where they lie.

For arrays that are not at hand all at once, or of which only some rows are wanted. `numpy.load` reads these files too.
"""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

_MAPPED_FROM = 2**20  # bytes: smaller arrays are read
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a file in an archive: the lengths of its name and of what follows it
_HASHED_AT_ONCE = 2**24  # bytes


class InPieces(NamedTuple):
    """An array, some rows at a time.

    Attributes:
        shape: Of all of it.
        dtype: Of its numbers.
        pieces: [rows, ...] one after the other; they can be taken once.
    """

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    pieces: Iterator[NDArray[Any]]


def in_one_piece(array: NDArray[Any]) -> InPieces:
    """An array that is at hand."""
    return InPieces(array.shape, array.dtype, iter((array,)))


def taken_together(array: InPieces) -> NDArray[Any]:
    """All pieces as one array."""
    first, *others = array.pieces
    return np.concatenate([first, *others]) if others else first


class Add(Protocol):
    """Writes one more array."""

    def __call__(self, name: str, array: InPieces, /) -> str:
        """Takes its pieces; returns its fingerprint."""
        ...


@contextmanager
def writer(stream: BinaryIO) -> Iterator[Add]:
    """Arrays go to the stream one after the other, each under its name."""
    with ZipFile(stream, "w", ZIP_STORED) as archive:
        yield partial(_write, archive)


def _write(archive: ZipFile, name: str, array: InPieces) -> str:
    state = _begun(name, array.dtype, array.shape)
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        described = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, described | {"shape": array.shape})
        for piece in array.pieces:
            content = np.ascontiguousarray(piece, array.dtype).reshape(-1).view(np.uint8)
            file.write(content.data)
            state.update(content.data)
    return str(state.hexdigest())


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays by name; large ones stay in the file, and of them only what is looked at comes into memory."""
    arrays = {}
    with path.open("rb") as stream, ZipFile(stream) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.compress_type == ZIP_STORED and info.file_size >= _MAPPED_FROM:
                arrays[name] = _mapped(path, stream, info)
            else:
                with archive.open(info) as file:
                    arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def fingerprint(name: str, array: NDArray[Any]) -> str:
    """As `Add` returns it for an array of this name."""
    state = _begun(name, array.dtype, array.shape)
    plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for first in range(0, len(plain), _HASHED_AT_ONCE):
        state.update(np.asarray(plain[first : first + _HASHED_AT_ONCE]).data)
    return str(state.hexdigest())


def _begun(name: str, dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> Any:
    return hashlib.blake2b(repr((name, dtype.str, tuple(shape))).encode(), digest_size=16)


def _mapped(path: Path, stream: BinaryIO, info: ZipInfo) -> NDArray[Any]:
    stream.seek(info.header_offset)
    named, besides = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    stream.seek(info.header_offset + _LOCAL_HEADER.size + named + besides)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError("another version")
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if in_columns or dtype.hasobject:
        raise ValueError("not rows of numbers")
    return np.memmap(path, dtype, "r", stream.tell(), shape)
