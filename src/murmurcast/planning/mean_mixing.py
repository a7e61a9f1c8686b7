"""Weights and z of an epoch, where the channel changes or an epoch has several rounds."""

import numpy as np
from scipy.sparse import csr_array

from murmurcast._check import FloatArray
from murmurcast._threads import threads_for
from murmurcast.network.graph import Network
from murmurcast.network.weights import Mixing, Z, mixing, z_diagonal
from murmurcast.planning.schedule import Schedule
from murmurcast.radio.mean_weights import mean_weights
from murmurcast.radio.settings import Radio


def mean_mixing(network: Network, alpha: FloatArray, normaliser: int, radio: Radio, epochs: int) -> Mixing:
    """One round's mean weights over a radio in a run of so many epochs; those of the paper where nothing changes."""
    still = mixing(network, alpha, normaliser)
    if not radio.varies:
        return still
    return still._replace(weights=mean_weights(network, alpha, radio, normaliser, epochs))


def z_in_epochs(weights: csr_array, schedule: Schedule, start: Z) -> FloatArray:
    """[epochs, nodes] what gradients are divided by: of A^L, where an epoch has L rounds."""
    if schedule.rounds == 1 or start != "recursive":
        return z_diagonal(weights, schedule.epochs, start)
    with threads_for(weights.shape[0]):
        together = np.linalg.matrix_power(weights.toarray(), schedule.rounds)
    return z_diagonal(csr_array(together), schedule.epochs, start)
