"""A small convolutional network with tempered activations, in plain JAX.

Convolutions are written as products of image patches with a kernel: the gradient of one example is then one small
matrix product, where a convolution for every example is slow.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.problems.modules.base import Parameters


class SmallCnn(NamedTuple):
    """Convolutions of stride 2 with tanh, a hidden layer with tanh, and outputs; meets `Module`.

    Attributes:
        image: Rows, columns and channels of an image, in this order in the features.
        channels: Of every convolution.
        kernel: Its width.
        hidden: Units of the hidden layer.
        outputs: How many.
        groups: Of the group norm before every tanh of a convolution; 0 leaves it out.
    """

    image: tuple[int, int, int]
    channels: tuple[int, ...]
    kernel: int
    hidden: int
    outputs: int
    groups: int = 0

    def initialise(self, key: jax.Array) -> Parameters:
        """Kernels of variance 1 / inputs, biases 0, scales of group norms 1."""
        rows, columns, depth = self.image
        parameters: dict[str, Any] = {}
        for number, channels in enumerate(self.channels):
            layer = _layer(jax.random.fold_in(key, number), self.kernel**2 * depth, channels)
            parameters[f"convolution{number}"] = layer
            if self.groups:
                parameters[f"norm{number}"] = {"scale": jnp.ones(channels), "bias": jnp.zeros(channels)}
            rows, columns, depth = -(-rows // 2), -(-columns // 2), channels
        hidden, out = (jax.random.fold_in(key, len(self.channels) + extra) for extra in (0, 1))
        parameters["hidden"] = _layer(hidden, rows * columns * depth, self.hidden)
        parameters["out"] = _layer(out, self.hidden, self.outputs)
        return parameters

    def apply(self, parameters: Parameters, features: jax.Array) -> jax.Array:
        """[outputs] for one image."""
        image = features.reshape(self.image)
        for number in range(len(self.channels)):
            image = _dense(parameters[f"convolution{number}"], _patches(image, self.kernel))
            if self.groups:
                image = _group_norm(parameters[f"norm{number}"], image, self.groups)
            image = jnp.tanh(image)
        return _dense(parameters["out"], jnp.tanh(_dense(parameters["hidden"], image.ravel())))


def _layer(key: jax.Array, inputs: int, outputs: int) -> dict[str, jax.Array]:
    kernel = jax.random.normal(key, (inputs, outputs)) / np.sqrt(inputs)
    return {"kernel": kernel, "bias": jnp.zeros(outputs)}


def _dense(layer: Any, inputs: jax.Array) -> jax.Array:
    return inputs @ layer["kernel"] + layer["bias"]


def _patches(image: jax.Array, width: int) -> jax.Array:
    """[rows/2, columns/2, width^2 channels] what a convolution of stride 2 sees at every place, zeros outside."""
    rows, columns, _ = image.shape
    before, after = (width - 1) // 2, width // 2 + 1
    wide = jnp.pad(image, ((before, after), (before, after), (0, 0)))
    shifted = [wide[i : i + rows : 2, j : j + columns : 2] for i in range(width) for j in range(width)]
    return jnp.concatenate(shifted, axis=-1)


def _group_norm(layer: Any, image: jax.Array, groups: int) -> jax.Array:
    """Each group of channels of one image, centred and scaled by itself: no other example is looked at."""
    grouped = image.reshape(-1, groups, image.shape[-1] // groups)
    mean = grouped.mean(axis=(0, 2), keepdims=True)
    spread = jnp.mean((grouped - mean) ** 2, axis=(0, 2), keepdims=True)
    return ((grouped - mean) / jnp.sqrt(spread + 1e-5)).reshape(image.shape) * layer["scale"] + layer["bias"]
