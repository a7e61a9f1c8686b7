"""Ridge regression against naive loops over examples, closed forms and properties."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurcast._check import FloatArray
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems.ridge import RidgeRegression
from tests.problems.test_base import drawn_rows, gradient, naive_gradient, partition

Clipping = Literal["example", "node", "none"]
SIZES, FEATURES = (8, 5, 11), 4
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def data(seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Partition:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((sum(sizes), FEATURES)).astype(np.float32)
    targets = features @ np.arange(1.0, FEATURES + 1) / 2 + rng.standard_normal(sum(sizes))
    return partition(features, targets.astype(np.float32), sizes)


def of_example(model: FloatArray, features: FloatArray, target: float) -> FloatArray:
    return (features @ model - target) * features


def random_model(seed: int = 1, scale: float = 1.0) -> FloatArray:
    return scale * np.random.default_rng(seed).standard_normal(FEATURES)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("clipping", ["example", "node", "none"])
def test_gradients_are_those_of_a_loop(clipping: Clipping, l2: float, dtype: str, private: bool) -> None:
    """Unequal sizes: nodes are filled up, and the filling must not count."""
    problem = RidgeRegression(data=data(), clip=0.9, clipping=clipping, l2=l2)
    model = random_model()
    for node in range(len(SIZES)):
        expected = naive_gradient(problem, of_example, model, drawn_rows(problem, node), private=private)
        result = gradient(problem, model, node, private=private, dtype=dtype)
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE[dtype], err_msg=f"node {node}")


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_minibatch_gradients_are_those_of_a_loop(private: bool) -> None:
    problem = RidgeRegression(data=data(), clip=0.9, clipping="example", l2=0.3, batch=3)
    model = random_model()
    for node in range(len(SIZES)):
        expected = naive_gradient(problem, of_example, model, drawn_rows(problem, node), private=private)
        np.testing.assert_allclose(gradient(problem, model, node, private=private), expected, atol=1e-5)


@pytest.mark.parametrize("clipping", ["example", "node"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_no_gradient_exceeds_its_clip(clipping: Clipping, scale: float) -> None:
    problem = RidgeRegression(data=data(), clip=0.05, clipping=clipping, l2=0.7)
    model = random_model(scale=scale)
    for node in range(len(SIZES)):
        without_l2 = gradient(problem, model, node, private=False) - 0.7 * model.astype(np.float32)
        # Taking the L2 term off again loses digits in proportion to it.
        assert np.linalg.norm(without_l2) <= 0.05 * (1 + 1e-5) + 1e-6 * np.linalg.norm(model)
        assert np.linalg.norm(gradient(problem, model, node, private=True)) <= 0.05 * (1 + 1e-5)


@given(
    seed=st.integers(0, 10_000),
    log_scale=st.floats(-2, 6),
    l2=st.sampled_from([0.0, 0.4]),
    batch=st.sampled_from([None, 3]),
    row=st.integers(0, 3),
)
@settings(max_examples=25)
def test_replacing_a_record_moves_a_gradient_by_at_most_2c_over_n(
    seed: int, log_scale: float, l2: float, batch: int | None, row: int
) -> None:
    """At the same key, for outliers too, at the public and at the private point."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((4, FEATURES)).astype(np.float32)
    targets = rng.standard_normal(4).astype(np.float32)
    other, moved_targets = features.copy(), targets.copy()
    other[row] = 10**log_scale * rng.standard_normal(FEATURES)
    moved_targets[row] = 10**log_scale * rng.standard_normal()
    model, clip = random_model(seed), 0.6
    before, after = (
        RidgeRegression(data=partition(x, y, (4,)), clip=clip, clipping="example", l2=l2, batch=batch)
        for x, y in ((features, targets), (other, moved_targets))
    )
    bound = 2 * clip / before.examples_per_node[0]
    for private in (False, True):
        moved = gradient(before, model, 0, private=private) - gradient(after, model, 0, private=private)
        assert np.linalg.norm(moved) <= bound * (1 + 1e-4)


