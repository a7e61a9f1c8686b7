"""Row-stochastic weights of a setup: a plan's split, or all power."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.planning.row_mixing import row_mixing
from tests.algorithms.calibrated import ORDER, plan_of, relabelled, setup_of
from tests.algorithms.networks import one_way, row_weights, two_way


@pytest.mark.parametrize("network", [two_way(), one_way()], ids=["two-way", "one-way"])
def test_without_a_plan_all_power_goes_into_the_model(network: mc.Network) -> None:
    rows, amplitude = row_mixing(setup_of(network))
    np.testing.assert_allclose(amplitude, np.sqrt(network.power), rtol=1e-15)
    np.testing.assert_allclose(rows.weights.toarray(), row_weights(network), rtol=1e-12)
    np.testing.assert_allclose(rows.weights.sum(axis=1), 1, rtol=1e-12)


def test_a_plans_split_is_taken() -> None:
    plan = plan_of()
    rows, amplitude = row_mixing(plan)
    np.testing.assert_allclose(amplitude, np.sqrt(np.array([0.3, 0.5, 0.6, 0.4, 0.7]) * plan.network.power))
    assert rows is plan.mixing
    split = mc.Network(gains=two_way().gains, power=plan.alpha * plan.network.power)
    np.testing.assert_allclose(rows.weights.toarray(), row_weights(split), rtol=1e-12)


def test_an_even_split_makes_the_same_weights_as_all_power() -> None:
    even, plain = row_mixing(plan_of(alpha=0.36)), row_mixing(setup_of())
    np.testing.assert_allclose(even.mixing.weights.toarray(), plain.mixing.weights.toarray(), rtol=1e-12)
    np.testing.assert_allclose(even.amplitude, 0.6 * plain.amplitude, rtol=1e-12)


def test_what_arrives_over_the_compensation_is_the_weight() -> None:
    for setup in (setup_of(), plan_of()):
        rows, amplitude = row_mixing(setup)
        arriving = setup.network.gains.toarray().T * amplitude
        weights = rows.weights.toarray()
        links = arriving > 0
        heard = arriving / (rows.compensation * rows.normaliser)[:, None]
        np.testing.assert_allclose(weights[links], heard[links], rtol=1e-12)


def test_relabelling_nodes_permutes_weights() -> None:
    one, other = (row_mixing(setup_of(network)) for network in (one_way(), relabelled(one_way())))
    permuted = one.mixing.weights.toarray()[np.ix_(ORDER, ORDER)]
    np.testing.assert_allclose(other.mixing.weights.toarray(), permuted, rtol=1e-12)
    np.testing.assert_allclose(other.amplitude, one.amplitude[ORDER], rtol=1e-15)
