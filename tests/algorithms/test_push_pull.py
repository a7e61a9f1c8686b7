"""Push-pull, against a plain NumPy loop, on networks with one-way links too."""

from collections.abc import Callable

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.network.weights import column_mixing
from tests.algorithms.networks import DIM, NODES, column_weights, gradients, one_way, row_weights, setup_on, two_way


@pytest.mark.parametrize("network", [two_way, one_way])
def test_push_pull_is_its_recursion(network: Callable[[], mc.Network]) -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=2, clipping="none")
    rows, columns, step = row_weights(network()), column_weights(network()), 0.05
    x = np.zeros((NODES, DIM))
    gradient = gradients(problem, x)
    y = gradient.copy()
    for _ in range(30):
        x = rows @ (x - step * y)
        following = gradients(problem, x)
        y = columns @ y + following - gradient
        gradient = following
        np.testing.assert_allclose(y.sum(axis=0), gradient.sum(axis=0), atol=1e-12)
    result = mc.run(mc.push_pull(setup_on(network(), problem, step=step)), problem, precision="float64")
    np.testing.assert_allclose(result.published[0], x, rtol=0, atol=1e-10)


def test_push_pull_reaches_the_optimum_with_constant_steps() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=2, clipping="none")
    result = mc.run(mc.push_pull(setup_on(one_way(), problem, step=0.05, epochs=1500)), problem, precision="float64")
    np.testing.assert_allclose(result.published[0], np.tile(problem.optimum(), (NODES, 1)), atol=1e-12)


@pytest.mark.parametrize("network", [two_way, one_way])
def test_column_weights_keep_the_sum(network: Callable[[], mc.Network]) -> None:
    built = column_mixing(network())
    np.testing.assert_allclose(built.weights.toarray(), column_weights(network()), rtol=1e-14)
    np.testing.assert_allclose(built.weights.sum(axis=0), 1, rtol=1e-14)
    assert np.abs(built.weights.sum(axis=1) - 1).max() > 0.05  # and no others
    arriving = network().gains.toarray().T * built.amplitude
    np.testing.assert_allclose(arriving, built.weights.toarray() - np.diag(built.weights.diagonal()), rtol=1e-14)


def test_nobody_exceeds_its_amplitude() -> None:
    problem = mc.Quadratic.random(NODES, DIM, seed=2)
    algorithm = mc.push_pull(setup_on(one_way(), problem, step=0.05))
    tracker = algorithm.rounds[1]
    assert tracker.name == "tracker"
    loudness = tracker.sending.amplitude[0] / np.sqrt(one_way().power)
    assert loudness.max() == pytest.approx(1)
