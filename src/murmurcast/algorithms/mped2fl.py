"""mPED2FL, the paper's rival: a channel use for every receiver, and a power share for every link.

    c_i      = headroom min_{j in N_i} h_ji sqrt(p_j)                 per receiver; headroom 1 as published
    alpha_ij = (c_i / h_ji)^2 / p_j                                   per link: every sender arrives with amplitude c_i
    sent_ij  = sqrt(alpha_ij p_j) x_j + sqrt((1 - alpha_ij) p_j) eta_ij     eta_ij ~ N(0, sigma_j,t^2), fresh per link
    heard_i  = sum_{j in N_i} h_ji sent_ij
    m_i      = heard_i / (c_i R) + (1 - d_i/R) x_i
    x_i     <- Proj( m_i - step_factor gamma_t g_i )                  no division by z

Weights: 1/R for every neighbour, 1 - d_i/R for itself: doubly stochastic.
Noise: independent on every link; with headroom 1 the weakest link of each receiver has alpha = 1 and sends without any.
Channel uses: a slot for every receiver; receivers without a common sender share one.

The node's own term is plain, so its model is a private memory of all its gradients that fades by 1 - d_i/R in an epoch.
With headroom below 1 every link keeps noise, and what is sent has a finite cost: see
`murmurcast.privacy.plain_own_term`. It covers what is sent, not the mixed point, which holds the own model as it is:
something is promised only where nodes publish what they heard (publish_from = "heard").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables, constant_or_zero
from murmurcast.algorithms.base import Algorithm, Draw, Local, Round, Sending, State, Update, per_link, proved, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.own_memory import (
    Memory,
    PublishFrom,
    account_of_memory,
    noise_of,
    options_in_ledger,
    require_options,
    seen_by,
    share_of_power,
    smoothness_of,
)
from murmurcast.algorithms.power_controlled import GradientAt, require_gradient_at
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.base import padded
from murmurcast.channels.slots import Slots
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.privacy.plain_own_term import sent_next
from murmurcast.privacy.releases import Releases

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


def mped2fl(
    plan: Plan,
    *,
    gradient_at: GradientAt = "mixed",
    step_factor: float = 1.0,
    headroom: float = 1.0,
    publish_from: PublishFrom = "mixed",
    smoothness: float = np.inf,
) -> Algorithm:
    """mPED2FL.

    Args:
        plan: Network, schedule and normaliser are taken from it, and its noise where that was given; its power split is
            not used.
        gradient_at: "mixed" or "own", the paper's.
        step_factor: Lengthens the steps. Algorithm 1 divides by z, about 1/nodes; with the number of nodes here both
            take the same effective step.
        headroom: How much of the weakest arriving amplitude models are sent with; below 1 every link keeps noise.
        publish_from: "mixed", the mixed point, which holds the own model as it is; or "heard", the mean of what was
            heard.
        smoothness: L, by how much a clipped gradient moves at most per distance, if that is known for all data; without
            it the clip alone bounds what the memory of old gradients does to new ones.

    Guarantees:
        None as published. With headroom < 1 and publish_from = "heard": Unit: the budget's. Adversary: everybody else
        together. Formula: d_t+1 = w_jj d_t + gamma_t min(2 clip, S_j + L d_t), mu_j^2 = sum_t d_t^2 sum_i 1/s_ij,t^2.
        Range: gradients clipped; L as stated.
    """
    require_gradient_at(gradient_at)
    _check.positive(step_factor=step_factor)
    require_options(headroom, publish_from, smoothness)
    network, normaliser = plan.network, plan.mixing.normaliser
    compensation = headroom * weakest_arrival(network)
    gains = network.gains
    sender = np.repeat(np.arange(network.nodes), np.diff(gains.indptr))
    power = network.power[sender]
    alpha = np.minimum((compensation[gains.indices] / gains.data) ** 2 / power, 1.0)  # of the links, sender by sender
    bare = share_of_power(compensation[gains.indices] / gains.data, power)
    with np.errstate(divide="ignore"):
        hidden_by = np.asarray(
            np.bincount(sender, bare / (1 - bare)), np.float64
        )  # sum of 1/s^2 over a node's links, at q std = 1
    own_weight, steps = 1 - network.degree / normaliser, step_factor * plan.schedule.steps
    own = Memory(own_weight, seen_by(gradient_at, own_weight, smoothness), sent_next(steps))
    noise_to_step = noise_of(plan, "mped2fl", own, hidden_by)
    noise = np.sqrt((1 - alpha) * power) * noise_to_step[sender]
    promised = headroom < 1 and publish_from == "heard"
    algorithm = Algorithm(
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
                    kept=same_always(own_weight),
                    step=steps,
                ),
                send=send_to_each,
                update=update_of(gradient_at, publish_from),
            ),
        ),
        settings=options_in_ledger(
            headroom, publish_from, smoothness, gradient_at=gradient_at, step_factor=float(step_factor)
        ),
        init=start,
        releases=(own.releases(plan, hidden_by, noise_to_step),) if promised else (),
    )
    return proved(algorithm) if promised else algorithm


def update_of(gradient_at: GradientAt, publish_from: PublishFrom) -> Update:
    """The step, with a gradient at the mixed point or the own one."""

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        mixed = here.heard * heard + here.kept * state.own
        # The mixed point holds the node's own model as it is, so neither point is public.
        gradient = local.gradient_at_private(mixed if gradient_at == "mixed" else state.own)
        published = mixed if publish_from == "mixed" else here.heard / (1 - here.kept) * heard
        return State(local.project(mixed - here.step * gradient), published)

    return update


def send_to_each(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """[links, ...] sqrt(alpha p) x + sqrt((1 - alpha) p) eta, to every neighbour, each with its own split and draw."""
    amplitude, noise = (per_link(constant, state.own) for constant in (here.amplitude, here.noise))
    return amplitude * state.own + noise * here.schedule * drawn["noise"]


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """The memory's differences over the noise of all links, from the ledger's tables alone."""
    ledger.require_rounds(model="noise: normal of a link")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    ledger.text("model_channel", ("slots",))
    own_weight = constant_or_zero(ledger, "model_receiving_kept")
    amplitude, noise = (ledger.link_table(f"model_sending_{name}") for name in ("amplitude", "noise"))
    if len(amplitude) > 1 or len(noise) > 1:
        ledger.refuse("has amplitudes or noise that change over epochs otherwise than by the schedule")
    with np.errstate(all="ignore"):
        hidden_by = np.where(amplitude[0] > 0, (amplitude[0] / noise[0]) ** 2, 0.0).sum(axis=1)
    seen = seen_by(ledger.text("gradient_at", ("mixed", "own")), own_weight, smoothness_of(ledger))
    own = Memory(own_weight, seen, sent_next(ledger.per_epoch("model_receiving_step")))
    return account_of_memory(ledger, own, hidden_by)


def noise_sent(ledger: LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Of the strongest signal, which is what is measured; its noise is at least that of the least noisy link."""
    amplitude, noise = (ledger.link_table(f"model_sending_{name}")[0] for name in ("amplitude", "noise"))
    least = np.where(amplitude > 0, noise, np.inf).min(axis=1)
    return np.asarray(ledger.per_epoch("model_sending_schedule")[epochs - 1, None] * least)


def weakest_arrival(network: Network) -> FloatArray:
    """[nodes] c_i, the least h_ji sqrt(p_j) over i's neighbours."""
    arriving = csc_array(network.gains)
    amplitudes = arriving.data * np.sqrt(network.power[arriving.indices])
    return np.asarray(np.minimum.reduceat(amplitudes, arriving.indptr[:-1]))


METHOD = Method(
    name="mped2fl",
    make=mped2fl,
    summary="the paper's rival: a slot for every receiver, a power split for every link",
    account=account,
    promises='against everybody, with headroom below 1 and publish_from = "heard"',
    otherwise="the weakest links carry no noise, or mixed points are published that hold own models as they are",
    formula="d_t+1 = w_jj d_t + gamma_t min(2 C, S_j + L d_t); mu_j^2 = sum over t of d_t^2 sum over i of 1/s_ij,t^2",
    noise_sent=noise_sent,
    reference="PED2FL as the paper modifies it for unequal gains; see docs/train.md",
    needs="two-way links",
    uses="slots",
    averages=True,
)
