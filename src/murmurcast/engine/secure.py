"""Secure noise: integers from a cipher that is keyed by the operating system, on all cores.

Every source of bits is AES-128 in counter mode with a key of its own. Keys come from the operating system when a run
begins, are never written, shown or returned, and go with the run. So nothing can be drawn twice: not by the same seed,
not by going on from a checkpoint.
"""

import math
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import PartitionSpec as Spec

from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Again, Algorithm, Draw
from murmurcast.algorithms.early_end import has_drops
from murmurcast.algorithms.grid_noise import integer_std
from murmurcast.engine import discrete
from murmurcast.engine.discrete import RandomWords, Words
from murmurcast.engine.sharding import Layout
from murmurcast.errors import Error
from murmurcast.planning.setup import Setup
from murmurcast.privacy.conversion import epsilon_of
from murmurcast.problems.base import Problem

_INTEGERS_PER_CALL = 2**17  # integers drawn at once: enough to make a call worth its while
_MIN_INTEGERS_FOR_THREADS = 2**18  # integers from which more than one thread is worth its while
_MAX_INTEGERS_AHEAD = 2**20  # integers of some epochs that are drawn ahead, unless one epoch needs more
_EXPONENTIAL_OFF = 16 * 2.0**-53  # 8 roundings of it, and 8 of what it is compared with
_MAX_RADIUS_IN_STEPS = 2.0**51


class Feed(Protocol):
    """Draws the noise of some epochs, fresh at every call."""

    def __call__(self, first: int, stop: int, /) -> jax.Array:
        """Integers [epochs ahead, nodes, seeds, dim] of epochs first..stop-1."""
        ...


def is_secure(setup: Setup) -> bool:
    """Whether a setup's promise is about secure noise."""
    return setup.budget.noise_source == "secure"


def source() -> RandomWords:
    """A source of random words with a fresh key from the operating system."""
    try:
        from randomgen import AESCounter
    except ImportError:
        raise Error(
            "secure noise needs the package randomgen", hint='install it: pip install "murmurcast[secure]"'
        ) from None
    generator = np.random.Generator(AESCounter(key=secrets.randbits(128)))

    def words(count: int) -> Words:
        return generator.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)

    return words


