"""FROST, against a plain NumPy loop, on networks with one-way links too."""

from collections.abc import Callable

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.networks import DIM, NODES, gradients, one_way, row_weights, setup_on, two_way


@pytest.mark.parametrize("network", [two_way, one_way])
def test_frost_is_its_recursion(network: Callable[[], mc.Network]) -> None:
    begin = np.random.default_rng(3).standard_normal((NODES, DIM))  # every node at a point of its own
    problem = mc.Quadratic.random(NODES, DIM, seed=1, clipping="none")
    problem = mc.Quadratic(curvature=problem.curvature, centre=problem.centre, clipping="none", begin=begin)
    weights, step = row_weights(network()), 0.02
    x, z = begin.copy(), np.eye(NODES)
    gradient = gradients(problem, x)
    s = gradient.copy()
    for _ in range(30):
        x_next, z_next = weights @ x - step * s, weights @ z
        following = gradients(problem, x_next)
        s = weights @ s + following / np.diag(z_next)[:, None] - gradient / np.diag(z)[:, None]
        x, z, gradient = x_next, z_next, following
    result = mc.run(mc.frost(setup_on(network(), problem, step=step)), problem, precision="float64")
    np.testing.assert_allclose(result.published[0], x, rtol=0, atol=1e-10)
    assert result.ledger.attrs["start_gradients"] == 1  # the gradient at the start is in the first message


def test_frost_reaches_the_optimum_with_constant_steps_over_one_way_links() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1, clipping="none")
    result = mc.run(mc.frost(setup_on(one_way(), problem, step=0.02, epochs=1500)), problem, precision="float64")
    np.testing.assert_allclose(result.published[0], np.tile(problem.optimum(), (NODES, 1)), atol=1e-12)


def test_frost_uses_the_channel_twice_and_promises_nothing() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=1)
    result = mc.run(mc.frost(setup_on(two_way(), problem, step=0.01)), problem)
    assert int(result.metrics["channel_uses"][-1]) == 60
    assert result.info["privacy"]["epsilon"] is None
    certified = mc.certify(result)
    assert (certified.verdict, "no noise" in certified.basis) == ("nothing is promised", True)
