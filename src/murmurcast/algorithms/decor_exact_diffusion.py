"""Exact diffusion with noise inside every gradient that cancels between neighbours.

    psi_i,t = x_i - gamma (g_i(x_i) + own e_i + shared sum_{j in N_i} v_ij)/D_i               v_ij = -v_ji

and everything else as `exact_diffusion`. Weights: doubly stochastic (D = 1) or "row" (D = K pi): in the mean that the
network learns all pairs cancel. Noise: what is left of it against whom is in `murmurcast.privacy.cancelling`.
Channel uses: one message per epoch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Algorithm, Model, Publish, Round, Settings, proved, sum_of_links
from murmurcast.algorithms.decor import PAIRS, PAIRS_IN_WORDS, Against
from murmurcast.algorithms.exact_diffusion import (
    DiffusionWeights,
    State,
    begin,
    corrected,
    diffuse,
    diffusing,
    require_diffusion,
    step_sent,
)
from murmurcast.algorithms.gossip import noise_for
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, radiate
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.planning.setup import Setup
from murmurcast.privacy.cancelling import noise_left
from murmurcast.privacy.releases import GAUSSIAN, Releases


class Sending(NamedTuple):
    """amplitude: of phi. step: gamma/D. own, shared: of the noise in a gradient."""

    amplitude: Leaf
    step: Leaf
    own: Leaf
    shared: Leaf


def decor_exact_diffusion(
    setup: Setup,
    *,
    against: Against = "eavesdropper",
    shared_to_own: float = 10.0,
    weights: DiffusionWeights = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Exact diffusion with noise that cancels between neighbours, the least that meets the setup's budget.

    Args:
        setup: Network, schedule and budget.
        against: Whom the budget is about; what the same run costs against others is promised beside it.
        shared_to_own: How much stronger the noise of one pair is than a node's own.
        weights: As `exact_diffusion`.
        access: As `exact_diffusion`.
        step_factor: As `exact_diffusion`.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: one promise for each. Formula: mu_j^2 = sum over t <= T of S_j^2 [C^-1]_jj, C the
        noise's covariance over nodes as that adversary sees it. Range: gradients clipped, taken at the public x; pairs'
        keys secret.
    """
    name = "decor-exact-diffusion"
    _check.positive(shared_to_own=shared_to_own)
    setup.network.require_two_way(f"{name}, which draws noise for pairs of neighbours,")
    how = diffusing(setup, name, weights, access, step_factor, publish)
    epochs, links, ones = setup.schedule.epochs, setup.network.gains, np.ones(setup.network.nodes)
    plain = {part.against: part for part in _releases(setup.sensitivity, epochs, links, (ones, shared_to_own * ones))}
    _check.one_of(plain, against=against)
    # One scale for all: a pair's noise must be as strong at both ends.
    own = noise_for(setup, name, plain[against]).max() * ones
    shared = shared_to_own * own
    sending = Sending(how.by.amplitude, how.step, same_always(own), same_always(shared))
    only = Round("model", how.by.channel, PAIRS, sending, how.receiving, send, diffuse)
    settings: Settings = {"against": against, "shared_to_own": float(shared_to_own), **how.settings}
    releases = _releases(setup.sensitivity, epochs, links, (own, shared))
    return proved(Algorithm(name, setup, (only,), settings, begin, releases))


def send(here: Sending, state: State, drawn: dict[str, Model]) -> Model:
    """phi, its gradient under noise that cancels between neighbours."""
    noise = here.own * drawn["own"] + here.shared * sum_of_links(drawn["shared"])
    return radiate(here.amplitude, corrected(state, here.step, state.gradient + noise))


def _releases(
    sensitivity: FloatArray, epochs: int, links: csr_array, noise: tuple[FloatArray, FloatArray]
) -> tuple[Releases, ...]:
    """S over what is left of the noise, in every epoch, for every adversary."""
    return tuple(
        Releases(GAUSSIAN, np.tile(sensitivity / left, (epochs, 1)), who)
        for who, left in noise_left(links, *noise).items()
    )


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """One promise for every adversary, from the noise and the links of the ledger."""
    require_diffusion(ledger, PAIRS_IN_WORDS, Sending._fields)
    noise = (accounts.constant(ledger, "model_sending_own"), accounts.constant(ledger, "model_sending_shared"))
    if (noise[1] != noise[1][0]).any():
        ledger.refuse("has a model_sending_shared that differs between nodes: pairs would not cancel")
    return _releases(accounts.sensitivity(ledger), ledger.epochs, accounts.gains(ledger, "model"), noise)


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Amplitude gamma/D (own^2 + d shared^2)^(1/2)."""
    own, shared = (ledger.table(f"model_sending_{name}")[0] for name in ("own", "shared"))
    pairs = np.bincount(ledger.links("model")[0], minlength=ledger.nodes)
    return np.asarray(step_sent(ledger, epochs) * np.sqrt(own**2 + pairs * shared**2))


METHOD = Method(
    name="decor-exact-diffusion",
    make=decor_exact_diffusion,
    summary="exact diffusion with noise that cancels between neighbours; promises against each adversary apart",
    account=account,
    promises="against an eavesdropper; with one node besides; against everybody",
    formula="mu_j^2 = sum over t <= T of S_j^2 [C^-1]_jj, C the noise's covariance over nodes",
    reference="decor (Allouah et al. 2024) and exact diffusion (Yuan, Ying, Zhao, Sayed 2019), put together here",
    needs="two-way links, no ball or box, weights that pass its stability check",
    projects=False,
    noise_sent=noise_sent,
    side_vector="z",
    averages=True,
    tries={"shared_to_own": (1.0, 10.0, 100.0)},
)
