"""Push-pull and AB with Gaussian noise inside every gradient.

    y_i <- sum_j b_ij y_j + g~_i(x_i) - g~_i(old x_i),   g~_i(x_i) = g_i(x_i) + nu_i e_i,t

the same draw wherever a gradient stands; everything else as `push_pull`. x and y are functions of what was sent, so
gradients are taken at public points. Weights: rows and columns. Channel uses: 2 messages per epoch.
"""

import numpy as np

from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Algorithm, Publish, Settings, proved
from murmurcast.algorithms.gossip import noise_for
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access
from murmurcast.algorithms.push_pull import Form, push_pull_tracked, require_form
from murmurcast.algorithms.tracking import (
    FOLLOWING,
    PULLING,
    account_of_tracking,
    begin,
    factor_setting,
    noise_sent,
    private_following_rounds,
    private_pulling_rounds,
    tracking_releases,
)
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases


def private_push_pull(
    setup: Setup,
    *,
    form: Form = "push-pull",
    access: Access = "air",
    step_factor: NumberPerNode = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Push-pull with the least noise that meets the budget; arguments as `push_pull`.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t <= T of (S_j / nu_j)^2. Range: gradients clipped, taken at the public x.
    """
    tracked = push_pull_tracked(setup, "private-push-pull", access, step_factor, publish)
    noise = noise_for(setup, "private-push-pull", tracking_releases(setup, setup.sensitivity**0))
    settings: Settings = {
        "form": form,
        "access": access,
        "step_factor": factor_setting(step_factor),
        "publish": publish,
    }
    rounds, releases = _ROUNDS[require_form(form)](tracked, noise), (tracking_releases(setup, noise),)
    return proved(Algorithm("private-push-pull", setup, rounds, settings, begin, releases))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """S/nu in every epoch, the first included."""
    form = ledger.text("form", ("push-pull", "ab"))
    draws = PULLING if form == "push-pull" else FOLLOWING
    return account_of_tracking(ledger, draws, np.ones((1, ledger.nodes)))


_ROUNDS = {"push-pull": private_pulling_rounds, "ab": private_following_rounds}

METHOD = Method(
    name="private-push-pull",
    make=private_push_pull,
    summary="push-pull with noise in every gradient, for one-way links too",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t <= T of (S_j / nu_j)^2",
    reference="push-pull (Pu, Shi, Xu, Nedic 2021); the private form and its account are our own",
    needs="no ball or box",
    projects=False,
    noise_sent=noise_sent,
    uses="2",
    averages=True,
)
