"""A model of your own: any loss of one example, over any tree of parameters, from its own starting point.

Gradients are taken example by example, each is clipped over the whole tree, and their sum is divided by a fixed number:
whatever the loss is, one record moves a node's gradient by at most 2 clip / n. Inside, a model is one flat array; trees
are for the functions you write.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.base import Metrics
from murmurcast.problems.clip import norm
from murmurcast.problems.examples import OnExamples, Rows, TestPart, stacked

Parameters = Any  # a pytree of arrays
_BLOCK_BYTES = 2**21  # of gradients of examples that are held at once


class Example(NamedTuple):
    """One example: its features, and its label or value."""

    features: Any
    target: Any


class Initialise(Protocol):
    """Makes the parameters that all nodes begin with, from a public key: free of data."""

    def __call__(self, key: jax.Array, /) -> Parameters:
        """A tree of arrays."""
        ...


class Loss(Protocol):
    """The loss of one example: pure, in JAX. It must not look at other examples."""

    def __call__(self, parameters: Parameters, example: Example, /) -> jax.Array:
        """A scalar."""
        ...


class Predict(Protocol):
    """The label that a model gives to features: pure, in JAX."""

    def __call__(self, parameters: Parameters, features: jax.Array, /) -> jax.Array:
        """A whole number, from 0."""
        ...


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class Model(OnExamples):
    """A problem with a loss of your own; further arguments as `OnExamples`.

    Args:
        initialise: Where nodes begin.
        loss: Of one example.
        predict: The label of one example, for the accuracy; None leaves it out.
    """

    initialise: Initialise
    loss: Loss
    predict: Predict | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predict is not None and self.data.dataset.classes is None:
            raise Error("predict gives labels, and the targets are values", hint="leave predict out")

    @cached_property
    def _tree(self) -> tuple[tuple[int], Any]:
        """The shape of the flat array, and the way back to the tree."""
        flat, unravel = ravel_pytree(self.initialise(jax.random.key(0)))
        return (flat.size,), unravel

    @property
    def shape(self) -> tuple[int]:
        """(parameters,)."""
        return self._tree[0]

    def parameters(self, model: jax.Array) -> Parameters:
        """The tree of a flat model, such as `result.published[0, 0]`."""
        return self._tree[1](jnp.asarray(model))

    def start(self, key: jax.Array) -> jax.Array:
        """Where `initialise` begins, the same at all nodes."""
        return ravel_pytree(self.initialise(key))[0]

    def local_data(self) -> Rows:
        """All nodes' examples."""
        return stacked(self, constant=0.0)._replace(columns=None)

    def test_data(self) -> TestPart:
        """The test part."""
        return TestPart(self.data.dataset.test_features, self.data.dataset.test_targets)

    def gradient_at_public(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient; the L2 term, free of data here, is added after clipping."""
        rows, count = self.drawn(mine, key)
        total = self._sum(model, rows, jnp.zeros_like(model))
        return self.gradient_clip.of_node(total / count) + self.l2 * model

    def gradient_at_private(self, model: jax.Array, mine: Rows, key: jax.Array) -> jax.Array:
        """The node's gradient, the L2 term inside the clip of every example."""
        rows, count = self.drawn(mine, key)
        return self.gradient_clip.of_node(self._sum(model, rows, self.l2 * model) / count)

    def evaluate(self, model: jax.Array, test: TestPart) -> Metrics:
        """Mean loss on the test part, and accuracy where labels are predicted."""
        parameters = self.parameters(model)
        examples = Example(test.features, test.targets)
        metrics = {"loss": jnp.mean(jax.vmap(lambda one: self.loss(parameters, one))(examples))}
        if self.predict is not None:
            predict = self.predict
            labels = jax.vmap(lambda features: predict(parameters, features))(test.features)
            accuracy = jnp.mean(labels == test.targets, dtype=metrics["loss"].dtype)
            metrics["accuracy"] = jnp.where(jnp.isfinite(metrics["loss"]), accuracy, jnp.nan)
        return metrics

    def _sum(self, model: jax.Array, rows: Rows, besides: jax.Array) -> jax.Array:
        """The sum of all examples' gradients, each with a term besides, each clipped; block by block."""

        def of_example(example: Example, present: jax.Array) -> jax.Array:
            flat = jax.grad(lambda point: self.loss(self.parameters(point), example))(model) + besides
            return flat * self.gradient_clip.of_examples(present, norm(flat))

        def of_block(total: jax.Array, block: tuple[Example, jax.Array]) -> tuple[jax.Array, None]:
            return total + jax.vmap(of_example)(*block).sum(axis=0), None

        count = rows.features.shape[0]
        size = max(1, min(count, _BLOCK_BYTES // (model.size * model.dtype.itemsize)))
        blocks = math.ceil(count / size)

        def cut(values: jax.Array) -> jax.Array:
            filled = jnp.pad(values, [(0, blocks * size - count), *[(0, 0)] * (values.ndim - 1)])
            return filled.reshape(blocks, size, *values.shape[1:])

        examples = Example(cut(rows.features), cut(rows.targets))
        return jax.lax.scan(of_block, jnp.zeros_like(model), (examples, cut(rows.present)))[0]
