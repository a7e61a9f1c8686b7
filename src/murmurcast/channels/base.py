"""What a channel is: who hears what in one round, and at what price.

Everything that depends on how signals travel is asked of this object: the engine asks it to deliver, the ledger what to
write down, transcripts and audits what was on the air, reports what it cost. A channel of your own is one class that
meets `Channel`; whatever it does between `send` and `update` is free of data, so no promise depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

if TYPE_CHECKING:
    import jax

LINKS_TOGETHER = 8  # signals that are read in one pass, at most
_FEWEST_IN_LIST = 4

Lists = Any  # a pytree of arrays [nodes, ...]: what every receiver needs to know of whom it hears


class Signals(Protocol):
    """The signals of one round, wherever their senders are."""

    @property
    def everybody(self) -> jax.Array | None:
        """[all nodes, ...] in the order of their numbers; None where only those that are heard here are at hand."""
        ...

    def at(self, numbers: jax.Array, /) -> jax.Array:
        """[links, ...] of the senders with these numbers [links]."""
        ...

    def weighed(self, numbers: jax.Array, /, *weights: jax.Array) -> tuple[jax.Array, ...]:
        """[...] sum_l weights_l signal_l over the senders with these numbers [links], for each weights [links]."""
        ...


class Exchange(Protocol):
    """How a channel reaches the signals of nodes that are elsewhere: on another core, or another machine."""

    def gather(self, values: jax.Array) -> jax.Array:
        """[all nodes, ...] from the [own nodes, ...] of every shard."""
        ...

    def reach(self, values: jax.Array) -> Signals:
        """The [own nodes, ...] of every shard, as far as somebody here hears them."""
        ...

    def total(self, values: jax.Array) -> jax.Array:
        """[...] the sum of [own nodes, ...] over all nodes of all shards."""
        ...


class ReceiverNoise(Protocol):
    """Standard normal draws of a receiver, of the shape of one signal for all seeds; fresh in every epoch and round."""

    def __call__(self, number: jax.Array, /) -> jax.Array:
        """[seeds, ...] by the receiver's number, or by any number that no other draw of the round has."""
        ...


class Moment(NamedTuple):
    """When a round happens, and at whom.

    Attributes:
        epoch: From 1.
        numbers: [own nodes] the numbers of this shard's nodes.
        noise: What receivers' own noise is drawn with.
    """

    epoch: jax.Array
    numbers: jax.Array
    noise: ReceiverNoise


class Hear(Protocol):
    """What one node hears."""

    def __call__(self, listed: Any, /) -> jax.Array:
        """[seeds, ...] the sum, or [neighbours, seeds, ...] each apart, from the node's entry of the lists."""
        ...


class Entries(NamedTuple):
    """What a channel writes into the ledger, under its round's name.

    Attributes:
        attributes: Words and numbers.
        variables: By name, (dimensions, array).
    """

    attributes: dict[str, Any]
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]]


class Channel(Protocol):
    """Who hears what in one round; pure, and free of data."""

    @property
    def kind(self) -> str:
        """One word for the ledger and for errors."""
        ...

    @property
    def uses(self) -> int:
        """Channel uses of one round."""
        ...

    @property
    def signals(self) -> int | None:
        """How many signals a node makes at once, one for each that hears it; None for one signal to all."""
        ...

    @property
    def neighbours(self) -> int | None:
        """How many neighbours a node hears apart at most; None where it hears one sum."""
        ...

    @property
    def on_air(self) -> bool:
        """Whether every signal can be overheard by itself."""
        ...

    def lists(self, filled_nodes: int) -> Lists:
        """Who hears whom, arrays [nodes, ...]; senders are numbered up to `filled_nodes`, fillers last."""
        ...

    def deliver(self, lists: Lists, sent: jax.Array, moment: Moment, exchange: Exchange) -> tuple[Any, Hear]:
        """Carries one round's signals.

        Args:
            lists: Of the shard's own nodes.
            sent: [own nodes, seeds, ...], or [own nodes, signals, seeds, ...].
            moment: When, and at whom.
            exchange: How to reach other shards.

        Returns:
            Entries [own nodes, ...], and the function that makes of one of them what that node hears.
        """
        ...

    def energy(self, sent: jax.Array) -> jax.Array:
        """[seeds] what one node radiates with [seeds, ...], or with the strongest of [signals, seeds, ...]."""
        ...

    def entries(self) -> Entries:
        """What certify, audits and reports must know of it later."""
        ...


