"""Hostile data: whether one unit can change a gradient by more than the sensitivity that a promise is made with.

Canaries are planted behind the clip. This looks at the clip itself: two worlds whose data differ in one unit, chosen to
pull the gradient as far as possible to one side and to the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.data.partition import Partition, Sorted
from murmurcast.privacy.certificate import Unit
from murmurcast.problems.base import Problem
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression

LARGEST_SHARE = 1 + 1e-4  # of the sensitivity: gradients are in float32
_RECORDS = 32  # of the node that are looked at; with fewer records each counts more, and the sensitivity as much
Point = Literal["mixed", "own"]
_POINTS = (0.0, 0.1, 10.0)  # sizes of the models at which gradients are taken
_HOSTILE = (1e-2, 1.0, 1e2, 1e4)  # sizes of hostile data


def largest_change(problem: Problem, unit: Unit, node: int, point: Point = "mixed", seed: int = 0) -> float | None:
    """The largest change of a node's gradient that was found, as a share of the sensitivity; at most 1 if all is well.

    Args:
        problem: Whose gradients. None is returned for a kind of problem whose data cannot be made hostile here.
        unit: What differs between the worlds: one record, or all data of the node.
        node: Whose data.
        point: Where gradients are taken: at the public mixed point, or at the node's own.
        seed: Of models and data.
    """
    rng = np.random.default_rng(seed)
    models = [jnp.asarray(size * rng.standard_normal(problem.shape), jnp.float32) for size in _POINTS]
    shares = [
        _change(one, other, model, point) / float(one.gradient_clip.sensitivity(unit, 1)[0])
        for size in _HOSTILE
        for one, other in _worlds(problem, unit, node, size, rng)
        for model in models
    ]
    return max(shares, default=None)


def _change(one: Problem, other: Problem, model: jax.Array, point: Point) -> float:
    gradients = []
    for world in (one, other):
        mine = jax.tree.map(lambda leaf: leaf[0], world.local_data())
        gradient = world.gradient_at_public if point == "mixed" else world.gradient_at_private
        gradients.append(gradient(model, mine, jax.random.key(0)))
    return float(jnp.linalg.norm(jnp.ravel(gradients[0] - gradients[1])))


def _worlds(
    problem: Problem, unit: Unit, node: int, size: float, rng: np.random.Generator
) -> "Iterator[tuple[Problem, Problem]]":
    """Pairs of problems with that node alone, their data hostile on opposite sides."""
    if isinstance(problem, SoftmaxRegression | RidgeRegression):
        yield _on_examples(problem, unit, node, size, rng)
    elif isinstance(problem, Quadratic):
        pull = size * rng.standard_normal(problem.shape)
        curvature = problem.curvature.mean(axis=0)[None]  # of one node alone it need not have a minimum
        one, other = (replace(problem, curvature=curvature, centre=sign * pull[None]) for sign in (1, -1))
        yield one, other


def _on_examples(
    problem: SoftmaxRegression | RidgeRegression, unit: Unit, node: int, size: float, rng: np.random.Generator
) -> tuple[Problem, Problem]:
    # As many records as a batch has: then each of them is drawn.
    dataset, rows = problem.data.dataset, problem.data.rows[node][: problem.batch or _RECORDS]
    changed = slice(0, 1 if unit == "record" else len(rows))
    pull = (size * rng.standard_normal((1, dataset.features.shape[1]))).astype(np.float32)
    targets = dataset.targets[rows].copy()
    targets[changed] = targets[0] if dataset.classes is not None else size

    def world(sign: int) -> Problem:
        features = dataset.features[rows].copy()
        features[changed] = sign * pull
        data = replace(dataset, features=features, targets=targets, optimum=None)
        alone = Partition(dataset=data, rule=Sorted(), rows=(np.arange(len(rows)),))
        return replace(problem, data=alone)

    return world(1), world(-1)
