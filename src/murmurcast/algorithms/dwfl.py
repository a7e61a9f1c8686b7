"""DWFL: step, multicast under noise, and move towards the mean of what is heard; for complete networks.

    u_k     = x_k - gamma_t g_k(x_k)
    sent_k  = (c/h_k) u_k + sqrt((1 - alpha_k) p_k) eta_k,    alpha_k = (c/h_k)^2/p_k       eta_k ~ N(0, sigma_k,t^2)
    x_i    <- u_i + rate (heard_i/(c (K - 1)) - u_i)

c = headroom min_k h_k sqrt(p_k), headroom 1 as published; h_k is the gain of k at every receiver. Weights: complete;
rate = (K-1)/K is uniform averaging. Noise: one draw per node; with headroom 1 the weakest sender sends without any. The
receivers' own noise is never credited.
Channel uses: 1 per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast.algorithms.account import LedgerTables, constant_or_zero
from murmurcast.algorithms.base import NOISE, Algorithm, Local, Model, Round, proved
from murmurcast.algorithms.gossip import steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.own_memory import (
    Memory,
    PublishFrom,
    account_of_memory,
    noise_of,
    options_in_ledger,
    require_options,
    share_of_power,
    smoothness_of,
)
from murmurcast.algorithms.ped2fl import gain_of_senders, one_signal
from murmurcast.algorithms.power_controlled import noise_sent
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.air import Air
from murmurcast.errors import Error
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax


class State(NamedTuple):
    """What a node needs for its next step: x, what it publishes, and g(x)."""

    own: Model
    published: Model
    gradient: Model


class Sending(NamedTuple):
    """c/h of u; sqrt((1 - alpha) p) q of the noise; the noise's schedule; the step."""

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf
    step: Leaf


class Receiving(NamedTuple):
    """rate/(c (K - 1)) of what is heard; 1 - rate of u; the step."""

    heard: Leaf
    kept: Leaf
    step: Leaf


def dwfl(
    setup: Setup,
    *,
    rate: float = 0.0,
    step_factor: float = 1.0,
    headroom: float = 1.0,
    receiver_noise: float = 0.0,
    publish_from: PublishFrom = "mixed",
    smoothness: float = np.inf,
) -> Algorithm:
    """DWFL.

    Args:
        setup: Network, schedule and budget.
        rate: How far a node moves towards the others' mean; 0 takes (K-1)/K, uniform averaging.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        headroom: How much of the weakest arriving amplitude models are sent with; below 1 every sender keeps noise.
        receiver_noise: Standard deviation of what a receiver adds by itself.
        publish_from: "mixed", x, which holds the own model as it is; or "heard", the mean of what was heard.
        smoothness: L, as in `mped2fl`.

    Guarantees:
        None as published: the weakest sender adds no noise. With headroom < 1 and publish_from = "heard": as
        `mped2fl`, with w_jj = 1 - rate and the newest gradient in what is sent.
    """
    network = setup.network
    nodes = network.nodes
    require_options(headroom, publish_from, smoothness)
    if network.links != nodes * (nodes - 1):
        raise Error("dwfl needs a complete network: everybody hears everybody", hint='use "ped2fl", or "mped2fl"')
    if not 0 <= rate <= 1 or receiver_noise < 0:
        raise Error(
            f"rate is {rate:g}, receiver_noise {receiver_noise:g}", hint="give a rate of 0 to 1, noise of 0 or more"
        )
    moves = float(rate) or (nodes - 1) / nodes
    arriving = gain_of_senders(network, "dwfl")
    weakest = headroom * float((arriving * np.sqrt(network.power)).min())
    amplitude = weakest / arriving
    alpha = share_of_power(amplitude, network.power)
    with np.errstate(divide="ignore"):
        hidden_by = alpha / (1 - alpha)
    steps, kept = steps_of(setup, step_factor), np.full(nodes, 1 - moves)
    own = Memory(kept, kept * smoothness if moves < 1 else kept, steps)
    noise = noise_of(setup, "dwfl", own, hidden_by)
    silent = np.sqrt((1 - alpha) * network.power) * noise
    sending = Sending(same_always(amplitude), same_always(silent), setup.schedule.noise_schedule, steps)
    receiving = Receiving(same_always(np.full(nodes, moves / (weakest * (nodes - 1)))), same_always(kept), steps)
    channel = Air(network.gains, receiver_noise=np.full(nodes, float(receiver_noise)) if receiver_noise else None)
    update = _publishing_heard if publish_from == "heard" else _publishing_own
    only = Round("model", channel, NOISE, sending, receiving, send, update)
    settings = options_in_ledger(headroom, publish_from, smoothness, rate=moves, step_factor=float(step_factor))
    settings |= {"receiver_noise": float(receiver_noise)}
    algorithm = Algorithm("dwfl", setup, (only,), settings, begin)
    if headroom == 1 or publish_from == "mixed":
        return algorithm
    return proved(algorithm._replace(releases=(own.releases(setup, hidden_by, noise),)))


def begin(start: Model, local: Local) -> State:
    """The gradient at the public start is in the first message; the ledger counts it."""
    return State(start, start, local.gradient_at_private(start))


def send(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """(c/h) u + noise."""
    ahead = state.own - here.step * state.gradient
    return here.amplitude * ahead + here.noise * here.schedule * drawn["noise"]


def _move(here: Receiving, state: State, heard: jax.Array, local: Local) -> State:
    own = local.project(here.kept * (state.own - here.step * state.gradient) + here.heard * heard)
    return State(own, own, local.gradient_at_private(own))


def _publishing_own(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
    """U + rate (mean heard - u)."""
    return _move(here, state, heard, local)


def _publishing_heard(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
    """The same; the mean of what was heard is published."""
    return _move(here, state, heard, local)._replace(published=here.heard / (1 - here.kept) * heard)


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """The memory's differences over the noise of the one signal, from the ledger's tables alone."""
    ledger.require_rounds_after_gradient(model="noise: normal of a node")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    ledger.text("model_channel", ("air",))
    kept, steps = constant_or_zero(ledger, "model_receiving_kept"), ledger.per_epoch("model_receiving_step")
    if not np.array_equal(steps, ledger.per_epoch("model_sending_step")):
        ledger.refuse("sends another step than it takes")
    seen = np.where(kept > 0, kept * smoothness_of(ledger), 0.0)
    return account_of_memory(ledger, Memory(kept, seen, steps), one_signal(ledger))


METHOD = Method(
    name="dwfl",
    make=dwfl,
    summary="step, multicast under noise, move towards the mean; complete networks",
    account=account,
    promises='against everybody, with headroom below 1 and publish_from = "heard"',
    otherwise="the weakest sender adds no noise, or own models are published as they are",
    formula="d_t = (1 - rate) d_t-1 + gamma_t min(2 C, S_j + L (1 - rate) d_t-1); mu_j^2 = sum over t of "
    "(d_t / s_j,t)^2",
    reference="Decentralized wireless federated learning with differential privacy, arXiv 2109.09142 (its abstract; "
    "the constant of its consensus step is from memory)",
    needs="a complete network whose gains depend on the sender alone",
    noise_sent=noise_sent,
    averages=True,
)
