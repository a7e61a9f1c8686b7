"""Exact diffusion with Gaussian noise inside every gradient.

    psi_i,t = x_i - gamma (g_i(x_i) + nu_i e_i,t)/D_i
    phi_i   = psi_i,t + x_i - psi_i,t-1,   x_i <- (phi_i + sum_j w_ij phi_j)/2

x and psi are functions of what was sent, noise included, so gradients are taken at public points, and given the past
what is sent moves by gamma S/D under noise of gamma nu/D: see docs/exact-diffusion.md.
Weights: as `exact_diffusion`. Noise: one draw per node and epoch. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import NOISE, Algorithm, Publish, Round, proved
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
from murmurcast.algorithms.tables import Leaf, row_of, same_always
from murmurcast.algorithms.tracking import tracking_releases
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax


class Sending(NamedTuple):
    """amplitude: of phi. step: gamma/D. noise: nu, of the noise in a gradient."""

    amplitude: Leaf
    step: Leaf
    noise: Leaf


def private_exact_diffusion(
    setup: Setup,
    *,
    weights: DiffusionWeights = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Exact diffusion with the least noise that meets the budget; arguments as `exact_diffusion`.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t <= T of (S_j / nu_j)^2. Range: gradients clipped, taken at the public x.
    """
    return diffusing_with_noise(setup, "private-exact-diffusion", weights, access, step_factor, publish)


def diffusing_with_noise(
    setup: Setup, name: str, weights: DiffusionWeights, access: Access, step_factor: float, publish: Publish
) -> Algorithm:
    """The same under the name of any method that diffuses so."""
    how = diffusing(setup, name, weights, access, step_factor, publish)
    noise = noise_for(setup, name, tracking_releases(setup, setup.sensitivity**0, setup.law))
    sending = Sending(how.by.amplitude, how.step, same_always(noise))
    only = Round("model", how.by.channel, NOISE, sending, how.receiving, send_private, diffuse)
    released = tracking_releases(setup, noise, setup.law)
    return proved(Algorithm(name, setup, (only,), how.settings, begin, (released,)))


def send_private(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """phi, its gradient under noise."""
    return radiate(here.amplitude, corrected(state, here.step, state.gradient + here.noise * drawn["noise"]))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """S/nu in every epoch, the first included."""
    require_diffusion(ledger, "noise: normal of a node", Sending._fields)
    noise = row_of(accounts.above_zero(ledger, "model_sending_noise"), np.arange(1, ledger.epochs + 1))
    return (Releases(accounts.law_of(ledger), np.asarray(accounts.sensitivity(ledger) / noise), "everybody"),)


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Amplitude gamma nu / D."""
    return np.asarray(row_of(ledger.table("model_sending_noise"), epochs) * step_sent(ledger, epochs))


METHOD = Method(
    name="private-exact-diffusion",
    make=private_exact_diffusion,
    summary="exact diffusion with noise in every gradient: one multicast, no bias from unequal data",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t <= T of (S_j / nu_j)^2",
    reference="exact diffusion (Yuan, Ying, Zhao, Sayed 2019); the private form and its account are our own",
    needs="two-way links, no ball or box, weights that pass its stability check",
    projects=False,
    counts_coins=True,
    noise_sent=noise_sent,
    side_vector="z",
    averages=True,
)
