"""Further mixing rounds that lean on the two before them: models agree sooner, and the certificate stays the same.

    round 1       V_j = x_j + s_j eta_j is sent;  y^0 = V,  y^1 = A V                         the one that is paid for
    round k + 1   y^k_j is sent as it is;  y^(k+1) = w A y^k + (1 - w) y^(k-1);  the gradient is taken at the last one

Every y is a function of all V, so it is public, and sending it again tells nothing new. w is the same for all nodes, so
rows of what an epoch makes of V sum to 1 and pi V stays: z is that of plain rounds at its limit. See
`murmurcast.network.acceleration` for w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import LedgerTables
from murmurcast.algorithms.base import NO_DRAWS, Local, Model, Round
from murmurcast.algorithms.free_rounds import Carrier, Step, mixed_point
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.base import Channel

if TYPE_CHECKING:
    import jax

MAX_LEAD = 2.0  # what no w exceeds: it tends to 2 where a network hardly mixes


class LeaningState(NamedTuple):
    """What a node needs within an epoch.

    Attributes:
        own: x, the node's model.
        published: What the node would give to the world.
        mixed: y^k, public.
        before: y^(k-1), public.
    """

    own: Model
    published: Model
    mixed: Model
    before: Model


class First(NamedTuple):
    """Factors of y^1, and of the node's own signal in y^0."""

    heard: Leaf
    kept: Leaf
    said: Leaf


class Next(NamedTuple):
    """Factors of a mixed point, and w."""

    heard: Leaf
    kept: Leaf
    lead: Leaf


class Last(NamedTuple):
    """The same and the step: gamma_t, its divisor z, and the newest point's share in what is published."""

    heard: Leaf
    kept: Leaf
    lead: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf


def start_leaning(model: Model, local: Local) -> LeaningState:  # noqa: ARG001
    """The state of a node that has heard nothing yet."""
    return LeaningState(model, model, model, model)


def begin(here: First, state: LeaningState, sent: jax.Array, heard: jax.Array, local: Local) -> LeaningState:  # noqa: ARG001
    """y^0 and y^1."""
    return state._replace(mixed=mixed_point(here, sent, heard), before=here.said * sent)


def lean(here: Any, state: LeaningState, sent: jax.Array, heard: jax.Array, local: Local) -> LeaningState:  # noqa: ARG001
    """y^(k+1)."""
    following = here.lead * mixed_point(here, sent, heard) + (1 - here.lead) * state.before
    return state._replace(mixed=following, before=state.mixed)


def with_accelerated_rounds(
    first: Round, carrier: Carrier[Channel], leads: FloatArray, step: Step
) -> tuple[Round, ...]:
    """An epoch of several rounds; the last takes the step.

    Args:
        first: The round that carries noise; its receiving tables end in those of the step.
        carrier: Channels and tables of all rounds.
        leads: [rounds - 1] w of every further round.
        step: The step.
    """

    def lean_and_step(here: Last, state: LeaningState, sent: jax.Array, heard: jax.Array, local: Local) -> LeaningState:
        leaning = lean(here, state, sent, heard, local)
        own, published = step(here, state, leaning.mixed, local)
        return leaning._replace(own=own, published=published)

    nodes = np.shape(carrier.sending.amplitude)[-1]
    factors = [same_always(np.full(nodes, lead)) for lead in leads]
    passed = [
        Round(f"mixing{number}", channel, NO_DRAWS, carrier.passing, Next(*carrier.mixing, lead), carrier.pass_on, lean)
        for number, (channel, lead) in enumerate(zip(carrier.channels[1:], factors, strict=True), start=2)
    ]
    stepping = first.receiving
    last = passed[-1]._replace(
        receiving=Last(*carrier.mixing, factors[-1], stepping.step, stepping.z, stepping.newest), update=lean_and_step
    )
    said = First(*carrier.mixing, np.asarray(1 / carrier.sending.amplitude))
    return (first._replace(receiving=said, update=begin), *passed[:-1], last)


def is_accelerated(ledger: LedgerTables) -> bool:
    """Whether further rounds lean on the two before them."""
    return ledger.has("model_receiving_said")


def tables_of_leads(ledger: LedgerTables, further: list[str]) -> tuple[str, ...]:
    """The tables that only such rounds have; what they hold leaves rows of weights at 1, and pi where it is."""
    if not is_accelerated(ledger):
        return ()
    amplitude, said = ledger.table("model_sending_amplitude"), ledger.table("model_receiving_said")
    if not np.allclose(said * amplitude, 1, rtol=1e-6, atol=0):
        ledger.refuse("has a model_receiving_said that is not one over model_sending_amplitude")
    for name in further:
        lead = ledger.table(f"{name}_receiving_lead")
        if not ((lead == lead.flat[0]) & (lead >= 1) & (lead <= MAX_LEAD)).all():
            ledger.refuse(f"has a {name}_receiving_lead that is not one number from 1 to {MAX_LEAD:g} for all nodes")
    return ("model_receiving_said", *(f"{name}_receiving_lead" for name in further))
