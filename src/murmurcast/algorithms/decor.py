"""Noise that cancels between neighbours: strong against an eavesdropper, weak against neighbours who talk.

    n_i    = std_t (own e_i + shared sum_{j in N_i} v_ij)             v_ij = -v_ji, fresh for every pair and epoch
    V_i    = x_i + n_i/D_i,   m_i = sum_j w_ij V_j,   x_i <- Proj( m_i - gamma_t g_i(m_i)/z_i )

Weights: row-stochastic ("row") with z = pi, the left Perron vector, and D = K pi, or doubly stochastic with z = D = 1:
either way all pairs cancel in the mean that the network learns. Noise: what is left of it against whom is in
`murmurcast.privacy.cancelling`; pairs agree on keys beforehand. Channel uses: one message per epoch.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms.base import (
    Algorithm,
    Draw,
    Draws,
    Local,
    Model,
    Publish,
    Round,
    Settings,
    State,
    proved,
    start,
    sum_of_links,
)
from murmurcast.algorithms.gossip import averaged, newest, noise_for, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, mix, mixer, radiate
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.network.weights import perron
from murmurcast.planning.setup import Setup
from murmurcast.privacy.cancelling import cancelling_releases
from murmurcast.privacy.releases import Releases

Against = Literal["eavesdropper", "eavesdropper and one node", "everybody"]
PAIRS: Draws = {"own": Draw(), "shared": Draw(per="pair")}
PAIRS_IN_WORDS = "own: normal of a node; shared: normal of a pair with opposite signs"


class Sending(NamedTuple):
    """amplitude; standard deviations of own and of one pair's noise, over D, in units of the schedule; the schedule."""

    amplitude: Leaf
    own: Leaf
    shared: Leaf
    schedule: Leaf


class Receiving(NamedTuple):
    """Factors of what is heard and of what was sent; the step; z; the newest point's weight in what is published."""

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf


def decor(
    setup: Setup,
    *,
    against: Against = "eavesdropper",
    shared_to_own: float = 10.0,
    weights: Literal["row", "sinkhorn", "max-degree", "metropolis"] = "row",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Algorithm 1's steps with noise that cancels between neighbours, the least that meets the setup's budget.

    Args:
        setup: Network, schedule and budget; of a plan also the power split.
        against: Whom the budget is about; what the same run costs against others is promised beside it.
        shared_to_own: How much stronger the noise of one pair is than a node's own.
        weights: "row" (z = pi), or "sinkhorn", "max-degree" or "metropolis" (z = 1).
        access: How neighbours are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Of the steps; without "row", the number of nodes makes them as long as Algorithm 1's.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: one promise for each. Formula: `privacy.cancelling`, composed adaptively. Range:
        gradients clipped and taken at the public mixed point; pairs' keys secret.
    """
    network, schedule = setup.network, setup.schedule
    _check.positive(shared_to_own=shared_to_own)
    network.require_two_way("decor, which draws noise for pairs of neighbours,")
    by, steps = mixer(setup, weights, access), steps_of(setup, step_factor)
    z = perron(by.weights) if weights == "row" else np.ones(network.nodes)
    known = (setup.sensitivity, steps[:, None] / z, schedule.noise_schedule, network.gains)
    unit = 1 / (z * (network.nodes if weights == "row" else 1))
    plain = {part.against: part for part in cancelling_releases(*known, (unit, shared_to_own * unit))}
    _check.one_of(plain, against=against)
    # One scale for all: a pair's noise must be as strong at both ends.
    scale = noise_for(setup, "decor", plain[against]).max()
    own, shared = scale * unit, scale * shared_to_own * unit
    sending = Sending(by.amplitude, same_always(own), same_always(shared), schedule.noise_schedule)
    receiving = Receiving(by.heard, by.kept, steps, same_always(z), newest(setup, publish))
    only = Round("model", by.channel, PAIRS, sending, receiving, send, update)
    settings: Settings = {"against": against, "shared_to_own": shared_to_own, "weights": weights, "access": access}
    settings |= {"step_factor": float(step_factor), "publish": publish}
    releases = cancelling_releases(*known, (own, shared))
    return proved(Algorithm("decor", setup, (only,), settings, start, releases))


def send(here: Sending, state: State, drawn: dict[str, Model]) -> Model:
    """X + n/D."""
    noise = here.own * drawn["own"] + here.shared * sum_of_links(drawn["shared"])
    return radiate(here.amplitude, state.own + here.schedule * noise)


def update(here: Receiving, state: State, sent: Model, heard: Model, local: Local) -> State:
    """Proj(m - gamma g(m)/z)."""
    mixed = mix(here, sent, heard)
    own = local.project(mixed - here.step / here.z * local.gradient_at_public(mixed))
    return State(own, averaged(here, state, mixed))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """One promise for every adversary, from the noise and the links of the ledger."""
    ledger.require_rounds(model=PAIRS_IN_WORDS)
    tables = {"sending": Sending._fields, "receiving": Receiving._fields}
    ledger.require_tables(*(f"model_{part}_{name}" for part, fields in tables.items() for name in fields))
    rows = ledger.text("weights") == "row"
    weights = accounts.require_weights(ledger, "model", "rows" if rows else "both")
    names = ("model_sending_own", "model_sending_shared", "model_receiving_z")
    own, shared, z = (accounts.constant(ledger, name) for name in names)
    expected = perron(weights) if rows else np.ones(ledger.nodes)
    accounts.require_divisor(ledger, "model_receiving_z", expected[None])
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch("model_receiving_newest")
    push = ledger.per_epoch("model_receiving_step")[:, None] / z
    known = (accounts.sensitivity(ledger), push, ledger.per_epoch("model_sending_schedule"))
    return cancelling_releases(*known, accounts.gains(ledger, "model"), (own, shared))


def noise_sent(ledger: accounts.LedgerTables, epochs: NDArray[np.int64]) -> FloatArray:
    """Amplitude std_t (own^2 + d shared^2)^(1/2): of a node's own noise and that of its d pairs together."""
    own, shared = (ledger.table(f"model_sending_{name}")[0] for name in ("own", "shared"))
    pairs = np.bincount(ledger.links("model")[0], minlength=ledger.nodes)
    amplitude = accounts.loudest(ledger, "model_sending_amplitude")
    schedule = ledger.per_epoch("model_sending_schedule")[epochs - 1]
    return np.asarray(schedule[:, None] * amplitude * np.sqrt(own**2 + pairs * shared**2))


METHOD = Method(
    name="decor",
    make=decor,
    summary="noise that cancels between neighbours; promises against each adversary apart",
    account=account,
    promises="against an eavesdropper; with one node besides; against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / z_j)^2 [C_t+1^-1]_jj, C the noise's covariance over nodes",
    reference="Allouah, Koloskova, El Firdoussi, Jaggi, Guerraoui: The privacy power of correlated noise in "
    "decentralized learning, 2024",
    needs="two-way links",
    noise_sent=noise_sent,
    side_vector="z",
    tries={"shared_to_own": (1.0, 10.0, 100.0)},
)
