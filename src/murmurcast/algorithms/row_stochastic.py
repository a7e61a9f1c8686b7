"""Row-stochastic gradient descent: what Algorithm 1 becomes without noise and with gradients at own points.

    x_i <- Proj( sum_j a_ij x_j - gamma_t g_i(x_i)/z_ii,t )                z_{t+1} = A z_t, z_1 = I

Weights: row-stochastic; dividing by z, which tends to A's left Perron vector, undoes the weighing of unequal rows.
Noise: none, so nothing is promised. Channel uses: one message per epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import NO_DRAWS, Algorithm, Local, Publish, Round, Settings, State, start
from murmurcast.algorithms.gossip import averaged, newest, steps_of
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.mixer import Access, Loud, Mixer, mix, mixer, send_own
from murmurcast.algorithms.tables import Leaf, without_repeats
from murmurcast.network.weights import z_diagonal
from murmurcast.planning.setup import Setup

if TYPE_CHECKING:
    import jax


class Receiving(NamedTuple):
    """Factors of what is heard and of what was sent; the step; z; the newest point's weight in what is published."""

    heard: Leaf
    kept: Leaf
    step: Leaf
    z: Leaf
    newest: Leaf


def row_stochastic(
    setup: Setup, *, access: Access = "air", step_factor: float = 1.0, publish: Publish = "last"
) -> Algorithm:
    """Row-stochastic gradient descent.

    Args:
        setup: Network and schedule are taken from it; of a plan also the power split.
        access: How neighbours are heard.
        step_factor: Of the steps.
        publish: "last", the newest mixed point, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    by = mixer(setup, "row", access)
    receiving = divided(setup, by, steps_of(setup, step_factor), publish)
    only = Round("model", by.channel, NO_DRAWS, Loud(by.amplitude), receiving, send_own, step_at_own)
    settings: Settings = {"access": access, "step_factor": float(step_factor), "publish": publish}
    return Algorithm("row-stochastic", setup, (only,), settings, start)


def divided(setup: Setup, by: Mixer, steps: FloatArray, publish: Publish) -> Receiving:
    """Tables of what is made of what is heard, gradients divided by the recursive z."""
    z = without_repeats(z_diagonal(by.weights, setup.schedule.epochs, "recursive"))
    return Receiving(by.heard, by.kept, steps, z, newest(setup, publish))


def step_at_own(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(x)/z)."""
    mixed = mix(here, sent, heard)
    own = local.project(mixed - here.step / here.z * local.gradient_at_private(state.own))
    return State(own, averaged(here, state, mixed))


def step_at_mixed(here: Receiving, state: State, sent: jax.Array, heard: jax.Array, local: Local) -> State:
    """Proj(m - gamma g(m)/z)."""
    mixed = mix(here, sent, heard)
    own = local.project(mixed - here.step / here.z * local.gradient_at_public(mixed))
    return State(own, averaged(here, state, mixed))


METHOD = Method(
    name="row-stochastic",
    make=row_stochastic,
    summary="row-stochastic gradient descent divided by z, for one-way links too, nothing hidden",
    account="no noise is sent",
    reference="Mai, Abed: Distributed optimization over directed graphs with row stochasticity, 2019 [MAI201994]; Xi, "
    "Mai, Abed, Khan, 2016 [7526803]; as the paper quotes them",
    side_vector="z",
)
