"""Gradients of examples as anybody would write them: one after the other, in NumPy's float64 once they are taken."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import murmurcast as mc
from murmurcast.problems.modules.base import ravel
from murmurcast.problems.per_example import Example


def node_data(problem: mc.Model, node: int, dtype: str = "float32") -> Any:
    """What one node holds, as the engine casts it."""

    def cast(leaf: Any) -> jax.Array:
        array = np.asarray(leaf[node])
        return jnp.asarray(array.astype(dtype) if np.issubdtype(array.dtype, np.floating) else array)

    return jax.tree.map(cast, problem.local_data())


def gradients(problem: mc.Model, model: jax.Array, mine: Any) -> list[NDArray[np.float64]]:
    """Of every example, unclipped, from the loss alone."""
    parameters = problem.parameters(model)
    of_one = jax.jit(lambda *row: ravel(jax.grad(problem._loss)(parameters, Example(*row))))
    return [np.asarray(of_one(mine.features[row], mine.targets[row]), np.float64) for row in range(int(mine.size))]


def clipped_mean(
    problem: mc.Model, model: jax.Array, singles: list[NDArray[np.float64]], *, public: bool
) -> NDArray[np.float64]:
    """A node's gradient, from single gradients."""
    point = np.asarray(model, np.float64)
    total = np.zeros_like(point)
    for gradient in singles:
        whole = gradient if public else gradient + problem.l2 * point
        total += clipped(problem, whole)
    return total / len(singles) + (problem.l2 * point if public else 0)


def clipped(problem: mc.Model, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """One example's gradient, shortened as a whole or layer by layer."""
    if problem.clipping == "none":
        return gradient
    layers = np.repeat(problem._tree.layers, [int(np.prod(shape)) for shape in problem._tree.shapes])
    groups = layers if problem.clipping == "layer" else np.zeros_like(layers)
    limit, short = problem.clip / np.sqrt(groups.max() + 1), gradient.copy()
    for group in range(groups.max() + 1):
        short[groups == group] *= min(1.0, limit / float(np.linalg.norm(gradient[groups == group])))
    return short
