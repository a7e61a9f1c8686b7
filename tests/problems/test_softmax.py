"""Softmax regression against naive loops over examples, closed forms and properties."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from murmurcast._check import FloatArray
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems.softmax import SoftmaxRegression
from tests.problems.test_base import drawn_rows, gradient, naive_gradient, partition

Clipping = Literal["example", "node", "none"]
SIZES, CLASSES, FEATURES = (7, 4, 9), 3, 5
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def data(seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Partition:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((sum(sizes), FEATURES)).astype(np.float32)
    return partition(features, rng.integers(0, CLASSES, sum(sizes)), sizes, CLASSES)


def of_example(model: FloatArray, features: FloatArray, label: float) -> FloatArray:
    extended = np.append(features, 1.0)
    return np.outer(softmax(model @ extended) - np.eye(CLASSES)[int(label)], extended)


def random_model(seed: int = 1, scale: float = 1.0) -> FloatArray:
    return scale * np.random.default_rng(seed).standard_normal((CLASSES, FEATURES + 1))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("clipping", ["example", "node", "none"])
def test_gradients_are_those_of_a_loop(clipping: Clipping, l2: float, dtype: str, private: bool) -> None:
    """Unequal sizes: nodes are filled up, and the filling must not count."""
    problem = SoftmaxRegression(data=data(), clip=0.9, clipping=clipping, l2=l2)
    model = random_model()
    for node in range(len(SIZES)):
        expected = naive_gradient(problem, of_example, model, drawn_rows(problem, node), private=private)
        result = gradient(problem, model, node, private=private, dtype=dtype)
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE[dtype], err_msg=f"node {node}")


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_minibatch_gradients_are_those_of_a_loop(private: bool) -> None:
    problem = SoftmaxRegression(data=data(), clip=0.9, clipping="example", l2=0.3, batch=3)
    model = random_model()
    for node in range(len(SIZES)):
        expected = naive_gradient(problem, of_example, model, drawn_rows(problem, node), private=private)
        np.testing.assert_allclose(gradient(problem, model, node, private=private), expected, atol=1e-5)


@pytest.mark.parametrize("clipping", ["example", "node"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_no_gradient_exceeds_its_clip(clipping: Clipping, scale: float) -> None:
    problem = SoftmaxRegression(data=data(), clip=0.05, clipping=clipping, l2=0.7)
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
    labels = rng.integers(0, CLASSES, 4)
    other, relabelled = features.copy(), labels.copy()
    other[row] = 10**log_scale * rng.standard_normal(FEATURES)
    relabelled[row] = rng.integers(0, CLASSES)
    model, clip = random_model(seed), 0.6
    before, after = (
        SoftmaxRegression(data=partition(x, y, (4,), CLASSES), clip=clip, clipping="example", l2=l2, batch=batch)
        for x, y in ((features, labels), (other, relabelled))
    )
    bound = 2 * clip / before.examples_per_node[0]
    for private in (False, True):
        moved = gradient(before, model, 0, private=private) - gradient(after, model, 0, private=private)
        assert np.linalg.norm(moved) <= bound * (1 + 1e-4)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("clipping", ["example", "node"])
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_no_record_however_large_breaks_the_clip(clipping: Clipping, size: float) -> None:
    rng = np.random.default_rng(5)
    features = rng.standard_normal((4, FEATURES)).astype(np.float32)
    features[2] = size * np.sign(features[2])
    for l2 in (0.0, 0.3):
        problem = SoftmaxRegression(
            data=partition(features, np.array([0, 1, 2, 1]), (4,), CLASSES), clip=0.5, clipping=clipping, l2=l2
        )
        for seed in range(4):
            model = random_model(seed)
            public = gradient(problem, model, 0, private=False) - l2 * model.astype(np.float32)
            assert np.linalg.norm(public) <= 0.5 * (1 + 1e-4)
            assert np.linalg.norm(gradient(problem, model, 0, private=True)) <= 0.5 * (1 + 1e-4)


def loss(problem: SoftmaxRegression, model: FloatArray) -> float:
    """F/nodes by loops: every node counts the same, whatever its size."""
    dataset = problem.data.dataset
    total = 0.0
    for rows in problem.data.rows:
        x = np.column_stack([dataset.features[rows].astype(np.float64), np.ones(len(rows))])
        scores = log_softmax(x @ model.T, axis=1)
        total += -float(np.mean(scores[np.arange(len(rows)), dataset.targets[rows]]))
    return total / problem.nodes + problem.l2 / 2 * float(np.sum(model**2))


def slope(problem: SoftmaxRegression, model: FloatArray) -> FloatArray:
    """Gradient of F/nodes by loops."""
    free = SoftmaxRegression(data=problem.data, clipping="none", l2=problem.l2)
    parts = [naive_gradient(free, of_example, model, drawn_rows(free, node), private=False) for node in range(3)]
    return np.asarray(np.mean(parts, axis=0))


def test_free_optimum_has_no_slope_and_weighs_nodes_equally() -> None:
    problem = SoftmaxRegression(data=data(sizes=(20, 3, 9)), l2=0.05)
    best = problem.optimum()
    assert best.shape == problem.shape
    np.testing.assert_allclose(slope(problem, best), 0, atol=1e-7)
    pooled = SoftmaxRegression(data=data(sizes=(32,)), l2=0.05)
    assert np.linalg.norm(pooled.optimum() - best) > 1e-2


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_optimum_on_the_ball_meets_its_conditions(l2: float) -> None:
    problem = SoftmaxRegression(data=data(), l2=l2, ball=0.8)
    best = problem.optimum()
    assert np.linalg.norm(best) == pytest.approx(0.8, rel=1e-6)
    down = slope(problem, best)
    multiplier = -float(np.sum(down * best)) / 0.8**2
    assert multiplier > 0
    np.testing.assert_allclose(down, -multiplier * best, atol=1e-6)
    assert_no_feasible_point_is_better(problem, best)


def test_a_ball_that_does_not_bind_changes_nothing() -> None:
    free, wide = (SoftmaxRegression(data=data(), l2=0.1, ball=ball) for ball in (None, 50.0))
    np.testing.assert_allclose(free.optimum(), wide.optimum(), atol=1e-7)


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_optimum_in_the_box_meets_its_conditions(l2: float) -> None:
    problem = SoftmaxRegression(data=data(), l2=l2, box=0.2)
    best = problem.optimum()
    assert np.abs(best).max() <= 0.2 + 1e-12
    assert (np.abs(best) > 0.2 - 1e-9).any()
    stepped = np.clip(best - slope(problem, best), -0.2, 0.2)
    np.testing.assert_allclose(stepped, best, atol=1e-6)
    assert_no_feasible_point_is_better(problem, best)


def assert_no_feasible_point_is_better(problem: SoftmaxRegression, best: FloatArray) -> None:
    rng = np.random.default_rng(6)
    least = loss(problem, best)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(20):
            with jax.enable_x64(True):
                point = np.asarray(problem.project(jnp.asarray(best + scale * rng.standard_normal(best.shape))))
            assert loss(problem, point) >= least - 1e-10


def test_an_optimum_that_may_not_exist_is_refused() -> None:
    with pytest.raises(Error, match="may not exist") as raised:
        SoftmaxRegression(data=data()).optimum()
    assert "l2" in raised.value.hint


def quotient(problem: SoftmaxRegression, node: int, rng: np.random.Generator) -> float:
    """The largest measured change of a gradient over the change of the model."""
    result = 0.0
    for draw in range(12):
        model = random_model(draw, scale=float(rng.uniform(0.1, 2)))
        other = model + 10 ** rng.uniform(-2, 0.5) * rng.standard_normal(model.shape)
        for private in (False, True):
            ends = [gradient(problem, point, node, private=private, dtype="float64") for point in (model, other)]
            result = max(result, float(np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(model - other)))
    return result


@pytest.mark.parametrize("clipping", ["example", "node", "none"])
def test_smoothness_bounds_what_is_measured(clipping: Clipping) -> None:
    problem = SoftmaxRegression(data=data(), clip=0.5, clipping=clipping, l2=0.1)
    rng = np.random.default_rng(8)
    for node in range(len(SIZES)):
        measured = quotient(problem, node, rng)
        assert 0 < measured <= problem.constants.smoothness[node] * (1 + 1e-6)
    assert problem.constants.strong_convexity == 0.1


def test_smoothness_bounds_the_gradient_of_a_minibatch() -> None:
    """A batch may hold the examples with the longest features, so a mean over all of them does not bound it."""
    features = np.zeros((6, FEATURES), np.float32)
    features[0] = 6.0  # one long example among short ones
    problem = SoftmaxRegression(
        data=partition(features, np.array([0, 1, 0, 1, 2, 0]), (6,), CLASSES), clipping="none", batch=1
    )
    key = next(key for key in range(100) if drawn_rows(problem, 0, key) == [0])
    model, other = np.zeros(problem.shape), np.zeros(problem.shape)
    other[0, :-1] = 1e-3
    other[1, :-1] = -1e-3
    ends = [gradient(problem, point, 0, private=False, key=key) for point in (model, other)]
    measured = np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(other)
    assert measured <= problem.constants.smoothness[0]


@pytest.mark.parametrize("clipping", ["example", "node", "none"])
def test_gradient_bound_holds(clipping: Clipping) -> None:
    problem = SoftmaxRegression(data=data(), clip=0.5, clipping=clipping)
    for seed in range(5):
        for node in range(len(SIZES)):
            result = gradient(problem, random_model(seed, scale=20.0), node, private=False)
            assert np.linalg.norm(result) <= problem.constants.gradient_bound * (1 + 1e-6)


def test_evaluation_is_that_of_numpy() -> None:
    problem = SoftmaxRegression(data=data())
    model, dataset = random_model(), problem.data.dataset
    scores = np.column_stack([dataset.test_features, np.ones(len(dataset.test_targets))]) @ model.T
    expected = -np.mean(log_softmax(scores, axis=1)[np.arange(len(scores)), dataset.test_targets])
    part = jax.tree.map(jnp.asarray, problem.test_data())
    result = problem.evaluate(jnp.asarray(model, jnp.float32), part)
    assert float(result["loss"]) == pytest.approx(expected, rel=1e-5)
    assert float(result["accuracy"]) == pytest.approx(np.mean(scores.argmax(axis=1) == dataset.test_targets), rel=1e-6)


def test_shape_and_sizes() -> None:
    problem = SoftmaxRegression(data=data(), ball=3.0)
    assert problem.shape == (CLASSES, FEATURES + 1)
    assert problem.dim == CLASSES * (FEATURES + 1)
    assert problem.nodes == len(SIZES)
    assert problem.radius == 3.0
    np.testing.assert_array_equal(problem.examples_per_node, SIZES)
    np.testing.assert_array_equal(SoftmaxRegression(data=data(), batch=2).examples_per_node, [2, 2, 2])


def test_mistakes_are_named_with_a_way_out() -> None:
    rng = np.random.default_rng(0)
    values = partition(rng.standard_normal((6, 2)).astype(np.float32), rng.standard_normal(6), (3, 3))
    with pytest.raises(Error, match="are values, not labels") as raised:
        SoftmaxRegression(data=values)
    assert "ridge" in raised.value.hint
    with pytest.raises(Error, match="batch is 5, but node 1 has only 4") as raised:
        SoftmaxRegression(data=data(), batch=5)
    assert "4 or less" in raised.value.hint
    with pytest.raises(Error, match="batch is 0"):
        SoftmaxRegression(data=data(), batch=0)
    with pytest.raises(Error, match="both a ball and a box"):
        SoftmaxRegression(data=data(), ball=1.0, box=1.0)
    with pytest.raises(Error, match="clip is 0"):
        SoftmaxRegression(data=data(), clip=0.0)
    with pytest.raises(Error, match="clipping is") as raised:
        SoftmaxRegression(data=data(), clipping="exampel")  # type: ignore[arg-type]
    assert '"example"' in raised.value.hint


@pytest.mark.parametrize("l2", [-1.0, float("nan"), float("inf")])
def test_an_l2_term_is_a_finite_number(l2: float) -> None:
    with pytest.raises(Error, match="l2 is"):
        SoftmaxRegression(data=data(), l2=l2)
