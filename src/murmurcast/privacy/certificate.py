"""The certificate: what a run costs every node against everybody.

Given everything that was sent up to epoch t, the mixed point m_j,t is public, so what node j sends in epoch t + 1 is a
Gaussian mechanism: m_j,t minus gamma_t/z_jj,t times its gradient, plus noise of std s_j,t+1 = sqrt(beta_j/alpha_j)
sigma_j,t+1. Its sensitivity is S gamma_t/z_jj,t. Gaussian DP composes adaptively, so

    mu_j^2 = sum_{t=1}^{T-1} ( S_j gamma_t / (z_jj,t s_j,t+1) )^2.

T transmissions expose the gradients 1..T-1. The model a node may publish is its mixed point, a function of what was
sent.
"""

from typing import Literal, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._display import html_of

Unit = Literal["node", "record"]
COINS = (
    "records join every epoch by a coin each, of the probability that the ledger says, which nobody else sees: neither "
    "coins nor the number that joined leave the node, by messages, times or sizes"
)
# Amplification by sampling is known for coins only, and where methods count on them.
PLAIN_BOUND = "minibatches: no amplification by sampling is counted; the plain bound holds for any batch"


class Certificate(NamedTuple):
    """What is certified for every node.

    Attributes:
        mu: [nodes] Gaussian-DP parameter of the whole run.
        epsilon: [nodes] the exact epsilon at `delta`.
        delta: Failure probability.
        unit: What is hidden: a whole node's data, or one of its records.
    """

    mu: FloatArray
    epsilon: FloatArray
    delta: float
    unit: Unit

    def _repr_html_(self) -> str:
        return html_of(self)


def unit_in_words(unit: str, records_per_person: int = 1) -> str:
    """What is hidden: a "node", a "record", or a person with several records."""
    return unit if records_per_person == 1 else f"person with up to {records_per_person} records"


def exposure(
    steps: FloatArray, noise_schedule: FloatArray, z: FloatArray, last: FloatArray | None = None
) -> FloatArray:
    """sum_{t=1}^{T-1} ( gamma_t / (z_jj,t schedule_t+1) )^2: how much a run exposes per unit of sensitivity over noise.

    Args:
        steps: [epochs] gamma_t.
        noise_schedule: [epochs] sigma_k,t / q_k.
        z: [epochs, nodes] z_kk,t.
        last: [nodes] the last epoch in which a node sends, fixed before the run; by default all send to the end. What
            node j sends up to epoch last_j exposes its gradients 1..last_j - 1.

    Returns:
        [nodes].
    """
    _check.above_zero(steps=steps, noise_schedule=noise_schedule[1:])  # the first message is free of data
    ratio = (steps[:-1] / noise_schedule[1:]) ** 2
    _check.above_zero(steps_over_noise=ratio)
    if last is not None:
        _check.above_zero(z=z.ravel())
        counted = np.arange(1, len(steps))[:, None] < last
        summed = np.asarray(np.sum(counted * ratio[:, None] / z[:-1] ** 2, axis=0))
    elif z.strides[0] == 0:  # one repeated row, as for z = "perron": no [epochs, nodes] array is made
        _check.above_zero(z=z[0])
        summed = np.asarray(ratio.sum() / z[0] ** 2)
    else:
        _check.above_zero(z=z.ravel())
        summed = np.asarray(ratio @ (1 / z[:-1] ** 2))
    _check.finite(exposure=summed)
    return summed


def mu(exposure: FloatArray, alpha: FloatArray, noise_to_step: FloatArray, sensitivity: FloatArray) -> FloatArray:
    """The mu of a run for every node.

    Args:
        exposure: [nodes] from `exposure`.
        alpha: [nodes] power split.
        noise_to_step: [nodes] q, noise std over step.
        sensitivity: [nodes] S, the largest change of one node's gradient.

    Returns:
        [nodes] mu_j.

    Guarantees:
        Unit: the one `sensitivity` speaks of. Node: 2 G with the node's gradient clipped to G. Record: 2 C/n with every
            example's gradient clipped to C and a fixed n, the gradient taken at the public mixed point.
        Adversary: everybody else together; hears every antenna, knows all other data and noise.
        Formula: mu_j = S_j sqrt(exposure_j alpha_j / beta_j) / q_j; adaptive composition, projections included.
        Range: 0 < alpha < 1 and positive noise; the ends are errors, not numbers.
    """
    _check.split(alpha=alpha)
    _check.above_zero(noise_to_step=noise_to_step, sensitivity=sensitivity)
    _check.finite(exposure=exposure)
    by_node = np.asarray(sensitivity * np.sqrt(exposure * alpha / (1 - alpha)) / noise_to_step)
    _check.finite(mu=by_node)
    return by_node


def mu_of_record_at_own_point(
    steps: FloatArray,
    z: FloatArray,
    effective_noise: FloatArray,
    clip: float,
    examples: FloatArray,
    lipschitz: FloatArray,
) -> FloatArray:
    """The mu of one record where gradients are taken at the node's own, private point x_j,t, as in the paper.

    There the two worlds' states drift apart: with d_1 = 0 and a known Lipschitz constant L_j of the node's gradient,
    d_{t+1} = (gamma_t/z_jj,t) min(2C, 2C/n + L_j d_t) and mu_j^2 = sum_{t=2}^T (d_t/s_j,t)^2.

    Args:
        steps: [epochs] gamma_t.
        z: [epochs, nodes].
        effective_noise: [epochs, nodes] s_k,t.
        clip: C, the bound of every example's gradient.
        examples: [nodes] the fixed n of every node.
        lipschitz: [nodes] L_j.

    Returns:
        [nodes] mu_j.

    Guarantees:
        Unit: record. Adversary: everybody else together. Formula: the recursion above. Range: L_j >= 0 and true.
    """
    _check.above_zero(steps=steps, z=z.ravel(), effective_noise=effective_noise[1:].ravel())
    _check.positive(clip=clip, examples=examples)
    _check.not_negative(lipschitz=lipschitz)
    drift = np.zeros(z.shape[1])
    total = np.zeros(z.shape[1])
    for epoch in range(len(steps) - 1):
        drift = steps[epoch] / z[epoch] * np.minimum(2 * clip, 2 * clip / examples + lipschitz * drift)
        total += (drift / effective_noise[epoch + 1]) ** 2
    _check.finite(mu=total)
    return np.sqrt(total)
