"""A small trace on an asymmetric network, and what it comes to by hand."""

from typing import Any

import numpy as np

STEPS = 3
POWER_DBM = (20.0, 10.0, 17.0, 20.0, 13.0)
_AMPLITUDE = 1e-4 * np.array(
    [
        [0, 1.1, 0.6, 0, 0.9],
        [0.8, 0, 1.3, 0.7, 0],
        [1.0, 0.5, 0, 1.2, 0],
        [0, 0.9, 0.8, 0, 1.1],
        [0.7, 0, 0, 1.0, 0],
    ]
)


def gains(steps: int = STEPS) -> Any:
    """[time, from, to] complex; node 2 does not hear node 1 at the second step."""
    rng = np.random.default_rng(3)
    result = _AMPLITUDE * (rng.normal(size=(steps, 5, 5)) + 1j * rng.normal(size=(steps, 5, 5)))
    result[1, 1, 2] = 0
    return result


def weights_by_hand(step: Any, amplitude: Any, normaliser: int = 4) -> Any:
    """[receiver, sender] of one step [from, to]: d/R shared out by what arrives, the rest a node's own."""
    result = np.zeros(step.shape)
    for receiver in range(len(step)):
        arriving = np.abs(step[:, receiver]) * amplitude
        heard = np.count_nonzero(arriving)
        result[receiver] = heard / normaliser * arriving / arriving.sum()
        result[receiver, receiver] = 1 - heard / normaliser
    return result


def left_perron(weights: Any) -> Any:
    """[nodes] pi with pi A = pi, that sums to 1."""
    values, vectors = np.linalg.eig(weights.T)
    result = np.real(vectors[:, np.argmax(values.real)])
    return result / result.sum()
