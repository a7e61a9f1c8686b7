"""What nodes say on a public grid, so that rounding tells nothing: the part of secure noise that needs no random bits.

    V_k    = D_k,t ( round(x_k / D_k,t) + n_k )            n_k ~ N_Z(0, (s_k,t / D_k,t)^2) in integers, fresh each epoch
    sent_k = sqrt(alpha_k p_k) V_k

Whatever is done with V_k afterwards, in the node's own term too, is a function of V_k. `murmurcast.privacy.discrete`
has the grid, the argument and its bounds, which are about float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Sending, State
from murmurcast.algorithms.tables import Leaf, row_of, without_repeats
from murmurcast.privacy import discrete

if TYPE_CHECKING:
    import jax


class SendingOnGrid(NamedTuple):
    """Constants of a signal on a grid.

    Attributes:
        amplitude: sqrt(alpha p), of the model.
        noise: sqrt((1 - alpha) p) q, of the noise, in units of its schedule.
        schedule: sigma_t / q.
        spacing: D, a power of two.
    """

    amplitude: Leaf
    noise: Leaf
    schedule: Leaf
    spacing: Leaf


class Grid(NamedTuple):
    """What to send, and how far mixed points may reach.

    Attributes:
        sending: Tables for `send_on_grid`.
        limit: [rows, nodes] 2^46 steps of the grid that the next signal is on.
    """

    sending: SendingOnGrid
    limit: FloatArray


def on_grid(sending: Sending) -> Grid:
    """The grid of every node and epoch, from the noise that is sent."""
    noise = effective_noise(sending.amplitude, sending.noise, sending.schedule)
    spacing = discrete.spacing(noise)
    following = np.concatenate([spacing[1:], spacing[-1:]])
    return Grid(
        SendingOnGrid(*sending, spacing=without_repeats(spacing)), without_repeats(discrete.MAX_STEPS * following)
    )


def effective_noise(amplitude: FloatArray, noise: FloatArray, schedule: FloatArray) -> FloatArray:
    """[epochs, nodes] s_k,t from tables that are the same in all epochs: the noise in what a node says."""
    return np.asarray(schedule[:, None] * (noise[0] / amplitude[0]))


def integer_std(sending: SendingOnGrid) -> FloatArray:
    """[epochs, nodes] s / D, the standard deviation of the integers that are drawn."""
    noise = effective_noise(sending.amplitude, sending.noise, sending.schedule)
    return np.asarray(noise / row_of(sending.spacing, np.arange(1, len(noise) + 1)))


def send_on_grid(here: SendingOnGrid, state: State, drawn: dict[str, jax.Array]) -> jax.Array:
    """sqrt(alpha p) D (round(x/D) + n) for integers n. Sums of integers below 2^53 are exact in float64."""
    import jax.numpy as jnp

    steps = jnp.round(within(state.own / here.spacing, discrete.MAX_STEPS))
    return here.amplitude * (here.spacing * (steps + drawn["noise"]))


def within(values: jax.Array, limit: Leaf) -> jax.Array:
    """Every coordinate within the limit, and 0 for what is no number: brings no two points farther apart."""
    import jax.numpy as jnp

    return jnp.clip(jnp.where(jnp.isnan(values), 0, values), -limit, limit)


def finite(gradient: jax.Array) -> jax.Array:
    """A gradient that left the numbers anywhere counts as 0, which is within every clip: its norm is unknown."""
    import jax.numpy as jnp

    return jnp.where(jnp.isfinite(gradient).all(), gradient, 0)
