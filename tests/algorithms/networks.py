"""Networks for transcriptions: unequal gains in the two directions of a link, and links that go one way only."""

import numpy as np

import murmurcast as mc
from murmurcast._check import FloatArray

NODES, DIM = 5, 3
POWER = np.array([1.0, 2.0, 0.5, 1.5, 0.8])


def two_way() -> mc.Network:
    gains = np.zeros((NODES, NODES))
    for (i, j), forth, back in (
        ((0, 1), 0.9, 0.5),
        ((1, 2), 0.7, 0.3),
        ((2, 3), 0.8, 0.45),
        ((3, 0), 1.1, 0.4),
        ((2, 4), 0.6, 0.65),
        ((3, 4), 0.35, 0.95),
    ):
        gains[i, j], gains[j, i] = forth, back
    return mc.Network(gains=gains, power=POWER)


def one_way() -> mc.Network:
    """A cycle with chords: three of its eight links have none back."""
    gains = np.zeros((NODES, NODES))
    for i, j, gain in (
        (0, 1, 0.9),
        (1, 2, 0.7),
        (2, 3, 0.8),
        (3, 4, 0.6),
        (4, 0, 0.95),
        (0, 4, 0.4),
        (2, 0, 0.3),
        (4, 1, 0.2),
    ):
        gains[i, j] = gain
    return mc.Network(gains=gains, power=POWER)


def row_weights(network: mc.Network) -> FloatArray:
    """[receiver, sender] h_ji sqrt(p_j) / (c_i R), c_i the mean over those that i hears; what is left is its own."""
    arriving = network.gains.toarray().T * np.sqrt(network.power)
    heard = (arriving > 0).sum(axis=1)
    most = heard.max() + 1
    weights = arriving / (arriving.sum(axis=1) / heard * most)[:, None]
    return np.asarray(weights + np.diag(1 - heard / most))


def column_weights(network: mc.Network) -> FloatArray:
    """[receiver, sender] (d_j/R) h_ji / H_j, d_j and H_j over those that hear j; what is left is its own."""
    gains = network.gains.toarray()
    hear = (gains > 0).sum(axis=1)
    most = hear.max() + 1
    return np.asarray((gains / gains.sum(axis=1, keepdims=True) * (hear / most)[:, None]).T + np.diag(1 - hear / most))


def setup_on(network: mc.Network, problem: mc.Quadratic, *, step: float, epochs: int = 30) -> mc.Setup:
    schedule = mc.Schedule(epochs=epochs, step=step, decay="constant", noise_timing="aligned")
    return mc.Setup(network=network, problem=problem, budget=mc.Budget(epsilon=5.0), schedule=schedule)


def gradients(problem: mc.Quadratic, points: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("kij,kj->ki", problem.curvature, points - problem.centre))
