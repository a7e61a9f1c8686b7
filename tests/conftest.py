"""Networks to test on: asymmetric, so that a transposed index cannot pass."""

import os
from collections.abc import Callable
from itertools import pairwise

import jax
import numpy as np
import pytest

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


@pytest.fixture(scope="session", autouse=True)
def prepare_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests and their commands run the same programs: these are compiled, and fonts are listed, for the first only."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # one for all workers
    folder = str(base / "compiled")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    os.environ |= {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    os.environ["MPLCONFIGDIR"] = str(base / "fonts")


@pytest.fixture
def make_network() -> MakeNetwork:
    return asymmetric_network
