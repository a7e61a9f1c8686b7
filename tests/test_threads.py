"""Small matrices take one thread each, and independent work runs side by side in order."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from murmurcast import _threads


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_within_it_blas_has_one_thread_and_behind_it_as_many_as_before() -> None:
    _ = np.ones((2, 2)) @ np.ones((2, 2))
    before = blas_threads()
    with _threads.one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_pieces_run_side_by_side_on_one_blas_thread_each_and_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)  # passes only while two pieces are under way

    def work(number: int) -> tuple[int, set[int]]:
        both.wait()
        return number, blas_threads()

    before = blas_threads()
    assert list(_threads.side_by_side(work, range(4))) == [(number, {1}) for number in range(4)]
    assert blas_threads() == before


def test_an_error_of_one_piece_comes_out_and_threads_are_given_back() -> None:
    before = blas_threads()

    def work(number: int) -> float:
        return 1 / number

    with pytest.raises(ZeroDivisionError):
        list(_threads.side_by_side(work, [1, 0]))
    assert blas_threads() == before


def test_work_that_leaves_pythons_lock_runs_on_all_cores_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)

    def work(number: int) -> int:
        both.wait()
        return number * number

    assert _threads.over_cores(work, range(4)) == [0, 1, 4, 9]
    assert _threads.over_cores(lambda _: threading.current_thread(), [7]) == [threading.current_thread()]
    monkeypatch.setattr(_threads, "cores", lambda: 1)
    assert _threads.over_cores(lambda _: threading.current_thread(), [7, 8]) == [threading.current_thread()] * 2
