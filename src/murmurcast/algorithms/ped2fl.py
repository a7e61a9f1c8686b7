"""PED2FL: multicast with one common compensation factor, for networks whose gains depend on the sender alone.

    c       = headroom min over all links of h_j sqrt(p_j)            h_ji = h_j for every i; headroom 1 as published
    alpha_j = (c / h_j)^2 / p_j                                       every sender arrives everywhere with amplitude c
    sent_j  = sqrt(alpha_j p_j) x_j + sqrt((1 - alpha_j) p_j) eta_j   eta_j ~ N(0, sigma_j,t^2), fresh each epoch
    m_i     = heard_i / (c R) + (1 - d_i/R) x_i
    x_i    <- Proj( m_i - step_factor gamma_t g_i )

Weights: 1/R for every neighbour, 1 - d_i/R for itself: doubly stochastic.
Noise: one draw per node; with headroom 1 the weakest sender has alpha = 1 and sends without any. What is promised with
headroom below 1, and when, is as in `mped2fl`.
Channel uses: 1 per epoch.
"""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables, constant, constant_or_zero
from murmurcast.algorithms.base import NOISE, Algorithm, Sending, proved, send_model_with_noise
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mped2fl import Receiving, mped2fl
from murmurcast.algorithms.own_memory import (
    Memory,
    PublishFrom,
    account_of_memory,
    noise_of,
    seen_by,
    share_of_power,
    smoothness_of,
)
from murmurcast.algorithms.power_controlled import GradientAt, noise_sent
from murmurcast.algorithms.tables import same_always
from murmurcast.channels.air import Air
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.privacy.plain_own_term import sent_next
from murmurcast.privacy.releases import Releases


def ped2fl(
    plan: Plan,
    *,
    gradient_at: GradientAt = "mixed",
    step_factor: float = 1.0,
    headroom: float = 1.0,
    publish_from: PublishFrom = "mixed",
    smoothness: float = np.inf,
) -> Algorithm:
    """PED2FL: as `mped2fl`, but one signal serves all neighbours.

    Guarantees:
        As `mped2fl`, with one noisy signal instead of one for each that hears the node: none as published.
    """
    per_link = mped2fl(
        plan,
        gradient_at=gradient_at,
        step_factor=step_factor,
        headroom=headroom,
        publish_from=publish_from,
        smoothness=smoothness,
    )
    network = plan.network
    amplitude = gain_of_senders(network, "ped2fl") * np.sqrt(network.power)
    weakest = headroom * amplitude.min()
    alpha = share_of_power(weakest / amplitude, np.ones(network.nodes))
    with np.errstate(divide="ignore"):
        hidden_by = alpha / (1 - alpha)
    (slots,) = per_link.rounds
    own_weight = slots.receiving.kept[0]
    own = Memory(own_weight, seen_by(gradient_at, own_weight, smoothness), sent_next(slots.receiving.step))
    noise_to_step = noise_of(plan, "ped2fl", own, hidden_by)
    common = slots._replace(
        channel=Air(network.gains),
        draws=NOISE,
        sending=slots.sending._replace(
            amplitude=same_always(np.sqrt(alpha * network.power)),
            noise=same_always(np.sqrt((1 - alpha) * network.power) * noise_to_step),
        ),
        receiving=slots.receiving._replace(
            heard=same_always(np.full(network.nodes, 1 / (weakest * plan.mixing.normaliser)))
        ),
        send=send_model_with_noise,
    )
    algorithm = per_link._replace(name="ped2fl", rounds=(common,))
    if not per_link.releases:
        return algorithm
    return proved(algorithm._replace(releases=(own.releases(plan, hidden_by, noise_to_step),)))


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """The memory's differences over the noise of the one signal, from the ledger's tables alone."""
    ledger.require_rounds(model="noise: normal of a node")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    ledger.text("model_channel", ("air",))
    own_weight = constant_or_zero(ledger, "model_receiving_kept")
    seen = seen_by(ledger.text("gradient_at", ("mixed", "own")), own_weight, smoothness_of(ledger))
    own = Memory(own_weight, seen, sent_next(ledger.per_epoch("model_receiving_step")))
    return account_of_memory(ledger, own, one_signal(ledger))


def one_signal(ledger: LedgerTables) -> FloatArray:
    """[nodes] 1/s^2 of a node's one signal where std = 1."""
    amplitude, noise = constant(ledger, "model_sending_amplitude"), constant_or_zero(ledger, "model_sending_noise")
    with np.errstate(divide="ignore"):
        return np.asarray((amplitude / noise) ** 2)


def gain_of_senders(network: Network, name: str) -> FloatArray:
    """[nodes] h_j, which must be the same for all receivers of j."""
    gains = network.gains
    largest = np.maximum.reduceat(gains.data, gains.indptr[:-1])
    smallest = np.minimum.reduceat(gains.data, gains.indptr[:-1])
    if not np.allclose(largest, smallest, rtol=1e-9, atol=0):
        node = int(np.argmax(largest / smallest))
        raise Error(
            f"{name} needs gains that depend on the sender alone; node {node} is heard with {smallest[node]:g} "
            f"and with {largest[node]:g}",
            hint="use mped2fl, made for unequal gains",
        )
    return np.asarray(largest)


METHOD = Method(
    name="ped2fl",
    make=ped2fl,
    summary="multicast with one common compensation factor",
    account=account,
    promises='against everybody, with headroom below 1 and publish_from = "heard"',
    formula="d_t+1 = w_jj d_t + gamma_t min(2 C, S_j + L d_t); mu_j^2 = sum over t of (d_t / s_j,t)^2",
    otherwise="the weakest sender adds no noise, or mixed points are published that hold own models as they are",
    noise_sent=noise_sent,
    reference="reference [10025677] of the paper; see docs/train.md",
    needs="two-way links, gains that depend on the sender alone",
    averages=True,
)
