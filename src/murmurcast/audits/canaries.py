"""Planted data whose presence an attacker must guess: one canary for every coordinate of the model.

Canary i is a unit of data at one node, the target. In every epoch its gradient is +c u_i in one world and -c u_i in the
other, u_i the i-th coordinate: a change of 2c, at most the sensitivity S. Directions are orthogonal and every sign is
drawn by itself, so one run tries as many canaries as the model has parameters. They are added to the target's gradient
behind the clip, which could not let through more of them than a clip's worth at once.

Unit record: canaries stand beside the target's own records, and 2c is at most 2C/n. Unit node: they are all the data
that the target has, because at a private point its own gradient would differ between the worlds as well.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local, Model, state_of
from murmurcast.audits.transcript import Prepare, spoken_round
from murmurcast.planning.setup import Setup


class Canaries(NamedTuple):
    """What is planted where.

    Attributes:
        target: The node that holds them.
        signs: [seeds, dim] +1 or -1, a world for every run and canary; 0 is half way between the worlds.
        change: 2c, between a canary's two worlds.
        alone: Whether the target has no other data.
    """

    target: int
    signs: FloatArray
    change: float
    alone: bool


class Planted(NamedTuple):
    """An algorithm's state with what is planted at the node.

    Attributes:
        inner: The algorithm's own state.
        gradient: What the node's canaries add to its gradient.
        data: 1 where the node's data counts, 0 where canaries are all it has.
    """

    inner: Any
    gradient: jax.Array
    data: jax.Array

    @property
    def own(self) -> Model:
        """The node's model."""
        model: Model = self.inner.own
        return model

    @property
    def published(self) -> Model:
        """What the node would give to the world."""
        model: Model = self.inner.published
        return model


def draw(setup: Setup, target: int, dim: int, runs: int, size: float, seed: int) -> Canaries:
    """Canaries with random signs.

    Args:
        setup: Says how far one unit can change a gradient.
        target: The node that gets them.
        dim: Parameters of the model.
        runs: How many runs, each with signs of its own.
        size: Of the change, as a share of the sensitivity.
        seed: Of the signs.
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(runs, dim))
    return Canaries(target, signs, size * float(setup.sensitivity[target]), setup.budget.unit == "node")


def half_way(canaries: Canaries, runs: int) -> Canaries:
    """The same canaries in the world between the two."""
    return canaries._replace(signs=np.zeros((runs, canaries.signs.shape[1])))


def planted(algorithm: Algorithm) -> Algorithm:
    """The same algorithm with a place for canaries in the state of every node; `plant` puts them there.

    Args:
        algorithm: Any of one round.
    """
    only = spoken_round(algorithm)

    def init(start: Model, local: Local) -> Planted:
        return Planted(algorithm.init(start, local), jnp.zeros_like(start), jnp.ones((), start.dtype))

    def send(here: Any, state: Planted, drawn: dict[str, jax.Array]) -> jax.Array:
        return only.send(here, state.inner, drawn)

    def update(here: Any, state: Planted, sent: jax.Array, heard: jax.Array, local: Local) -> Planted:
        with_canaries = Local(
            lambda point: state.data * local.gradient_at_public(point) + state.gradient,
            lambda point: state.data * local.gradient_at_private(point) + state.gradient,
            local.project,
        )
        return state._replace(inner=state_of(only.update(here, state.inner, sent, heard, with_canaries)))

    return algorithm._replace(init=init, rounds=(only._replace(send=send, update=update),))


def plant(canaries: Canaries) -> Prepare:
    """What puts canaries at their node, in the states of a `planted` algorithm; a row of signs for every seed."""

    def prepare(state: Planted) -> Planted:
        like: NDArray[Any] = np.asarray(state.gradient)  # [nodes, seeds, ...]
        gradient, data = np.zeros(like.shape), np.ones(like.shape[:2])
        gradient[canaries.target] = canaries.change / 2 * canaries.signs.reshape(like.shape[1:])
        data[canaries.target] = 0.0 if canaries.alone else 1.0
        changed: Any = {"gradient": gradient.astype(like.dtype), "data": data.astype(like.dtype)}
        return state._replace(**changed)

    return prepare
