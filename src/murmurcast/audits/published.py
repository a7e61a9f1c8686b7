"""The holder of published models, who heard nothing of the air.

Under gradients that do not react to states, published models are linear in all noises and in the canaries: with A_t the
weights and w_t the share of epoch t's mixed point, the noise of epoch t reaches them through
M_t = (w_t I + M_{t+1}) A_t. Of several rounds A_t is the product, and what receivers add is on the way.
"""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.observed import System
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.symbols import Symbols, as_symbols, turned
from murmurcast.audits.transcript import Transcript

_NEGLIGIBLE = 1e-9  # of the largest variance of a combination: less is rounding


class PublishedReadings(NamedTuple):
    """What published models show; it serves for all targets.

    Attributes:
        readings: [readings, runs, dim] whitened by what is claimed of the noise; of symbols where phases count.
        shift: [nodes, readings] by a unit change of every gradient of a node.
        dim: Coordinates of a model.
    """

    readings: Symbols
    shift: Symbols
    dim: int

    def about(self, target: int, change: float) -> Evidence:
        """The evidence of one target, whose gradients change by so much."""
        readings, shift = turned(self.readings, self.shift[target], self.dim)
        return Evidence(readings, change * shift)


def read_published(
    algorithm: Algorithm, system: System, transcript: Transcript, expected: FloatArray
) -> PublishedReadings:
    """What the published models of all nodes show of canaries.

    Args:
        algorithm: Algorithm 1 in any form.
        system: Its plan as the linear diagnostic sees it.
        transcript: Of which only the published models are used.
        expected: [nodes, dim] published models of a run without noise, half way between the worlds.
    """
    push = system.push / algorithm.plan.sensitivity
    nodes, kind = push.shape[1], np.result_type(*(one.weights for one in system.rounds))
    reach, shift, spread = (np.zeros((nodes, nodes), kind) for _ in range(3))
    shares = _shares(algorithm)
    for epoch in reversed(range(len(push))):
        shift = shift - reach * push[epoch]  # a gradient of epoch t is in what is said in t + 1
        reach = shares[epoch] * np.eye(nodes) + reach
        for one in reversed(system.rounds):
            spread = spread + (reach * one.noise[epoch] ** 2) @ reach.conj().T
            reach = reach @ one.weights[epoch]
        spread = spread + (reach * system.effective_noise[epoch] ** 2) @ reach.conj().T
    whiten = _inverse_root(spread)
    beyond = as_symbols((transcript.published - expected).swapaxes(0, 1), kind)
    return PublishedReadings(np.tensordot(whiten, beyond, axes=1), (whiten @ shift).T, expected.shape[-1])


def _shares(algorithm: Algorithm) -> FloatArray:
    """[epochs] share of every mixed point in what is published."""
    epochs = algorithm.plan.schedule.epochs
    if algorithm.settings["publish"] == "last":
        return np.asarray(np.eye(epochs)[-1])
    last = [one for one in algorithm.rounds if hasattr(one.receiving, "newest")][-1]
    newest = np.asarray(last.receiving.newest)
    kept = np.cumprod(np.append(1.0, 1 - newest[:0:-1]))[::-1]
    return np.asarray(newest * kept)


def _inverse_root(covariance: Symbols) -> Symbols:
    """[rank, nodes] makes noise of this covariance white."""
    variance, directions = np.linalg.eigh(covariance)
    kept = variance > _NEGLIGIBLE * variance.max()
    return np.asarray((directions[:, kept] / np.sqrt(variance[kept])).conj().T)
