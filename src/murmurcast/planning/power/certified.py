"""Splits and noise that meet a total budget, in closed form: no program is needed.

The certificate of node j is mu_j = S_j sqrt(exposure_j alpha_j/beta_j) / q_j. Given the noise, the largest alpha that
meets mu follows for every node on its own, so it is best for every objective at once. Given alpha, the least noise
follows likewise. What the budget leaves for mu_j is a matter of the curve: of where the noise comes from.
"""

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Infeasible
from murmurcast.privacy.certificate import mu
from murmurcast.privacy.conversion import EXACT, Curve


def certified_alpha(
    exposure: FloatArray,
    noise_to_step: FloatArray,
    sensitivity: FloatArray,
    epsilon: float,
    delta: float,
    curve: Curve = EXACT,
) -> FloatArray:
    """[nodes] the largest alpha with which the whole run costs at most (epsilon, delta), before any bounds on alpha."""
    _check.fraction(delta=delta)
    _check.above_zero(epsilon=epsilon, noise_to_step=noise_to_step, sensitivity=sensitivity)
    odds = (curve.mu_of_steps(epsilon, delta) * noise_to_step / sensitivity) ** 2 / exposure
    return np.asarray(odds / (1 + odds))


def require_floor(
    alpha: FloatArray,
    floor: float,
    exposure: FloatArray,
    noise_to_step: FloatArray,
    sensitivity: FloatArray,
    epsilon: float,
    delta: float,
    curve: Curve = EXACT,
) -> None:
    """An error that names the node whose alpha would have to be below the floor, where all nodes share one alpha."""
    worst = int(np.argmin(alpha))
    if alpha[worst] < floor:
        at_floor = mu(exposure, np.full(len(alpha), floor), noise_to_step, sensitivity)
        smallest_epsilon = float(curve.epsilon_for(at_floor.max(), epsilon, delta)) * (1 + 1e-9)
        least = "the smallest feasible epsilon, every alpha at its minimum, is " + _check.rounded_up(smallest_epsilon)
        if not np.isfinite(smallest_epsilon):
            least = "no epsilon is feasible with so little noise"
        raise Infeasible(
            f"no power split was found for a total epsilon of {epsilon:g}: with every alpha at its minimum {floor:g}, "
            f"node {worst} costs more, to every receiver that hears it",
            hint=f'{least}; or raise noise_to_step, or set it to "auto"; or lower power.min',
            smallest_epsilon=smallest_epsilon,
        )


def certified_noise(
    exposure: FloatArray,
    alpha: FloatArray,
    sensitivity: FloatArray,
    epsilon: float,
    delta: float,
    curve: Curve = EXACT,
) -> FloatArray:
    """[nodes] q, the least noise std over step with which the whole run costs at most (epsilon, delta)."""
    _check.fraction(delta=delta)
    _check.split(alpha=alpha)
    _check.above_zero(epsilon=epsilon, sensitivity=sensitivity)
    return np.asarray(sensitivity * np.sqrt(exposure * alpha / (1 - alpha)) / curve.mu_of_steps(epsilon, delta))
