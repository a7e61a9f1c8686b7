"""A flood: what one node says reaches everybody, digitally, from neighbour to neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from murmurcast.channels.base import Entries, Exchange, Hear, Moment, energy_of_signal
from murmurcast.radio.flooding import BITS, FloodCost

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, eq=False)
class Flood:
    """Everybody hears node 0, rounded to a grid that spans what it says: the same numbers everywhere.

    Attributes:
        cost: Of one flood, on the air.
        bits: Of every parameter.
    """

    kind: ClassVar[str] = "flood"
    uses: ClassVar[int] = 0  # messages of a length of its own, and seldom: counted in seconds and joules
    signals: ClassVar[None] = None
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = False  # what node 0 says is a public point, at all nodes alike

    cost: FloodCost
    bits: int = BITS

    def lists(self, filled_nodes: int) -> None:  # noqa: ARG002
        """Nobody has to know of anybody."""
        return

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:  # noqa: ARG002
        """Node 0's signal, to all."""
        import jax.numpy as jnp

        is_source = (moment.numbers == 0).astype(sent.dtype).reshape(-1, *(1,) * (sent.ndim - 1))
        said = exchange.total(sent * is_source)
        span = jnp.max(jnp.abs(said), axis=tuple(range(1, said.ndim)), keepdims=True)
        step = jnp.where(span > 0, 2 * span / (2**self.bits - 1), 1)
        rounded = step * jnp.round(said / step)
        return jnp.zeros(len(sent)), lambda listed: rounded  # noqa: ARG005

    def energy(self, sent: jax.Array) -> jax.Array:
        """None that counts as power of a message."""
        return 0 * energy_of_signal(sent)

    def entries(self) -> Entries:
        """How far, how finely, and what it takes every time."""
        attributes = {"hops": self.cost.hops, "bits": self.bits, "air_seconds": self.cost.seconds}
        return Entries(attributes, {"joules": (("node",), self.cost.joules)})
