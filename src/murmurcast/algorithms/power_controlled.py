"""Algorithm 1 of the paper: power-controlled private learning by multicast.

    sent_k  = sqrt(alpha_k p_k) x_k + sqrt(beta_k p_k) eta_k          eta_k ~ N(0, sigma_k,t^2), fresh each epoch
    heard_i = sum_{j in N_i} h_ji sent_j
    m_i     = heard_i / (c_i R) + (1 - d_i/R) sent_i / sqrt(alpha_i p_i)
    x_i    <- Proj( m_i - gamma_t g_i / z_ii,t )

Weights: the row-stochastic A of the plan; dividing by z makes the network minimise the plain sum of all f_i.
Noise: one draw per node, the same in the signal and in the node's own term; leaving it out there would break the proof.
Channel uses: 1 per epoch.

With secure noise, everything a node says is on a grid: see `murmurcast.algorithms.grid_noise`.
"""

from typing import Literal, NamedTuple

import jax
import numpy as np

from murmurcast import _check
from murmurcast.algorithms.base import (
    Air,
    Algorithm,
    Leaf,
    Local,
    Promise,
    Publish,
    Sending,
    State,
    newest_share,
    require_publish,
    same_always,
    send_model_with_noise,
    start,
    without_repeats,
)
from murmurcast.algorithms.grid_noise import finite, held, on_grid, send_on_grid
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan

GradientAt = Literal["mixed", "own"]
_BOUND = ", by the discrete Gaussian's bound"


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: 1/(c R).
        kept: (1 - d/R)/sqrt(alpha p).
        step: gamma_t.
        z: What the gradient is divided by.
        newest: Weight of the newest mixed point in the published model.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf


class ReceivingOnGrid(NamedTuple):
    """The same with secure noise.

    Attributes:
        heard: 1/(c R).
        kept: (1 - d/R)/sqrt(alpha p).
        step: gamma_t.
        z: What the gradient is divided by.
        newest: Weight of the newest mixed point in the published model.
        limit: What no coordinate of a mixed point exceeds.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf
    limit: Leaf


def power_controlled(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1.

    Args:
        plan: The plan; its z is recursive or starts at its limit.
        gradient_at: "mixed", the public mixed point, which unit record needs; or "own", the paper's.
        publish: "last", the newest mixed point, or "average", an average of all of them that favours later ones. Both
            are functions of what was sent and cost nothing.

    Guarantees:
        Unit: the plan's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: `Plan.certificate`. Range: gradients clipped as planned, x itself stays on the node. With secure noise
            rounding is counted and the noise is the promised one to the last bit; else this holds for real numbers.
    """
    if plan.budget.unit == "record" and gradient_at == "own":
        raise Error(
            "unit record is certified only for gradients at the public mixed point",
            hint='set gradient_at = "mixed", or unit = "node"',
        )
    require_gradient_at(gradient_at)
    require_publish(publish)
    network, mixing = plan.network, plan.mixing
    amplitude = np.sqrt(plan.alpha * network.power)
    secure = plan.budget.noise_source == "secure"
    sending = Sending(
        amplitude=same_always(amplitude),
        noise=same_always(np.sqrt(plan.beta * network.power) * plan.noise_to_step),
        schedule=plan.schedule.noise_schedule,
    )
    grid = on_grid(sending) if secure else None

    receiving = Receiving(
        heard=same_always(1 / (mixing.compensation * mixing.normaliser)),
        kept=same_always((1 - network.degree / mixing.normaliser) / amplitude),
        step=plan.schedule.steps,
        z=without_repeats(plan.z),
        newest=newest_share(plan.schedule.epochs),
    )

    def update(
        here: Receiving | ReceivingOnGrid, state: State, sent: jax.Array, heard: jax.Array, local: Local
    ) -> State:
        mixed = here.heard * heard + here.kept * sent
        if isinstance(here, ReceivingOnGrid):
            mixed = held(mixed, here.limit)
        gradient = local.gradient_at_public(mixed) if gradient_at == "mixed" else local.gradient_at_private(state.own)
        if isinstance(here, ReceivingOnGrid):
            gradient = finite(gradient)
        own = local.project(mixed - here.step / here.z * gradient)
        return State(own, mixed if publish == "last" else state.published + here.newest * (mixed - state.published))

    basis = f"certificate, unit {plan.budget.unit}, against everybody{_BOUND if secure else ''}"
    return Algorithm(
        name="power-controlled",
        plan=plan,
        medium=Air(network.gains),
        sending=sending if grid is None else grid.sending,
        receiving=receiving if grid is None else ReceivingOnGrid(*receiving, limit=grid.limit),
        channel_uses=1,
        promise=Promise(plan.certificate.mu, basis),
        settings={"gradient_at": gradient_at, "publish": publish},
        init=start,
        send=send_on_grid if secure else send_model_with_noise,
        update=update,
        promise_until=lambda last: Promise(plan.mu_until(last), basis),
    )


def require_gradient_at(gradient_at: str) -> None:
    """The point is a known one."""
    if gradient_at not in ("mixed", "own"):
        raise Error(f'gradient_at is "{gradient_at}"', hint=_check.nearest(gradient_at, ("mixed", "own")))
