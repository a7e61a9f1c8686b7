"""FROST: gradient tracking with row-stochastic weights, for networks with one-way links.

    x_i <- sum_j a_ij x_j - gamma_t s_i                                           message 1: x
    s_i <- sum_j a_ij s_j + g_i(x_i)/z_ii,t+1 - g_i(old x_i)/z_ii,t               message 2: s, s_1 = g(x_1)

Weights: row-stochastic, a_ij = h_ji sqrt(p_j)/(c_i R); z_{t+1} = A z_t, z_1 = I, is free of data and worked out
beforehand. The trackers' mean under A's left Perron vector is the sum of all gradients, so steps are about as many
times longer as there are nodes. Nothing is projected.
Noise: none, so nothing is promised. Channel uses: 2 messages per epoch.
"""

from murmurcast.algorithms.base import Algorithm, Publish, Settings
from murmurcast.algorithms.gossip import newest, require_unbounded, steps_of
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access, mixer
from murmurcast.algorithms.tracking import Tracked, begin_hiding_nothing, factor_setting, following_rounds
from murmurcast.network.weights import z_diagonal
from murmurcast.planning.setup import Setup


def frost(
    setup: Setup, *, access: Access = "air", step_factor: NumberPerNode = 1.0, publish: Publish = "last"
) -> Algorithm:
    """FROST.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.
        access: How neighbours are heard.
        step_factor: Of the steps: one number, or one for each node, which need not agree on a step.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    tracked = row_tracked(setup, "frost", access, step_factor, publish)
    settings: Settings = {"access": access, "step_factor": factor_setting(step_factor), "publish": publish}
    return Algorithm("frost", setup, following_rounds(tracked), settings, begin_hiding_nothing)


def row_tracked(setup: Setup, name: str, access: Access, step_factor: NumberPerNode, publish: Publish) -> Tracked:
    """Models and trackers by the same row-stochastic weights, gradients divided by z."""
    require_unbounded(setup, name, "a projected model would not follow its tracker")
    by = mixer(setup, "row", access)
    z = z_diagonal(by.weights, setup.schedule.epochs + 1, "recursive")
    return Tracked(by, by, steps_of(setup, step_factor), z, newest(setup, publish))


METHOD = Method(
    name="frost",
    make=frost,
    summary="gradient tracking with row-stochastic weights; exact with constant steps, nothing hidden",
    account="no noise is sent",
    reference="Xin, Xi, Khan: FROST, fast row-stochastic optimization with uncoordinated step-sizes, 2019",
    needs="no ball or box",
    projects=False,
    side_vector="z",
    uses="2",
)
