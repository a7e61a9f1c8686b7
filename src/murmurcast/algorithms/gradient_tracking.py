"""Gradient tracking with doubly stochastic weights.

    x_i <- sum_j w_ij (x_j - gamma_t y_j)                      message 1: x - gamma y
    y_i <- sum_j w_ij y_j + g_i(x_i) - g_i(old x_i)            message 2: y, y_1 = g(x_1)

Weights: doubly stochastic, the same in both messages. The mean of all y is the mean of all gradients in every epoch,
the newest taken at the new x. Nothing is projected.
Noise: none, so nothing is promised. Channel uses: 2 messages per epoch.
"""

import numpy as np

from murmurcast.algorithms.base import Algorithm, Publish, Settings
from murmurcast.algorithms.gossip import newest, require_unbounded, steps_of
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access, Doubly, mixer
from murmurcast.algorithms.tracking import Tracked, begin_hiding_nothing, factor_setting, pulling_rounds
from murmurcast.planning.setup import Setup


def gradient_tracking(
    setup: Setup,
    *,
    weights: Doubly = "sinkhorn",
    access: Access = "air",
    step_factor: NumberPerNode = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Gradient tracking.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.
        weights: How neighbours are weighed.
        access: How they are heard; "max-degree" and "metropolis" need another than "air" on most gains.
        step_factor: Of the steps: one number, or one for each node; with the number of nodes they are as long as
            Algorithm 1's.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    tracked = doubly_tracked(setup, "gradient-tracking", weights, access, step_factor, publish)
    settings: Settings = {
        "weights": weights,
        "access": access,
        "step_factor": factor_setting(step_factor),
        "publish": publish,
    }
    return Algorithm("gradient-tracking", setup, pulling_rounds(tracked), settings, begin_hiding_nothing)


def doubly_tracked(
    setup: Setup, name: str, weights: Doubly, access: Access, step_factor: NumberPerNode, publish: Publish
) -> Tracked:
    """Models and trackers by the same doubly stochastic weights."""
    require_unbounded(setup, name, "a projected model would not follow its tracker")
    by = mixer(setup, weights, access)
    return Tracked(by, by, steps_of(setup, step_factor), np.ones((1, setup.network.nodes)), newest(setup, publish))


METHOD = Method(
    name="gradient-tracking",
    make=gradient_tracking,
    summary="gradient tracking with doubly stochastic weights; exact with constant steps, nothing hidden",
    account="no noise is sent",
    reference="Koloskova, Lin, Stich: An improved analysis of gradient tracking for decentralized machine learning, "
    "2021",
    needs="two-way links, no ball or box",
    projects=False,
    uses="2",
    averages=True,
)
