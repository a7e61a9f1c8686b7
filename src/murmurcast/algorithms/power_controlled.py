"""Algorithm 1 of the paper: power-controlled private learning by multicast.

    sent_k  = sqrt(alpha_k p_k) x_k + sqrt(beta_k p_k) eta_k          eta_k ~ N(0, sigma_k,t^2), fresh each epoch
    heard_i = sum_{j in N_i} h_ji sent_j
    m_i     = heard_i / (c_i R) + (1 - d_i/R) sent_i / sqrt(alpha_i p_i)
    x_i    <- Proj( m_i - gamma_t g_i / z_ii,t )

Weights: the row-stochastic A of the plan; dividing by z makes the network minimise the plain sum of all f_i.
Noise: one draw per node, the same in the signal and in the node's own term; leaving it out there would break the proof.
Channel uses: 1 per epoch.

With secure noise, everything a node says is on a grid: see `murmurcast.algorithms.grid_noise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.account import (
    LedgerTables,
    above_zero,
    exposed_ratio,
    law_of,
    require_grid,
    require_row_stochastic,
    require_z,
    sensitivity,
)
from murmurcast.algorithms.base import (
    NOISE,
    Algorithm,
    Draw,
    Local,
    Publish,
    Round,
    Sending,
    State,
    proved,
    require_publish,
    send_model_with_noise,
    start,
)
from murmurcast.algorithms.grid_noise import finite, on_grid, send_on_grid, within
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, mixing_factors, newest_share, row_of, same_always, without_repeats
from murmurcast.channels.air import Air
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax

GradientAt = Literal["mixed", "own"]


class Receiving(NamedTuple):
    """Constants of what is made of what is heard.

    Attributes:
        heard: 1/(c R).
        kept: (1 - d/R)/sqrt(alpha p).
        step: gamma_t.
        z: What the gradient is divided by.
        newest: Weight of the newest mixed point in the published model.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf


class ReceivingOnGrid(NamedTuple):
    """The same with secure noise.

    Attributes:
        heard: 1/(c R).
        kept: (1 - d/R)/sqrt(alpha p).
        step: gamma_t.
        z: What the gradient is divided by.
        newest: Weight of the newest mixed point in the published model.
        limit: What no coordinate of a mixed point exceeds.
    """

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf
    limit: Leaf


