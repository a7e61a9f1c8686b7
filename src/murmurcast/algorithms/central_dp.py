"""Private learning with a trusted server, at the same total cost: the ceiling for learning without one.

    sent_k = g_k(x_{t-1}) + rho/sqrt(K) eta_k                        eta_k ~ N(0, 1); no gradient in epoch 1
    x_t   <- Proj( x_{t-1} - gamma_{t-1} sum_k sent_k )              the server reveals the sum and nothing else

Weights: all the same; everybody holds the same model. It minimises the sum of all f_i with Algorithm 1's steps.
Noise: the server's, of standard deviation rho = S sqrt(T - 1)/mu in the sum, so that T - 1 exposed gradients cost mu.
It is drawn here in K equal parts, which makes the same sum; no node knows its part.
Channel uses: 2 per epoch, the sum up and the model down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables, exposed_ratio, law_of, sensitivity
from murmurcast.algorithms.base import NOISE, Algorithm, Local, Model, Publish, Round, proved, require_publish
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, newest_share, row_of, same_always
from murmurcast.channels.server import Server
from murmurcast.planning.plan import Plan
from murmurcast.privacy.releases import GAUSSIAN, Releases

if TYPE_CHECKING:
    import jax


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x, the same at all nodes, and public.
        published: The same again, or an average of all so far.
        gradient: g(x), to be sent next.
    """

    own: Model
    published: Model
    gradient: Model


class Sending(NamedTuple):
    """noise: rho/sqrt(K)."""

    noise: Leaf


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        step: gamma_{t-1}, 0 in the first epoch.
        newest: Weight of the newest model in the published one.
    """

    step: Leaf
    newest: Leaf


def central_dp(plan: Plan, *, publish: Publish = "last") -> Algorithm:
    """Noisy gradient descent at a server that everybody trusts with the sum of gradients.

    Args:
        plan: Network, schedule and cost are taken from it.
        publish: "last", the newest model, or "average", an average of all of them that favours later ones: both are
            functions of what is public, and cost nothing.

    Guarantees:
        Unit: the plan's. Adversary: everybody but the server, who draws the noise; all models are public.
        Formula: mu^2 = (T - 1) (S/rho)^2, with mu the largest of the plan's nodes. Range: gradients clipped as planned.
    """
    require_publish(publish)
    nodes, epochs = plan.network.nodes, plan.schedule.epochs
    is_sampled = plan.law.name == "sampled gaussian"  # nodes may then have coins, and with them mu, of their own
    largest = plan.certificate.mu.min() if is_sampled else plan.certificate.mu.max()
    mu = float(np.sqrt(largest**2 - plan.budget.spent_before**2))
    rho = plan.sensitivity.max() * np.sqrt(epochs - 1) / mu

    def init(model: Model, local: Local) -> State:  # noqa: ARG001
        return State(model, model, 0 * model)

    def send(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
        return state.gradient + here.noise * drawn["noise"]

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = local.project(state.own - here.step * heard)
        average = state.published + here.newest * (own - state.published)
        return State(own, own if publish == "last" else average, local.gradient_at_public(own))

    ratio = np.where(np.arange(epochs)[:, None] > 0, plan.sensitivity / rho, 0.0)
    return proved(
        Algorithm(
            name="central-dp",
            setup=plan,
            rounds=(
                Round(
                    name="gradient",
                    channel=Server(),
                    draws=NOISE,
                    sending=Sending(same_always(np.full(nodes, rho / np.sqrt(nodes)))),
                    receiving=Receiving(np.concatenate([[0.0], plan.schedule.steps[:-1]]), newest_share(epochs)),
                    send=send,
                    update=update,
                ),
            ),
            settings={"publish": publish},
            init=init,
            releases=(Releases(plan.law if is_sampled else GAUSSIAN, ratio, "trusted server"),),
        )
    )


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """T - 1 noisy sums of gradients, with noise of standard deviation rho, drawn in parts."""
    ledger.text("gradient_channel", ("server",))
    ledger.text("publish", ("last", "average"))
    ledger.require_rounds(gradient="noise: normal of a node")
    ledger.require_tables("gradient_sending_noise", "gradient_receiving_step", "gradient_receiving_newest")
    for name in ("gradient_receiving_step", "gradient_receiving_newest"):
        ledger.per_epoch(name)
    ledger.per_node("power")
    parts = row_of(ledger.table("gradient_sending_noise"), np.arange(1, ledger.epochs + 1))
    rho = np.sqrt(np.sum(parts**2, axis=1, keepdims=True)) * np.ones(ledger.nodes)
    ratio = exposed_ratio(sensitivity(ledger), np.ones((ledger.epochs, ledger.nodes)), rho)
    return (Releases(law_of(ledger), ratio, "trusted server"),)


def noise_sent(ledger: LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """rho/sqrt(K), a node's part of the server's noise."""
    return np.asarray(row_of(ledger.table("gradient_sending_noise"), epochs))


METHOD = Method(
    name="central-dp",
    make=central_dp,
    summary="noisy gradient descent at a trusted server: the ceiling for learning without one",
    account=account,
    promises="if the server is trusted",
    formula="mu_j^2 = sum over t < T of (S_j / rho_t+1)^2",
    needs="two-way links, as the plan does",
    reference="Bassily, Smith, Thakurta 2014, with full batches",
    counts_coins=True,
    noise_sent=noise_sent,
    uses="2",
)
