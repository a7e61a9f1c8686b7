"""Decentralised gradient descent: mix, then step at one's own point.

    x_i <- Proj( sum_j w_ij x_j - gamma_t g_i(x_i) )

Combine, then adapt. (Adapt-then-combine, W(x - gamma g), is another method that goes by the same name elsewhere.)
Weights: doubly stochastic ("sinkhorn", "max-degree", "metropolis"), with which steps that decay lead to the optimum of
the plain sum; with "row" they lead to the optimum of another, weighted sum.
Noise: none, so nothing is promised. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Local, Publish, Round, Settings, State, start
from murmurcast.algorithms.gossip import Receiving, averaged, newest, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Loud, mix, mixer, send_own
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


def dsgd(
    setup: Setup,
    *,
    weights: Literal["sinkhorn", "max-degree", "metropolis", "row"] = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Decentralised gradient descent.

    Args:
        setup: Network and schedule are taken from it.
        weights: How neighbours are weighed.
        access: How they are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    by = mixer(setup, weights, access)
    receiving = Receiving(by.heard, by.kept, steps_of(setup, step_factor), newest(setup, publish))
    only = Round("model", by.channel, NO_DRAWS, Loud(by.amplitude), receiving, send_own, step_at_own)
    settings: Settings = {"weights": weights, "access": access, "step_factor": float(step_factor), "publish": publish}
    return Algorithm("dsgd", setup, (only,), settings, start)


def step_at_own(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(x))."""
    mixed = mix(here, sent, heard)
    own = local.project(mixed - here.step * local.gradient_at_private(state.own))
    return State(own, averaged(here, state, mixed))


METHOD = Method(
    name="dsgd",
    make=dsgd,
    summary="decentralised gradient descent with doubly stochastic weights, nothing hidden",
    account="no noise is sent",
    reference="Nedic, Ozdaglar: Distributed subgradient methods for multi-agent optimization, 2009",
    needs='two-way links, except with weights = "row"',
    averages=True,
)
