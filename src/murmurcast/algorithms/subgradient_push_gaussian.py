"""Subgradient-push under Gaussian noise.

    V_j = x_j + n_j,   w_i = sum_j b_ij V_j,   v_i = w_i / y_i,t+1,   x_i <- w_i - gamma_t g_i(v_i)

Weights: column-stochastic, as `subgradient_push`. Noise: one draw per node in what it says, in its own term too; none
in y, which is free of data. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import NOISE, Algorithm, Publish, Round, Settings, proved
from murmurcast.algorithms.gossip import (
    Sending,
    exposed_releases,
    gossip_releases,
    noise_for,
    noise_sent,
    require_unbounded,
    said_std,
    sending,
    steps_of,
)
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Pushing, mixer, radiate
from murmurcast.algorithms.subgradient_push import Receiving, State, begin, push, push_sum, pushed
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax


def subgradient_push_gaussian(
    setup: Setup,
    *,
    weights: Pushing = "column",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Subgradient-push with the least noise that meets the budget; arguments as `subgradient_push`.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2. Range: gradients clipped, at the public v.
    """
    require_unbounded(setup, "subgradient-push-gaussian", "it moves masses, and projecting a mass is wrong")
    by, steps = mixer(setup, weights, access), steps_of(setup, step_factor)
    noise = noise_for(setup, "subgradient-push-gaussian", gossip_releases(setup, steps, setup.sensitivity**0))
    receiving = pushed(setup, by, steps, publish)
    only = Round("model", by.channel, NOISE, sending(by, setup, noise), receiving, say_mass, push)
    settings: Settings = {"weights": weights, "access": access, "step_factor": float(step_factor), "publish": publish}
    releases = (gossip_releases(setup, steps, noise),)
    return proved(Algorithm("subgradient-push-gaussian", setup, (only,), settings, begin, releases))


def say_mass(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """X + n."""
    return radiate(here.amplitude, state.mass + here.noise * here.schedule * drawn["noise"])


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """As of any model that is said under noise; y must be the weights' own."""
    ledger.require_rounds(model="noise: normal of a node")
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"model_receiving_{name}" for name in Receiving._fields),
    )
    weights = accounts.require_weights(ledger, "model", "columns")
    accounts.require_divisor(ledger, "model_receiving_y", push_sum(weights, ledger.epochs))
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")
    push = accounts.by_epoch(ledger, "model_receiving_step")
    return (exposed_releases(accounts.sensitivity(ledger), push, said_std(ledger)),)


METHOD = Method(
    name="subgradient-push-gaussian",
    make=subgradient_push_gaussian,
    summary="subgradient-push under Gaussian noise, for one-way links too",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2",
    reference="subgradient-push (Nedic, Olshevsky 2015) with Gaussian noise in what is sent; the account is our own",
    needs="no ball or box",
    projects=False,
    noise_sent=noise_sent,
    side_vector="y",
    averages=True,
)
