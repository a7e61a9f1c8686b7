"""Private decentralised gradient descent: Algorithm 1's steps with doubly stochastic weights, nothing divided by z.

    V_i = x_i + n_i,   m_i = sum_j w_ij V_j,   x_i <- Proj( m_i - gamma_t g_i(m_i) )       n_i ~ N(0, (q_i std_t)^2)

Weights: doubly stochastic: "sinkhorn" by one multicast, "max-degree" or "metropolis" with each neighbour heard apart.
Noise: one draw per node, in the node's own term too. Channel uses: one message per epoch.
"""

from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import NOISE, Algorithm, Publish, Round, Settings, proved, start
from murmurcast.algorithms.gossip import (
    Receiving,
    account_of_gossip,
    gossip_releases,
    newest,
    noise_for,
    noise_sent,
    say,
    sending,
    step_at_mixed,
    steps_of,
)
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Doubly, mixer
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases


def dp_dsgd(
    setup: Setup,
    *,
    weights: Doubly = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Private decentralised gradient descent, with the least noise that meets the budget.

    Args:
        setup: Network, schedule and budget.
        weights: How neighbours are weighed.
        access: How they are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2; records that join by secret coins cost less.
        Range: gradients clipped, at the public point.
    """
    by, steps = mixer(setup, weights, access), steps_of(setup, step_factor)
    noise = noise_for(setup, "dp-dsgd", gossip_releases(setup, steps, setup.sensitivity**0, setup.law))
    receiving = Receiving(by.heard, by.kept, steps, newest(setup, publish))
    only = Round("model", by.channel, NOISE, sending(by, setup, noise), receiving, say, step_at_mixed)
    settings: Settings = {"weights": weights, "access": access, "step_factor": float(step_factor), "publish": publish}
    released = gossip_releases(setup, steps, noise, setup.law)
    return proved(Algorithm("dp-dsgd", setup, (only,), settings, start, (released,)))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """A Gaussian mechanism in every epoch, given all that was sent before."""
    return account_of_gossip(ledger, "noise: normal of a node", "both", accounts.law_of(ledger))


METHOD = Method(
    name="dp-dsgd",
    make=dp_dsgd,
    summary="private decentralised gradient descent with doubly stochastic weights",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2",
    reference="the private form of dsgd that the literature compares with; Gaussian noise in what is sent",
    needs="two-way links",
    counts_coins=True,
    noise_sent=noise_sent,
    averages=True,
)
