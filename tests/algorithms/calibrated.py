"""Setups on asymmetric networks for tests of factories, and what calibrated noise comes to, written out."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.network.graph import Network
from murmurcast.runs.record import of_rounds
from tests.algorithms.networks import two_way

EPSILON, DELTA, CLIP, EPOCHS, DIM = 2.0, 1e-5, 1.3, 6, 3
EXAMPLES = (10.0, 20.0, 30.0, 40.0, 50.0)
ORDER = np.array([3, 0, 4, 1, 2])


def setup_of(
    network: Network | None = None,
    *,
    epsilon: float = EPSILON,
    unit: Any = "node",
    clip: float = CLIP,
    **schedule: Any,
) -> mc.Setup:
    """Nodes of two-way, unequal links unless another network is given."""
    steps = mc.Schedule(**{"epochs": EPOCHS, "step": 0.2, "noise_timing": "aligned", **schedule})
    problem = mc.ClippedGradients(clip=clip, dim=DIM, examples_per_node=EXAMPLES)
    budget = mc.Budget(epsilon=epsilon, delta=DELTA, unit=unit)
    return mc.Setup(network=network or two_way(), problem=problem, budget=budget, schedule=steps)


def plan_of(network: Network | None = None, alpha: Any = (0.3, 0.5, 0.6, 0.4, 0.7), **options: Any) -> mc.Plan:
    setup = setup_of(network, **options)
    power = mc.PowerRule(alpha=alpha)
    return mc.plan(setup.network, setup.problem, setup.budget, setup.schedule, power=power)


def allowed_mu(epsilon: float = EPSILON) -> float:
    """The mu of Gaussian DP that costs this epsilon at delta, by bisection of the definition."""

    def beyond(mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - DELTA)

    return float(brentq(beyond, 1e-3, 50.0, xtol=1e-14, rtol=1e-14))


def noise_in(algorithm: Algorithm) -> FloatArray:
    """[nodes] the noise in what is first said under noise, in units of its schedule or of a gradient."""
    sending = next(one.sending for one in algorithm.rounds if one.draws)
    return np.asarray((sending.noise if hasattr(sending, "noise") else sending.own)[0])


def relabelled(network: Network, order: Any = ORDER) -> Network:
    """The same network, node order[i] now called i."""
    return Network(gains=network.gains.toarray()[np.ix_(order, order)], power=network.power[order])


def words_of(algorithm: Algorithm) -> dict[str, Any]:
    """Channel and draws of every round, as the ledger says them."""
    attributes = of_rounds(algorithm).attributes
    return {name: value for name, value in attributes.items() if name.endswith(("_channel", "_draws"))}


def carried(algorithm: Algorithm, number: int = 0) -> FloatArray:
    """[receiver, sender] the weights that a round's factors make of one multicast's gains."""
    one = algorithm.rounds[number]
    amplitude, heard, kept = one.sending.amplitude[0], one.receiving.heard[0], one.receiving.kept[0]
    return np.asarray(
        heard[:, None] * algorithm.setup.network.gains.toarray().T * amplitude + np.diag(kept * amplitude)
    )


def left_perron(weights: FloatArray) -> FloatArray:
    """[nodes] pi with pi W = pi, by an eigenvector."""
    values, vectors = np.linalg.eig(weights.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    return np.asarray(pi / pi.sum())
