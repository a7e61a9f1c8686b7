"""Silence: nobody hears anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from murmurcast.channels.base import Entries, Exchange, Hear, Moment, energy_of_signal

if TYPE_CHECKING:
    import jax


class Silence(NamedTuple):
    """Nobody hears anything."""

    @property
    def kind(self) -> str:
        """As the ledger calls it."""
        return "silence"

    @property
    def uses(self) -> int:
        """None."""
        return 0

    @property
    def signals(self) -> None:
        """One signal, to nobody."""
        return

    @property
    def neighbours(self) -> None:
        """A sum of nothing."""
        return

    @property
    def on_air(self) -> bool:
        """Nothing is."""
        return False

    def lists(self, filled_nodes: int) -> None:  # noqa: ARG002
        """Nobody hears anybody."""
        return

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:  # noqa: ARG002
        """Zeros."""
        import jax.numpy as jnp

        return jnp.zeros(len(sent)), lambda listed: jnp.zeros_like(sent[0])  # noqa: ARG005

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the one signal."""
        return energy_of_signal(sent)

    def entries(self) -> Entries:
        """There are no links."""
        return Entries({}, {})
