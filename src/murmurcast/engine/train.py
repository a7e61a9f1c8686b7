"""Takes a program through its epochs and evaluates on the way."""

import math
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast.engine.loop import Carry, Program
from murmurcast.engine.sharding import Layout

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


def evaluate(program: Program, layout: Layout, point: Point) -> Point:
    """The point with one more record."""
    by_node, by_seed = program.evaluate(point.carry)
    sent = {"sent_power": point.carry.sent, "loudest": point.carry.loudest}
    metrics = layout.take(by_node | sent | point.carry.info) | layout.take_by_seed(by_seed)
    return point._replace(records=(*point.records, Record(point.epoch, point.seconds, metrics)))


def start_loss(program: Program, layout: Layout) -> float | None:
    """The mean loss of all nodes' models before anything is learnt; None where it is not a number."""
    by_node, _ = program.evaluate(program.start)
    loss = float(layout.take(by_node["own_loss"]).mean())
    return loss if math.isfinite(loss) else None


def from_host(layout: Layout, like: Carry, leaves: list[NDArray[Any]]) -> Carry:
    """A carry from the leaves that `Layout.take` gave, whatever the number of devices; `like` lends the structure."""
    carry: Carry = layout.put_filled(jax.tree.unflatten(jax.tree.structure(like), leaves))
    return carry
