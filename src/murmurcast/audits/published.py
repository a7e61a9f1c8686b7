"""The holder of published models, who heard nothing of the air.

Under gradients that do not react to states, published models are linear in all noises and in the canaries: with A the
weights and w_t the share of epoch t's mixed point, the noise of epoch t reaches them through M_t = (w_t I + M_{t+1}) A.
"""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.transcript import Transcript

_NEGLIGIBLE = 1e-9  # of the largest variance of a combination: less is rounding


class Held(NamedTuple):
    """What published models show; it serves for all targets.

    Attributes:
        readings: [readings, runs, dim] whitened by what is claimed of the noise.
        shift: [nodes, readings] by a unit change of every gradient of a node.
    """

    readings: FloatArray
    shift: FloatArray

    def about(self, target: int, change: float) -> Evidence:
        """The evidence of one target, whose gradients change by so much."""
        return Evidence(self.readings, change * self.shift[target])


def hold(algorithm: Algorithm, transcript: Transcript, expected: FloatArray) -> Held:
    """What the published models of all nodes show of canaries.

    Args:
        algorithm: Algorithm 1 in any form.
        transcript: Of which only the published models are used.
        expected: [nodes, dim] published models of a run without noise, half way between the worlds.
    """
    plan = algorithm.plan
    weights, noise = plan.mixing.weights.toarray(), plan.effective_noise
    push = plan.schedule.steps[:, None] / plan.z
    reach, shift, spread = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(weights)
    for share, std, pushed in zip(_shares(algorithm)[::-1], noise[::-1], push[::-1], strict=True):
        shift -= reach * pushed  # a gradient of epoch t is in what is said in t + 1
        reach = (share * np.eye(len(weights)) + reach) @ weights
        spread += (reach * std**2) @ reach.T
    whiten = _inverse_root(spread)
    return Held(np.tensordot(whiten, (transcript.published - expected).swapaxes(0, 1), axes=1), (whiten @ shift).T)


def _shares(algorithm: Algorithm) -> FloatArray:
    """[epochs] share of every mixed point in what is published."""
    epochs = algorithm.plan.schedule.epochs
    if algorithm.settings["publish"] == "last":
        return np.asarray(np.eye(epochs)[-1])
    newest = np.asarray(algorithm.rounds[0].receiving.newest)
    kept = np.cumprod(np.append(1.0, 1 - newest[:0:-1]))[::-1]
    return np.asarray(newest * kept)


def _inverse_root(covariance: FloatArray) -> FloatArray:
    """[rank, nodes] makes noise of this covariance white."""
    variance, directions = np.linalg.eigh(covariance)
    kept = variance > _NEGLIGIBLE * variance.max()
    return np.asarray((directions[:, kept] / np.sqrt(variance[kept])).T)
