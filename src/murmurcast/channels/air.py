"""The air: everybody sends at once; receiver i hears sum_j gains[j, i] times the signal of j, with its own noise.

    y_i,t = sum_{j in N_i} h_ji f_t(j, i) sent_j,t + tau_i n_i,t

f_t varies the gains over epochs and tau is the receivers' noise; the paper's air has neither. One channel use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast.channels.base import (
    Entries,
    Exchange,
    Hear,
    Moment,
    energy_of_signal,
    link_entries,
    padded,
    stepwise_width,
)

if TYPE_CHECKING:
    import jax

_DENSE_FROM = 0.2  # of all pairs that are links: from there on a matrix product is quicker than gathering


class GainsAt(Protocol):
    """How gains vary: a factor of every link in every epoch, computed when it is needed and never kept."""

    def __call__(self, epoch: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
        """The factor, of the arguments' broadcast shape. It may draw by key from the three, and from nothing else."""
        ...


class Dense(NamedTuple):
    """gains: [receiver, sender]."""

    gains: Any


class Sparse(NamedTuple):
    """Lists of what is heard.

    Attributes:
        signals: [receiver, heard] numbers of the signals.
        gains: [receiver, heard], 0 for filling.
    """

    signals: Any
    gains: Any


def sparse(arriving: csr_array, width: int | None = None) -> Sparse:
    """Whom every receiver hears, from the gains [receiver, sender]."""
    return Sparse(padded(arriving, arriving.indices, width), padded(arriving, arriving.data, width))


class Noisy(NamedTuple):
    """What a receiver with noise of its own needs besides.

    Attributes:
        inner: As without noise.
        std: [receiver] of its noise, per coordinate.
    """

    inner: Any
    std: Any


@dataclass(frozen=True, eq=False)
class Air:
    """The over-the-air sum.

    Attributes:
        gains: [sender, receiver].
        gains_at: A factor of every gain by epoch; None leaves them constant.
        receiver_noise: [nodes] tau, the standard deviation of what a receiver adds by itself; None adds nothing.
    """

    kind: ClassVar[str] = "air"
    uses: ClassVar[int] = 1
    signals: ClassVar[None] = None
    neighbours: ClassVar[None] = None
    on_air: ClassVar[bool] = True
    sums_by_gains: ClassVar[bool] = True

    gains: csr_array
    gains_at: GainsAt | None = None
    receiver_noise: FloatArray | None = None

    def lists(self, filled_nodes: int) -> Any:
        """In the form that is quicker; fillers are heard by nobody."""
        nodes = self.gains.shape[0]
        if self.gains.nnz >= _DENSE_FROM * nodes**2:
            lists: Any = Dense(np.pad(self.gains.toarray().T, ((0, 0), (0, filled_nodes - nodes))))
        else:
            lists = sparse(self._arriving)
        return lists if self.receiver_noise is None else Noisy(lists, self.receiver_noise)

    def lists_of(self, receivers: NDArray[Any]) -> Any:
        """Whom these receivers hear."""
        heard = self._arriving[receivers]
        lists = sparse(heard, stepwise_width(heard))
        return lists if self.receiver_noise is None else Noisy(lists, self.receiver_noise[receivers])

    @cached_property
    def _arriving(self) -> csr_array:
        """[receiver, sender]."""
        return csr_array(self.gains.T)

    def deliver(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:
        """Every receiver's sum."""
        if isinstance(lists, Noisy):
            inner, hear = self._sum(lists.inner, sent, moment, exchange)
            return (inner, lists.std, moment.numbers), lambda one: hear(one[0]) + one[1] * moment.noise(one[2])
        return self._sum(lists, sent, moment, exchange)

    def _sum(self, lists: Any, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:
        import jax.numpy as jnp

        receiver = moment.numbers[:, None]
        if isinstance(lists, Dense):
            signals = exchange.gather(sent)
            sender = jnp.arange(len(signals))[None, :]
            heard = self._now(lists.gains, moment.epoch, sender, receiver) @ signals.reshape(len(signals), -1)
            return heard.reshape(sent.shape), lambda listed: listed
        now = lists._replace(gains=self._now(lists.gains, moment.epoch, lists.signals, receiver))
        reached = exchange.reach(sent)
        return now, lambda listed: reached.weighed(listed.signals, listed.gains)[0]

    def _now(self, gains: jax.Array, epoch: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
        return gains if self.gains_at is None else gains * self.gains_at(epoch, sender, receiver)

    def energy(self, sent: jax.Array) -> jax.Array:
        """Of the one signal."""
        return energy_of_signal(sent)

    def entries(self) -> Entries:
        """Links, whether gains vary, and the receivers' noise."""
        entries = link_entries(self.gains)
        if self.gains_at is not None:
            entries.attributes["gains_at"] = getattr(self.gains_at, "__name__", type(self.gains_at).__name__)
        if self.receiver_noise is not None:
            entries.variables["receiver_noise"] = (("node",), self.receiver_noise)
        return entries
