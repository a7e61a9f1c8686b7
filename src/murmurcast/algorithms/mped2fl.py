"""mPED2FL, the paper's rival: a channel use for every receiver, and a power share for every link.

    c_i      = min_{j in N_i} h_ji sqrt(p_j)                          per receiver
    alpha_ij = (c_i / h_ji)^2 / p_j                                   per link: every sender arrives with amplitude c_i
    sent_ij  = sqrt(alpha_ij p_j) x_j + sqrt((1 - alpha_ij) p_j) eta_ij     eta_ij ~ N(0, sigma_j,t^2), fresh per link
    heard_i  = sum_{j in N_i} h_ji sent_ij
    m_i      = heard_i / (c_i R) + (1 - d_i/R) x_i
    x_i     <- Proj( m_i - step_factor gamma_t g_i )                  no division by z

Weights: 1/R for every neighbour, 1 - d_i/R for itself: doubly stochastic.
Noise: independent on every link; the weakest link of each receiver has alpha = 1 and sends without any.
Channel uses: one per receiver, so as many as nodes in an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw, Local, Round, Sending, State, per_link, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.power_controlled import GradientAt, require_gradient_at
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.base import padded
from murmurcast.channels.slots import Slots
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan

if TYPE_CHECKING:
    import jax


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: 1/(c R).
        kept: 1 - d/R.
        step: gamma_t times the factor.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf


def mped2fl(plan: Plan, *, gradient_at: GradientAt = "mixed", step_factor: float = 1.0) -> Algorithm:
    """mPED2FL.

    Args:
        plan: Network, schedule, noise and normaliser are taken from it; its power split is not used.
        gradient_at: "mixed" or "own", the paper's.
        step_factor: Lengthens the steps. Algorithm 1 divides by z, about 1/nodes; with the number of nodes here both
            take the same effective step.

    Guarantees:
        None: the weakest link of every receiver carries no noise.
    """
    require_gradient_at(gradient_at)
    _check.positive(step_factor=step_factor)
    network, normaliser = plan.network, plan.mixing.normaliser
    compensation = weakest_arrival(network)
    gains = network.gains
    sender = np.repeat(np.arange(network.nodes), np.diff(gains.indptr))
    power = network.power[sender]
    alpha = np.minimum((compensation[gains.indices] / gains.data) ** 2 / power, 1.0)  # of the links, sender by sender
    noise = np.sqrt((1 - alpha) * power) * plan.noise_to_step[sender]

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        mixed = here.heard * heard + here.kept * state.own
        # The mixed point holds the node's own model as it is, so neither point is public.
        gradient = local.gradient_at_private(mixed if gradient_at == "mixed" else state.own)
        return State(local.project(mixed - here.step * gradient), mixed)

    return Algorithm(
        name="mped2fl",
        setup=plan,
        rounds=(
            Round(
                name="model",
                channel=Slots(gains),
                draws={"noise": Draw(per="link")},
                sending=Sending(
                    amplitude=same_always(padded(gains, np.sqrt(alpha * power))),
                    noise=same_always(padded(gains, noise)),
                    schedule=plan.schedule.noise_schedule,
                ),
                receiving=Receiving(
                    heard=same_always(1 / (compensation * normaliser)),
                    kept=same_always(1 - network.degree / normaliser),
                    step=step_factor * plan.schedule.steps,
                ),
                send=send_to_each,
                update=update,
            ),
        ),
        settings={"gradient_at": gradient_at, "step_factor": float(step_factor)},
        init=start,
    )


def send_to_each(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """[links, ...] sqrt(alpha p) x + sqrt((1 - alpha) p) eta, to every neighbour, each with its own split and draw."""
    amplitude, noise = (per_link(constant, state.own) for constant in (here.amplitude, here.noise))
    return amplitude * state.own + noise * here.schedule * drawn["noise"]


def weakest_arrival(network: Network) -> FloatArray:
    """[nodes] c_i, the least h_ji sqrt(p_j) over i's neighbours."""
    arriving = csc_array(network.gains)
    amplitudes = arriving.data * np.sqrt(network.power[arriving.indices])
    return np.asarray(np.minimum.reduceat(amplitudes, arriving.indptr[:-1]))


METHOD = Method(
    name="mped2fl",
    make=mped2fl,
    summary="the paper's rival: a slot for every receiver, a power split for every link",
    account="the weakest links carry no noise",
    reference="PED2FL as the paper modifies it for unequal gains; see docs/train.md",
    needs="two-way links",
)