def test_private_clip_holds_where_data_and_l2_terms_nearly_cancel() -> None:
    """The norm comes from ||rx||^2 + 2 l2 r x'w + l2^2 ||w||^2, which loses all digits where they cancel."""
    model = np.array([-1000.0, 0.0, 0.0, 0.0])
    features = np.array([[10.0, 0.0, 0.0, 0.0]], np.float32)
    worst = 0.0
    for shift in np.linspace(-0.5, 0.5, 41):
        targets = np.array([-10_000.0 - (100.0 + shift)], np.float32)  # residual 100 + shift; 10 (100 + shift) - 1000
        problem = RidgeRegression(data=partition(features, targets, (1,)), clip=0.1, clipping="example", l2=1.0)
        worst = max(worst, float(np.linalg.norm(gradient(problem, model, 0, private=True))))
    assert worst <= 0.1 * (1 + 1e-3)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("clipping", ["example", "node"])
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_no_record_however_large_breaks_the_clip(clipping: Clipping, size: float) -> None:
    rng = np.random.default_rng(5)
    features = rng.standard_normal((4, FEATURES)).astype(np.float32)
    features[2] = size * np.sign(features[2])
    targets = np.array([1.0, -size, size, 2.0], np.float32)
    for l2 in (0.0, 0.3):
        problem = RidgeRegression(data=partition(features, targets, (4,)), clip=0.5, clipping=clipping, l2=l2)
        for seed in range(4):
            model = random_model(seed)
            public = gradient(problem, model, 0, private=False) - l2 * model.astype(np.float32)
            assert np.linalg.norm(public) <= 0.5 * (1 + 1e-4)
            assert np.linalg.norm(gradient(problem, model, 0, private=True)) <= 0.5 * (1 + 1e-4)


def loss(problem: RidgeRegression, model: FloatArray) -> float:
    """F/nodes by loops: every node counts the same, whatever its size."""
    dataset = problem.data.dataset
    parts = [
        np.mean((dataset.features[rows].astype(np.float64) @ model - dataset.targets[rows]) ** 2) / 2
        for rows in problem.data.rows
    ]
    return float(np.mean(parts)) + problem.l2 / 2 * float(model @ model)


def slope(problem: RidgeRegression, model: FloatArray) -> FloatArray:
    free = RidgeRegression(data=problem.data, clipping="none", l2=problem.l2)
    parts = [
        naive_gradient(free, of_example, model, drawn_rows(free, node), private=False) for node in range(problem.nodes)
    ]
    return np.asarray(np.mean(parts, axis=0))


@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_free_optimum_has_no_slope_and_weighs_nodes_equally(l2: float) -> None:
    sizes = (20, 6, 9)
    problem = RidgeRegression(data=data(sizes=sizes), l2=l2)
    best = problem.optimum()
    np.testing.assert_allclose(slope(problem, best), 0, atol=1e-10)
    pooled = RidgeRegression(data=data(sizes=(sum(sizes),)), l2=l2)
    assert np.linalg.norm(pooled.optimum() - best) > 1e-3


def test_optimum_on_the_ball_meets_its_conditions() -> None:
    problem = RidgeRegression(data=data(), l2=0.1, ball=0.8)
    best = problem.optimum()
    assert np.linalg.norm(best) == pytest.approx(0.8, rel=1e-9)
    down = slope(problem, best)
    multiplier = -float(down @ best) / 0.8**2
    assert multiplier > 0
    np.testing.assert_allclose(down, -multiplier * best, atol=1e-8)
    assert_no_feasible_point_is_better(problem, best)


def test_optimum_in_the_box_meets_its_conditions() -> None:
    problem = RidgeRegression(data=data(), l2=0.1, box=0.9)
    best = problem.optimum()
    assert np.abs(best).max() == pytest.approx(0.9)
    assert np.abs(best).min() < 0.9
    np.testing.assert_allclose(np.clip(best - slope(problem, best), -0.9, 0.9), best, atol=1e-8)
    assert_no_feasible_point_is_better(problem, best)


def assert_no_feasible_point_is_better(problem: RidgeRegression, best: FloatArray) -> None:
    rng = np.random.default_rng(6)
    least = loss(problem, best)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(20):
            with jax.enable_x64(True):
                point = np.asarray(problem.project(jnp.asarray(best + scale * rng.standard_normal(best.shape))))
            assert loss(problem, point) >= least - 1e-10


