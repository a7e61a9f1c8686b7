"""The paper's equations in plain NumPy and float64, as slowly and literally as possible."""

from collections.abc import Callable

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.planning.plan import Plan
from tests.conftest import changed

Gradient = Callable[[int, FloatArray], FloatArray]


def algorithm_1(
    plan: Plan,
    noise: FloatArray,
    gradient: Gradient,
    project: Callable[[FloatArray], FloatArray],
    gradient_at: str,
) -> tuple[FloatArray, FloatArray]:
    """x_{T+1} and m_T, each [nodes, dim], from standard normal noise [epochs, nodes, dim]."""
    gains, power, alpha = plan.network.gains.toarray(), plan.network.power, plan.alpha
    epochs, nodes, dim = noise.shape
    beta, big_r = 1 - alpha, plan.mixing.normaliser
    x, m = np.zeros((nodes, dim)), np.zeros((nodes, dim))
    z = np.eye(nodes)
    weights = np.zeros((nodes, nodes))
    for i in range(nodes):
        heard = [j for j in range(nodes) if gains[j, i] > 0]
        c = np.mean([gains[j, i] * np.sqrt(alpha[j] * power[j]) for j in heard])
        for j in heard:
            weights[i, j] = gains[j, i] * np.sqrt(alpha[j] * power[j]) / (c * big_r)
        weights[i, i] = 1 - len(heard) / big_r
    for t in range(1, epochs + 1):
        gamma = plan.schedule.step / np.sqrt(t)
        following = np.zeros_like(x)
        sigma = (
            plan.noise_to_step
            * plan.schedule.step
            / np.sqrt(t if plan.schedule.noise_timing == "paper" else max(t - 1, 1))
        )
        said = x + np.sqrt(beta / alpha)[:, None] * sigma[:, None] * noise[t - 1]
        for i in range(nodes):
            m[i] = sum(weights[i, j] * said[j] for j in range(nodes))
            slope = gradient(i, m[i] if gradient_at == "mixed" else x[i])
            following[i] = project(m[i] - gamma * slope / z[i, i])
        x, z = following, weights @ z
    return x, m


def showing_own(algorithm: Algorithm) -> Algorithm:
    """The algorithm, publishing every node's own model, so that a test can see it."""

    def update(*arguments: object) -> object:
        state = algorithm.rounds[0].update(*arguments)  # type: ignore[arg-type]
        return state._replace(published=state.own)

    return changed(algorithm, update=update)
