"""What a process does that trains under another that watches it: see `_processes`."""

import os
import sys
import threading
from pathlib import Path
from typing import TextIO

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


def end_where_watched() -> None:
    """Ends a process that lost the others at once, if another watches it and tells: JAX would wait for them."""
    if WATCHED in os.environ:
        os._exit(LOST)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        continue
    os._exit(1)


def _kept_to_python(descriptor: int, stream: TextIO) -> TextIO:
    """The stream, while what JAX's runtime writes to it goes nowhere: who watches tells what happened."""
    stream.flush()
    ours = os.dup(descriptor)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return os.fdopen(ours, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
