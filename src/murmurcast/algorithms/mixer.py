"""How what nodes say is mixed: which weights, by which access, and the tables that carry both out.

Every mixed point has the same form, whatever the weights: a factor of what is heard, and a factor of what the node sent
itself. So it is a function of what was sent, and public.

    access       what leaves a node                          channel uses of one message
    air          q_j V_j, heard by all at once as a sum      1
    orthogonal   sqrt(p_j) V_j, every neighbour heard apart  colours of senders with a common receiver
    slots        w_ij V_j / h_ji, a sum made for receiver i  colours of receivers with a common sender
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Model, per_link, weighed_sum
from murmurcast.algorithms.tables import Leaf, same_always
from murmurcast.channels.air import Air
from murmurcast.channels.base import Channel, padded
from murmurcast.channels.links import Links
from murmurcast.channels.slots import Slots
from murmurcast.errors import Error
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.graph import Network
from murmurcast.network.link_weights import (
    OverAir,
    max_degree_weights,
    metropolis_weights,
    out_degree_weights,
    over_air,
)
from murmurcast.network.weights import column_mixing
from murmurcast.planning.row_mixing import row_mixing
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax

Access = Literal["air", "orthogonal", "slots"]
Weights = Literal["row", "column", "sinkhorn", "max-degree", "metropolis", "out-degree"]
Doubly = Literal["sinkhorn", "max-degree", "metropolis"]  # rows and columns both sum to 1
Pushing = Literal["column", "out-degree"]  # columns sum to 1


class Mixer(NamedTuple):
    """One way to mix.

    Attributes:
        channel: What carries the signals.
        weights: [nodes, nodes] receiver first, own weights on the diagonal.
        amplitude: Table of what a node multiplies with what it says: [1, nodes], or [1, nodes, links] for slots.
        heard: Table of factors of what is heard: [1, nodes], or [1, nodes, neighbours] where each is heard apart.
        kept: Table of the factor of the node's own signal.
    """

    channel: Channel
    weights: csr_array
    amplitude: FloatArray
    heard: FloatArray
    kept: FloatArray


class Loud(NamedTuple):
    """amplitude: of all that is sent, at the antenna."""

    amplitude: Leaf


def send_own(here: Loud, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
    """x, without noise."""
    return radiate(here.amplitude, state.own)


def radiate(amplitude: Any, said: Model) -> jax.Array:
    """What leaves the antenna: what the node says, as loud as its tables have it, to all or to each."""
    return amplitude * said if not amplitude.ndim else per_link(amplitude, said) * said


def spoken(amplitude: Any, sent: jax.Array) -> jax.Array:
    """What the node said, from its own signal."""
    return sent / amplitude if not amplitude.ndim else sent[0] / amplitude[0]


def mix(here: Any, sent: jax.Array, heard: jax.Array) -> jax.Array:
    """sum_j w_ij V_j, the node's own V among them as it was sent; `here` has the factors heard and kept."""
    own = sent[0] if sent.ndim > heard.ndim else sent  # slots: it says the same to all
    arriving = weighed_sum(here.heard, heard) if here.heard.ndim else here.heard * heard
    return arriving + here.kept * own


def mixer(setup: Setup, weights: Weights, access: Access = "air") -> Mixer:
    """Carries out these weights by this access, on the setup's network; refuses what a radio cannot make.

    "row" takes the plan's power split where there is a plan; else every node sends with all its power.
    """
    _check.one_of(("air", "orthogonal", "slots"), access=access)
    network = setup.network
    if weights == "row":
        rows, amplitude = row_mixing(setup)
        factors, matrix = OverAir(1 / (rows.compensation * rows.normaliser), amplitude), rows.weights
    elif weights == "column":
        columns = column_mixing(network)
        factors, matrix = OverAir(np.ones(network.nodes), columns.amplitude), columns.weights
    elif weights == "sinkhorn":
        balanced = balanced_mixing(network)
        factors, matrix = OverAir(balanced.receiver_scale, balanced.amplitude), balanced.weights
    else:
        matrix = _by_degree(network, weights)
        if access == "air":
            factors = _require_over_air(matrix, network, weights)
    if access == "air":
        # "row" says by itself how loud a node is, within its power.
        loudest = 1.0 if weights == "row" else float((np.sqrt(network.power) / factors.amplitude).min())
        return _by_air(network, matrix, factors, loudest)
    return _orthogonal(network, matrix) if access == "orthogonal" else _in_slots(network, matrix)


def _by_degree(network: Network, weights: Weights) -> csr_array:
    named = {"max-degree": max_degree_weights, "metropolis": metropolis_weights, "out-degree": out_degree_weights}
    _check.one_of(("row", "column", "sinkhorn", *named), weights=weights)
    if weights != "out-degree":
        network.require_two_way(f'weights = "{weights}"')
    return named[weights](network)


def _require_over_air(matrix: csr_array, network: Network, weights: str) -> OverAir:
    factors = over_air(matrix, network)
    if factors is None:
        raise Error(
            f'weights = "{weights}" cannot be made by one multicast on these gains: a sender scales once for all that '
            "hear it, and no such factors make them",
            hint='set weights = "sinkhorn", or access = "slots" or "orthogonal", which use the channel more often',
        )
    return factors


def _by_air(network: Network, matrix: csr_array, factors: OverAir, scale: float) -> Mixer:
    amplitude = scale * factors.amplitude
    kept = matrix.diagonal() / amplitude
    return Mixer(
        Air(network.gains), matrix, *(same_always(part) for part in (amplitude, factors.receiver_scale / scale, kept))
    )


def _orthogonal(network: Network, matrix: csr_array) -> Mixer:
    """Every neighbour's signal arrives alone, and is scaled by the receiver."""
    amplitude, arriving = np.sqrt(network.power), csr_array(network.gains.T)
    receiver = np.repeat(np.arange(network.nodes), np.diff(arriving.indptr))
    sender = arriving.indices
    factor = np.asarray(matrix[receiver, sender]).ravel() / (arriving.data * amplitude[sender])
    kept = matrix.diagonal() / amplitude
    heard = same_always(padded(arriving, factor))
    return Mixer(Links(network.gains), matrix, same_always(amplitude), heard, same_always(kept))


def _in_slots(network: Network, matrix: csr_array) -> Mixer:
    """A signal for every receiver, scaled by the sender: w_ij V_j / h_ji."""
    gains = network.gains
    sender = np.repeat(np.arange(network.nodes), np.diff(gains.indptr))
    wanted = np.asarray(matrix[gains.indices, sender]).ravel() / gains.data
    scale = float((np.sqrt(network.power[sender]) / wanted).min())  # public, the same for all
    amplitude = padded(gains, scale * wanted)
    kept, heard = matrix.diagonal() / amplitude[:, 0], np.full(network.nodes, 1 / scale)
    return Mixer(Slots(gains), matrix, *(same_always(part) for part in (amplitude, heard, kept)))
