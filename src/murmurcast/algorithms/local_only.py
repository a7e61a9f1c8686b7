"""Everybody learns alone: what a node reaches without the others.

    x_i <- Proj( x_i - step_factor gamma_t g_i(x_i) )

Weights: the identity. Noise: none, for nothing is sent. Channel uses: 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check
from murmurcast.algorithms.base import Algorithm, Leaf, Local, Promise, Silence, State, start
from murmurcast.planning.plan import Plan


class Sending(NamedTuple):
    """Nothing is sent, so there is nothing to know."""


class Receiving(NamedTuple):
    """step: gamma_t times the factor."""

    step: Leaf


def local_only(plan: Plan, *, step_factor: float = 1.0) -> Algorithm:
    """Learning alone, with the plan's schedule.

    Args:
        plan: Its schedule is used.
        step_factor: Lengthens the steps. With the number of nodes they are about as long as those of Algorithm 1,
            which divides by z.

    Guarantees:
        Nothing leaves a node, so the run costs nothing. Nothing is published either: no noise covers these models, and
        `published` stays at the start.
    """
    _check.positive(step_factor=step_factor)

    def send(here: Sending, state: State, noise: jax.Array) -> jax.Array:  # noqa: ARG001
        return jnp.zeros_like(state.own)

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = local.project(state.own - here.step * local.gradient_at_private(state.own))
        return State(own, state.published)

    return Algorithm(
        name="local-only",
        plan=plan,
        medium=Silence(),
        sending=Sending(),
        receiving=Receiving(step_factor * plan.schedule.steps),
        channel_uses=0,
        promise=Promise(np.zeros(plan.network.nodes), "nothing is sent, and nothing published", "nothing sent"),
        settings={"step_factor": float(step_factor)},
        init=start,
        send=send,
        update=update,
    )
