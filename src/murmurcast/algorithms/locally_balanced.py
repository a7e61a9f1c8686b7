"""Locally balanced perturbations: every neighbour gets its own, and weighed by the network they cancel at the sender.

    x_i <- Proj( sum_j a_ij (x_j + std_t d_j->i) - gamma_t g_i(x_i)/pi_i ),    sum_i pi_i a_ij d_j->i = 0 for every j

d is a raw draw xi with what would move sum_i pi_i x_i taken out: d = xi - c (c'xi)/(c'c), c_i = pi_i a_ij, over the
neighbours of j and j itself. Weights: row-stochastic, pi the left Perron vector.
Noise: per link, and in the own term. So exact a balance lets nothing be forgotten: what all neighbours hear together
still holds every old gradient, and the cost grows like T^1.5. Nothing is promised; what it would cost is what
`cost_if_counted` says. Channel uses: a slot for every receiver, those without a common sender at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw, Local, Round, State, per_link, start, weighed_sum
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.base import padded
from murmurcast.channels.slots import Slots
from murmurcast.network.weights import perron
from murmurcast.planning.row_mixing import row_mixing
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


class Sending(NamedTuple):
    """Constants of what is said to each.

    Attributes:
        amplitude: [links] of what is said.
        noise: q, of the perturbations, in units of their schedule.
        schedule: std_t.
        balance: [links] c_i over the norm of all c, the node's own included.
        own_balance: The same of the node itself.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf
    balance: Leaf
    own_balance: Leaf


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: Factor of what is heard.
        own_weight: a_ii.
        step: gamma_t.
        z: pi_i.
        unsaid: [links] c_i over c_j and the amplitude: what the own perturbation is found by from what was sent.
        links: [links] 1 for links, 0 for filling, over the amplitude.
    """

    heard: Leaf
    own_weight: Leaf
    step: Leaf
    z: Leaf
    unsaid: Leaf
    links: Leaf


def locally_balanced(setup: Setup, *, noise_to_step: float = 1.0) -> Algorithm:
    """Locally balanced perturbations.

    Args:
        setup: Network and schedule are taken from it; of a plan also the power split.
        noise_to_step: q: perturbations have the standard deviation q std_t before they are balanced.

    Guarantees:
        None by default: what neighbours hear together forgets nothing. See `cost_if_counted`.
    """
    _check.positive(noise_to_step=noise_to_step)
    network = setup.network
    network.require_two_way("locally-balanced, whose nodes balance over those that hear them,")
    (rows, loudness), gains = row_mixing(setup), network.gains
    pi = perron(rows.weights)
    sender = np.repeat(np.arange(network.nodes), np.diff(gains.indptr))
    share = pi[gains.indices] * np.asarray(rows.weights[gains.indices, sender]).ravel()  # c_i, link by link
    own = pi * rows.weights.diagonal()
    norm = np.sqrt(np.bincount(sender, share**2) + own**2)
    amplitude = loudness[sender]
    sending = Sending(
        amplitude=same_always(padded(gains, amplitude)),
        noise=same_always(np.full(network.nodes, float(noise_to_step))),
        schedule=setup.schedule.noise_schedule,
        balance=same_always(padded(gains, share / norm[sender])),
        own_balance=same_always(own / norm),
    )
    receiving = Receiving(
        heard=same_always(1 / (rows.compensation * rows.normaliser)),
        own_weight=same_always(rows.weights.diagonal()),
        step=setup.schedule.steps,
        z=same_always(pi),
        unsaid=same_always(padded(gains, share / own[sender])),
        links=same_always(padded(gains, 1 / amplitude)),
    )
    draws = {"links": Draw(per="link"), "itself": Draw()}
    only = Round("model", Slots(gains), draws, sending, receiving, say_to_each, step_at_own)
    return Algorithm("locally-balanced", setup, (only,), {"noise_to_step": float(noise_to_step)}, start)


def say_to_each(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """[links, ...] x + std_t d, to every neighbour its own."""
    common = weighed_sum(here.balance, drawn["links"]) + here.own_balance * drawn["itself"]
    perturbed = drawn["links"] - per_link(here.balance, state.own) * common
    return per_link(here.amplitude, state.own) * (state.own + here.noise * here.schedule * perturbed)


def step_at_own(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(x)/pi), the own term perturbed by what balances all that was said."""
    # What was said to each, less the model, weighed: in one pass over what was sent.
    own_perturbation = here.unsaid.sum() * state.own - weighed_sum(here.unsaid * here.links, sent)
    mixed = here.heard * heard + here.own_weight * (state.own + own_perturbation)
    own = local.project(mixed - here.step / here.z * local.gradient_at_private(state.own))
    return State(own, own)


def cost_if_counted(setup: Setup, noise_to_step: float = 1.0) -> FloatArray:
    """[nodes] mu of unit node against everybody, of what is sent (not of published models); it grows like T^1.5.

    d_t+1 = d_t + gamma_t S/pi_j and mu_j^2 = sum_t (d_t/s_t)^2 (d_j + (sum_i c_i)^2/c_j^2), d_j its degree.
    """
    rows, _ = row_mixing(setup)
    pi, gains = perron(rows.weights), setup.network.gains
    sender = np.repeat(np.arange(setup.network.nodes), np.diff(gains.indptr))
    share = pi[gains.indices] * np.asarray(rows.weights[gains.indices, sender]).ravel()
    own = pi * rows.weights.diagonal()
    heard_by = setup.network.degree + (np.bincount(sender, share) / own) ** 2
    moved = np.concatenate([[0.0], np.cumsum(setup.schedule.steps)[:-1]])[:, None] * setup.sensitivity / pi
    std = noise_to_step * setup.schedule.noise_schedule[:, None]
    with np.errstate(all="ignore"):
        ratio = np.where(moved > 0, moved / std, 0.0)
    return np.asarray(np.sqrt((ratio**2).sum(axis=0) * heard_by))


METHOD = Method(
    name="locally-balanced",
    make=locally_balanced,
    summary="perturbations for every neighbour that cancel at the sender; the mean is untouched",
    account="nothing is forgotten where perturbations cancel exactly: no cost is held against a budget",
    reference="after Gade, Vaidya: Private learning on networks, 2017 (its abstract); reference [10312089] of the "
    "paper was not found",
    needs="two-way links",
    side_vector="z",
    uses="slots",
)
