"""Everybody learns alone: what a node reaches without the others.

    x_i <- Proj( x_i - gamma_t g_i(x_i) )

Weights: the identity. Noise: none, for nothing is sent. Channel uses: 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.algorithms.base import Algorithm, Leaf, Local, Promise, Silence, State, start
from murmurcast.plans import Plan


class Sending(NamedTuple):
    """Nothing is sent, so there is nothing to know."""


class Receiving(NamedTuple):
    """step: gamma_t."""

    step: Leaf


def local_only(plan: Plan) -> Algorithm:
    """Learning alone, with the plan's schedule.

    Guarantees:
        Nothing leaves a node, so the run itself costs nothing. Publishing its models would cost; no noise covers them.
    """

    def send(here: Sending, state: State, noise: jax.Array) -> jax.Array:  # noqa: ARG001
        return jnp.zeros_like(state.own)

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = local.project(state.own - here.step * local.gradient_at_private(state.own))
        return State(own, own)

    return Algorithm(
        name="local-only",
        plan=plan,
        medium=Silence(),
        sending=Sending(),
        receiving=Receiving(plan.schedule.steps),
        channel_uses=0,
        promise=Promise(np.zeros(plan.network.nodes), "nothing is sent; its models must stay where they are"),
        settings={},
        init=start,
        send=send,
        update=update,
    )
