"""What a run's folder holds from its beginning, and whether what is in it belongs to an experiment."""

import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from murmurcast import _check
from murmurcast._files import write_atomically
from murmurcast.errors import Error, NotWritten
from murmurcast.experiments.build import Experiment

if TYPE_CHECKING:
    from murmurcast.algorithms.base import Algorithm
    from murmurcast.problems.base import Problem

MAX_SEEDS = 100_000


def seeds_of(experiment: Experiment) -> tuple[int, ...]:
    """The seeds that [run] names."""
    given = experiment.run.seeds
    if isinstance(given, int):
        _check.at_least(1, **{"run.seeds": given})
        if given > MAX_SEEDS:
            raise Error(f"run.seeds is {given}, more than {MAX_SEEDS}", hint="give a smaller number, or a list")
        return tuple(range(given))
    return tuple(given)


def require_space(folder: Path, algorithm: "Algorithm", problem: "Problem", experiment: Experiment) -> None:
    """There is room for a checkpoint and the published models, known before training starts."""
    import jax

    from murmurcast.engine.check import first_state

    precision = experiment.run.precision
    state = sum(leaf.size for leaf in jax.tree.leaves(first_state(algorithm, problem, precision).state))
    numbers = (state + 2 * problem.dim) * problem.nodes * len(seeds_of(experiment))  # and models that are done
    needed = numbers * np.dtype(precision).itemsize + 2**20
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotWritten(
            f"{folder} has {free / 2**20:.0f} MiB free, and the run needs up to {needed / 2**20:.0f}",
            hint="free some space, or choose another folder with --out",
        )


def write_beginning(folder: Path, experiment: Experiment, place: Path) -> None:
    """What makes a folder resumable; a network's file goes along, so that the folder can be planned from alone.

    Args:
        folder: The run's.
        experiment: What is run.
        place: Where the experiment's relative files start.
    """
    from murmurcast.runs.result import EXPERIMENT, FILES

    contents = {EXPERIMENT: experiment.as_toml().encode()}
    if experiment.network.file is not None:
        network = place / experiment.network.file
        if network.name in FILES:
            raise Error(f"the network's file is called {network.name}, as one of a run's files", hint="rename it")
        contents[network.name] = network.read_bytes()
    for name, content in contents.items():
        write_atomically(folder / name, content)


def differences(before: str, now: str, left_out: tuple[str, ...] = ()) -> str:
    """The keys whose values differ in two experiment files, with both values; "" where none does.

    Args:
        before: The one text.
        now: The other.
        left_out: Dotted keys that may differ, with all below them.
    """
    try:
        old, new = flat(tomllib.loads(before)), flat(tomllib.loads(now))
    except (ValueError, RecursionError):
        return "its experiment.toml cannot be read"
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    shown = [key for key in keys if not any(key == one or key.startswith(f"{one}.") for one in left_out)]
    return "; ".join(f"{key} was {old.get(key, 'not set')}, is {new.get(key, 'not set')}" for key in shown)


def flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Values by their dotted keys."""
    by_key: dict[str, Any] = {}
    for key, value in values.items():
        by_key |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return by_key
