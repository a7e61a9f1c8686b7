"""Everybody learns alone: what a node reaches without the others.

    x_i <- Proj( x_i - step_factor gamma_t g_i(x_i) )

Weights: the identity. Noise: none, for nothing is sent. Channel uses: 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from murmurcast import _check
from murmurcast.algorithms.account import LedgerTables
from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Local, Round, State, proved, start
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.tables import Leaf
from murmurcast.channels.silence import Silence
from murmurcast.planning.setup import Setup
from murmurcast.privacy.releases import Releases, nothing_released

if TYPE_CHECKING:
    import jax


class Sending(NamedTuple):
    """Nothing is sent, so there is nothing to know."""


class Receiving(NamedTuple):
    """step: gamma_t times the factor."""

    step: Leaf


def local_only(setup: Setup, *, step_factor: float = 1.0) -> Algorithm:
    """Learning alone.

    Args:
        setup: Its schedule is used.
        step_factor: Lengthens the steps. With the number of nodes they are about as long as those of Algorithm 1,
            which divides by z.

    Guarantees:
        Nothing leaves a node, so the run costs nothing. Nothing is published either: no noise covers these models, and
        `published` stays at the start.
    """
    _check.positive(step_factor=step_factor)

    def send(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        import jax.numpy as jnp

        return jnp.zeros_like(state.own)

    def update(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:  # noqa: ARG001
        own = local.project(state.own - here.step * local.gradient_at_private(state.own))
        return State(own, state.published)

    schedule = setup.schedule
    return proved(
        Algorithm(
            name="local-only",
            setup=setup,
            rounds=(
                Round(
                    name="model",
                    channel=Silence(),
                    draws=NO_DRAWS,
                    sending=Sending(),
                    receiving=Receiving(step_factor * schedule.steps),
                    send=send,
                    update=update,
                ),
            ),
            settings={"step_factor": float(step_factor)},
            init=start,
            releases=(nothing_released(schedule.epochs, setup.network.nodes),),
        )
    )


def account(ledger: LedgerTables) -> tuple[Releases, ...]:
    """Everybody alone: nothing is sent, and what is published is where all started."""
    ledger.text("model_channel", ("silence",))
    ledger.require_rounds(model="none")
    ledger.require_tables("model_receiving_step")
    ledger.per_epoch("model_receiving_step")
    ledger.per_node("power")
    return (nothing_released(ledger.epochs, ledger.nodes),)


METHOD = Method(
    name="local-only",
    make=local_only,
    summary="everybody alone: the floor, without any message",
    account=account,
    promises="nothing is sent",
    formula="mu = 0",
    reference="none",
    sends=False,
    uses="0",
)
