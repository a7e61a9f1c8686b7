"""Ways to spoil a file, and the commands in this process: quicker than a new one for every example."""

import contextlib
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from murmurcast.cli import main

# FUZZ=20 tries twenty times as many examples.
TIMES = int(os.environ.get("FUZZ", "1"))


def fuzz(examples: int) -> settings:
    """How a property is tried."""
    return settings(
        max_examples=max(3, examples // 2) * TIMES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class Done(NamedTuple):
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str


def call(*arguments: object, folder: Path) -> Done:
    """The command through its entry point, after checking the form of what it says."""
    out, err = io.BytesIO(), io.BytesIO()
    shown = io.TextIOWrapper(out, encoding="utf-8")
    stated = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")
    before, sys.argv = sys.argv, ["murmurcast", *map(str, arguments)]
    code: object = None
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(stated):
            try:
                main()
            except SystemExit as left:
                code = left.code
    finally:
        sys.argv = before
    shown.flush()
    stated.flush()
    assert isinstance(code, int)
    return in_form(Done(code, out.getvalue().decode(), err.getvalue().decode()))


def in_form(done: Done) -> Done:
    """Exit 0 without complaint, or an error with a way out; nothing that would steer a terminal."""
    assert "Traceback" not in done.err
    for text in (done.out, done.err):
        assert all(char.isprintable() or char == "\n" for char in text), ascii(text)
    assert done.code in (0, 1, 2), done
    lines = [line for line in done.err.splitlines() if line.strip() and not line.startswith(("withdrawn: ", "  "))]
    if done.code == 0:
        assert not lines, done.err
        return done
    assert len(lines) == 2, done.err
    assert lines[0].startswith("error: ")
    assert len(lines[0]) > len("error: ")
    assert lines[1].startswith("hint: ")
    assert "cannot be written" not in lines[0], "a file that cannot be read is told as one that cannot be written"
    return done


# Numbers, words and shapes that nobody expects. Sizes are either small or so large that they must be refused.
INTEGERS = st.sampled_from([-(2**70), -(2**63), -1, 0, 1, 2, 3, 7, 2**40, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30])
FLOATS = st.sampled_from(
    [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -1.5, 1e308, -1e308, 5e-324, 1e-300, 1e-9, 0.5, 1.0, 1e15]
)
WORDS = st.sampled_from(
    [
        "",
        " ",
        "\x1b[31mred\x1b[0m",
        "\x07\x08\x7f\x9b31m",
        "[/b][bold red]",
        "$\\frac{",
        "_hidden",
        "../../x",
        "a\nhint: do it",
        "a\x00b",
        "\u202eabc",
        "x" * 5000,
        "nan",
        "1e400",
        "'; DROP",
        "été",
    ]
) | st.text(max_size=8)
SCALARS: st.SearchStrategy[Any] = st.booleans() | INTEGERS | FLOATS | WORDS
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=6
)


@st.composite
def spoilt(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of a file after an accident."""
    length = len(content)
    places = st.integers(0, max(length - 1, 0))
    kind = draw(st.sampled_from(["cut", "bits", "bytes", "hole", "doubled", "lines", "inserted", "other", "empty"]))
    changed = bytearray(content)
    if kind == "cut":
        return content[: draw(places)]
    if kind == "bits":
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(places)] ^= 1 << draw(st.integers(0, 7))
    elif kind == "bytes":
        for _ in range(draw(st.integers(1, 4))):
            changed[draw(places)] = draw(st.integers(0, 255))
    elif kind in ("hole", "doubled"):
        first, last = sorted((draw(places), draw(places)))
        changed[first:last] = b"" if kind == "hole" else changed[first:last] * 2
    elif kind == "lines":
        return b"\n".join(draw(st.permutations(content.split(b"\n")))) if length < 5000 else content[::-1]
    elif kind == "inserted":
        place, words = draw(places), st.sampled_from([b"\xff\xfe", b"\x00", b"9" * 400, b"1e999", b"-", b'"', b"nan"])
        changed[place:place] = draw(words)
    else:
        return b"" if kind == "empty" else draw(st.binary(max_size=200))
    return bytes(changed)


class Bomb:
    """Whoever unpickles it has run a stranger's code."""

    went_off = False

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _go_off, ()


def _go_off() -> None:
    Bomb.went_off = True


def bomb() -> Any:
    """An array that can be read by unpickling only."""
    assert pickle.dumps(Bomb())
    return np.array([Bomb()], dtype=object)


DTYPES = [
    "<f8",
    ">f8",
    "<f4",
    "<f2",
    "<i8",
    ">i4",
    "<u8",
    "?",
    "<c16",
    "<U3",
    "S3",
    "<M8[s]",
    "V4",
    "O",
    "[('a','<f8')]",
]
SHAPES = ["()", "(0,)", "(3,)", "(3,3)", "(3,-3)", "(10**12,)", "(2**63,)", "(9,9,9)", "3", "'x'", "(3.0,)", "[[]]"]


@st.composite
def npy(draw: st.DrawFn) -> bytes:
    """A .npy whose header and content need not agree."""
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES))
    shown = dtype if dtype.startswith("[") else repr(dtype)
    order = draw(st.sampled_from(["False", "True", "0", "'", "(" * 90]))
    header = f"{{'descr': {shown}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    version = draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"]))
    size = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + header + draw(st.binary(max_size=80) | st.just(bytes(72)))


def npz(**members: bytes) -> bytes:
    """An archive of ready-made members."""
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    return content.getvalue()


def as_npy(array: Any, *, pickled: bool = False) -> bytes:
    """The .npy of an array."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=pickled)
    return content.getvalue()


@contextlib.contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    """For a while the file holds something else."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


STAND_INS = ("folder", "dangling", "loop", "pipe", "device", "empty", "nothing", "not UTF-8", "NULs")


@contextlib.contextmanager
def stand_in(path: Path, kind: str) -> Iterator[None]:
    """For a while something else is in the place of a file."""
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    try:
        if kind == "folder":
            path.mkdir()
        elif kind in ("dangling", "loop"):
            path.symlink_to(path.name if kind == "loop" else "nowhere")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/null")
        elif kind != "nothing":
            path.write_bytes({"empty": b"", "not UTF-8": b"\xff\xfe\xfa" * 9, "NULs": bytes(64)}[kind])
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        aside.rename(path)
