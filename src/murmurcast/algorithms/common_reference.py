"""A common reference that is renewed now and then: nodes say by how much they differ from it.

    sent_j = b_j (V_j - c),   m_i = c + what the receiver makes of it,   c := m_0 every few epochs

A receiver that is wrong by 1 % about its channel multiplies what it hears by 1.01. With a model of norm 1 and steps
that vanish, that destroys learning; with what is left of V - c, it does not matter. c is node 0's mixed point: public,
so that it costs no privacy, whoever node 0 is. A wrong c harms learning only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables
from murmurcast.algorithms.base import NO_DRAWS, Local, Model, Round
from murmurcast.algorithms.tables import Leaf
from murmurcast.channels.flood import Flood
from murmurcast.radio.flooding import FloodCost

if TYPE_CHECKING:
    import jax

NAME = "reference"


class ReferenceState(NamedTuple):
    """What a node needs with a common reference.

    Attributes:
        own: x, the node's model.
        published: What the node would give to the world.
        mixed: The newest mixed point, public.
        reference: c, the same at all nodes.
    """

    own: Model
    published: Model
    mixed: Model
    reference: Model


class Silent(NamedTuple):
    """Constants of a round that says a public point as it is."""


class Renewing(NamedTuple):
    """renews: 1 in epochs in which the reference is renewed."""

    renews: Leaf


def start_referenced(model: Model, local: Local) -> ReferenceState:  # noqa: ARG001
    """All begin at the public start, relative to 0."""
    return ReferenceState(model, model, model, 0 * model)


def with_common_reference(rounds: tuple[Round, ...], cost: FloodCost, every: int, epochs: int) -> tuple[Round, ...]:
    """The same rounds, relative to a reference; and one more that renews it.

    Args:
        rounds: Of states with `mixed`, over channels whose receivers make the mixed point themselves.
        cost: Of telling all nodes the reference.
        every: So many epochs.
        epochs: Of the run.
    """

    def say(here: Silent, state: ReferenceState, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return state.mixed

    def renew(here: Renewing, state: ReferenceState, sent: jax.Array, heard: jax.Array, local: Local) -> ReferenceState:  # noqa: ARG001
        import jax.numpy as jnp

        return state._replace(reference=jnp.where(here.renews > 0, heard, state.reference))

    renewing = Round(NAME, Flood(cost), NO_DRAWS, Silent(), Renewing(_renewals(every, epochs)), say, renew)
    return (*map(_relative, rounds), renewing)


def renews_reference(one: Round) -> bool:
    """Whether a round is the one that renews the reference."""
    return isinstance(one.receiving, Renewing)


def _relative(one: Round) -> Round:
    def send(here: Any, state: ReferenceState, drawn: dict[str, jax.Array]) -> jax.Array:
        differing = state._replace(own=state.own - state.reference, mixed=state.mixed - state.reference)
        return one.send(here, differing, drawn)

    def update(here: Any, state: ReferenceState, sent: jax.Array, heard: jax.Array, local: Local) -> ReferenceState:
        following = one.update(here, state, sent, heard + state.reference, local)
        return ReferenceState(following.own, following.published, following.mixed, state.reference)

    return one._replace(send=send, update=update)


def _renewals(every: int, epochs: int) -> FloatArray:
    """[epochs] 1 at the end of every so many."""
    return np.asarray(np.arange(1, epochs + 1) % every == 0, np.float64)


def require_reference(ledger: LedgerTables) -> tuple[str, ...]:
    """The tables of a ledger's round that renews the reference: it sends what is public, and draws nothing."""
    ledger.text(f"{NAME}_channel", ("flood",))
    if not np.isin(ledger.per_epoch(f"{NAME}_receiving_renews"), (0.0, 1.0)).all():
        ledger.refuse(f"has a {NAME}_receiving_renews of other numbers than 0 and 1")
    return (f"{NAME}_receiving_renews",)
