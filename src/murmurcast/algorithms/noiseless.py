"""Algorithm 1 with the noise left out: what learning would reach if nothing had to be hidden.

    sent_k = sqrt(alpha_k p_k) x_k, and everything else as in `power_controlled`.

Weights: the plan's A. Noise: none, so nothing is promised. Channel uses: 1 per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Publish, Sending, State
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.power_controlled import GradientAt, power_controlled
from murmurcast.planning.plan import Plan

if TYPE_CHECKING:
    import jax


def noiseless(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1 without noise; arguments as `power_controlled`."""

    def send(here: Sending, state: State, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        return here.amplitude * state.own

    algorithm = power_controlled(plan, gradient_at=gradient_at, publish=publish)
    (only,) = algorithm.rounds
    silent = only.sending._replace(noise=np.zeros_like(only.sending.noise))
    quiet = only._replace(draws=NO_DRAWS, sending=silent, send=send)
    return algorithm._replace(name="noiseless", rounds=(quiet,), releases=())


METHOD = Method(
    name="noiseless",
    make=noiseless,
    summary="Algorithm 1 without noise: the ceiling of what it could learn",
    account="no noise is sent",
    reference="as power-controlled",
    needs="two-way links",
    side_vector="z",
)
