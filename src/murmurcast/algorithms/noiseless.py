"""Algorithm 1 with the noise left out: what learning would reach if nothing had to be hidden.

    sent_k = sqrt(alpha_k p_k) x_k, and everything else as in `power_controlled`.

Weights: the plan's A. Noise: none, so nothing is promised. Channel uses: 1 per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Publish
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.power_controlled import GradientAt, power_controlled
from murmurcast.planning.plan import Plan

if TYPE_CHECKING:
    import jax


def noiseless(plan: Plan, *, gradient_at: GradientAt = "mixed", publish: Publish = "last") -> Algorithm:
    """Algorithm 1 without noise; arguments as `power_controlled`."""
    algorithm = power_controlled(plan, gradient_at=gradient_at, publish=publish)
    first, *further = algorithm.rounds

    def send(here: Any, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:  # noqa: ARG001
        import jax.numpy as jnp

        return first.send(here, state, {"noise": jnp.zeros_like(state.own)})

    silent = first.sending._replace(noise=np.zeros_like(first.sending.noise))
    quiet = first._replace(draws=NO_DRAWS, sending=silent, send=send)
    return algorithm._replace(name="noiseless", rounds=(quiet, *further), releases=())


METHOD = Method(
    name="noiseless",
    make=noiseless,
    summary="Algorithm 1 without noise: the ceiling of what it could learn",
    account="no noise is sent",
    reference="as power-controlled",
    needs="two-way links",
    free_rounds=True,
    radio=True,
    side_vector="z",
)
