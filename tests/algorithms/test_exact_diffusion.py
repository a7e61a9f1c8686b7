"""Exact diffusion: steps over the Perron vector, words, and what needs no noise."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import (
    EPOCHS,
    ORDER,
    carried,
    left_perron,
    plan_of,
    relabelled,
    setup_of,
    words_of,
)
from tests.algorithms.networks import NODES, one_way, row_weights, two_way
from tests.algorithms.test_dsgd import BY_ACCESS


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
def test_channel_and_words(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.exact_diffusion(setup_of(), access=access, publish="average")
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "none"}
    assert algorithm.channel_uses == uses
    assert algorithm.settings == {"weights": "sinkhorn", "access": access, "step_factor": 1.0, "publish": "average"}
    assert (algorithm.releases, algorithm.proof) == ((), None)


def test_doubly_stochastic_weights_take_plain_steps() -> None:
    step = mc.exact_diffusion(setup_of(), step_factor=NODES).rounds[0].sending.step
    gamma = 0.2 / np.sqrt(np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(step, np.tile(NODES * gamma[:, None], (1, NODES)), rtol=1e-14)


def test_rows_divide_steps_by_how_much_a_node_counts() -> None:
    algorithm = mc.exact_diffusion(setup_of(), weights="row")
    weights = row_weights(two_way())
    np.testing.assert_allclose(carried(algorithm), weights, rtol=1e-12, atol=1e-15)
    gamma = 0.2 / np.sqrt(np.arange(1, EPOCHS + 1))
    expected = gamma[:, None] / (NODES * left_perron(weights))
    np.testing.assert_allclose(algorithm.rounds[0].sending.step, expected, rtol=1e-9)


def test_a_plan_brings_its_split() -> None:
    plan = plan_of()
    algorithm = mc.exact_diffusion(plan, weights="row")
    np.testing.assert_allclose(carried(algorithm), plan.mixing.weights.toarray(), rtol=1e-12, atol=1e-15)
    assert np.abs(carried(algorithm) - row_weights(two_way())).max() > 0.01


def test_relabelling_nodes_permutes_steps() -> None:
    one, other = (
        mc.exact_diffusion(setup_of(network), weights="row").rounds[0].sending.step
        for network in (two_way(), relabelled(two_way()))
    )
    np.testing.assert_allclose(other, one[:, ORDER], rtol=1e-9)
    assert np.ptp(one[0]) > 0.01


def test_a_one_way_cycle_is_refused_with_how_fast_it_would_grow() -> None:
    """The largest factor but that of consensus, of x+ = (I + W)/2 (2 x - x before)."""
    half = (np.eye(NODES) + row_weights(one_way())) / 2
    factors = np.abs(np.linalg.eigvals(np.block([[2 * half, -half], [np.eye(NODES), np.zeros((NODES, NODES))]])))
    growth = np.sort(factors)[-1]
    assert growth > 1.1
    with pytest.raises(mc.Error, match=f"grows by {growth:.4g} in every epoch") as raised:
        mc.exact_diffusion(setup_of(one_way()), weights="row")
    assert "another method" in raised.value.hint
