"""Stacks of dense layers, whose gradients are clipped without ever being written out.

With a the input of a layer (and a constant 1 for the bias) and e the derivative of an example's loss by what the layer
gives before its activation, the layer's part of the example's gradient is the outer product of a and e, so its squared
norm is ||e||^2 (||a||^2 + 1); its product with the layer's own parameters is e' (W'a + b). The sum of clipped gradients
is one matrix product of the inputs with the errors, each example's scaled. No example's gradient is ever in memory.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.problems.losses import OfOutputs
from murmurcast.problems.modules.base import Parameters

ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu, "gelu": jax.nn.gelu, "sigmoid": jax.nn.sigmoid}


class DenseStack(NamedTuple):
    """Dense layers with an activation between them; meets `Module`.

    Attributes:
        sizes: Features, hidden units layer by layer, outputs.
        activation: A name of `ACTIVATIONS`.
        bias: Whether layers have one.
        random: Whether it begins at random weights of variance 1 / inputs; else at 0.
    """

    sizes: tuple[int, ...]
    activation: str = "tanh"
    bias: bool = True
    random: bool = True

    def initialise(self, key: jax.Array) -> Parameters:
        """A kernel [inputs, outputs] for every layer, and a bias of 0."""
        layers = []
        for number, (inputs, outputs) in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            drawn = jax.random.normal(jax.random.fold_in(key, number), (inputs, outputs)) / np.sqrt(inputs)
            layer = {"kernel": drawn if self.random else jnp.zeros_like(drawn)}
            layers.append(layer | {"bias": jnp.zeros(outputs)} if self.bias else layer)
        return tuple(layers)

    def apply(self, parameters: Parameters, features: jax.Array) -> jax.Array:
        """[..., outputs] of features [..., features]."""
        return self._forward(parameters, features, (0.0,) * len(parameters))[0]

    def backward(self, parameters: Parameters, rows: tuple[jax.Array, jax.Array], loss: OfOutputs) -> "list[Reached]":
        """What every layer of the stack was reached by, for all rows.

        Args:
            parameters: Of all layers.
            rows: Features [rows, features], and targets [rows].
            loss: Of one example's outputs.
        """
        features, targets = rows

        def total(shifts: tuple[jax.Array, ...]) -> tuple[jax.Array, Any]:
            outputs, inputs, before = self._forward(parameters, features, shifts)
            return jnp.sum(jax.vmap(loss)(outputs, targets)), (inputs, before)

        nothing = tuple(jnp.zeros((len(features), size), features.dtype) for size in self.sizes[1:])
        errors, (inputs, before) = jax.grad(total, has_aux=True)(nothing)
        layers = enumerate(zip(inputs, before, errors, strict=True))
        return [Reached(*layer, self.bias, number == 0) for number, layer in layers]

    def _forward(self, parameters: Parameters, features: jax.Array, shifts: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """Outputs, and of every layer its inputs and what it gives before its activation, shifted."""
        inputs: list[jax.Array] = []
        before: list[jax.Array] = []
        given, activate = features, ACTIVATIONS[self.activation]
        for layer, shift in zip(parameters, shifts, strict=True):
            if inputs:
                given = activate(given)
            inputs.append(given)
            given = given @ layer["kernel"] + layer.get("bias", 0.0) + shift
            before.append(given)
        return given, inputs, before


class Reached(NamedTuple):
    """One layer, for all rows.

    Attributes:
        inputs: [rows, inputs].
        before: [rows, outputs] what it gives before its activation.
        errors: [rows, outputs] derivatives of the rows' losses by `before`.
        bias: Whether it has one.
        first: Whether its inputs are the features, which are finite.
    """

    inputs: jax.Array
    before: jax.Array
    errors: jax.Array
    bias: bool
    first: bool

    @property
    def squares(self) -> jax.Array:
        """[rows] the squared norm of every example's gradient in this layer."""
        return (_norms(self.errors, 0.0) * _norms(self.inputs, float(self.bias))) ** 2

    @property
    def along(self) -> jax.Array:
        """[rows] the product of every example's gradient with the layer's own parameters."""
        return jnp.sum(self.errors * self.before, axis=1)

    def total(self, scale: jax.Array) -> Parameters:
        """The sum of all examples' gradients, each scaled; one with scale 0 is left out even where it is not finite."""
        kept = scale[:, None] != 0
        errors = jnp.where(kept, self.errors * scale[:, None], 0)
        inputs = self.inputs if self.first else jnp.where(kept, self.inputs, 0)
        total = {"kernel": inputs.T @ errors}
        return total | {"bias": jnp.sum(errors, axis=0)} if self.bias else total


def _norms(rows: jax.Array, constant: float) -> jax.Array:
    """[rows] with one more entry, a constant; of numbers so small or large that their squares would be lost too.

    Tiny errors may meet huge inputs: what is lost in the one norm would be missing from the product.
    """
    largest = jnp.maximum(jnp.max(jnp.abs(rows), axis=1), constant)
    unit = jnp.where(largest > 0, largest, 1)
    return largest * jnp.sqrt(jnp.sum((rows / unit[:, None]) ** 2, axis=1) + (constant / unit) ** 2)
