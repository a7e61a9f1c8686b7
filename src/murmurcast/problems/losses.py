"""Losses by name: of one example's outputs and its target, and the label that such outputs stand for."""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from murmurcast import _check
from murmurcast.data.base import Dataset
from murmurcast.errors import Error


class OfOutputs(Protocol):
    """A loss of what a module gives for one example."""

    def __call__(self, outputs: jax.Array, target: jax.Array, /) -> jax.Array:
        """A scalar."""
        ...


class NamedLoss(NamedTuple):
    """A loss that a file can name.

    Attributes:
        of: The loss of one example.
        labels: Whether targets are labels, and the largest output stands for the predicted one; else they are values.
    """

    of: OfOutputs
    labels: bool


def _cross_entropy(outputs: jax.Array, target: jax.Array) -> jax.Array:
    # Summed up instead of picked out: its derivative is then the softmax less a one-hot label, without a scatter.
    right = jnp.arange(outputs.shape[-1]) == target
    return jax.nn.logsumexp(outputs) - jnp.sum(jnp.where(right, outputs, 0))


def _squared_error(outputs: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.sum((outputs - target) ** 2) / 2


LOSSES = {"cross-entropy": NamedLoss(_cross_entropy, True), "squared-error": NamedLoss(_squared_error, False)}


def named_loss(name: str, dataset: Dataset) -> NamedLoss:
    """The loss of this name, if it is one for the targets of this set."""
    _check.one_of(LOSSES, loss=name)
    loss = LOSSES[name]
    if loss.labels != (dataset.classes is not None):
        kind, fitting = ("values", "squared-error") if dataset.classes is None else ("labels", "cross-entropy")
        raise Error(f'the targets of "{dataset.name}" are {kind}, not for {name}', hint=f'set loss to "{fitting}"')
    return loss


def outputs_for(dataset: Dataset) -> int:
    """How many outputs a module needs: one for every class, or one value."""
    return 1 if dataset.classes is None else dataset.classes
