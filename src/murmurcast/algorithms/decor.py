"""Noise that cancels between neighbours: strong against an eavesdropper, weak against neighbours who talk.

    n_i    = std_t (own e_i + shared sum_{j in N_i} v_ij)             v_ij = -v_ji, fresh for every pair and epoch
    sent_i = sqrt(p_i) (x_i + n_i/pi_i),   m_i = sum_j a_ij sent_j/sqrt(p_j)
    x_i   <- Proj( m_i - gamma_t g_i(m_i)/pi_i )

Weights: the row-stochastic A of the gains; pi is its left Perron vector, so that in sum_i pi_i x_i all pairs cancel.
Noise: what is left of it against whom is in `murmurcast.privacy.cancelling`; pairs agree on keys beforehand.
Channel uses: 1 per epoch.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import Algorithm, Draw, Local, Model, Round, Settings, State, proved, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf, mixing_factors, same_always
from murmurcast.channels.air import Air
from murmurcast.network.weights import mixing, normaliser, perron
from murmurcast.planning.setup import Setup
from murmurcast.privacy.cancelling import cancelling_releases
from murmurcast.privacy.releases import Releases

Against = Literal["eavesdropper", "eavesdropper and one node"]


class Sending(NamedTuple):
    """sqrt(p); standard deviations of own and of one pair's noise, over pi, in units of the schedule; the schedule."""

    amplitude: Leaf
    own: Leaf
    shared: Leaf
    schedule: Leaf


class Receiving(NamedTuple):
    """Factors of what is heard and of what was sent; the step; pi."""

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf


def decor(setup: Setup, *, against: Against = "eavesdropper", shared_to_own: float = 10.0) -> Algorithm:
    """Algorithm 1's steps with noise that cancels between neighbours, the least that meets the setup's budget.

    Args:
        setup: Network, schedule and budget.
        against: Whom the budget is about; what the same run costs against others is promised beside it.
        shared_to_own: How much stronger the noise of one pair is than a node's own.

    Guarantees:
        Unit: the budget's. Adversary: one promise for each. Formula: `privacy.cancelling`, composed adaptively. Range:
        gradients clipped and taken at the public mixed point; pairs' keys secret.
    """
    network, schedule = setup.network, setup.schedule
    _check.positive(shared_to_own=shared_to_own)
    network.require_two_way("decor, which draws noise for pairs of neighbours,")
    made = mixing(network, np.ones(network.nodes), normaliser(network, "lazy"))
    pi, amplitude = perron(made.weights), np.sqrt(network.power)
    known = (setup.sensitivity, schedule.steps[:, None] / pi, schedule.noise_schedule, network.gains)
    plain = {part.against: part for part in cancelling_releases(*known, (1 / pi, shared_to_own / pi))}
    _check.one_of(plain, against=against)
    mu = float(np.sqrt(np.sum(plain[against].ratio ** 2, axis=0)).max())
    scale = mu / setup.curve.mu_of_steps(setup.budget.epsilon, setup.budget.delta)
    own, shared = scale / pi, scale * shared_to_own / pi

    def send(here: Sending, state: State, drawn: dict[str, Model]) -> Model:
        noise = here.own * drawn["own"] + here.shared * drawn["shared"].sum(axis=0)
        return here.amplitude * (state.own + here.schedule * noise)

    def update(here: Receiving, state: State, sent: Model, heard: Model, local: Local) -> State:  # noqa: ARG001
        mixed = here.heard * heard + here.kept * sent
        return State(local.project(mixed - here.step / here.z * local.gradient_at_public(mixed)), mixed)

    noise = (same_always(own), same_always(shared), schedule.noise_schedule)
    receiving = Receiving(*mixing_factors(network, made, amplitude), schedule.steps, same_always(pi))
    draws = {"own": Draw(), "shared": Draw(per="pair")}
    only = Round("model", Air(network.gains), draws, Sending(same_always(amplitude), *noise), receiving, send, update)
    settings: Settings = {"against": against, "shared_to_own": shared_to_own, "normaliser": made.normaliser}
    releases = cancelling_releases(*known, (own, shared))
    return proved(Algorithm("decor", setup, (only,), settings, start, releases))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """One promise for every adversary, from the noise and the links of the ledger."""
    ledger.require_rounds(model="own: normal of a node; shared: normal of a pair with opposite signs")
    tables = {"sending": Sending._fields, "receiving": Receiving._fields}
    ledger.require_tables(*(f"model_{part}_{name}" for part, fields in tables.items() for name in fields))
    ledger.text("model_channel", ("air",))
    amplitude = accounts.above_zero(ledger, "model_sending_amplitude")
    accounts.require_row_stochastic(ledger, amplitude, None)
    accounts.require_z(ledger, amplitude, ("perron",))
    names = ("model_sending_own", "model_sending_shared", "model_receiving_z")
    own, shared, z = (accounts.constant(ledger, name) for name in names)
    push, schedule = ledger.per_epoch("model_receiving_step")[:, None] / z, ledger.per_epoch("model_sending_schedule")
    known = (accounts.sensitivity(ledger), push, schedule, accounts.gains(ledger, "model"))
    return cancelling_releases(*known, (own, shared))


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """sqrt(p) std_t (own^2 + d shared^2)^(1/2): of a node's own noise and that of its d pairs together."""
    amplitude, own, shared = (ledger.table(f"model_sending_{name}")[0] for name in ("amplitude", "own", "shared"))
    pairs = np.bincount(ledger.links("model")[0], minlength=ledger.nodes)
    schedule = ledger.per_epoch("model_sending_schedule")[epochs - 1]
    return np.asarray(schedule[:, None] * amplitude * np.sqrt(own**2 + pairs * shared**2))


METHOD = Method(
    name="decor",
    make=decor,
    summary="noise that cancels between neighbours; promises against each adversary apart",
    account=account,
    promises="against an eavesdropper; with one node besides; against everybody",
    reference="Allouah et al.: The privacy power of correlated noise in decentralized learning, 2024",
    needs="two-way links",
    noise_sent=noise_sent,
)
