"""Sweeps to test on: small, on an asymmetric network."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import murmurcast as mc
from murmurcast.experiments.load import parse

TINY = """
[network]
gains = [[0, 0.5, 0.9, 0], [0.8, 0, 0.4, 0.3], [0.6, 0.7, 0, 0.9], [0, 0.2, 0.5, 0]]
[data]
name = "logistic"
examples = 80
features = 3
classes = 3
test_fraction = 0.2
partition = "iid"
[privacy]
epsilon = 1.0
unit = "record"
[schedule]
epochs = 6
step = 0.3
noise_timing = "aligned"
[algorithm]
gradient_at = "mixed"
[run]
seeds = 2
"""
GRID = {"privacy.epsilon": (1.0, 4.0), "algorithm.name": ("power-controlled", "dp-dsgd")}
NAMES = ["epsilon-1_power-controlled", "epsilon-1_dp-dsgd", "epsilon-4_power-controlled", "epsilon-4_dp-dsgd"]


@cache
def tiny() -> mc.Experiment:
    return parse(TINY.encode(), "tiny.toml")


def numbers(run: mc.Result) -> dict[str, Any]:
    """All that a run came to, but for times and keys."""
    result = {f"metrics {name}": one.values for name, one in run.metrics.items() if name != "seconds"}
    result |= {f"ledger {name}": one.values for name, one in run.ledger.items()}
    return result | {"published": run.published}


def assert_same(one: mc.Result, other: mc.Result) -> None:
    """To the bit."""
    first, second = numbers(one), numbers(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)
    assert one.experiment == other.experiment


def written(folder: Path) -> dict[str, int]:
    """When every file of the finished runs was last written."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.glob("runs/*/*")) if path.is_file()}
