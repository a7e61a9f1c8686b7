"""What problems share: minibatches, Omega, products; and the naive references the other tests of problems use."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from murmurcast._check import FloatArray
from murmurcast.data.base import Dataset
from murmurcast.data.partition import Partition, Sorted
from murmurcast.errors import Error
from murmurcast.problems import base
from murmurcast.problems.base import Omega, minibatch
from murmurcast.problems.examples import OnExamples
from murmurcast.problems.matmul import product

KEY = 7
ExampleGradient = Callable[[FloatArray, FloatArray, float], FloatArray]


def partition(
    features: NDArray[Any], targets: NDArray[Any], sizes: Sequence[int], classes: int | None = None
) -> Partition:
    """The first sizes[0] examples at node 0, the next at node 1, and so on; the test part is half of them."""
    dataset = Dataset(
        name="made-up",
        features=features,
        targets=targets,
        test_features=features[::2] + np.float32(0.25),
        test_targets=targets[::2],
        classes=classes,
    )
    rows = np.split(np.arange(len(targets)), np.cumsum(sizes)[:-1])
    return Partition(dataset=dataset, rule=Sorted(), rows=tuple(rows))


def of_node(problem: Any, node: int, dtype: str = "float32") -> Any:
    """One node's data as the engine gives it."""

    def placed(leaf: Any) -> jax.Array:
        own = np.asarray(leaf)[node]
        return jnp.asarray(own.astype(dtype) if np.issubdtype(own.dtype, np.floating) else own)

    return jax.tree.map(placed, problem.local_data())


def clipped(gradient: FloatArray, limit: float) -> FloatArray:
    return np.asarray(gradient * min(1.0, limit / max(float(np.linalg.norm(gradient)), 1e-300)))


def naive_gradient(
    problem: OnExamples, of_example: ExampleGradient, model: FloatArray, rows: Sequence[int], *, private: bool
) -> FloatArray:
    """Every example's gradient by itself, in float64: the L2 term inside the clip only at the private point."""
    total = np.zeros_like(model)
    for row in rows:
        features = problem.data.dataset.features[row].astype(np.float64)
        gradient = of_example(model, features, float(problem.data.dataset.targets[row]))
        if private:
            gradient = gradient + problem.l2 * model
        total += clipped(gradient, problem.clip) if problem.clipping == "example" else gradient
    mean = total / len(rows)
    if problem.clipping == "node":
        mean = clipped(mean, problem.clip)
    return np.asarray(mean if private else mean + problem.l2 * model)


def gradient(
    problem: Any, model: FloatArray, node: int, *, private: bool, dtype: str = "float32", key: int = KEY
) -> FloatArray:
    """What the problem itself says, as float64."""
    with jax.enable_x64(dtype == "float64"):
        function = problem.gradient_at_private if private else problem.gradient_at_public
        result = function(jnp.asarray(model, dtype), of_node(problem, node, dtype), jax.random.key(key))
        assert result.dtype == dtype
        return np.asarray(result, np.float64)


def drawn_rows(problem: OnExamples, node: int, key: int = KEY) -> list[int]:
    """Which examples of the set a node computes with."""
    kept = problem.data.rows[node]
    if problem.batch is None:
        return [int(row) for row in kept]
    with jax.enable_x64(False):
        picked = minibatch(jax.random.key(key), jnp.int32(len(kept)), problem.batch)
    return [int(kept[place]) for place in np.asarray(picked)]


@partial(jax.jit, static_argnums=2)
def _of_many(seeds: jax.Array, size: jax.Array, batch: int) -> jax.Array:
    return jax.vmap(lambda seed: minibatch(jax.random.key(seed), size, batch))(seeds)


def of_many_keys(size: int, batch: int, keys: int = 3000) -> NDArray[Any]:
    """[keys, batch] rows."""
    return np.asarray(_of_many(jnp.arange(keys, dtype=jnp.uint32), jnp.int32(size), batch))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("size", "batch"), [(4, 1), (7, 3), (10, 3), (12, 3), (3, 3)])
def test_a_minibatch_has_no_row_twice_and_every_row_with_equal_chance(size: int, batch: int) -> None:
    keys = 3000
    rows = of_many_keys(size, batch)
    assert rows.min() >= 0
    assert rows.max() < size
    assert all(len(set(drawn)) == batch for drawn in rows.tolist())
    expected = keys * batch / size
    counts = np.bincount(rows.ravel(), minlength=size)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, max(1, size - 1))


def test_unequal_chances_would_have_been_found() -> None:
    """Arcs of 2, 2 and 3 of 7 rows, not turned: what minibatch would do without its turn."""
    keys, chances = 3000, np.array([1 / 2] * 4 + [1 / 3] * 3)
    expected = keys * 3 / 7
    assert ((keys * chances - expected) ** 2 / expected).sum() > chi2.ppf(1 - 1e-6, 6)


def test_every_row_of_a_minibatch_meets_every_other() -> None:
    rows = of_many_keys(5, 3)
    met = {frozenset(pair) for drawn in rows.tolist() for pair in combinations(drawn, 2)}
    assert len(met) == 10


