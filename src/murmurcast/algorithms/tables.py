"""Tables: every constant that a method uses, by epoch and node, as the engine, the ledger and accounts read them.

A table is an array [epochs] (the same at all nodes), or [rows, nodes], or [rows, nodes, neighbours]; rows is 1 (the
same in all epochs) or up to the number of epochs, the last row standing for all later ones.
"""

from typing import Any

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.network.graph import Network
from murmurcast.network.weights import Mixing

Leaf = Any  # an array of NumPy outside the engine, of JAX inside
_AVERAGE_LEAN = 3  # early, rough points are soon forgotten


def row_of(table: Any, epoch: Any) -> Any:
    """The row of a table in an epoch (from 1), or its rows in several; of NumPy or of JAX, traced or not."""
    return table[epoch - 1 - (epoch > len(table)) * (epoch - len(table))]


def same_always(values: FloatArray) -> FloatArray:
    """A table of what does not change over epochs."""
    return np.asarray(values, np.float64)[None]


def mixing_factors(network: Network, mixing: Mixing, amplitude: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Tables of a receiver's factors: 1/(c R) of what it hears, (1 - d/R)/amplitude of what it sent itself."""
    kept = (1 - network.heard_degree / mixing.normaliser) / amplitude
    return same_always(1 / (mixing.compensation * mixing.normaliser)), same_always(kept)


def without_repeats(table: FloatArray) -> FloatArray:
    """A table [epochs, nodes] without the rows at its end that repeat."""
    if table.strides[0] == 0:
        return table[:1]
    changes = np.flatnonzero((table[1:] != table[:-1]).any(axis=1))
    return table[: (changes[-1] + 2 if len(changes) else 1)]


def newest_share(epochs: int) -> FloatArray:
    """[epochs] the share of the newest point in an average of all so far that favours later ones: weights like t^3."""
    return np.asarray((1 + _AVERAGE_LEAN) / (np.arange(1.0, epochs + 1) + _AVERAGE_LEAN))
