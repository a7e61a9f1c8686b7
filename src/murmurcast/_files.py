"""Writing files so that nobody ever sees half of one."""

import csv
import os
import struct
import tokenize
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile, LargeZipFile

from murmurcast.errors import Error, NotWritten

# What the readers of .npy, .npz, .nc, .csv and .parquet raise where bytes are not what they seem. NumPy parses headers
# as Python, so that even the tokenizer has a say.
UNREADABLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AttributeError,
    BadZipFile,
    EOFError,
    LargeZipFile,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    csv.Error,
    struct.error,
    tokenize.TokenError,
    zlib.error,
)


_PART = ".part"


def remove_parts(folder: Path) -> None:
    """Removes what processes left that were killed while they wrote; nobody else may be writing there."""
    for path in folder.glob(f".*{_PART}"):
        path.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """The file could be written: its folder is there and open to us."""
    if len(path.name.encode()) > 250:
        raise Error(f"the name {path.name[:40]}... is too long", hint="choose a shorter one")
    if path.is_dir():
        raise Error(f"{path} is a folder", hint="name a file in it")
    if not path.parent.is_dir():
        raise Error(f"the folder {path.parent} does not exist", hint="make it first, or choose another")
    if not os.access(path.parent, os.W_OK):
        raise Error(f"the folder {path.parent} is not writable", hint="choose another folder")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes all of a file or nothing."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write to, which is there under its name only when all of it is: for what is too large to hold twice.

    Args:
        path: Its name.
        mode: Who may read it, where the user's own mask allows that.
    """
    require_writable(path)
    temporary = path.with_name(f".{os.getpid()}{_PART}")
    try:
        try:
            temporary.unlink(missing_ok=True)  # left by a process that was killed
            # Never through a link that somebody put there.
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
                yield stream
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        raise NotWritten(
            f"{path} cannot be written: {problem.strerror}", hint="free some space or choose another folder"
        ) from None
