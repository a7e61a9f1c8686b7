"""Push-pull: gradient tracking with two weight matrices, for networks with one-way links.

    x_i <- sum_j a_ij (x_j - gamma_t y_j)                             message 1: x - gamma y, pulled with rows
    y_i <- sum_j b_ij y_j + g_i(x_i) - g_i(old x_i)                   message 2: y, pushed with columns; y_1 = g(x_1)

Weights: A is row-stochastic, a_ij = h_ji sqrt(p_j)/(c_i R); B is column-stochastic, b_ij = (d_j/R) h_ji/H_j: the same
gains with other amplitudes. The sum of all y is the sum of all gradients in every epoch.
Noise: none, so nothing is promised. Channel uses: 2 per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Local, Round
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, mixing_factors, same_always
from murmurcast.algorithms.tracking import MixingFactors, State, begin
from murmurcast.channels.air import Air
from murmurcast.network.weights import column_mixing, mixing, normaliser
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


class Pulling(NamedTuple):
    """Constants of x - gamma y: the amplitude sqrt(p), and the step."""

    amplitude: Leaf
    step: Leaf


class Pushing(NamedTuple):
    """amplitude: q_j, scaled for all alike so that nobody exceeds sqrt(p)."""

    amplitude: Leaf


def push_pull(setup: Setup) -> Algorithm:
    """Push-pull.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.

    Guarantees:
        None: nothing is hidden.
    """
    network, nodes = setup.network, setup.network.nodes
    rows = mixing(network, np.ones(nodes), normaliser(network, "lazy"))
    columns = column_mixing(network)
    loudness = np.sqrt(network.power)
    scale = float((loudness / columns.amplitude).min())  # public, the same for all

    def send_model(here: Pulling, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return here.amplitude * (state.own - here.step * state.tracker)

    def send_tracker(here: Pushing, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return here.amplitude * state.tracker

    def pull(here: MixingFactors, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = here.heard * heard + here.kept * sent
        return state._replace(own=own, published=own)

    def push(here: MixingFactors, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
        gradient = local.gradient_at_private(state.own)
        mixed = here.heard * heard + here.kept * sent
        return state._replace(tracker=mixed + gradient - state.gradient, gradient=gradient)

    pulling = Pulling(same_always(loudness), setup.schedule.steps)
    pulled = MixingFactors(*mixing_factors(network, rows, loudness))
    pushing = Pushing(same_always(scale * columns.amplitude))
    own = (1 - network.degree / columns.normaliser) / (scale * columns.amplitude)
    pushed = MixingFactors(same_always(np.full(nodes, 1 / scale)), same_always(own))
    model = Round("model", Air(network.gains), NO_DRAWS, pulling, pulled, send_model, pull)
    tracker = Round("tracker", Air(network.gains), NO_DRAWS, pushing, pushed, send_tracker, push)
    return Algorithm("push-pull", setup, (model, tracker), {}, begin)


METHOD = Method(
    name="push-pull",
    make=push_pull,
    summary="gradient tracking that pulls models and pushes trackers; exact with constant steps",
    account="no noise is sent",
    reference="Pu, Shi, Xu, Nedic: Push-pull gradient methods for distributed optimization in networks, 2021",
)
