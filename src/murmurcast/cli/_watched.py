"""What a process does that trains under another that watches it: see `_processes`."""

import os
import sys
import threading
from pathlib import Path
from typing import NoReturn, TextIO

from murmurcast.engine.membership import CORES, WATCHED, Membership, join

LOST = 3  # exit code of a process that lost the others


def begin(member: Membership) -> None:
    """Takes its cores, ends with the process that watches, and meets the others."""
    cores = [int(core) for core in os.environ.get(CORES, "").split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout, sys.stderr = _kept_to_python(1, sys.stdout), _kept_to_python(2, sys.stderr)
    join(member)
    Path(os.environ[WATCHED]).write_text("joined", encoding="utf-8")


def words_of_runtime(said: Path) -> Path:
    """The file for what JAX's runtime says, of a process that writes `said` once it has met the others."""
    return said.with_suffix(".runtime")


def is_watched() -> bool:
    """Whether another process started this one and watches it."""
    return WATCHED in os.environ


def leave(status: int) -> NoReturn:
    """Ends the process. One of several that has failed does not wait for the others, as JAX would before it goes."""
    if status and is_watched():
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        continue
    os._exit(1)


def _kept_to_python(descriptor: int, stream: TextIO) -> TextIO:
    """The stream, while what JAX's runtime writes to it goes to a file: who watches tells what happened."""
    stream.flush()
    ours = os.dup(descriptor)
    aside = os.open(words_of_runtime(Path(os.environ[WATCHED])), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(aside, descriptor)
    os.close(aside)
    return os.fdopen(ours, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
