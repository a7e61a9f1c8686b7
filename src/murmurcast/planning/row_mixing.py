"""The row-stochastic weights that a setup makes: those of its plan, or those of all power spent on the models."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.network.weights import Mixing, mixing, normaliser
from murmurcast.planning.plan import Plan
from murmurcast.planning.setup import Setup


class RowMixing(NamedTuple):
    """Row-stochastic weights, and how loud senders are.

    Attributes:
        mixing: Weights, compensation and normaliser.
        amplitude: [nodes] sqrt(alpha p) where there is a plan, else sqrt(p).
    """

    mixing: Mixing
    amplitude: FloatArray


def row_mixing(setup: Setup) -> RowMixing:
    """By the plan's power split, if the setup is a plan."""
    network = setup.network
    if isinstance(setup, Plan):
        return RowMixing(setup.mixing, np.sqrt(setup.alpha * network.power))
    at_full_power = mixing(network, np.ones(network.nodes), normaliser(network, "lazy"))
    return RowMixing(at_full_power, np.sqrt(network.power))