def test_strong_convexity_is_the_least_eigenvalue() -> None:
    problem = RidgeRegression(data=data(), l2=0.1)
    hessian = np.zeros((FEATURES, FEATURES))
    for rows in problem.data.rows:
        for row in rows:
            x = problem.data.dataset.features[row].astype(np.float64)
            hessian += np.outer(x, x) / (len(rows) * problem.nodes)
    assert problem.constants.strong_convexity == pytest.approx(np.linalg.eigvalsh(hessian)[0] + 0.1, rel=1e-9)


@pytest.mark.parametrize("clipping", ["example", "node", "none"])
def test_smoothness_bounds_what_is_measured(clipping: Clipping) -> None:
    problem = RidgeRegression(data=data(), clip=0.5, clipping=clipping, l2=0.1)
    rng = np.random.default_rng(8)
    for node in range(len(SIZES)):
        for draw in range(12):
            model = random_model(draw, scale=float(rng.uniform(0.1, 2)))
            other = model + 10 ** rng.uniform(-2, 0.5) * rng.standard_normal(model.shape)
            for private in (False, True):
                ends = [gradient(problem, point, node, private=private, dtype="float64") for point in (model, other)]
                measured = np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(model - other)
                assert measured <= problem.constants.smoothness[node] * (1 + 1e-6)


def test_smoothness_is_sharp_without_clipping() -> None:
    problem = RidgeRegression(data=data(), clipping="none")
    for node, rows in enumerate(problem.data.rows):
        x = problem.data.dataset.features[rows].astype(np.float64)
        largest = np.linalg.eigvalsh(x.T @ x / len(rows))[-1]
        assert problem.constants.smoothness[node] == pytest.approx(largest, rel=1e-9)


def test_smoothness_bounds_the_gradient_of_a_minibatch() -> None:
    """A batch may hold the examples with the longest features, so a mean over all of them does not bound it."""
    features = np.full((6, FEATURES), 0.1, np.float32)
    features[0] = 3.0
    problem = RidgeRegression(
        data=partition(features, np.zeros(6, np.float32), (6,)), clip=1e6, clipping="none", batch=1
    )
    key = next(key for key in range(100) if drawn_rows(problem, 0, key) == [0])
    ends = [gradient(problem, point, 0, private=False, key=key) for point in (np.zeros(FEATURES), np.ones(FEATURES))]
    assert np.linalg.norm(ends[0] - ends[1]) / np.sqrt(FEATURES) <= problem.constants.smoothness[0]


def test_gradient_bound() -> None:
    assert RidgeRegression(data=data(), clip=0.5, clipping="node").constants.gradient_bound == 0.5
    assert RidgeRegression(data=data(), clip=0.5, clipping="example").constants.gradient_bound == 0.5
    assert RidgeRegression(data=data(), clipping="none").constants.gradient_bound == np.inf


def test_evaluation_is_that_of_numpy() -> None:
    problem = RidgeRegression(data=data(), l2=0.2, ball=1.0)
    model, dataset = random_model(), problem.data.dataset
    expected = np.mean((dataset.test_features @ model - dataset.test_targets) ** 2) / 2
    result = problem.evaluate(
        jnp.asarray(model, jnp.float32), jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), problem.test_data())
    )
    assert float(result["loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(result["distance"]) == pytest.approx(np.linalg.norm(model - problem.optimum()), rel=1e-5)


def test_mistakes_are_named_with_a_way_out() -> None:
    rng = np.random.default_rng(0)
    labels = partition(rng.standard_normal((6, 2)).astype(np.float32), np.array([0, 1, 0, 1, 1, 0]), (3, 3), 2)
    with pytest.raises(Error, match="are labels, not values") as raised:
        RidgeRegression(data=labels)
    assert "softmax" in raised.value.hint
    with pytest.raises(Error, match="batch is 6, but node 1 has only 5") as raised:
        RidgeRegression(data=data(), batch=6)
    assert "5 or less" in raised.value.hint
    with pytest.raises(Error, match="both a ball and a box"):
        RidgeRegression(data=data(), ball=1.0, box=1.0)


def test_numbers_that_could_overflow_are_refused() -> None:
    features = np.full((2, FEATURES), 1e13, np.float32)
    with pytest.raises(Error, match="features reach 1e\\+13"):
        RidgeRegression(data=partition(features, np.zeros(2, np.float32), (2,)))
