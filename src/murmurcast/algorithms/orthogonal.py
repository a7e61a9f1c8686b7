"""Algorithm 1 by orthogonal access: every node multicasts in a slot of its own, and is heard apart.

    sent_k    = sqrt(alpha_k p_k) x_k + sqrt(beta_k p_k) eta_k        as in Algorithm 1: one signal, one draw
    heard_i,j = h_ji sent_j                                           every neighbour by itself
    m_i       = sum_j heard_i,j / (c_i R) + (1 - d_i/R) sent_i / sqrt(alpha_i p_i)

What no radio can do on most networks, aligning phases at every receiver at once, is not needed; the price is channel
uses. Weights: the plan's A. Noise: one draw per node, as in Algorithm 1: heard apart or not, the same signal is sent
once, so the certificate is the same.
Channel uses: as many per epoch as slots are needed, senders without a common receiver sharing one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from murmurcast.algorithms import power_controlled as algorithm_1
from murmurcast.algorithms.account import LedgerTables
from murmurcast.algorithms.base import Algorithm, Local, Publish, proved, sum_of_links
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.power_controlled import GradientAt
from murmurcast.channels.links import Links
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax


def orthogonal(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1, every neighbour heard apart; arguments as `power_controlled`.

    Guarantees:
        As `power_controlled`: the adversary of its proof hears every antenna by itself already.
    """
    if plan.budget.noise_source == "secure":
        raise Error("secure noise is not made for orthogonal access", hint='set noise_source = "seeded"')
    if plan.radio is not None or plan.schedule.rounds > 1:
        raise Error(
            "the setup has a radio, and orthogonal does not send over it"
            if plan.radio is not None
            else f"schedule.rounds is {plan.schedule.rounds}, and orthogonal has no further mixing rounds",
            hint='use power-controlled, over a radio with access = "own-slot"; or set schedule.rounds = 1 and no radio',
        )
    algorithm = algorithm_1.power_controlled(plan, gradient_at=gradient_at, publish=publish)
    (summed,) = algorithm.rounds

    def update(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:
        return summed.update(here, state, sent, sum_of_links(heard), local)

    apart = summed._replace(channel=Links(plan.network.gains), update=update)
    return proved(algorithm._replace(name="orthogonal", rounds=(apart,)))


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """As Algorithm 1: what is sent is the same."""
    return algorithm_1.account_of_sent(ledger, ("links",))


METHOD = Method(
    name="orthogonal",
    make=orthogonal,
    summary="Algorithm 1 with a slot for every sender: no phases to align, more channel uses",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / (z_jj,t s_j,t+1))^2",
    reference="as power-controlled; access by slots is common practice",
    needs="two-way links",
    counts_coins=True,
    noise_sent=algorithm_1.noise_sent,
    side_vector="z",
    uses="slots",
    decays=("constant", "sqrt", "linear"),
)
