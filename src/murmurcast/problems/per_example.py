"""The sum of all examples' gradients, each clipped by itself: in blocks, so that memory does not grow with examples.

Two ways to the same sum: any loss, by automatic differentiation; and stacks of dense layers in closed form. An example
whose gradient is not finite, or so long that its square is not, counts as 0: it moves the sum by less than its clip.
"""

import math
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.problems.clip import Clip, length
from murmurcast.problems.losses import OfOutputs
from murmurcast.problems.modules.base import Parameters
from murmurcast.problems.modules.dense import DenseStack

BLOCK_BYTES = 2**21  # of what is worked on at once: it fits in the cache
_ROUNDINGS = 32  # by which an example is clipped shorter: 4e-6 in float32


class Example(NamedTuple):
    """One example: its features, and its label or value. All are arrays [rows, ...] where there are several."""

    features: Any
    target: Any


class Loss(Protocol):
    """The loss of one example: pure, in JAX. It must not look at other examples."""

    def __call__(self, parameters: Parameters, example: Example, /) -> jax.Array:
        """A scalar."""
        ...


class Gradient(Protocol):
    """The gradient of a loss of one example, by its parameters."""

    def __call__(self, parameters: Parameters, example: Example, /) -> Parameters:
        """A tree as that of the parameters."""
        ...


class Predict(Protocol):
    """The label that a model gives to features: pure, in JAX."""

    def __call__(self, parameters: Parameters, features: jax.Array, /) -> jax.Array:
        """A whole number, from 0."""
        ...


class Clips(NamedTuple):
    """How an example's gradient is clipped.

    Attributes:
        clip: The problem's.
        layers: The number of every leaf's layer.
        l2: Weight of the term l2 x parameters that every example's gradient has besides, inside its clip; 0 for none.
    """

    clip: Clip
    layers: tuple[int, ...]
    l2: float

    def scales(self, present: jax.Array, squares: list[jax.Array], parts: list[jax.Array]) -> list[jax.Array]:
        """[rows] for every leaf: the factor of every example's gradient.

        Args:
            present: [rows] 1 for examples, 0 for filling.
            squares: [rows] for every leaf: the squared norm of its part of every example's gradient.
            parts: The same, of what was added up to squares, without signs.
        """
        groups = self.layers if self.clip.per == "layer" else (0,) * len(self.layers)
        clip = self.clip.for_layers(max(groups) + 1)
        by_group = {}
        for group in sorted(set(groups)):
            mine = [number for number, other in enumerate(groups) if other == group]
            both = (jnp.stack([each[number] for number in mine]).sum(axis=0) for each in (squares, parts))
            # A sum of many equal terms rounds the same way again and again: what that adds stays within the clip.
            norms = length(*both) * (1 + _ROUNDINGS * float(np.finfo(present.dtype).eps))
            by_group[group] = jnp.where(jnp.isfinite(norms), clip.of_examples(present, norms), 0)
        # A gradient that is not finite in one layer is left out in all.
        kept = jnp.stack([scale != 0 for scale in by_group.values()]).all(axis=0)
        return [jnp.where(kept, by_group[group], 0) for group in groups]


class SumOfRows(Protocol):
    """A sum over some rows."""

    def __call__(self, examples: Example, present: jax.Array, /) -> Parameters:
        """A tree as that of the parameters."""
        ...


def rows_per_block(bytes_per_row: int, count: int) -> int:
    """How many rows are worked on at once."""
    return max(1, min(count, BLOCK_BYTES // max(1, bytes_per_row)))


def over_blocks(sum_of: SumOfRows, like: Parameters, rows: tuple[Example, jax.Array], size: int) -> Parameters:
    """The sum over all rows, `size` of them at a time; rows are filled up to a multiple where they are none."""
    blocks = math.ceil(len(rows[1]) / size)
    missing = blocks * size - len(rows[1])
    if missing:
        rows = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, missing), *[(0, 0)] * (leaf.ndim - 1)]), rows)

    def add(number: jax.Array, total: Parameters) -> Parameters:
        block = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * size, size), rows)
        return jax.tree.map(jnp.add, total, sum_of(*block))

    return jax.lax.fori_loop(0, blocks, add, jax.tree.map(jnp.zeros_like, like))


def sum_by_autodiff(
    gradient: Gradient, parameters: Parameters, examples: Example, present: jax.Array, clips: Clips
) -> Parameters:
    """The sum of some rows' clipped gradients, for any loss."""
    gradients = jax.vmap(gradient, in_axes=(None, 0))(parameters, examples)
    if clips.l2:
        gradients = jax.tree.map(lambda one, point: one + clips.l2 * point, gradients, parameters)
    leaves, structure = jax.tree.flatten(gradients)
    squares = [jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in leaves]
    scales = clips.scales(present, squares, squares)

    def total(leaf: jax.Array, scale: jax.Array) -> jax.Array:
        wide = scale.reshape(-1, *(1,) * (leaf.ndim - 1))
        return jnp.sum(jnp.where(wide != 0, leaf * wide, 0), axis=0)

    return jax.tree.unflatten(structure, [total(*both) for both in zip(leaves, scales, strict=True)])


def sum_of_dense(
    stack: DenseStack, loss: OfOutputs, parameters: Parameters, rows: tuple[Example, jax.Array], clips: Clips
) -> Parameters:
    """The same for a stack of dense layers, in closed form: no example's gradient is written out."""
    examples, present = rows
    reached = stack.backward(parameters, (examples.features, examples.target), loss)
    points = [sum(jnp.sum(leaf**2) for leaf in layer.values()) for layer in parameters]
    # ||g + l2 w||^2 = ||g||^2 + 2 l2 g'w + l2^2 ||w||^2.
    parts = [one.squares + clips.l2**2 * point for one, point in zip(reached, points, strict=True)]
    squares = [part + 2 * clips.l2 * one.along for one, part in zip(reached, parts, strict=True)] if clips.l2 else parts
    scales = clips._replace(layers=tuple(range(len(reached)))).scales(present, squares, parts)
    totals = tuple(one.total(scale) for one, scale in zip(reached, scales, strict=True))
    if not clips.l2:
        return totals
    shares = [clips.l2 * jnp.sum(scale) for scale in scales]
    return tuple(
        jax.tree.map(lambda total, point, share=share: total + share * point, total, layer)
        for total, layer, share in zip(totals, parameters, shares, strict=True)
    )