class HeardInBlocks(Protocol):
    """A channel of which a few receivers can be served at a time: what each hears follows from its own lists.

    Large networks are trained block of nodes by block, and spread over processes, by such channels only.
    """

    @property
    def gains(self) -> csr_array:
        """[sender, receiver] who hears whom."""
        ...

    def lists_of(self, receivers: NDArray[Any], /) -> Lists:
        """As `Channel.lists`, of these receivers only.

        A list may be as wide as these receivers need, so that a hub costs only itself, if nothing that a receiver hears
        depends on the width; else lists are as wide for all.
        """
        ...


def is_heard_in_blocks(channel: Channel) -> bool:
    """Whether a few receivers can be served at a time, from the signals as they were sent."""
    return hasattr(channel, "lists_of") and getattr(channel, "carries_as_sent", True)


class OverRadio(Channel, Protocol):
    """A channel over a radio: signals are symbols in physical units, behind a pilot."""

    @property
    def carries_as_sent(self) -> bool:
        """Whether others make out what was sent but for gain: not where it is coded into bits."""
        ...

    @property
    def scale(self) -> NDArray[np.float64]:
        """[epochs] rho, the public factor of all that is sent."""
        ...

    def pilot_amplitude(self, epoch: int, node: int) -> float:
        """Of every symbol of a node's pilot, in the root of watts."""
        ...

    def turn(self, epoch: int, node: int, dtype: DTypeLike) -> complex:
        """By which a node turns the phase of pilot and message, in public. `dtype` is the run's."""
        ...


def is_over_radio(channel: Channel) -> TypeGuard[OverRadio]:
    """Whether signals go over a radio: with pilots, and as loud as a public factor makes them."""
    return hasattr(channel, "pilot_amplitude")


def sums_by_gains(channel: Channel) -> bool:
    """Whether all send at once, one signal each, and what a node hears is their sum, by its gains and nothing else.

    Then weights follow from amplitudes and gains, and can be shared out among fewer senders. Gains may vary by epoch,
    and receivers may add noise. A channel says so by `sums_by_gains = True`, and need not say that it does not.
    """
    return getattr(channel, "sums_by_gains", False)


def energy_of_signal(sent: jax.Array) -> jax.Array:
    """[...] ||signal||^2 of [seeds, ...]."""
    import jax.numpy as jnp

    return jnp.sum(sent * sent, axis=range(1, sent.ndim))


def link_entries(gains: csr_array) -> Entries:
    """The ledger's entries of all links."""
    links = gains.tocoo()
    return Entries(
        {},
        {
            "sender": (("link",), links.coords[0]),
            "receiver": (("link",), links.coords[1]),
            "gain": (("link",), links.data),
        },
    )


def padded(links: csr_array, values: NDArray[Any], width: int | None = None) -> NDArray[Any]:
    """[rows, width] values of the links, row by row, filled up with zeros; as wide as the longest row unless said."""
    degree = np.diff(links.indptr)
    slot = np.arange(len(values)) - np.repeat(links.indptr[:-1], degree)
    table = np.zeros((len(degree), int(degree.max()) if width is None else width), values.dtype)
    table[np.repeat(np.arange(len(degree)), degree), slot] = values
    return table


def most_links(links: csr_array) -> int:
    """The largest number of links in a row."""
    return int(np.diff(links.indptr).max())


def stepwise_width(links: csr_array) -> int:
    """The largest number of links in a row, rounded up to a power of two: few widths, so that few are compiled."""
    return max(_FEWEST_IN_LIST, 1 << (most_links(links) - 1).bit_length())