def power_controlled(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1.

    Args:
        plan: The plan; its z is recursive or starts at its limit.
        gradient_at: "mixed", the public mixed point, which unit record needs; or "own", the paper's.
        publish: "last", the newest mixed point, or "average", an average of all of them that favours later ones. Both
            are functions of what was sent and cost nothing.

    Guarantees:
        Unit: the plan's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: `Plan.certificate`. Range: gradients clipped as planned, x itself stays on the node. With secure noise
            rounding is counted and the noise is the promised one to the last bit; else this holds for real numbers.
    """
    if plan.budget.unit == "record" and gradient_at == "own":
        raise Error(
            "unit record is certified only for gradients at the public mixed point",
            hint='set gradient_at = "mixed", or unit = "node"',
        )
    require_gradient_at(gradient_at)
    require_publish(publish)
    sending, receiving = _tables(plan)
    if plan.budget.noise_source == "secure" and not sending.schedule.all():
        raise Error(
            "secure noise needs noise in every epoch: its grid is made of it", hint='set noise_timing = "aligned"'
        )
    grid = on_grid(sending) if plan.budget.noise_source == "secure" else None

    def update(
        here: Receiving | ReceivingOnGrid, state: State, sent: jax.Array, heard: jax.Array, local: Local
    ) -> State:
        mixed = here.heard * heard + here.kept * sent
        if isinstance(here, ReceivingOnGrid):
            mixed = within(mixed, here.limit)
        gradient = local.gradient_at_public(mixed) if gradient_at == "mixed" else local.gradient_at_private(state.own)
        if isinstance(here, ReceivingOnGrid):
            gradient = finite(gradient)
        own = local.project(mixed - here.step / here.z * gradient)
        return State(own, mixed if publish == "last" else state.published + here.newest * (mixed - state.published))

    return proved(
        Algorithm(
            name="power-controlled",
            setup=plan,
            rounds=(
                Round(
                    name="model",
                    channel=Air(plan.network.gains),
                    draws=NOISE if grid is None else {"noise": Draw(law="discrete gaussian")},
                    sending=sending if grid is None else grid.sending,
                    receiving=receiving if grid is None else ReceivingOnGrid(*receiving, limit=grid.limit),
                    send=send_model_with_noise if grid is None else send_on_grid,
                    update=update,
                ),
            ),
            settings={"gradient_at": gradient_at, "publish": publish},
            init=start,
            releases=(releases(plan),),
        )
    )


def _tables(plan: Plan) -> tuple[Sending, Receiving]:
    """Every constant of the plan, as nodes use them."""
    network, amplitude = plan.network, np.sqrt(plan.alpha * plan.network.power)
    sending = Sending(
        amplitude=same_always(amplitude),
        noise=same_always(np.sqrt(plan.beta * network.power) * plan.noise_to_step),
        schedule=plan.schedule.noise_schedule,
    )
    receiving = Receiving(
        *mixing_factors(network, plan.mixing, amplitude),
        step=plan.schedule.steps,
        z=without_repeats(plan.z),
        newest=newest_share(plan.schedule.epochs),
    )
    return sending, receiving


def releases(plan: Plan) -> Releases:
    """What a run of the plan releases: the terms of `Plan.certificate`, epoch by epoch."""
    push = plan.schedule.steps[:, None] / plan.z
    return Releases(plan.law, exposed_ratio(plan.effective_sensitivity, push, plan.effective_noise), "everybody")


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """A Gaussian mechanism in every epoch, given all that was sent before; from what was sent, not from the plan."""
    return account_of_sent(ledger, "air")


def account_of_sent(ledger: LedgerTables, channel: str) -> tuple[Releases, ...]:
    """The same for a channel that carries the same signals."""
    secure = ledger.noise_source == "secure"
    ledger.text("model_channel", (channel,))
    ledger.text("publish", ("last", "average"))  # either is a function of what was sent
    sends = ledger.sends("model")
    ledger.require_rounds(model="noise: discrete gaussian of a node" if secure else "noise: normal of a node")
    known = ("heard", "kept", "step", "z", "newest", *(() if sends is None else ("sends",)))
    grid = ("model_sending_spacing", "model_receiving_limit") if secure else ()
    sending = (f"model_sending_{name}" for name in ("amplitude", "noise", "schedule"))
    ledger.require_tables(*sending, *grid, *(f"model_receiving_{name}" for name in known))
    where = ledger.text("gradient_at", ("mixed", "own"))
    if ledger.text("unit") == "record" and where != "mixed":
        ledger.refuse(f'has unit record and gradient_at "{where}": that carries no certificate, "mixed" is needed')
    ledger.per_epoch("model_receiving_newest")
    ledger.per_node("power")
    amplitude = above_zero(ledger, "model_sending_amplitude", sends)
    z = above_zero(ledger, "model_receiving_z")
    require_row_stochastic(ledger, amplitude, sends)
    require_z(ledger, amplitude, ("recursive", "perron"))
    steps, schedule = ledger.per_epoch("model_receiving_step"), ledger.per_epoch("model_sending_schedule")
    noise, epochs = ledger.table("model_sending_noise"), np.arange(1, ledger.epochs + 1)
    if secure:
        require_grid(ledger, schedule, amplitude, noise)
    with np.errstate(all="ignore"):
        std = schedule[:, None] * row_of(noise, epochs) / row_of(amplitude, epochs)
        taking_part = None if sends is None else row_of(sends, epochs)
        ratio = exposed_ratio(sensitivity(ledger), steps[:, None] / row_of(z, epochs), std, taking_part)
    return (Releases(law_of(ledger), ratio, "everybody"),)


def noise_sent(ledger: LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """sqrt((1 - alpha) p) sigma_t."""
    schedule = ledger.per_epoch("model_sending_schedule")[epochs - 1]
    return np.asarray(schedule[:, None] * row_of(ledger.table("model_sending_noise"), epochs))


def require_gradient_at(gradient_at: str) -> None:
    """The point is a known one."""
    _check.one_of(("mixed", "own"), gradient_at=gradient_at)


METHOD = Method(
    name="power-controlled",
    make=power_controlled,
    summary="Algorithm 1: one multicast a node, power split between model and noise",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / (z_jj,t s_j,t+1))^2",
    reference="Ziaeddini, Yakimenka, Kliewer: Differentially-Private Decentralized Learning in Heterogeneous Multicast "
    "Networks, Algorithm 1",
    needs="two-way links",
    secure=True,
    noise_sent=noise_sent,
    side_vector="z",
    decays=("constant", "sqrt", "linear"),
)