def sources() -> tuple[RandomWords, ...]:
    """One source for every core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return tuple(source() for _ in range(cores))


def draw(std: FloatArray, size: int, from_: tuple[RandomWords, ...]) -> FloatArray:
    """[rows, size] integers of N_Z(0, std^2) as floats, each row with its own std; every source in a thread of its own.

    Args:
        std: [rows] in integers, 2^26 or more and below 2^27.
        size: How many for each row.
        from_: Sources of random words; a source is used by one thread only.
    """
    integers = np.empty((len(std), size))
    high, wide = max(1, _INTEGERS_PER_CALL // size), min(size, _INTEGERS_PER_CALL)
    pieces = [
        (slice(row, row + high), slice(column, column + wide))
        for row in range(0, len(std), high)
        for column in range(0, size, wide)
    ]

    def fill(number: int) -> None:
        for rows, columns in pieces[number :: len(busy)]:
            discrete.fill(integers[rows, columns], std[rows], busy[number])

    busy = from_ if integers.size >= _MIN_INTEGERS_FOR_THREADS else from_[:1]
    if len(busy) == 1:
        fill(0)
    else:
        with ThreadPoolExecutor(len(busy)) as pool:
            list(pool.map(fill, range(len(busy))))
    return integers


def epochs_ahead(algorithm: Algorithm, problem: Problem, layout: Layout) -> int:
    """For how many epochs noise is drawn at once: small networks save calls by it."""
    each = layout.filled_nodes * layout.filled_seeds * problem.dim
    return max(1, min(_MAX_INTEGERS_AHEAD // each, algorithm.epochs))


def by_epoch(layout: Layout) -> Spec:
    """How noise [epochs, nodes, seeds, dim] is spread over devices."""
    return Spec(None, *layout.by_node_and_seed)


def feeder(algorithm: Algorithm, problem: Problem, layout: Layout) -> Feed:
    """A function that draws the noise of epochs first..stop-1, fresh at every call.

    It returns integers [epochs ahead, nodes, seeds, dim], 0 where nobody looks: epochs from `stop` on, and fillers.
    """
    std, from_ = integer_std(algorithm.rounds[0].sending), sources()
    shape = (epochs_ahead(algorithm, problem, layout), layout.filled_nodes, layout.filled_seeds, problem.dim)

    def feed(first: int, stop: int) -> jax.Array:
        rows = np.repeat(std[first - 1 : stop - 1].reshape(-1), layout.seeds)
        drawn = draw(rows, problem.dim, from_).reshape(stop - first, layout.nodes, layout.seeds, problem.dim)
        if drawn.shape != shape:
            whole = np.zeros(shape)
            whole[: stop - first, : layout.nodes, : layout.seeds] = drawn
            drawn = whole
        return layout.put(drawn, by_epoch(layout))

    return feed


def require(algorithm: Algorithm, problem: Problem, dtype: Any) -> None:
    """What secure noise needs, where a setup asks for it: noise on a grid, float64, a grid that is fine enough."""
    setup = algorithm.setup
    if not is_secure(setup):
        return
    on_grid = [isinstance(draw, Draw) and draw.law == "discrete gaussian" for draw in _all_draws(algorithm)]
    if len(algorithm.rounds) != 1 or on_grid != [True]:
        raise Error(
            f'secure noise is for {registry.names_that("secure")}, and the algorithm is "{algorithm.name}"',
            hint='set privacy.noise_source = "seeded": nothing is claimed for such a run',
        )
    if np.dtype(dtype) != np.float64:
        raise Error(
            "secure noise needs float64: its bounds are about that arithmetic",
            hint='set run.precision = "float64" (precision="float64" in Python)',
        )
    if has_drops(algorithm):
        raise Error("no node can drop out of a run with secure noise", hint="leave run.drops out")
    if not problem.gradient_clip.bounds:
        raise Error(
            "gradients are not clipped, so secure noise would protect nothing",
            hint='set problem.clipping to "node" or "example", or privacy.noise_source = "seeded"',
        )
    if not all(np.isfinite(epsilon_of(part, setup.budget.delta)).all() for part in algorithm.releases):
        raise Error(
            "the noise is so small against the gradients that secure noise bounds nothing: no draw goes beyond 16 "
            "standard deviations",
            hint="ask for more noise: a smaller epsilon, a larger noise_to_step, or fewer epochs",
        )
    _require_fine(algorithm, problem)
    _require_exponential()
    source()  # says so now if it cannot be had


def _all_draws(algorithm: Algorithm) -> list[Draw | Again]:
    return [draw for one in algorithm.rounds for draw in one.draws.values()]


def _require_exponential() -> None:
    """The compiled exponential is as good here as the sampler's bound takes it to be, fast mathematics or not."""
    points = -np.geomspace(1e-6, 160.0, 512)
    with jax.enable_x64(True):
        compiled = np.asarray(jax.jit(jax.numpy.exp)(points))
    true = np.array([math.exp(point) for point in points])
    if not np.abs(compiled / true - 1).max() <= _EXPONENTIAL_OFF:
        raise Error(
            "this machine's exponential is not accurate enough for secure noise",
            hint="run on a CPU, without fast-math flags (XLA_FLAGS)",
        )


def _require_fine(algorithm: Algorithm, problem: Problem) -> None:
    """A ball is so small against the grid that its projection is off by less than a quarter step in each coordinate."""
    boxed = getattr(problem, "box", None) is not None  # clipping to a box is exact
    spacing = float(np.min(algorithm.rounds[0].sending.spacing))
    if boxed or problem.radius is None:
        return
    largest = _MAX_RADIUS_IN_STEPS * np.sqrt(problem.dim) * spacing / (problem.dim + 32)
    if problem.radius > largest:
        raise Error(
            f"the radius is {problem.radius:g}; beside so little noise, rounding is counted only up to {largest:.3g}",
            hint="lower problem.radius, use problem.box, or ask for more noise (a smaller epsilon)",
        )
