"""The IDX format of MNIST: a magic number, the sizes, then raw bytes; plain or gzipped."""

import gzip
import zlib
from math import prod

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
MAX_BYTES = 10**9  # bytes; no set of this format is larger


def parse_idx(content: bytes) -> Bytes:
    """The uint8 array in an IDX file.

    Raises:
        ValueError: With a few words, where the bytes are not a whole IDX file.
    """
    if content[:2] == b"\x1f\x8b":
        content = _unzipped(content)
    if len(content) < 8 or content[:3] != b"\x00\x00\x08" or not 1 <= content[3] <= 4:
        raise ValueError("not an IDX file of bytes")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise ValueError("ends within its header")
    shape = tuple(int(size) for size in np.frombuffer(content[4:header], dtype=">u4"))
    if prod(shape) != len(content) - header:
        raise ValueError(f"holds {len(content)} bytes, not those of an array {shape}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _unzipped(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(content, MAX_BYTES)
    except zlib.error:
        raise ValueError("a damaged gzip file") from None
    if not unpacker.eof:
        raise ValueError("a truncated gzip file")
    return plain


def written_idx(array: Bytes, *, zipped: bool = False) -> bytes:
    """The IDX file of an array."""
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    plain = header + array.tobytes()
    return gzip.compress(plain, mtime=0) if zipped else plain
