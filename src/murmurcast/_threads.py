"""Threads for many small matrices: one for each product, and independent work side by side.

BLAS cuts even a product of 100 x 100 into pieces for all cores, and its threads wait for one another by spinning: on a
busy machine that took ten times the processor time. Products of small matrices are quicker on one thread each.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, Protocol, TypeVar

_SMALL = 300  # rows: from here on a second thread is worth waiting for

Item_contra = TypeVar("Item_contra", contravariant=True)
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Outcome_co = TypeVar("Outcome_co", covariant=True)


class Work(Protocol[Item_contra, Outcome_co]):
    """Does one piece of work, independent of all others."""

    def __call__(self, item: Item_contra, /) -> Outcome_co:
        """What comes of this piece."""
        ...


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, NumPy's products take one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def threads_for(size: int) -> AbstractContextManager[None]:
    """Within it, NumPy's products of matrices [size, size] take one thread where they are small."""
    return one_blas_thread() if size <= _SMALL else nullcontext()


def side_by_side(work: Work[Item, Outcome], items: Iterable[Item]) -> Iterator[Outcome]:
    """What comes of every piece, in order, as many at once as there are cores, each on one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(work, items)


def over_cores(work: Work[Item, Outcome], items: Sequence[Item]) -> list[Outcome]:
    """What comes of every piece, in order, as many at once as there are cores: for work that leaves Python's lock."""
    if len(items) < 2 or cores() < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(work, items))


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # it looks through all libraries that are loaded: once

    return ThreadpoolController()
