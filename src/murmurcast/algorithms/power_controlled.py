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

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import over_radio
from murmurcast.algorithms.accelerated_rounds import (
    is_accelerated,
    start_leaning,
    tables_of_leads,
    with_accelerated_rounds,
)
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
    Init,
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
from murmurcast.algorithms.common_reference import start_referenced, with_common_reference
from murmurcast.algorithms.free_rounds import (
    Carrier,
    MixingTables,
    Step,
    further_rounds,
    mixed_point,
    pass_on,
    require_free_rounds,
    require_mixed_by_channel,
    start_mixed,
    tables_of_free_rounds,
    with_free_rounds,
)
from murmurcast.algorithms.grid_noise import finite, on_grid, send_on_grid, within
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Loud
from murmurcast.algorithms.radio_z import require_radio_z
from murmurcast.algorithms.tables import Leaf, mixing_factors, newest_share, row_of, same_always, without_repeats
from murmurcast.channels.air import Air
from murmurcast.channels.base import Channel
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.privacy.releases import Releases
from murmurcast.radio.flooding import flood_cost

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
    _check.instance(Plan, plan=plan)
    if plan.budget.unit == "record" and gradient_at == "own":
        raise Error(
            "unit record is certified only for gradients at the public mixed point",
            hint='set gradient_at = "mixed", or unit = "node"',
        )
    require_gradient_at(gradient_at)
    require_publish(publish)
    carrier: Carrier[Channel] = _carrier(plan) if plan.radio is None else over_radio.carrier(plan, plan.radio)
    secure = plan.budget.noise_source == "secure"
    if secure and (plan.radio is not None or plan.schedule.rounds > 1 or not carrier.sending.schedule.all()):
        raise Error(
            "secure noise needs the paper's channel, one round and noise in every epoch: its grid is made of it",
            hint='set noise_timing = "aligned", schedule.rounds = 1, and no [radio]',
        )
    grid = on_grid(carrier.sending) if secure else None

    def step(here: Any, state: Any, mixed: jax.Array, local: Local) -> tuple[jax.Array, jax.Array]:
        """The next x, and what is published."""
        if isinstance(here, ReceivingOnGrid):
            mixed = within(mixed, here.limit)
        gradient = local.gradient_at_public(mixed) if gradient_at == "mixed" else local.gradient_at_private(state.own)
        if isinstance(here, ReceivingOnGrid):
            gradient = finite(gradient)
        own = local.project(mixed - here.step / here.z * gradient)
        return own, mixed if publish == "last" else state.published + here.newest * (mixed - state.published)

    receiving = Receiving(*carrier.mixing, *_steps(plan, carrier.z))
    first = Round(
        name="model",
        channel=carrier.channels[0],
        draws=NOISE if grid is None else {"noise": Draw(law="discrete gaussian")},
        sending=carrier.sending if grid is None else grid.sending,
        receiving=receiving if grid is None else ReceivingOnGrid(*receiving, limit=grid.limit),
        send=carrier.send if grid is None else send_on_grid,
        update=lambda here, state, sent, heard, local: State(*step(here, state, mixed_point(here, sent, heard), local)),
    )
    rounds, begin = _epoch(plan, first, carrier, receiving, step)
    return proved(
        Algorithm(
            name="power-controlled",
            setup=plan,
            rounds=rounds,
            settings={"gradient_at": gradient_at, "publish": publish},
            init=begin,
            releases=(releases(plan),),
        )
    )


def _epoch(
    plan: Plan, first: Round, carrier: Carrier[Channel], receiving: Receiving, step: Step
) -> tuple[tuple[Round, ...], Init]:
    """All rounds of an epoch, and the states they need."""
    radio = plan.radio if plan.radio is not None and plan.radio.recentre_every else None
    if plan.schedule.rounds == 1 and radio is None:
        return (first,), start
    if plan.schedule.accelerated:
        return with_accelerated_rounds(first, carrier, plan.leads, step), start_leaning
    rounds = with_free_rounds(first, carrier, receiving, step)
    if radio is None or plan.problem.dim is None:
        return rounds, start_mixed
    cost = flood_cost(plan.network, radio, plan.problem.dim)
    return with_common_reference(rounds, cost, radio.recentre_every, plan.schedule.epochs), start_referenced


