"""What the air does with signals: every receiver's weighted sum of what is sent, dense or sparse."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from murmurcast.algorithms.base import Air, Medium, Server, Slots, padded
from murmurcast.engine.sharding import Layout

_DENSE_FROM = 0.2  # of all pairs that are links: from there on a matrix product is quicker than gathering


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


Hearing = Dense | Sparse | None


def hearing(medium: Medium, filled_nodes: int) -> Hearing:
    """Who hears what over a medium, in the form that is quicker; fillers are heard by nobody."""
    if isinstance(medium, Air):
        nodes = medium.gains.shape[0]
        if medium.gains.nnz >= _DENSE_FROM * nodes**2:
            return Dense(np.pad(medium.gains.toarray().T, ((0, 0), (0, filled_nodes - nodes))))
        arriving = csr_array(medium.gains.T)
        return Sparse(padded(arriving, arriving.indices), padded(arriving, arriving.data))
    if isinstance(medium, Slots):
        return _hearing_slots(medium.gains)
    return None


def channel(
    medium: Medium, hearing: Hearing, sent: jax.Array, layout: Layout
) -> tuple[Any, Callable[[Any], jax.Array]]:
    """Lists [own nodes, ...], and the function that makes of one entry what that node hears, [seeds, ...].

    Args:
        medium: What carries the signals.
        hearing: Who hears what, of the device's own nodes.
        sent: [own nodes, seeds, ...], for `Slots` [own nodes, neighbours, seeds, ...].
        layout: How nodes are spread over devices.
    """
    if isinstance(medium, Server):
        total = layout.sum_over_nodes(sent)
        return jnp.zeros(len(sent)), lambda _: total
    if isinstance(hearing, Dense):
        signals = layout.gather_nodes(sent)
        heard = hearing.gains @ signals.reshape(len(signals), -1)
        return heard.reshape(sent.shape), lambda heard: heard
    if isinstance(hearing, Sparse):
        signals = layout.gather_nodes(sent.reshape(-1, *sent.shape[2:]) if isinstance(medium, Slots) else sent)
        return hearing, lambda listed: jnp.tensordot(listed.gains, signals[listed.signals], axes=1)
    return jnp.zeros(len(sent)), lambda _: jnp.zeros_like(sent[0])


def _hearing_slots(gains: csr_array) -> Sparse:
    """Node j makes one signal for each of its neighbours; they are numbered j times the largest degree plus slot."""
    most = int(np.diff(gains.indptr).max())
    slot = np.arange(gains.nnz) - np.repeat(gains.indptr[:-1], np.diff(gains.indptr))
    sender = np.repeat(np.arange(gains.shape[0]), np.diff(gains.indptr))
    number = csr_array((sender * most + slot + 1, gains.indices, gains.indptr), gains.shape)  # from 1: 0 is no link
    arriving, numbers = csr_array(gains.T), csr_array(number.T)
    return Sparse(padded(arriving, numbers.data - 1), padded(arriving, arriving.data))
