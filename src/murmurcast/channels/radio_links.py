"""What receivers over a radio must know of whom they hear, laid out as lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from murmurcast.channels.base import padded, stepwise_width
from murmurcast.radio.fading import sinusoids
from murmurcast.radio.physics import Physics
from murmurcast.radio.settings import Radio

_DENSE_FROM = 0.2  # of all pairs that are links: from there on a matrix product is quicker than gathering


class Lists(NamedTuple):
    """What every receiver must know of whom it hears; [nodes, heard] unless said.

    Attributes:
        signals: Numbers of the senders.
        pair: A number of the pair of nodes, the same in both directions.
        gains: |h|, 0 for filling.
        amplitude: Of the senders.
        angles: [nodes, heard, sinusoids] from where echoes come; None where nothing moves.
        phases: [nodes, heard, sinusoids] with which phase; None where nothing moves.
        own: [nodes] the receiver's own amplitude.
        noise: [nodes] N.
        mean_power: [nodes] sum_j |h_ji|^2 alpha_j p_j.
        trace: [nodes, steps, senders] gains at every step, the same array for all rounds; None without a trace.
    """

    signals: Any
    pair: Any
    gains: Any
    amplitude: Any
    angles: Any
    phases: Any
    own: Any
    noise: Any
    mean_power: Any
    trace: Any


@dataclass(frozen=True, eq=False)
class RadioLinks:
    """All links of a network.

    Attributes:
        gains: [sender, receiver] amplitudes with path loss.
        radio: How the channel moves.
        physics: What the plan makes of it.
    """

    gains: csr_array
    radio: Radio
    physics: Physics

    def lists(self, filled_nodes: int) -> Lists:
        """Who hears whom, how strongly, and from where the waves come."""
        arriving, nodes = self._arriving, self.gains.shape[0]
        number = np.arange(arriving.nnz) + 1
        if arriving.nnz < _DENSE_FROM * nodes**2:
            return self._laid_out(padded(arriving, number), None, np.arange(nodes))
        place_of = np.zeros((nodes, filled_nodes), np.int64)
        place_of[self._receiver, arriving.indices] = number
        return self._laid_out(place_of, np.broadcast_to(np.arange(filled_nodes), place_of.shape), np.arange(nodes))

    def lists_of(self, receivers: NDArray[Any]) -> Lists:
        """The same of these receivers only.

        As wide for all, whoever they are: sums over a list, such as a pilot's, depend in their last bit on its width.
        """
        arriving = self._arriving
        rows = csr_array((np.arange(arriving.nnz) + 1, arriving.indices, arriving.indptr), arriving.shape)[receivers]
        return self._laid_out(padded(rows, rows.data, stepwise_width(arriving)), None, receivers)

    @cached_property
    def _arriving(self) -> csr_array:
        """[receiver, sender]."""
        return csr_array(self.gains.T)

    @cached_property
    def _receiver(self) -> NDArray[np.int64]:
        """[links] in the order of `_arriving`."""
        return np.repeat(np.arange(self.gains.shape[0]), np.diff(self._arriving.indptr))

    @cached_property
    def _pair(self) -> NDArray[np.uint32]:
        """[links] numbers of the pairs of nodes, in the order of `_arriving`."""
        return _pair_numbers(self._ends(self._arriving.indices, self._receiver), self.gains.shape[0])

    @staticmethod
    def _ends(sender: NDArray[Any], receiver: NDArray[Any]) -> NDArray[Any]:
        return np.stack([np.minimum(sender, receiver), np.maximum(sender, receiver)], axis=1)

    @cached_property
    def _mean_power(self) -> NDArray[np.float64]:
        """[nodes] sum_j |h_ji|^2 alpha_j p_j."""
        arriving = self._arriving
        squares = (arriving.data * self.physics.amplitude[arriving.indices]) ** 2
        return np.asarray(np.bincount(self._receiver, squares, self.gains.shape[0]), np.float64)

    def _laid_out(self, place_of: NDArray[Any], numbers: NDArray[Any] | None, receivers: NDArray[Any]) -> Lists:
        """Lists of some receivers.

        Args:
            place_of: [receivers, heard] which link, in the order of `_arriving` and from 1; 0 for none.
            numbers: [receivers, heard] of the senders; None takes those of the links.
            receivers: [receivers] their numbers.
        """
        used, place = np.unique(place_of, return_inverse=True)
        links, place = used[used > 0] - 1, place.reshape(place_of.shape) + (used[0] > 0)
        sender, receiver = self._arriving.indices[links], self._receiver[links]
        moves = self._ends(sender, receiver)[: len(links) if self.radio.fading == "jakes" else 0]
        echoes, amplitude = sinusoids(moves, self.radio.seed), self.physics.amplitude

        def of_links(values: NDArray[Any]) -> NDArray[Any]:
            nothing = np.zeros((1, *values.shape[1:]), values.dtype)
            return np.asarray(np.concatenate([nothing, values])[place])

        return Lists(
            signals=np.asarray(of_links(sender) if numbers is None else numbers, np.int32),
            pair=of_links(self._pair[links]),
            gains=of_links(self._arriving.data[links]),
            amplitude=of_links(amplitude[sender]),
            angles=of_links(echoes.angles) if len(moves) else None,
            phases=of_links(echoes.phases) if len(moves) else None,
            own=amplitude[receivers],
            noise=self.physics.noise[receivers],
            mean_power=self._mean_power[receivers],
            trace=None if self.radio.trace is None else _rows_of(self.radio.trace.by_receiver, receivers),
        )


def _pair_numbers(ends: NDArray[Any], nodes: int) -> NDArray[np.uint32]:
    """[links] a number of every pair, of 32 bits as keys are: beyond, its place among all pairs."""
    numbers = ends[:, 0].astype(np.int64) * nodes + ends[:, 1]
    if nodes**2 > 2**32:
        _, numbers = np.unique(numbers, return_inverse=True)
    return np.asarray(numbers, np.uint32)


def _rows_of(table: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """The table itself where all its rows are asked for, so that all rounds share one array."""
    return table if np.array_equal(rows, np.arange(len(table))) else table[rows]
