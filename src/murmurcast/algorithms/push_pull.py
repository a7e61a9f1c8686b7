"""Push-pull and AB: gradient tracking that pulls models with rows and pushes trackers with columns.

    push-pull:  x_i <- sum_j a_ij (x_j - gamma_t y_j)          ab:  x_i <- sum_j a_ij x_j - gamma_t y_i       message 1
    y_i <- sum_j b_ij y_j + g_i(x_i) - g_i(old x_i)            y_1 = g(x_1)                                   message 2

Weights: A is row-stochastic, a_ij = h_ji sqrt(p_j)/(c_i R); B is column-stochastic, b_ij = (d_j/R) h_ji/H_j: the same
gains with other amplitudes. The sum of all y is the sum of all gradients in every epoch. Links may go one way. Nothing
is projected. AB is unstable at steps that push-pull still takes.
Noise: none, so nothing is promised. Channel uses: 2 messages per epoch.
"""

from typing import Literal

import numpy as np

from murmurcast import _check
from murmurcast.algorithms.base import Algorithm, Publish, Settings
from murmurcast.algorithms.gossip import newest, require_unbounded, steps_of
from murmurcast.algorithms.method import Method, NumberPerNode
from murmurcast.algorithms.mixer import Access, mixer
from murmurcast.algorithms.tracking import (
    Tracked,
    begin_hiding_nothing,
    factor_setting,
    following_rounds,
    pulling_rounds,
)
from murmurcast.planning.setup import Setup

Form = Literal["push-pull", "ab"]


def push_pull(
    setup: Setup,
    *,
    form: Form = "push-pull",
    access: Access = "air",
    step_factor: NumberPerNode = 1.0,
    publish: Publish = "last",
) -> Algorithm:
    """Push-pull, or AB.

    Args:
        setup: Network and schedule are taken from it. A constant schedule converges linearly.
        form: "push-pull", whose models are mixed after the step, or "ab", whose models are mixed before it.
        access: How neighbours are heard.
        step_factor: Of the steps: one number, or one for each node, which need not agree on a step.
        publish: "last", the newest x, or "average" of all of them.

    Guarantees:
        None: nothing is hidden.
    """
    tracked = push_pull_tracked(setup, "push-pull", access, step_factor, publish)
    settings: Settings = {
        "form": form,
        "access": access,
        "step_factor": factor_setting(step_factor),
        "publish": publish,
    }
    return Algorithm("push-pull", setup, _ROUNDS[require_form(form)](tracked), settings, begin_hiding_nothing)


def push_pull_tracked(setup: Setup, name: str, access: Access, step_factor: NumberPerNode, publish: Publish) -> Tracked:
    """Models by row-stochastic weights, trackers by column-stochastic ones."""
    require_unbounded(setup, name, "a projected model would not follow its tracker")
    rows, columns = mixer(setup, "row", access), mixer(setup, "column", access)
    undivided = np.ones((1, setup.network.nodes))
    return Tracked(rows, columns, steps_of(setup, step_factor), undivided, newest(setup, publish))


def require_form(form: str) -> str:
    """The form is a known one."""
    _check.one_of(("push-pull", "ab"), form=form)
    return form


_ROUNDS = {"push-pull": pulling_rounds, "ab": following_rounds}

METHOD = Method(
    name="push-pull",
    make=push_pull,
    summary="gradient tracking that pulls models and pushes trackers; exact with constant steps, nothing hidden",
    account="no noise is sent",
    reference="Pu, Shi, Xu, Nedic: Push-pull gradient methods for distributed optimization in networks, 2021; AB: Xin, "
    "Khan: A linear algorithm for optimization over directed graphs with geometric convergence, 2018",
    needs="no ball or box",
    projects=False,
    uses="2",
    averages=True,
)
