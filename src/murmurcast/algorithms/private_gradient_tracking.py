"""Gradient tracking with Gaussian noise inside every gradient.

    y_i <- sum_j w_ij y_j + g~_i(x_i) - g~_i(old x_i),   g~_i(x_i) = g_i(x_i) + nu_i e_i,t

the same draw wherever a gradient stands: fresh noise on what is sent would cost twice as much in mu and make the sum of
trackers a random walk. Everything else as `gradient_tracking`; x and y are functions of what was sent, so gradients are
taken at public points. Weights: doubly stochastic. Channel uses: 2 messages per epoch.
"""

import numpy as np

from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Algorithm, Publish, Settings, proved
from murmurcast.algorithms.gossip import noise_for
from murmurcast.algorithms.gradient_tracking import doubly_tracked
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access, Doubly
from murmurcast.algorithms.tracking import (
    PULLING,
    account_of_tracking,
    begin,
    factor_setting,
    noise_sent,
    private_pulling_rounds,
    tracking_releases,
)
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases


def private_gradient_tracking(
    setup: Setup,
    *,
    weights: Doubly = "sinkhorn",
    access: Access = "air",
    step_factor: NumberPerNode = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Gradient tracking with the least noise that meets the budget; arguments as `gradient_tracking`.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t <= T of (S_j / nu_j)^2. Range: gradients clipped, taken at the public x.
    """
    name = "private-gradient-tracking"
    tracked = doubly_tracked(setup, name, weights, access, step_factor, publish)
    noise = noise_for(setup, name, tracking_releases(setup, setup.sensitivity**0))
    settings: Settings = {
        "weights": weights,
        "access": access,
        "step_factor": factor_setting(step_factor),
        "publish": publish,
    }
    rounds, releases = private_pulling_rounds(tracked, noise), (tracking_releases(setup, noise),)
    return proved(Algorithm(name, setup, rounds, settings, begin, releases))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """S/nu in every epoch, the first included."""
    return account_of_tracking(ledger, PULLING, np.ones((1, ledger.nodes)))


METHOD = Method(
    name="private-gradient-tracking",
    make=private_gradient_tracking,
    summary="gradient tracking with noise in every gradient",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t <= T of (S_j / nu_j)^2",
    reference="gradient tracking (Koloskova, Lin, Stich 2021); the private form and its account are our own",
    needs="two-way links, no ball or box",
    projects=False,
    noise_sent=noise_sent,
    uses="2",
    averages=True,
)
