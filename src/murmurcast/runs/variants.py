"""Trains variants of a method that differ in their tables only, such as step sizes, by one compiled program.

Steps, noise and weights are arguments of a program; the functions of a round are what is compiled. So a grid of
settings is compiled once, and every further setting costs its training alone.
"""

from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from murmurcast._check import FloatArray
from murmurcast._npz import taken_together
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.channels.base import is_over_radio
from murmurcast.engine import loop, sharding, train
from murmurcast.engine.program import Program
from murmurcast.engine.sharding import Layout
from murmurcast.problems.base import Problem
from murmurcast.runs.require import require_planned_for

_DTYPE = np.dtype("float32")


class Train(Protocol):
    """Trains one variant to its last epoch."""

    def __call__(self, algorithm: Algorithm, /) -> dict[str, FloatArray]:
        """The metrics of every node at the end, by name, [seeds, nodes]."""
        ...


class _Compiled(NamedTuple):
    """A program, where its arrays lie, and the leaves of its start, which a run uses up."""

    program: Program
    layout: Layout
    start: list[Any]


def trainer(problem: Problem, seeds: tuple[int, ...]) -> Train:
    """Trains any number of algorithms on one problem, and evaluates each at its end; keeps nothing but programs."""
    compiled: dict[object, _Compiled] = {}

    def train_one(algorithm: Algorithm) -> dict[str, FloatArray]:
        require_planned_for(algorithm, problem)
        key, has_numbers = _shape(algorithm), _holds_numbers(algorithm)
        known = None if has_numbers else compiled.get(key)
        if known is None:
            known = _compile(algorithm, problem, seeds)
        if not has_numbers:
            compiled[key] = known
        program = loop.with_tables_of(algorithm, known.program, known.layout, _DTYPE)
        start = known.program.restore(known.start)
        point = train.Point(0, start)
        while point.epoch < algorithm.epochs:
            point = train.advance(program, point, algorithm.epochs)
        metrics = train.evaluate(program, point).records[-1].metrics
        return {name: np.asarray(values, np.float64).T for name, values in metrics.items() if values.ndim == 2}

    return train_one


def _holds_numbers(algorithm: Algorithm) -> bool:
    """Whether a program holds numbers besides its tables: a user's own method may, and a radio has its loudness."""
    return algorithm.name not in registry.NAMES or any(is_over_radio(one.channel) for one in algorithm.rounds)


def _compile(algorithm: Algorithm, problem: Problem, seeds: tuple[int, ...]) -> _Compiled:
    size = problem.nodes * (problem.bytes_per_gradient + problem.dim * _DTYPE.itemsize)
    layout = sharding.layout(problem.nodes, len(seeds), size)
    program = loop.program(algorithm, problem, layout, seeds, _DTYPE)
    return _Compiled(program, layout, [taken_together(leaf) for leaf in program.keep(program.start)])


def _shape(algorithm: Algorithm) -> tuple[object, ...]:
    """What a program depends on, of a method of the house: its name, its options, and the shapes of its tables."""
    tables = [(one.name, one.sending, one.receiving) for one in algorithm.rounds]
    shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves([part[1:] for part in tables]))
    return algorithm.name, tuple(sorted(algorithm.settings.items())), tuple(part[0] for part in tables), shapes
