"""Private learning with a trusted server, at the same total cost: the ceiling for learning without one.

    sent_k = g_k(x_{t-1}) + rho/sqrt(K) eta_k                        eta_k ~ N(0, 1); no gradient in epoch 1
    x_t   <- Proj( x_{t-1} - gamma_{t-1} sum_k sent_k )              the server reveals the sum and nothing else

Weights: all the same; everybody holds the same model. It minimises the sum of all f_i with Algorithm 1's steps.
Noise: the server's, of standard deviation rho = S sqrt(T - 1)/mu in the sum, so that T - 1 exposed gradients cost mu.
It is drawn here in K equal parts, which makes the same sum; no node knows its part.
Channel uses: 2 per epoch, the sum up and the model down.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast.algorithms.base import (
    Algorithm,
    Leaf,
    Local,
    Model,
    Promise,
    Publish,
    Server,
    newest_share,
    require_publish,
    same_always,
)
from murmurcast.planning.plan import Plan


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x, the same at all nodes, and public.
        published: The same again, or an average of all so far.
        gradient: g(x), to be sent next.
    """

    own: Model
    published: Model
    gradient: Model


class Sending(NamedTuple):
    """noise: rho/sqrt(K)."""

    noise: Leaf


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        step: gamma_{t-1}, 0 in the first epoch.
        newest: Weight of the newest model in the published one.
    """

    step: Leaf
    newest: Leaf


def central_dp(plan: Plan, *, publish: Publish = "last") -> Algorithm:
    """Noisy gradient descent at a server that everybody trusts with the sum of gradients.

    Args:
        plan: Network, schedule and cost are taken from it.
        publish: "last", the newest model, or "average", an average of all of them that favours later ones: both are
            functions of what is public, and cost nothing.

    Guarantees:
        Unit: the plan's. Adversary: everybody but the server, who draws the noise; all models are public.
        Formula: mu^2 = (T - 1) (S/rho)^2, with mu the largest of the plan's nodes. Range: gradients clipped as planned.
    """
    require_publish(publish)
    nodes, epochs = plan.network.nodes, plan.schedule.epochs
    mu = float(plan.certificate.mu.max())
    rho = plan.sensitivity.max() * np.sqrt(epochs - 1) / mu

    def init(model: Model) -> State:
        return State(model, model, jnp.zeros_like(model))

    def send(here: Sending, state: State, noise: jax.Array) -> jax.Array:
        return state.gradient + here.noise * noise

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = local.project(state.own - here.step * heard)
        average = state.published + here.newest * (own - state.published)
        return State(own, own if publish == "last" else average, local.gradient_at_public(own))

    def promised(last: "NDArray[np.int64]") -> Promise:
        mu = plan.sensitivity * np.sqrt(last - 1) / rho
        return Promise(mu, f"unit {plan.budget.unit}, if the server is trusted", "trusted server")

    return Algorithm(
        name="central-dp",
        plan=plan,
        medium=Server(),
        sending=Sending(same_always(np.full(nodes, rho / np.sqrt(nodes)))),
        receiving=Receiving(np.concatenate([[0.0], plan.schedule.steps[:-1]]), newest_share(epochs)),
        channel_uses=2,
        promise=promised(np.full(nodes, epochs)),
        settings={"publish": publish},
        init=init,
        send=send,
        update=update,
        promise_until=promised,
    )
