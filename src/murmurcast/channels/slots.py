"""Slots: in receiver i's slot every neighbour j sends a signal made for i alone.

Receivers that no sender has in common share a slot: as many channel uses as a greedy colouring takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from murmurcast.channels.air import Sparse
from murmurcast.channels.base import (
    Entries,
    Exchange,
    Hear,
    Moment,
    energy_of_signal,
    link_entries,
    most_links,
    padded,
)
from murmurcast.channels.colouring import slots_of_receivers

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True, eq=False)
class Slots:
    """A slot for every receiver.

    Attributes:
        gains: [sender, receiver].
    """

    kind: ClassVar[str] = "slots"
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = True

    gains: csr_array

    @property
    def uses(self) -> int:
        """Colours of the receivers."""
        return slots_of_receivers(self.gains)

    @property
    def signals(self) -> int:
        """One for each that hears the node, in the order of its row of gains; short rows are filled up."""
        return most_links(self.gains)

    def lists(self, filled_nodes: int) -> Sparse:  # noqa: ARG002 - signals are numbered by real nodes
        """Node j's signals are numbered j times the largest number of them, plus slot."""
        gains, most = self.gains, most_links(self.gains)
        slot = np.arange(gains.nnz) - np.repeat(gains.indptr[:-1], np.diff(gains.indptr))
        sender = np.repeat(np.arange(gains.shape[0]), np.diff(gains.indptr))
        number = csr_array((sender * most + slot + 1, gains.indices, gains.indptr), gains.shape)  # from 1: 0 is no link
        arriving, numbers = csr_array(gains.T), csr_array(number.T)
        return Sparse(padded(arriving, numbers.data - 1), padded(arriving, arriving.data))

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:  # noqa: ARG002
        """Every receiver's sum of the signals made for it."""
        import jax.numpy as jnp

        signals = exchange.gather(sent.reshape(-1, *sent.shape[2:]))
        return lists, lambda listed: jnp.tensordot(listed.gains, signals[listed.signals], axes=1)

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the strongest: power is budgeted for each."""
        import jax

        return jax.vmap(energy_of_signal)(sent).max(axis=0)

    def entries(self) -> Entries:
        """Links."""
        return link_entries(self.gains)
