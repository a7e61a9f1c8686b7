"""The learned filter is linear discriminant analysis, as others compute it."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from murmurcast.audits.evidence import Evidence
from murmurcast.audits.guessing import guess


@pytest.mark.parametrize("constant", [False, True])
def test_the_learned_filter_is_that_of_another_implementation(constant: bool) -> None:
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], (20, 30), p=[0.3, 0.7])
    noise = np.einsum("rs,snd->rnd", rng.standard_normal((6, 6)), rng.standard_normal((6, 20, 30)))
    readings = noise + np.arange(6)[:, None, None] * signs
    if constant:
        readings[2] = 0.5  # as the last bit of numbers on a grid
    result = guess(Evidence(readings, np.arange(6.0)), signs, seed=3)
    stated = result.split.learning
    other = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-4, priors=[0.5, 0.5])
    flat = readings.reshape(6, -1).T
    other.fit(flat[stated], signs.ravel()[stated])
    np.testing.assert_allclose(result.learned, other.decision_function(flat), rtol=1e-6, atol=1e-6)


def test_where_one_world_is_not_told_nothing_is_learned() -> None:
    readings = np.random.default_rng(1).standard_normal((3, 10, 20))
    result = guess(Evidence(readings, np.ones(3)), np.ones((10, 20)), seed=3)
    assert not result.learned.any()
