"""Muffliato: noise once, then several rounds of gossip, then a step.

    y^0 = x + n,   y^1 = W y^0,   y^(k+1) = w W y^k + (1 - w) y^(k-1),   m = y^G,   x <- Proj( m - gamma_t g(m) )

Weights: doubly stochastic. w is Chebyshev's where W is symmetric ("metropolis", "max-degree"), else 1.
Noise: one draw per node and epoch; what follows in the same epoch is a function of what was sent, and costs nothing.
Channel uses: G messages per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast import _check
from murmurcast._threads import threads_for
from murmurcast.algorithms import account as accounts
from murmurcast.algorithms import gossip as saying
from murmurcast.algorithms.base import NO_DRAWS, NOISE, Algorithm, Local, Model, Publish, Round, Settings, proved
from murmurcast.algorithms.gossip import Sending, averaged, gossip_releases, newest, noise_for, noise_sent, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Doubly, Loud, mix, mixer, radiate, spoken
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.errors import Error
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases

if TYPE_CHECKING:
    import jax

_MAX_ROUNDS = 100
_DENSE_UP_TO = 3000  # nodes, for all eigenvalues


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x.
        published: The newest mixed point, or an average of them.
        point: y^k.
        before: y^(k-1).
    """

    own: Model
    published: Model
    point: Model
    before: Model


class First(NamedTuple):
    """Factors of what is heard and of what was sent; the amplitude of the latter."""

    heard: Leaf
    kept: Leaf
    amplitude: Leaf


class Next(NamedTuple):
    """Factors of what is heard and of what was sent; w."""

    heard: Leaf
    kept: Leaf
    lead: Leaf


class Stepping(NamedTuple):
    """Constants of the step: gamma_t, and the newest point's weight in what is published."""

    step: Leaf
    newest: Leaf


class Only(NamedTuple):
    """All at once, where there is one round."""

    heard: Leaf
    kept: Leaf
    amplitude: Leaf
    step: Leaf
    newest: Leaf


class Last(NamedTuple):
    """A further round, and the step after it."""

    heard: Leaf
    kept: Leaf
    lead: Leaf
    step: Leaf
    newest: Leaf


