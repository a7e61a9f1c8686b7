"""FROST: gradient tracking with row-stochastic weights, for networks with one-way links.

    x_i <- sum_j a_ij x_j - gamma_t s_i                                           message 1: x
    s_i <- sum_j a_ij s_j + g_i(x_i)/z_ii,t+1 - g_i(old x_i)/z_ii,t               message 2: s, s_1 = g(x_1)

Weights: the row-stochastic A of the gains, a_ij = h_ji sqrt(p_j)/(c_i R); z_{t+1} = A z_t, z_1 = I, is free of data and
worked out beforehand. The trackers' mean under A's left Perron vector is the sum of all gradients, so steps are about
as many times longer as there are nodes.
Noise: none, so nothing is promised. Channel uses: 2 per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Local, Round
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, mixing_factors, same_always
from murmurcast.algorithms.tracking import State, begin
from murmurcast.channels.air import Air
from murmurcast.network.weights import mixing, normaliser, z_diagonal
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


class Sending(NamedTuple):
    """amplitude: sqrt(p), of what is sent."""

    amplitude: Leaf


class Moving(NamedTuple):
    """1/(c R) of what is heard, (1 - d/R)/sqrt(p) of what is sent, and the step."""

    heard: Leaf
    kept: Leaf
    step: Leaf


class Tracking(NamedTuple):
    """The same for trackers, with z before and after the epoch."""

    heard: Leaf
    kept: Leaf
    z: Leaf
    next_z: Leaf


def frost(setup: Setup) -> Algorithm:
    """FROST.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.

    Guarantees:
        None: nothing is hidden.
    """
    network, epochs = setup.network, setup.schedule.epochs
    made = mixing(network, np.ones(network.nodes), normaliser(network, "lazy"))
    z: FloatArray = z_diagonal(made.weights, epochs + 1, "recursive")
    amplitude = np.sqrt(network.power)
    heard, kept = mixing_factors(network, made, amplitude)

    def send_model(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return here.amplitude * state.own

    def send_tracker(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return here.amplitude * state.tracker

    def move(here: Moving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = here.heard * heard + here.kept * sent - here.step * state.tracker
        return state._replace(own=own, published=own)

    def track(here: Tracking, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        gradient = local.gradient_at_private(state.own)
        mixed = here.heard * heard + here.kept * sent
        return state._replace(tracker=mixed + gradient / here.next_z - state.gradient / here.z, gradient=gradient)

    channel, sending = Air(network.gains), Sending(same_always(amplitude))
    model = Round("model", channel, NO_DRAWS, sending, Moving(heard, kept, setup.schedule.steps), send_model, move)
    tracking = Tracking(heard, kept, z[:-1], z[1:])
    tracker = Round("tracker", channel, NO_DRAWS, sending, tracking, send_tracker, track)
    return Algorithm("frost", setup, (model, tracker), {}, begin)


METHOD = Method(
    name="frost",
    make=frost,
    summary="gradient tracking with row-stochastic weights; exact with constant steps",
    account="no noise is sent",
    reference="Xin, Xi, Khan: FROST, fast row-stochastic optimization with uncoordinated step-sizes, 2019",
)
