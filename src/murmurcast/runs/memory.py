"""Whether a run fits into memory, found out before it begins, and said in words where it does not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from murmurcast.algorithms.base import Algorithm
from murmurcast.engine import large
from murmurcast.engine.team import team
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs.free_memory import free_memory

MODEL_COPIES = 8  # of all models that a compiled loop holds at once, at most
_FEWEST_COPIES = 3  # of them, at least
_SHARE = 0.5  # of free memory that several seeds may take together
_SHARE_IN_BLOCKS = 0.8  # the same where their copies are counted exactly


def seed_groups(algorithm: Algorithm, problem: Problem, dtype: "np.dtype[Any]", seeds: int) -> tuple[int, ...]:
    """Sizes of as few groups of seeds as memory allows, nearly the same."""
    available = int(team().gather(np.array([free_memory() // team().here])).min())
    channels = [one.channel for one in algorithm.rounds]
    signals = max(max(channel.signals or 1, channel.neighbours or 1) for channel in channels)
    models, in_blocks = problem.nodes * problem.dim * dtype.itemsize, large.suits(algorithm, problem)
    if in_blocks:
        least = usual = large.copies_of_models(algorithm, problem, dtype) * models // team().size
    else:
        least, usual = _FEWEST_COPIES * models * signals, MODEL_COPIES * models * signals
    if least > available:
        less = "use fewer nodes, or an algorithm that multicasts" if signals > 1 else "use fewer nodes or features"
        raise Error(
            f"one seed needs at least {least / 2**30:.1f} GiB, and {available / 2**30:.1f} are free",
            hint=less if large.why_not(algorithm) else f"{less}, or several machines (docs/scale.md)",
        )
    most = max(1, int(available * (_SHARE_IN_BLOCKS if in_blocks else _SHARE) // usual))
    return tuple(len(group) for group in np.array_split(np.arange(seeds), -(-seeds // most)))


@contextmanager
def enough_memory() -> Iterator[None]:
    """Where memory runs out all the same, says so; nothing was promised that is broken by it."""
    try:
        yield
    except MemoryError as problem:
        raise _ran_out(str(problem)) from None
    except RuntimeError as problem:  # JAX's own is one, and so is Python's, of a thread for which there is no room
        if "RESOURCE_EXHAUSTED" in str(problem) or "can't start new thread" in str(problem):
            raise _ran_out(str(problem).partition("\n")[0]) from None
        raise


def _ran_out(words: str) -> Error:
    return Error(
        f"the run needs more memory than there is ({words[:120]})",
        hint="use fewer nodes, seeds or features, several machines (docs/scale.md), or end other programs",
    )
