"""One process at a time writes a run's folder: of two, one would lose what it trained."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from murmurcast._files import remove_parts
from murmurcast.errors import Error

LOCK = ".lock"


@contextmanager
def locked(folder: Path, within: float = 0.0) -> Iterator[None]:
    """The folder, which exists, is ours; again within the same thread, and free again however this ends.

    Args:
        folder: Which.
        within: Seconds to wait for another process that is about to leave it.
    """
    from filelock import FileLock, Timeout  # here, because few commands write runs

    lock = FileLock(folder / LOCK, timeout=0, is_singleton=True)
    try:
        lock.acquire(timeout=within)
    except Timeout:
        raise Error(
            f"another process is writing to {folder}", hint="wait until it is done, or choose another folder with --out"
        ) from None
    try:
        if lock.lock_counter == 1:
            remove_parts(folder)
        yield
    finally:
        if lock.lock_counter == 1:
            (folder / LOCK).unlink(missing_ok=True)
        lock.release()
