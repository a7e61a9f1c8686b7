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

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Local, Model
from murmurcast.planning.plan import Plan


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


def draw(plan: Plan, target: int, dim: int, runs: int, size: float, seed: int) -> Canaries:
    """Canaries with random signs.

    Args:
        plan: Says how far one unit can change a gradient.
        target: The node that gets them.
        dim: Parameters of the model.
        runs: How many runs, each with signs of its own.
        size: Of the change, as a share of the sensitivity.
        seed: Of the signs.
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(runs, dim))
    return Canaries(target, signs, size * float(plan.sensitivity[target]), plan.budget.unit == "node")


def half_way(canaries: Canaries, runs: int) -> Canaries:
    """The same canaries in the world between the two."""
    return canaries._replace(signs=np.zeros((runs, canaries.signs.shape[1])))


def planted(algorithm: Algorithm, canaries: Canaries, shape: tuple[int, ...]) -> Algorithm:
    """The same algorithm on data with canaries.

    Args:
        algorithm: Any.
        canaries: With as many rows of signs as there are seeds.
        shape: Of one model.
    """

    def init(start: Model) -> Planted:
        nodes, seeds = start.shape[:2]
        signs = np.pad(canaries.signs, ((0, seeds - len(canaries.signs)), (0, 0)))
        gradient = np.zeros((nodes, seeds, *shape))
        gradient[canaries.target] = canaries.change / 2 * signs.reshape(seeds, *shape)
        data = np.ones((nodes, seeds))
        data[canaries.target] = 0.0 if canaries.alone else 1.0
        return Planted(algorithm.init(start), jnp.asarray(gradient, start.dtype), jnp.asarray(data, start.dtype))

    def send(here: Any, state: Planted, noise: jax.Array) -> jax.Array:
        return algorithm.send(here, state.inner, noise)

    def update(here: Any, state: Planted, sent: jax.Array, heard: jax.Array, local: Local) -> Planted:
        with_canaries = Local(
            lambda point: state.data * local.gradient_at_public(point) + state.gradient,
            lambda point: state.data * local.gradient_at_private(point) + state.gradient,
            local.project,
        )
        return state._replace(inner=algorithm.update(here, state.inner, sent, heard, with_canaries))

    return algorithm._replace(init=init, send=send, update=update)
