"""Row-stochastic gradient descent: its z and its weights, of a network and of a plan."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.tables import row_of
from tests.algorithms.calibrated import EPOCHS, ORDER, carried, plan_of, relabelled, setup_of, words_of
from tests.algorithms.networks import one_way, row_weights, two_way
from tests.algorithms.test_subgradient_push import ACCESS


@pytest.mark.parametrize("network", [two_way, one_way])
def test_z_is_the_diagonal_of_powers_of_the_weights(network: Callable[[], mc.Network]) -> None:
    algorithm = mc.row_stochastic(setup_of(network()))
    weights = row_weights(network())
    np.testing.assert_allclose(carried(algorithm), weights, rtol=1e-12, atol=1e-15)
    z = row_of(algorithm.rounds[0].receiving.z, np.arange(1, EPOCHS + 1))
    expected = [np.diag(np.linalg.matrix_power(weights, epoch)) for epoch in range(EPOCHS)]
    np.testing.assert_allclose(z, expected, rtol=1e-12)


@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_channel_and_words(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.row_stochastic(setup_of(one_way()), access=access, step_factor=2)
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "none"}
    assert algorithm.channel_uses == uses
    assert algorithm.settings == {"access": access, "step_factor": 2.0, "publish": "last"}
    assert algorithm.releases == ()


def test_a_plan_brings_its_weights_and_leaves_power_for_noise() -> None:
    plan = plan_of()
    algorithm = mc.row_stochastic(plan)
    np.testing.assert_allclose(carried(algorithm), plan.mixing.weights.toarray(), rtol=1e-12, atol=1e-15)
    assert np.abs(carried(algorithm) - row_weights(two_way())).max() > 0.01
    np.testing.assert_allclose(algorithm.rounds[0].sending.amplitude[0] ** 2, plan.alpha * plan.network.power)
    z = row_of(algorithm.rounds[0].receiving.z, np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(z, plan.z, rtol=1e-12)


def test_relabelling_nodes_permutes_z() -> None:
    one, other = (mc.row_stochastic(setup_of(network)) for network in (one_way(), relabelled(one_way())))
    np.testing.assert_allclose(other.rounds[0].receiving.z, one.rounds[0].receiving.z[:, ORDER], rtol=1e-12)
