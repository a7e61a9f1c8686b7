"""A server that everybody trusts: all hear the sum of all signals, and nothing else. Sum up, model down: two uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from murmurcast.channels.base import Entries, Exchange, Hear, Moment, energy_of_signal

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, eq=False)
class Server:
    """Everybody hears the sum of all signals, and nothing else."""

    kind: ClassVar[str] = "server"
    uses: ClassVar[int] = 2
    signals: ClassVar[None] = None
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = False

    def lists(self, filled_nodes: int) -> None:  # noqa: ARG002
        """Nobody has to know of anybody."""
        return

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:  # noqa: ARG002
        """The sum, to all."""
        import jax.numpy as jnp

        total = exchange.total(sent)
        return jnp.zeros(len(sent)), lambda listed: total  # noqa: ARG005

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the one signal."""
        return energy_of_signal(sent)

    def entries(self) -> Entries:
        """There are no links."""
        return Entries({}, {})
