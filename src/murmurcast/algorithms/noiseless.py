"""Algorithm 1 with the noise left out: what learning would reach if nothing had to be hidden.

    sent_k = sqrt(alpha_k p_k) x_k, and everything else as in `power_controlled`.

Weights: the plan's A. Noise: none, so nothing is promised. Channel uses: 1 per epoch.
"""

import jax
import numpy as np

from murmurcast.algorithms.base import Algorithm, Promise, Publish, Sending, State
from murmurcast.algorithms.power_controlled import GradientAt, power_controlled
from murmurcast.planning.plan import Plan


def noiseless(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1 without noise; arguments as `power_controlled`."""

    def send(here: Sending, state: State, noise: jax.Array) -> jax.Array:  # noqa: ARG001
        return here.amplitude * state.own

    algorithm = power_controlled(plan, gradient_at=gradient_at, publish=publish)
    nothing = Promise(np.full(plan.network.nodes, np.inf), "no noise: nothing is promised")
    silent = algorithm.sending._replace(noise=np.zeros_like(algorithm.sending.noise))
    return algorithm._replace(name="noiseless", sending=silent, send=send, promise=nothing, promise_until=None)
