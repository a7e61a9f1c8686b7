"""FROST with Gaussian noise inside every gradient.

    s_i <- sum_j a_ij s_j + g~_i(x_i)/z_ii,t+1 - g~_i(old x_i)/z_ii,t,   g~_i(x_i) = g_i(x_i) + nu_i e_i,t

the same draw wherever a gradient stands; everything else as `frost`. x and s are functions of what was sent, so
gradients are taken at public points. Weights: row-stochastic. Channel uses: 2 messages per epoch.
"""

from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Algorithm, Publish, Settings, proved
from murmurcast.algorithms.frost import row_tracked
from murmurcast.algorithms.gossip import noise_for
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access
from murmurcast.algorithms.tracking import (
    FOLLOWING,
    account_of_tracking,
    begin,
    factor_setting,
    noise_sent,
    private_following_rounds,
    tracking_releases,
)
from murmurcast.network.weights import z_diagonal
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases


def private_frost(
    setup: Setup, *, access: Access = "air", step_factor: NumberPerNode = 1.0, publish: Publish = "last"
) -> Algorithm:
    """FROST with the least noise that meets the budget; arguments as `frost`.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t <= T of (S_j / nu_j)^2. Range: gradients clipped, taken at the public x.
    """
    tracked = row_tracked(setup, "private-frost", access, step_factor, publish)
    noise = noise_for(setup, "private-frost", tracking_releases(setup, setup.sensitivity**0))
    settings: Settings = {"access": access, "step_factor": factor_setting(step_factor), "publish": publish}
    rounds, releases = private_following_rounds(tracked, noise), (tracking_releases(setup, noise),)
    return proved(Algorithm("private-frost", setup, rounds, settings, begin, releases))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """S/nu in every epoch, the first included."""
    weights = accounts.require_weights(ledger, "tracker", "rows")
    return account_of_tracking(ledger, FOLLOWING, z_diagonal(weights, ledger.epochs, "recursive"))


METHOD = Method(
    name="private-frost",
    make=private_frost,
    summary="FROST with noise in every gradient, for one-way links too",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t <= T of (S_j / nu_j)^2",
    reference="FROST (Xin, Xi, Khan 2019); the private form and its account are our own",
    needs="no ball or box",
    projects=False,
    noise_sent=noise_sent,
    side_vector="z",
    uses="2",
)