def muffliato(
    setup: Setup,
    *,
    gossip: int = 4,
    weights: Doubly = "sinkhorn",
    access: Access = "air",
    step_factor: float = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Muffliato with the least noise that meets the budget.

    Args:
        setup: Network, schedule and budget.
        gossip: G, rounds of gossip per epoch.
        weights: How neighbours are weighed.
        access: How they are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Lengthens the steps; with the number of nodes they are as long as Algorithm 1's.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        Unit: the budget's. Adversary: everybody else together, hearing every antenna, and all published models.
        Formula: mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2, whatever G is. Range: gradients clipped, at the
        public point.
    """
    count = require_rounds(gossip)
    by, steps = mixer(setup, weights, access), steps_of(setup, step_factor)
    noise = noise_for(setup, "muffliato", gossip_releases(setup, steps, setup.sensitivity**0))
    stepping = Stepping(steps, newest(setup, publish))
    sending = saying.sending(by, setup, noise)
    lead = same_always(np.full(setup.network.nodes, chebyshev(by.weights)))
    first = First(by.heard, by.kept, by.amplitude)
    rounds = [Round("model", by.channel, NOISE, sending, first, say, begin_gossip)]
    if count == 1:
        rounds = [Round("model", by.channel, NOISE, sending, Only(*first, *stepping), say, begin_and_step)]
    for number in range(2, count + 1):
        is_last = number == count
        receiving = Last(by.heard, by.kept, lead, *stepping) if is_last else Next(by.heard, by.kept, lead)
        update = go_on_and_step if is_last else go_on
        rounds.append(Round(f"gossip{number}", by.channel, NO_DRAWS, Loud(by.amplitude), receiving, pass_on, update))
    settings: Settings = {"gossip": count, "weights": weights, "access": access}
    return proved(
        Algorithm(
            "muffliato",
            setup,
            tuple(rounds),
            settings | {"step_factor": float(step_factor), "publish": publish},
            begin,
            (gossip_releases(setup, steps, noise),),
        )
    )


def require_rounds(gossip: int) -> int:
    """A whole number of rounds."""
    _check.at_least(1, gossip=gossip)
    if gossip > _MAX_ROUNDS:
        raise Error(
            f"gossip is {gossip}, expected at most {_MAX_ROUNDS} rounds per epoch", hint="give a few, such as 4"
        )
    return gossip


def chebyshev(weights: csr_array) -> float:
    """W = 2 (1 - sqrt(l (1 - l/4))) / (1 - l/2)^2 with l = 1 - lambda_2, for symmetric weights; 1 for others."""
    nodes = weights.shape[0]
    if nodes > _DENSE_UP_TO or np.abs((weights - weights.T).data).max(initial=0.0) > 1e-12:
        return 1.0
    with threads_for(nodes):
        values = np.linalg.eigvalsh(weights.toarray())
    gap = 1 - float(values[-2])
    return float(2 * (1 - np.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2)


def begin(start: Model, local: Local) -> State:  # noqa: ARG001
    """Nothing has been heard."""
    return State(start, start, start, start)


def say(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """X + n."""
    return radiate(here.amplitude, state.own + here.noise * here.schedule * drawn["noise"])


def pass_on(here: Loud, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """y^k, a function of what was sent."""
    return radiate(here.amplitude, state.point)


def begin_gossip(here: First, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
    """y^1 = W y^0."""
    return state._replace(point=mix(here, sent, heard), before=spoken(here.amplitude, sent))


def go_on(here: Next, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
    """y^(k+1) = w W y^k + (1 - w) y^(k-1)."""
    return state._replace(point=here.lead * mix(here, sent, heard) + (1 - here.lead) * state.before, before=state.point)


def begin_and_step(here: Only, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The first round is the last."""
    return _step(here, begin_gossip(First(*here[:3]), state, sent, heard, local), local)


def go_on_and_step(here: Last, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """The last of several rounds."""
    return _step(here, go_on(Next(*here[:3]), state, sent, heard, local), local)


def _step(here: Only | Last, state: State, local: Local) -> State:
    """Proj(m - gamma g(m))."""
    own = local.project(state.point - here.step * local.gradient_at_public(state.point))
    return state._replace(own=own, published=averaged(here, state, state.point))


def account(ledger: accounts.LedgerTables) -> tuple[Releases, ...]:
    """A Gaussian mechanism in the first round of every epoch; later rounds pass on what was sent."""
    count = require_rounds(int(ledger.number("gossip")))
    later = [f"gossip{number}" for number in range(2, count + 1)]
    ledger.require_rounds(model="noise: normal of a node", **dict.fromkeys(later, "none"))
    last = later[-1] if later else "model"
    fields = {"model": Only._fields if count == 1 else First._fields}
    fields |= {name: Last._fields if name == last else Next._fields for name in later}
    ledger.require_tables(
        *(f"model_sending_{name}" for name in Sending._fields),
        *(f"{name}_sending_amplitude" for name in later),
        *(f"{name}_receiving_{field}" for name, known in fields.items() for field in known),
    )
    for name in fields:
        accounts.require_weights(ledger, name, "both")
    ledger.text("publish", ("last", "average"))
    ledger.per_epoch(f"{last}_receiving_newest")
    push = accounts.by_epoch(ledger, f"{last}_receiving_step")
    return (saying.exposed_releases(accounts.sensitivity(ledger), push, saying.said_std(ledger)),)


METHOD = Method(
    name="muffliato",
    make=muffliato,
    summary="noise once, then several rounds of gossip before every step",
    account=account,
    promises="against everybody",
    formula="mu_j^2 = sum over t < T of (S_j gamma_t / s_j,t+1)^2",
    reference="Cyffers, Even, Bellet, Massoulie: Muffliato, peer-to-peer privacy amplification for decentralized "
    "optimization and averaging, 2022; promised here is what holds against everybody",
    needs="two-way links",
    noise_sent=noise_sent,
    uses="gossip",
    averages=True,
)
