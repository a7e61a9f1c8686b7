"""Accuracies on MNIST that an independent program found, for the plainest of settings."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.tables import same_always
from murmurcast.network.gains import Constant
from murmurcast.problems.clip import Clipping
from tests.conftest import changed

NODES = 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epochs", "clipping", "expected"), [(3, "none", 0.7734), (20, "node", 0.8186)], ids=["unclipped", "clipped"]
)
def test_mean_model_on_mnist(epochs: int, clipping: Clipping, expected: float) -> None:
    """Official split, sorted, complete graph with weights 1/4, gradient at the mixed point, not divided by z."""
    data = mc.datasets.mnist().normalised(0.1307, 0.3081).partition("sorted", NODES)
    problem = mc.SoftmaxRegression(data=data, clip=1.0, clipping=clipping)
    network = mc.topologies.complete(NODES, gain=Constant())
    schedule = mc.Schedule(epochs=epochs, step=0.1, decay="constant")
    plan = mc.plan(network, problem, mc.Budget(epsilon=1.0), schedule)
    np.testing.assert_allclose(plan.mixing.weights.toarray(), 0.25)
    built = mc.noiseless(plan)
    plain = changed(built, receiving=built.rounds[0].receiving._replace(z=same_always(np.ones(NODES))))
    result = mc.run(plain, problem)
    assert float(result.final("mean_accuracy")[0]) == pytest.approx(expected, abs=0.002)
