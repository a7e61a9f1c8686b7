"""Further mixing rounds in an epoch, after the one that carries noise: they send the public mixed point, and cost none.

    round 1       V_j = x_j + s_j eta_j is sent, m is made of it                              the one that is paid for
    round 2..L    m_j is sent as it is, and mixed again; the gradient is taken at the last m

m is a function of what was sent, known to everybody, so sending it again tells nothing new. The weights of an epoch are
A^L, so that models agree better at the same certificate; the price is L times the channel uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms import common_reference
from murmurcast.algorithms.account import LedgerTables, require_same
from murmurcast.algorithms.base import NO_DRAWS, Local, Model, Round, Send
from murmurcast.algorithms.tables import Leaf
from murmurcast.channels.base import Channel

if TYPE_CHECKING:
    import jax


Channel_co = TypeVar("Channel_co", bound=Channel, covariant=True)


class MixingState(NamedTuple):
    """What a node needs within an epoch of several rounds.

    Attributes:
        own: x, the node's model.
        published: What the node would give to the world.
        mixed: The newest mixed point, public.
    """

    own: Model
    published: Model
    mixed: Model


class MixingTables(NamedTuple):
    """Factors of a mixed point.

    Attributes:
        heard: Of what is heard.
        kept: Of the node's own signal.
    """

    heard: Leaf
    kept: Leaf


class Carrier(NamedTuple, Generic[Channel_co]):
    """How what nodes say becomes mixed points.

    Attributes:
        channels: Of every round of an epoch.
        sending: Tables of the round that carries noise.
        send: What leaves a node in it.
        passing: Tables of the further rounds.
        pass_on: What leaves a node in them.
        mixing: Factors of the mixed point, in all rounds.
        z: [rows, nodes] what gradients are divided by.
    """

    channels: tuple[Channel_co, ...]
    sending: Any
    send: Send
    passing: Any
    pass_on: Send
    mixing: MixingTables
    z: FloatArray


class Step(Protocol):
    """What is done with the last mixed point of an epoch."""

    def __call__(self, here: Any, state: Any, mixed: jax.Array, local: Local, /) -> tuple[jax.Array, jax.Array]:
        """The next x, and what is published."""
        ...


def start_mixed(model: Model, local: Local) -> MixingState:  # noqa: ARG001
    """The state of a node that has heard nothing yet."""
    return MixingState(model, model, model)


def mixed_point(here: Any, sent: jax.Array, heard: jax.Array) -> jax.Array:
    """A function of what was sent, the node's own noisy signal among it."""
    return here.heard * heard + here.kept * sent


def pass_on(here: Any, state: MixingState, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """The public mixed point, without noise."""
    return here.amplitude * state.mixed


def with_free_rounds(first: Round, carrier: Carrier[Channel], receiving: Any, step: Step) -> tuple[Round, ...]:
    """An epoch of several rounds; the last takes the step.

    Args:
        first: The round that carries noise.
        carrier: Channels and tables of all rounds.
        receiving: Tables of the last round: factors of the mixed point, and whatever the step needs.
        step: The step.
    """

    def mix(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Any:  # noqa: ARG001
        return state._replace(mixed=mixed_point(here, sent, heard))

    def mix_and_step(here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> MixingState:
        mixed = mixed_point(here, sent, heard)
        return MixingState(*step(here, state, mixed, local), mixed)

    if len(carrier.channels) == 1:
        return (first._replace(receiving=receiving, update=mix_and_step),)
    passed = [
        Round(f"mixing{number}", channel, NO_DRAWS, carrier.passing, carrier.mixing, carrier.pass_on, mix)
        for number, channel in enumerate(carrier.channels[1:], start=2)
    ]
    last = passed[-1]._replace(receiving=receiving, update=mix_and_step)
    return (first._replace(receiving=carrier.mixing, update=mix), *passed[:-1], last)


def require_free_rounds(ledger: LedgerTables, draws: str) -> str:
    """The ledger has a round that carries noise, and then only such as send what is public; the name of the last.

    They send m itself: as loud as the model was, over the same links, mixed by the same factors.
    """
    expected = further_rounds(ledger)
    renewed = {common_reference.NAME: "none"} if _is_referenced(ledger) else {}
    ledger.require_rounds(model=draws, **dict.fromkeys(expected, "none"), **renewed)
    links = ledger.links("model")
    for name in expected:
        require_same(ledger, "model_sending_amplitude", f"{name}_sending_amplitude")
        for factor in MixingTables._fields:
            require_same(ledger, f"model_receiving_{factor}", f"{name}_receiving_{factor}")
        ledger.text(f"{name}_channel", (ledger.text("model_channel"),))
        if not all(np.array_equal(one, other) for one, other in zip(links, ledger.links(name), strict=True)):
            ledger.refuse(f"has other links in round {name} than in round model")
    return expected[-1] if expected else "model"


def tables_of_free_rounds(ledger: LedgerTables, passed: tuple[str, ...]) -> tuple[str, ...]:
    """The tables that mix: of all rounds, and of what further ones send."""
    further = further_rounds(ledger)
    mixing = (f"{name}_receiving_{factor}" for name in ("model", *further) for factor in MixingTables._fields)
    reference = common_reference.require_reference(ledger) if _is_referenced(ledger) else ()
    return (*mixing, *(f"{name}_sending_{table}" for name in further for table in passed), *reference)


def _is_referenced(ledger: LedgerTables) -> bool:
    return ledger.text("rounds").split()[-1:] == [common_reference.NAME]


def further_rounds(ledger: LedgerTables) -> list[str]:
    """Names of as many further rounds as the ledger has."""
    count = len(ledger.text("rounds").split()) - 1 - _is_referenced(ledger)
    return [f"mixing{number}" for number in range(2, count + 2)]


def require_mixed_by_channel(ledger: LedgerTables) -> None:
    """A radio's receiver makes the mixed point itself, of what was sent: nothing of the node's own is added to it."""
    heard, kept = ledger.table("model_receiving_heard"), ledger.table("model_receiving_kept")
    if not (heard == 1).all() or kept.any():
        ledger.refuse("adds something of its own to what a radio's receiver makes of the air")
    scale = ledger.per_epoch("model_sending_scale")
    if not (scale > 0).all():
        ledger.refuse("has a 0 in model_sending_scale")
    for name in further_rounds(ledger):
        if not np.array_equal(ledger.per_epoch(f"{name}_sending_scale"), scale):
            ledger.refuse(f"has another {name}_sending_scale than model_sending_scale")
        for what in ("radio", "slots", "air_seconds"):
            if ledger.says(f"{name}_{what}") != ledger.says(f"model_{what}"):
                ledger.refuse(f"says another {what} in round {name}")
        if ledger.text(f"{name}_radio") != ledger.text("model_radio"):
            ledger.refuse(f"has another radio in round {name} than in round model")
