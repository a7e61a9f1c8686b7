"""Silence: nobody hears anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from murmurcast.channels.base import Entries, Exchange, Hear, Moment, energy_of_signal

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, eq=False)
class Silence:
    """Nobody hears anything."""

    kind: ClassVar[str] = "silence"
    uses: ClassVar[int] = 0
    signals: ClassVar[None] = None
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = False

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
