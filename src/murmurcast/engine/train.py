"""Makes the program that suits a run, takes it through its epochs and evaluates on the way."""

import math
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import DTypeLike
from numpy.typing import NDArray

from murmurcast.algorithms.base import Algorithm
from murmurcast.engine import large, loop, sharding
from murmurcast.engine.program import Program
from murmurcast.problems.base import Problem

_CHUNK_SECONDS = 0.5  # between two looks at the clock: short enough for a progress bar and for Ctrl-C


class Record(NamedTuple):
    """What one evaluation found.

    Attributes:
        epoch: After which epoch.
        seconds: Training up to there, without compiling and evaluating.
        metrics: By name, [nodes, seeds] or [seeds].
    """

    epoch: int
    seconds: float
    metrics: dict[str, NDArray[Any]]


class Point(NamedTuple):
    """Where a run has come to.

    Attributes:
        epoch: The last one finished.
        carry: What the next one needs; a `Carry` of arrays [nodes, seeds, ...].
        seconds: Training so far.
        records: All evaluations so far.
        chunk: How many epochs to do next without looking up. It has no influence on any number.
    """

    epoch: int
    carry: Any
    seconds: float = 0.0
    records: tuple[Record, ...] = ()
    chunk: int = 1


def program(algorithm: Algorithm, problem: Problem, seeds: tuple[int, ...], dtype: DTypeLike) -> Program:
    """In blocks where the network is large, else one compiled loop over everybody."""
    if large.suits(algorithm, problem):
        return large.program(algorithm, problem, seeds, dtype)
    of_a_seed = problem.nodes * (problem.bytes_per_gradient + problem.dim * np.dtype(dtype).itemsize)
    layout = sharding.layout(problem.nodes, len(seeds), of_a_seed)
    return loop.program(algorithm, problem, layout, seeds, dtype)


def advance(program: Program, point: Point, goal: int) -> Point:
    """On by one chunk, at most to epoch `goal`."""
    last = min(point.epoch + point.chunk, goal)
    begun = time.perf_counter()
    bounds = (np.int32(point.epoch + 1), np.int32(last + 1))
    carry = jax.block_until_ready(program.advance(program.given, point.carry, *bounds))
    taken = time.perf_counter() - begun
    fitting = int(_CHUNK_SECONDS * (last - point.epoch) / max(taken, 1e-9))
    chunk = max(1, min(fitting, 4 * point.chunk))
    return point._replace(epoch=last, carry=carry, seconds=point.seconds + taken, chunk=chunk)


def evaluate(program: Program, point: Point) -> Point:
    """The point with one more record."""
    record = Record(point.epoch, point.seconds, program.observe(point.carry))
    return point._replace(records=(*point.records, record))


def start_loss(program: Program) -> float | None:
    """The mean loss of all evaluated nodes' models before anything is learnt; None where it is not a number."""
    loss = float(program.observe(program.start)["own_loss"].mean())
    return loss if math.isfinite(loss) else None
