"""What the processes of one run must agree on, and what one says that has lost the others."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax
import numpy as np

from murmurcast.engine.team import team
from murmurcast.errors import Error, LostOthers

_SECONDS_BETWEEN_CHECKPOINTS = 60.0  # of several processes
_CHECKPOINTS_TAKE_AT_MOST = 20  # one part in so many of a run's time


class Agreed(NamedTuple):
    """What all processes do next: how many epochs, whether they stop, and whether a checkpoint is due."""

    chunk: int
    stop: bool
    keep: bool


def agreed(chunk: int, stop: bool, keep: bool) -> Agreed:
    """The same at all processes, each of which has a clock of its own; a process alone keeps to its options."""
    if team().size == 1:
        return Agreed(chunk, stop, False)
    wishes = team().gather(np.array([chunk, stop, keep], np.int32))
    return Agreed(int(wishes[0, 0]), bool(wishes[:, 1].any()), bool(wishes[0, 2]))


def require_same_run(digest: str) -> None:
    """All processes must train the same: what the one that leads writes down is said of the nodes of all.

    Args:
        digest: Of everything that this process's run depends on, in hexadecimal digits.
    """
    if not team().same_everywhere(np.frombuffer(bytes.fromhex(digest), np.uint8)):
        raise Error(
            "the processes were given different experiments, data or settings",
            hint="give all of them the same file, data and --set, on machines of one kind with the same packages",
        )


def require_same_beginning(finished: int, epoch: int) -> None:
    """All processes must begin at the same point, or their nodes would hear each other's models of other epochs.

    Args:
        finished: How many groups of seeds this process has behind it.
        epoch: The last epoch that it has behind it, of the group under way.
    """
    if not team().same_everywhere(np.array([finished, epoch])):
        raise Error(
            "the processes do not go on from the same epoch",
            hint="give --resume to all of them or to none, and an --out that all of them see",
        )


def wait_for_all() -> None:
    """Until all processes have come here: one that leaves while another still writes is taken for lost."""
    team().gather(np.zeros(1))


class Pulse:
    """When several processes, any of which may be lost, keep a checkpoint unasked: soon, then every minute or rarer."""

    def __init__(self) -> None:
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time for one."""
        return time.monotonic() >= self._due

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        self._due = now + max(_SECONDS_BETWEEN_CHECKPOINTS, _CHECKPOINTS_TAKE_AT_MOST * (now - self._begun))


@contextmanager
def others_there() -> Iterator[None]:
    """Where a process of several can no longer reach the others, it says so, whatever JAX calls it."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as problem:
        if team().size == 1 or not re.search("Gloo|UNAVAILABLE|DEADLINE|heartbeat|ABORTED", str(problem)):
            raise
        raise LostOthers(
            f"process {team().rank} of {team().size} lost the others, and with them the run",
            hint="go on from the last checkpoint with --resume, on any number of processes; without one, start again",
        ) from None
