"""Made-up sets: their optimum is one, by an independent look."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from murmurcast.data import datasets
from murmurcast.data.optimum import logistic_optimum
from murmurcast.errors import Error


@pytest.mark.parametrize("heterogeneity", [0.0, 1.5])
def test_the_normal_equations_hold(heterogeneity: float) -> None:
    result = datasets.least_squares(500, 7, seed=2, noise=0.3, heterogeneity=heterogeneity)
    x, y = result.features.astype(np.float64), result.targets.astype(np.float64)
    assert result.optimum is not None
    assert result.optimum.shape == (7,)
    assert np.abs(x.T @ (x @ result.optimum - y)).max() / len(x) < 1e-12


def test_without_noise_the_truth_is_found() -> None:
    result = datasets.least_squares(200, 5, seed=1, noise=0.0)
    assert result.optimum is not None
    np.testing.assert_allclose(result.test_features @ result.optimum, result.test_targets, atol=1e-5)


def test_heterogeneity_parts_the_optima_of_sorted_nodes() -> None:
    def apart(heterogeneity: float) -> float:
        result = datasets.least_squares(4000, 4, seed=0, noise=0.01, heterogeneity=heterogeneity)
        parts = result.partition("sorted", nodes=4).rows
        local = [np.linalg.lstsq(result.features[rows], result.targets[rows], rcond=None)[0] for rows in parts]
        return float(np.linalg.norm(np.std(local, axis=0)))

    assert apart(2.0) > 10 * apart(0.0)


@pytest.mark.parametrize(("examples", "features", "classes"), [(400, 3, 2), (1000, 10, 3), (3000, 20, 10)])
def test_the_logistic_gradient_vanishes(examples: int, features: int, classes: int) -> None:
    result = datasets.logistic(examples, features, classes, seed=5)
    assert result.optimum is not None
    assert result.optimum.shape == (classes, features + 1)
    x = np.column_stack([result.features.astype(np.float64), np.ones(len(result.features))])
    hit = np.eye(classes)[result.targets]
    gradient = (softmax(x @ result.optimum.T, axis=1) - hit).T @ x / len(x)
    assert np.linalg.norm(gradient) < 1e-9
    assert np.abs(result.optimum.sum(axis=0)).max() < 1e-12


def test_another_solver_finds_no_lower_loss() -> None:
    result = datasets.logistic(300, 4, 3, seed=8)
    assert result.optimum is not None
    x = np.column_stack([result.features.astype(np.float64), np.ones(len(result.features))])

    def loss(flat: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
        scores = x @ flat.reshape(3, 5).T
        return float(np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(x)), result.targets]))

    other = minimize(loss, np.zeros(15), method="BFGS", options={"gtol": 1e-7})
    assert loss(result.optimum.ravel()) <= other.fun + 1e-12
    shape = other.x.reshape(3, 5)
    np.testing.assert_allclose(shape - shape.mean(axis=0), result.optimum, atol=1e-4)


def test_where_planes_part_the_labels_there_is_no_optimum() -> None:
    x = np.linspace(-1, 1, 40)[:, None]
    assert logistic_optimum(x, (x[:, 0] > 0.01).astype(int), 2) is None
    assert logistic_optimum(x, np.zeros(40, int), 2) is None
    with pytest.raises(Error, match="told apart by planes") as raised:
        datasets.logistic(40, 30, 4, seed=0)
    assert "more examples" in raised.value.hint


@pytest.mark.parametrize("name", ["least-squares", "logistic"])
def test_the_optimum_follows_the_training_part(name: str) -> None:
    result = datasets.load(name)
    again = result.split(0.5, seed=9)
    scaled = result.normalised(0.0, 2.0)
    assert result.optimum is not None
    assert again.optimum is not None
    assert scaled.optimum is not None
    assert np.abs(again.optimum - result.optimum).max() > 1e-4
    weights = result.features.shape[1]
    np.testing.assert_allclose(scaled.optimum[..., :weights], 2 * result.optimum[..., :weights], rtol=1e-6)


def test_seeds_matter_and_repeat() -> None:
    one, same, other = (datasets.logistic(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.features, same.features)
    assert not np.array_equal(one.features, other.features)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(Error, match="do not settle") as raised:
        datasets.least_squares(10, 20)
    assert "25" in raised.value.hint
    datasets.least_squares(25, 20)
    with pytest.raises(Error, match="too many"):
        datasets.least_squares(10**9, 100)
    with pytest.raises(Error):
        datasets.logistic(classes=1)
    with pytest.raises(Error):
        datasets.least_squares(seed=-1)
