"""Orthogonal access: every node multicasts in a slot of its own, so that each that hears it hears it apart.

Senders that nobody hears at once may share a slot: as many channel uses as a greedy colouring of "has a common
receiver" takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast.channels.air import Sparse, sparse
from murmurcast.channels.base import (
    Entries,
    Exchange,
    Hear,
    Moment,
    energy_of_signal,
    link_entries,
    most_links,
)
from murmurcast.channels.colouring import slots_of_senders

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, eq=False)
class Links:
    """Every neighbour heard apart: [neighbours, ...], in the order of the receiver's column of gains, zeros behind.

    Attributes:
        gains: [sender, receiver].
    """

    kind: ClassVar[str] = "links"
    signals: ClassVar[None] = None
    on_air: ClassVar[bool] = True

    gains: csr_array

    @property
    def uses(self) -> int:
        """Colours of the senders."""
        return slots_of_senders(self.gains)

    @property
    def neighbours(self) -> int:
        """As many as the largest number of nodes that one node hears."""
        return most_links(self._arriving)

    def lists(self, filled_nodes: int) -> Sparse:  # noqa: ARG002 - signals are numbered by real nodes
        """Whom every receiver hears."""
        return sparse(self._arriving)

    def lists_of(self, receivers: NDArray[Any]) -> Sparse:
        """Whom these receivers hear."""
        return sparse(self._arriving[receivers], self.neighbours)

    @cached_property
    def _arriving(self) -> csr_array:
        """[receiver, sender]."""
        return csr_array(self.gains.T)

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:  # noqa: ARG002
        """Every neighbour's signal, as strong as it arrives."""
        signals = exchange.reach(sent)

        def hear(listed: Any) -> jax.Array:
            strength: jax.Array = listed.gains.reshape(-1, *(1,) * (sent.ndim - 1))
            return strength * signals.at(listed.signals)

        return lists, hear

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the one signal."""
        return energy_of_signal(sent)

    def entries(self) -> Entries:
        """Links."""
        return link_entries(self.gains)
