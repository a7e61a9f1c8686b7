"""The paper's view: one epoch seen alone (Theorem 1) and its Corollary. Claims, not guarantees.

Theorem 1 looks at the sum one receiver hears in one epoch, with the textbook Gaussian formula. It does not compose:
what earlier epochs, relays and colluding receivers add is left out. Use `certificate` for what holds.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.privacy import gaussian


class PaperClaim(NamedTuple):
    """The Corollary's (epsilon, delta) for a whole run. The paper's claim, not a guarantee."""

    epsilon: float
    delta: float


def ratio(
    gains: csr_array,
    power: FloatArray,
    alpha: FloatArray,
    noise_to_step: FloatArray,
    sensitivity: FloatArray,
    theta: float,
) -> csr_array:
    """Sensitivity over noise of the sum a receiver hears in one epoch, Theorem 1's Delta / sigma.

    S_j gamma_t theta h_ji sqrt(alpha_j p_j) / sqrt(sum_k h_ki^2 beta_k p_k sigma_k,t^2); gamma_t cancels against
    sigma_k,t = noise_to_step_k gamma_t.

    Args:
        gains: [sender, receiver].
        power: [nodes].
        alpha: [nodes] power split.
        noise_to_step: [nodes] q.
        sensitivity: [nodes] S, the largest change of one node's gradient.
        theta: A bound of 1/z_ii,t.

    Returns:
        [receiver, sender], 0 where there is no link.
    """
    _check.split(alpha=alpha)
    _check.above_zero(noise_to_step=noise_to_step, sensitivity=sensitivity, theta=theta)
    noise = gains.power(2).T @ ((1 - alpha) * power * noise_to_step**2)
    amplitude = sensitivity * theta * np.sqrt(alpha * power)
    result = csr_array(diags_array(1 / np.sqrt(noise)) @ gains.T @ diags_array(amplitude))
    result.sort_indices()
    _check.above_zero(ratio=result.data)
    return result


def epsilon_per_epoch(ratio: csr_array, delta: float) -> csr_array:
    """[receiver, sender] the epsilon of Theorem 1: what the paper says receiver i learns of sender j in one epoch."""
    result = ratio.copy()
    result.data = gaussian.classical_epsilon(ratio.data, delta)
    return result


def corollary(epsilon: float, delta: float, epochs: int) -> PaperClaim:
    """What the paper's Corollary says of a whole run: (T epsilon, T delta)."""
    return PaperClaim(epochs * epsilon, epochs * delta)
