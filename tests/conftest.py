"""Networks to test on, asymmetric, so that a transposed index cannot pass; and algorithms with parts exchanged."""

import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.engine.compile_cache import VARIABLE, use_compile_cache
from murmurcast.network.graph import Network

MakeNetwork = Callable[[int], Network]


def asymmetric_network(seed: int, nodes: int | None = None) -> Network:
    """A connected random network of 3 to 7 nodes with unequal gains and powers."""
    rng = np.random.default_rng(seed)
    count = nodes or int(rng.integers(3, 8))
    support = np.triu(rng.random((count, count)) < 0.5, 1)
    order = rng.permutation(count)
    for a, b in pairwise(order):  # a path through all nodes keeps it connected
        support[min(a, b), max(a, b)] = True
    support = support | support.T
    return Network(gains=support * rng.uniform(0.3, 1.2, (count, count)), power=rng.uniform(0.5, 2.0, count))


def changed(algorithm: Algorithm, **parts: Any) -> Algorithm:
    """The algorithm with other parts of its only round."""
    (only,) = algorithm.rounds
    return algorithm._replace(rounds=(only._replace(**parts),))


@pytest.fixture(scope="session", autouse=True)
def prepare_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests and their commands use the cache of compiled programs that users have; fonts are listed once for all."""
    folder = use_compile_cache()
    if folder is not None:  # for commands that have another home
        os.environ.setdefault(VARIABLE, str(folder.parents[1]))
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one for all workers
    os.environ["MPLCONFIGDIR"] = str(base / "fonts")


@pytest.fixture
def make_network() -> MakeNetwork:
    return asymmetric_network


def slow_but_every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of which every nth is tried by default; the others take minutes together, and run with the slow tests."""
    return [
        case if place % nth == 0 else pytest.param(*_parts(case), marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]


def _parts(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
