"""Subgradient-push: masses are pushed along columns, and a model is a mass over its weight.

    w_i = sum_j b_ij x_j,   y_i,t+1 = sum_j b_ij y_j,t,   v_i = w_i / y_i,t+1,   x_i <- w_i - gamma_t g_i(v_i)

Weights: column-stochastic: "column" by one multicast, "out-degree" with each neighbour heard apart. Links may go one
way. y, which starts at 1, is free of data and worked out beforehand. x is a mass and v the model, so nothing is
projected.
Noise: none, so nothing is promised. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Gradient, Local, Model, Publish, Round, Settings
from murmurcast.algorithms.gossip import averaged, newest, require_unbounded, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Loud, Mixer, Pushing, mix, mixer, radiate
from murmurcast.algorithms.tables import Leaf, without_repeats
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: v, the model.
        published: The same, or an average of it.
        mass: x, what is pushed on.
    """

    own: Model
    published: Model
    mass: Model


class Receiving(NamedTuple):
    """Factors of what is heard and of what was sent; the step; y after the epoch; the newest point's weight."""

    heard: Leaf
    kept: Leaf
    step: Leaf
    y: Leaf
    newest: Leaf


def subgradient_push(
    setup: Setup,
    *,
    weights: Pushing = "column",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Subgradient-push.

    Args:
        setup: Network and schedule are taken from it.
        weights: How senders share their mass out.
        access: How neighbours are heard; "out-degree" needs another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest v, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    require_unbounded(setup, "subgradient-push", "it moves masses, and projecting a mass is wrong")
    by = mixer(setup, weights, access)
    receiving = pushed(setup, by, steps_of(setup, step_factor), publish)
    only = Round("model", by.channel, NO_DRAWS, Loud(by.amplitude), receiving, send_mass, push_hiding_nothing)
    settings: Settings = {"weights": weights, "access": access, "step_factor": float(step_factor), "publish": publish}
    return Algorithm("subgradient-push", setup, (only,), settings, begin)


def begin(start: Model, local: Local) -> State:  # noqa: ARG001
    """Mass and model are the same where every weight is 1."""
    return State(start, start, start)


def send_mass(here: Loud, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """X."""
    return radiate(here.amplitude, state.mass)


def push(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """W - gamma g(w/y), at a public point."""
    return _push(here, state, sent, heard, local.gradient_at_public)


def push_hiding_nothing(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The same without noise, where no point is covered."""
    return _push(here, state, sent, heard, local.gradient_at_private)


def _push(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, gradient_at: Gradient) -> State:
    mass = mix(here, sent, heard)
    model = mass / here.y
    return State(model, averaged(here, state, model), mass - here.step * gradient_at(model))


def pushed(setup: Setup, by: Mixer, steps: FloatArray, publish: Publish) -> Receiving:
    """Tables of what is made of what is heard."""
    y = without_repeats(push_sum(by.weights, setup.schedule.epochs))
    return Receiving(by.heard, by.kept, steps, y, newest(setup, publish))


def push_sum(weights: csr_array, epochs: int) -> FloatArray:
    """[epochs, nodes] y_t+1 = B y_t from y_1 = 1, in row t: what a mass is divided by in epoch t."""
    y: FloatArray = np.ones(weights.shape[0])
    rows = []
    for _ in range(epochs):
        following = np.asarray(weights @ y)
        y = y if np.abs(following - y).max() <= 1e-16 * y.max() else following
        rows.append(y)
    return np.stack(rows)


METHOD = Method(
    name="subgradient-push",
    make=subgradient_push,
    summary="subgradient-push: column-stochastic weights, for one-way links too, nothing hidden",
    account="no noise is sent",
    reference="Nedic, Olshevsky: Distributed optimization over time-varying directed graphs, 2015; and Stochastic "
    "gradient-push for strongly convex functions on time-varying directed graphs, 2016",
    needs="no ball or box",
    projects=False,
    side_vector="y",
    averages=True,
)
