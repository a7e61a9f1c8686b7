"""Quadratics: everything in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.problems.quadratic import Quadratic
from tests.problems.test_base import clipped, gradient

NODES, DIM = 3, 4


def random(clip: float = 1.0, ball: float | None = None, box: float | None = None) -> Quadratic:
    return Quadratic.random(NODES, DIM, seed=3, clip=clip, ball=ball, box=box)


def loss(problem: Quadratic, model: FloatArray) -> float:
    parts = [(model - b) @ q @ (model - b) / 2 for q, b in zip(problem.curvature, problem.centre, strict=True)]
    return float(np.mean(parts))


def slope(problem: Quadratic, model: FloatArray) -> FloatArray:
    parts = [q @ (model - b) for q, b in zip(problem.curvature, problem.centre, strict=True)]
    return np.asarray(np.mean(parts, axis=0))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_gradients_are_clipped_products(dtype: str, tolerance: float, private: bool) -> None:
    problem = random(clip=0.7)
    free = Quadratic(curvature=problem.curvature, centre=problem.centre, clipping="none")
    for scale in (0.0, 1.0, 1e4):
        model = scale * np.random.default_rng(1).standard_normal(DIM)
        for node in range(NODES):
            plain = problem.curvature[node] @ (model - problem.centre[node])
            result = gradient(problem, model, node, private=private, dtype=dtype)
            np.testing.assert_allclose(result, clipped(plain, 0.7), atol=tolerance)
            assert np.linalg.norm(result) <= 0.7 * (1 + 1e-5)
            result = gradient(free, model, node, private=private, dtype=dtype)
            np.testing.assert_allclose(result, plain, atol=tolerance * max(1, scale))


def test_free_optimum() -> None:
    problem = random()
    best = problem.optimum()
    np.testing.assert_allclose(slope(problem, best), 0, atol=1e-12)
    mean = np.linalg.solve(problem.curvature.sum(axis=0), np.einsum("kij,kj->i", problem.curvature, problem.centre))
    np.testing.assert_allclose(best, mean, rtol=1e-10)


def test_optimum_on_the_ball_meets_its_conditions() -> None:
    problem = random(ball=0.1)
    best = problem.optimum()
    assert np.linalg.norm(best) == pytest.approx(0.1, rel=1e-9)
    down = slope(problem, best)
    multiplier = -float(down @ best) / 0.1**2
    assert multiplier > 0
    np.testing.assert_allclose(down, -multiplier * best, atol=1e-9)
    assert_no_feasible_point_is_better(problem, best)


def test_optimum_in_the_box_meets_its_conditions() -> None:
    problem = random(box=0.1)
    best = problem.optimum()
    assert np.abs(best).max() == pytest.approx(0.1)
    np.testing.assert_allclose(np.clip(best - slope(problem, best), -0.1, 0.1), best, atol=1e-9)
    assert_no_feasible_point_is_better(problem, best)


def assert_no_feasible_point_is_better(problem: Quadratic, best: FloatArray) -> None:
    rng = np.random.default_rng(6)
    least = loss(problem, best)
    for scale in (1e-3, 0.1, 1.0):
        for _ in range(20):
            with jax.enable_x64(True):
                point = np.asarray(problem.project(jnp.asarray(best + scale * rng.standard_normal(DIM))))
            assert loss(problem, point) >= least - 1e-12


def test_constants_are_eigenvalues() -> None:
    problem = random(clip=0.5)
    values = np.linalg.eigvalsh(problem.curvature)
    assert values.min() >= 0.5 - 1e-9
    assert values.max() <= 2.0 + 1e-9
    np.testing.assert_allclose(problem.constants.smoothness, values[:, -1], rtol=1e-10)
    assert problem.constants.strong_convexity == pytest.approx(
        np.linalg.eigvalsh(problem.curvature.mean(axis=0))[0], rel=1e-10
    )
    assert problem.constants.gradient_bound == 0.5
    rng = np.random.default_rng(2)
    for node in range(NODES):
        for scale in (0.01, 1.0):
            one = rng.standard_normal(DIM)
            other = one + scale * rng.standard_normal(DIM)
            ends = [gradient(problem, point, node, private=True, dtype="float64") for point in (one, other)]
            measured = np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(one - other)
            assert measured <= problem.constants.smoothness[node] * (1 + 1e-9)


def test_smoothness_of_a_node_that_curves_down() -> None:
    """One node's quadratic may be concave as long as the sum is not: the constant is the largest |eigenvalue|."""
    problem = Quadratic(
        curvature=np.array([np.diag([3.0, 3.0]), np.diag([-2.0, 1.0])]), centre=np.zeros((2, 2)), clipping="none"
    )
    ends = [gradient(problem, point, 1, private=False) for point in (np.zeros(2), np.array([1.0, 0.0]))]
    assert np.linalg.norm(ends[0] - ends[1]) <= problem.constants.smoothness[1]


def test_evaluation_is_that_of_numpy() -> None:
    problem = random(ball=0.3)
    model = np.random.default_rng(4).standard_normal(DIM)
    result = problem.evaluate(
        jnp.asarray(model, jnp.float32), jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), problem.test_data())
    )
    assert float(result["loss"]) == pytest.approx(loss(problem, model), rel=1e-5)
    assert float(result["distance"]) == pytest.approx(np.linalg.norm(model - problem.optimum()), rel=1e-5)


def test_a_seed_is_a_problem() -> None:
    np.testing.assert_array_equal(random().centre, random().centre)
    assert not np.array_equal(random().centre, Quadratic.random(NODES, DIM, seed=4).centre)
    assert random().examples_per_node is None
    assert random(ball=2.0).radius == 2.0
    assert random(box=2.0).radius == 4.0


IDENTITY = np.broadcast_to(np.eye(2), (3, 2, 2))


@pytest.mark.parametrize(
    ("curvature", "centre", "message"),
    [
        (IDENTITY * np.nan, np.zeros((3, 2)), "not finite"),
        (IDENTITY, np.full((3, 2), np.inf), "not finite"),
        (IDENTITY + np.array([[0, 1], [0, 0]]), np.zeros((3, 2)), "not symmetric"),
        (IDENTITY, np.zeros((2, 2)), "has shape"),
        (IDENTITY, np.zeros(2), "has shape"),
        (IDENTITY * -1, np.zeros((3, 2)), "no minimum"),
    ],
)
def test_mistakes_are_named_with_a_way_out(curvature: FloatArray, centre: FloatArray, message: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        Quadratic(curvature=curvature, centre=centre)
    assert raised.value.hint


def test_wrong_kinds_of_clipping_and_omega() -> None:
    with pytest.raises(Error, match="no examples to clip"):
        Quadratic(curvature=IDENTITY, centre=np.zeros((3, 2)), clipping="example")
    with pytest.raises(Error, match="both a ball and a box"):
        random(ball=1.0, box=1.0)
    with pytest.raises(Error, match="dim is 0"):
        Quadratic.random(3, 0)