def _carrier(plan: Plan) -> Carrier[Air]:
    """The paper's channel: a sum of all signals, without units."""
    network, amplitude = plan.network, np.sqrt(plan.alpha * plan.network.power)
    sending = Sending(
        amplitude=same_always(amplitude),
        noise=same_always(np.sqrt(plan.beta * network.power) * plan.noise_to_step),
        schedule=plan.schedule.noise_schedule,
    )
    return Carrier(
        channels=(Air(network.gains),) * plan.schedule.rounds,
        sending=sending,
        send=send_model_with_noise,
        passing=Loud(sending.amplitude),
        pass_on=pass_on,
        mixing=MixingTables(*mixing_factors(network, plan.mixing, amplitude)),
        z=without_repeats(plan.z),
    )


def _steps(plan: Plan, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    return plan.schedule.steps, z, newest_share(plan.schedule.epochs)


def releases(plan: Plan) -> Releases:
    """What a run of the plan releases: the terms of `Plan.certificate`, epoch by epoch."""
    push = plan.schedule.steps[:, None] / plan.z
    return Releases(plan.law, exposed_ratio(plan.effective_sensitivity, push, plan.effective_noise), "everybody")


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """A Gaussian mechanism in every epoch, given all that was sent before; from what was sent, not from the plan."""
    return account_of_sent(ledger, ("air", "radio"))


def account_of_sent(ledger: LedgerTables, channels: tuple[str, ...]) -> tuple[Releases, ...]:
    """The same for any channel that carries these signals."""
    secure = ledger.noise_source == "secure"
    radio = ledger.text("model_channel", channels) == "radio"
    ledger.text("publish", ("last", "average"))  # either is a function of what was sent
    sends = ledger.sends("model")
    last = require_free_rounds(ledger, "noise: discrete gaussian of a node" if secure else "noise: normal of a node")
    sending = ("amplitude", "noise", "schedule", *(("spacing",) if secure else ()), *(("scale",) if radio else ()))
    known = ("step", "z", "newest", *(() if sends is None else ("sends",)), *(("limit",) if secure else ()))
    passed = ("amplitude", *(("scale",) if radio else ()))
    ledger.require_tables(
        *(f"model_sending_{name}" for name in sending),
        *(f"{last}_receiving_{name}" for name in known),
        *tables_of_free_rounds(ledger, passed),
        *tables_of_leads(ledger, further_rounds(ledger)),
    )
    where = ledger.text("gradient_at", ("mixed", "own"))
    if ledger.text("unit") == "record" and where != "mixed":
        ledger.refuse(f'has unit record and gradient_at "{where}": that carries no certificate, "mixed" is needed')
    ledger.per_epoch(f"{last}_receiving_newest")
    ledger.per_node("power")
    amplitude = above_zero(ledger, "model_sending_amplitude", sends)
    z = above_zero(ledger, f"{last}_receiving_z")
    if radio:
        require_mixed_by_channel(ledger)
        require_radio_z(ledger, amplitude, last)
    else:
        require_row_stochastic(ledger, amplitude, sends)
        require_z(ledger, amplitude, ("perron",) if is_accelerated(ledger) else ("recursive", "perron"))
    steps, schedule = ledger.per_epoch(f"{last}_receiving_step"), ledger.per_epoch("model_sending_schedule")
    noise, epochs = ledger.table("model_sending_noise"), np.arange(1, ledger.epochs + 1)
    if secure:
        require_grid(ledger, schedule, amplitude, noise)
    with np.errstate(all="ignore"):
        std = schedule[:, None] * row_of(noise, epochs) / row_of(amplitude, epochs)
        taking_part = None if sends is None else row_of(sends, epochs)
        ratio = exposed_ratio(sensitivity(ledger), steps[:, None] / row_of(z, epochs), std, taking_part)
    return (Releases(law_of(ledger), ratio, "everybody"),)


def noise_sent(ledger: LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """sqrt((1 - alpha) p) sigma_t, times the public factor of a radio."""
    schedule = ledger.per_epoch("model_sending_schedule")[epochs - 1]
    if ledger.has("model_sending_scale"):
        schedule = schedule * ledger.per_epoch("model_sending_scale")[epochs - 1]
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
    drops=True,
    free_rounds=True,
    radio=True,
    counts_coins=True,
    noise_sent=noise_sent,
    side_vector="z",
    decays=("constant", "sqrt", "linear"),
)