def test_a_minibatch_is_its_keys() -> None:
    np.testing.assert_array_equal(of_many_keys(11, 3), of_many_keys(11, 3))
    assert len({tuple(drawn) for drawn in of_many_keys(11, 3)[:50].tolist()}) > 40


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("size", "batch"), [(46_000, 46_000), (60_000, 50_000), (1_000_000, 3_000)])
def test_a_large_minibatch_has_no_row_twice(size: int, batch: int) -> None:
    """The certificate counts every record once; products of size and batch go beyond 2^31."""
    rows = np.asarray(minibatch(jax.random.key(0), jnp.int32(size), batch))
    assert rows.min() >= 0
    assert rows.max() < size
    assert len(np.unique(rows)) == batch


@given(st.integers(3, 100_000))
@settings(max_examples=25)
def test_minibatches_of_any_size_have_no_row_twice(size: int) -> None:
    rows = of_many_keys(size, 3)
    assert rows.min() >= 0
    assert rows.max() < size
    assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0, 1e6])
def test_projection_onto_ball_and_box(scale: float) -> None:
    point = scale * np.random.default_rng(1).standard_normal((3, 4))
    with jax.enable_x64(True):
        ball = np.asarray(Omega(ball=2.0).project(jnp.asarray(point)))
        box = np.asarray(Omega(box=0.7).project(jnp.asarray(point)))
        np.testing.assert_allclose(ball, clipped(point, 2.0), rtol=1e-12)
        np.testing.assert_allclose(box, np.minimum(np.maximum(point, -0.7), 0.7), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(Omega(ball=2.0).project(jnp.asarray(ball))), ball, rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(Omega(box=0.7).project(jnp.asarray(box))), box)
        np.testing.assert_array_equal(np.asarray(Omega().project(jnp.asarray(point))), point)
    assert np.linalg.norm(ball) <= 2.0 * (1 + 1e-12)


def test_what_is_inside_stays_to_the_bit() -> None:
    inside = jnp.asarray(np.random.default_rng(2).uniform(-0.1, 0.1, (3, 2)), jnp.float32)
    for omega in (Omega(ball=1.0), Omega(box=0.1), Omega()):
        np.testing.assert_array_equal(np.asarray(omega.project(inside)), np.asarray(inside))
    np.testing.assert_array_equal(np.asarray(Omega(ball=1.0).project(jnp.zeros(3))), np.zeros(3))


def test_radius_of_omega() -> None:
    assert Omega().radius(9) is None
    assert Omega(ball=2.0).radius(9) == 2.0
    assert Omega(box=2.0).radius(9) == 6.0


def test_omega_is_one_thing() -> None:
    with pytest.raises(Error, match="both a ball and a box") as raised:
        base.require_omega(1.0, 1.0)
    assert raised.value.hint
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(Error, match="radius is"):
            base.require_omega(wrong, None)
        with pytest.raises(Error, match="box is"):
            base.require_omega(None, wrong)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rows", [1, 3, 8, 11])
def test_products_are_plain_products(rows: int) -> None:
    """For one model, many models (stacked), many nodes, and both, in either order."""
    rng = np.random.default_rng(3)
    tall, many_tall = rng.standard_normal((6, 5)), rng.standard_normal((4, 6, 5))
    one, several, of_each = (rng.standard_normal((*lead, rows, 5)) for lead in ((), (3,), (4, 3)))
    with jax.enable_x64(True):
        result = {
            "one": product(jnp.asarray(tall), jnp.asarray(one)),
            "models": jax.vmap(product, (None, 0))(tall, several),
            "nodes": jax.vmap(product, (0, None))(many_tall, one),
            "each": jax.vmap(product)(many_tall[:3], several),
            "both": jax.vmap(jax.vmap(product, (None, 0)))(many_tall, of_each),
            "both, models outside": jax.vmap(jax.vmap(product, (0, None)), (None, 0))(many_tall, several),
            "compiled": jax.jit(jax.vmap(jax.vmap(product, (None, 0))))(many_tall, of_each),
        }
        plain = {
            "one": np.einsum("rd,nd->rn", one, tall),
            "models": np.einsum("mrd,nd->mrn", several, tall),
            "nodes": np.einsum("rd,knd->krn", one, many_tall),
            "each": np.einsum("krd,knd->krn", several, many_tall[:3]),
            "both": np.einsum("kmrd,knd->kmrn", of_each, many_tall),
            "both, models outside": np.einsum("mrd,knd->mkrn", several, many_tall),
            "compiled": np.einsum("kmrd,knd->kmrn", of_each, many_tall),
        }
        for name, expected in plain.items():
            np.testing.assert_allclose(np.asarray(result[name]), expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("omega", [Omega(), Omega(ball=0.5), Omega(box=0.2)])
def test_the_optimum_of_a_flat_quadratic_is_feasible_and_best(omega: Omega) -> None:
    """A curvature with a zero eigenvalue: several points are best where Omega allows."""
    rng = np.random.default_rng(4)
    root = rng.standard_normal((4, 3))
    hessian, slope = root @ root.T, root @ rng.standard_normal(3)
    best = base.quadratic_optimum(hessian, slope, omega)
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.asarray(omega.project(jnp.asarray(best))), best, rtol=1e-9, atol=1e-12)
        others = [np.asarray(omega.project(jnp.asarray(p))) for p in rng.standard_normal((50, 4))]

    def value(x: FloatArray) -> float:
        return float(x @ hessian @ x / 2 - slope @ x)

    assert value(best) <= min(map(value, others)) + 1e-10
