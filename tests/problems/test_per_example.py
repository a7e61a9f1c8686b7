"""Clipped sums against single gradients, in both precisions; and no data, however hostile, passes the clip."""

from itertools import product
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.base import Dataset
from murmurcast.problems import per_example
from murmurcast.problems.modules.base import Converted, ravel
from murmurcast.problems.modules.dense import DenseStack
from tests.problems.one_by_one import clipped_mean, gradients, node_data

Clipping = Literal["example", "layer", "none"]
MLP = mc.modules.mlp(64, 10, hidden=(7, 5))
CNN = mc.modules.small_cnn(64, 10, channels=(2, 4), kernel=2, hidden=5, groups=2)
MODULES: dict[str, Any] = {
    "closed form": MLP,
    "softmax": mc.modules.softmax(64, 10),
    "relu": mc.modules.mlp(64, 10, hidden=(6,), activation="relu"),
    "autodiff": Converted(MLP.initialise, MLP.apply),  # hides what it is: the way of any module
    "cnn": CNN,
}


def problem_of(module: Any, **options: Any) -> mc.Model:
    data = mc.datasets.digits().partition("quantity", 12, seed=1)
    return mc.Model(data=data, module=module, loss="cross-entropy", **({"clip": 0.3, "l2": 0.1} | options))


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.slow
def test_sums_are_those_of_single_gradients(
    name: str, precision: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over blocks that do not divide the number of examples; where the L2 term is outside the clip, and inside."""
    with jax.enable_x64(precision == "float64"):
        problem = problem_of(MODULES[name])
        point = problem.start(jax.random.key(5)).astype(precision) * 3
        monkeypatch.setattr(per_example, "BLOCK_BYTES", 7 * 4 * max(problem.dim, 64))
        mine = node_data(problem, int(np.argmin(problem.data.sizes)), precision)
        singles = gradients(problem, point, mine)
        for public in (True,) if name == "cnn" else (True, False):
            take = problem.gradient_at_public if public else problem.gradient_at_private
            expected = clipped_mean(problem, point, singles, public=public)
            result = jax.jit(take)(point, mine, jax.random.key(0))
            assert result.dtype == precision
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("clipping", ["layer", "none"])
@pytest.mark.parametrize("name", ["closed form", "autodiff"])
@pytest.mark.slow
def test_layers_are_clipped_one_by_one(name: str, clipping: Clipping) -> None:
    problem = problem_of(MODULES[name], clipping=clipping, clip=0.2)
    point = problem.start(jax.random.key(5))
    mine = node_data(problem, 2)
    singles = gradients(problem, point, mine)
    for public in (True, False):
        take = problem.gradient_at_public if public else problem.gradient_at_private
        expected = clipped_mean(problem, point, singles, public=public)
        result = jax.jit(take)(point, mine, jax.random.key(0))
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def hostile(rows: int) -> dict[str, Any]:
    """Features [rows, 64]: huge, tiny, equal, one of each, and rows of one number."""
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal((rows, 64))
    return {
        "huge": 1e12 * drawn / np.abs(drawn).max(),
        "large": 1e4 * drawn,
        "tiny": 1e-30 * drawn,
        "zero": 0 * drawn,
        "equal": np.broadcast_to(drawn[0], drawn.shape),
        "one number": np.full_like(drawn, 0.3),
        "all sizes": drawn * 10.0 ** rng.integers(-30, 11, (rows, 1)),
    }


def data_of(features: Any, targets: Any, classes: int | None = 10) -> Any:
    kind: Any = np.int32 if classes else np.float32
    built = Dataset(
        name="hostile",
        features=features.astype(np.float32),
        targets=targets.astype(kind) + (classes is None),
        test_features=np.ones((4, features.shape[1]), np.float32),
        test_targets=(np.arange(4) % (classes or 4)).astype(kind),
        classes=classes,
    )
    return built.partition("sorted", 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "clipping"),
    [*((name, "example") for name in MODULES if name != "softmax"), ("closed form", "layer"), ("autodiff", "layer")],
)
def test_no_example_and_no_node_passes_the_clip(name: str, clipping: Clipping) -> None:
    """One part in a million at most, for one example alone and for a node of 600: at small and at enormous models."""
    limit, compiled = 0.3, dict[int, Any]()
    for rows in (1, 600):
        for words, features in hostile(rows).items():
            data = data_of(features, np.zeros(rows))
            problem = mc.Model(
                data=data, module=MODULES[name], loss="cross-entropy", clip=limit, clipping=clipping, l2=0.1
            )
            gradient = compiled.setdefault(rows, jax.jit(problem._sum, static_argnums=2))
            mine = node_data(problem, 0)
            for size in (0.0, 1.0, 30.0, 1e6):
                point = size * problem.start(jax.random.key(1))
                for l2 in (0.0, problem.l2):
                    result = np.asarray(gradient(point, mine, l2), np.float64) / rows
                    assert np.isfinite(result).all(), (words, rows, size)
                    assert np.linalg.norm(result) <= limit * (1 + 1e-6), (words, rows, size, l2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "softmax", "ridge", "many parameters"])
def test_the_mean_of_many_equal_examples_does_not_pass_the_clip(name: str) -> None:
    """In float32 a sum of 14,000 equal numbers is rounded in the same direction again and again."""
    rows, limit, passed = 14_000, 0.3, []
    for value in (83.6, 121.7, 183.2, 196.4):
        data = data_of(np.full((rows, 4), value), np.zeros(rows), classes=None if name == "ridge" else 3)
        if name == "ridge":
            problem: Any = mc.RidgeRegression(data=data, clip=limit)
        elif name == "softmax":
            problem = mc.SoftmaxRegression(data=data, clip=limit)
        elif name == "many parameters":
            problem = mc.Model(
                data=data, clip=limit, initialise=lambda _: jnp.zeros(2000), loss=lambda p, e: p.sum() * e.features[0]
            )
        else:
            module = mc.modules.mlp(4, 3, hidden=[2])
            problem = mc.Model(data=data, module=module, loss="cross-entropy", clip=limit)
        mine, point = node_data(problem, 0), jnp.asarray(problem.start(jax.random.key(0)), jnp.float32) + 1e-3
        for take in (problem.gradient_at_public, problem.gradient_at_private):
            gradient = np.asarray(jax.jit(take)(point, mine, jax.random.key(1)), np.float64)
            passed.append(np.linalg.norm(gradient) / limit)
    assert min(passed) > 0.99
    assert max(passed) <= 1 + 1e-6


def test_a_mean_of_more_examples_than_expected_is_not_shortened() -> None:
    """Secret coins let more join than the mean is divided by: that is no rounding."""
    data = data_of(np.full((40, 4), 100.0), np.zeros(40), classes=3)
    problem: Any = mc.SoftmaxRegression(data=data, clip=0.3, batch=10, sampling="poisson")
    mine, point, norms = node_data(problem, 0), jnp.zeros(problem.shape), []

    @jax.jit
    def gradient(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return problem.gradient_at_public(point, mine, key), problem.drawn(mine, key)[0].present.sum()

    for seed in range(12):
        drawn, count = gradient(jax.random.key(seed))
        result = np.linalg.norm(np.asarray(drawn, np.float64))
        assert result == pytest.approx(0.3 * float(count) / 10, rel=1e-5)
        norms.append(float(result))
    assert max(norms) > 0.3 * 1.05


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("clipping", ["example", "layer"])
@pytest.mark.slow
def test_tiny_errors_that_meet_huge_activations_are_not_lost(bias: bool, clipping: Clipping) -> None:
    """The square of such an error is 0 in float32, and its product with the activation is longer than the clip."""
    features, limit, passed = np.zeros((1, 64)), 0.1, []
    features[0, 0] = 1e12
    module = DenseStack((64, 5, 10), activation="relu", bias=bias)
    data = data_of(features, np.zeros(1))
    problem = mc.Model(data=data, module=module, loss="cross-entropy", clip=limit, clipping=clipping)
    mine, gradient = node_data(problem, 0), jax.jit(problem._sum, static_argnums=2)
    for weight, gap in product((1e4, 1e6), np.arange(40.0, 52.0)):
        hidden, out = np.zeros((64, 5)), np.zeros((5, 10))
        hidden[0], out[:, 0] = weight, gap / (5e12 * weight)  # the loss is small, and so are its errors
        layers = [{"kernel": jnp.asarray(kernel, jnp.float32)} for kernel in (hidden, out)]
        with_bias = [layer | {"bias": jnp.zeros(layer["kernel"].shape[1])} if bias else layer for layer in layers]
        passed.append(np.linalg.norm(np.asarray(gradient(ravel(tuple(with_bias)), mine, 0.0), np.float64)))
    assert limit / 2 < max(passed) <= limit * (1 + 1e-6)  # some were clipped, and none too little


def test_an_example_that_is_not_finite_counts_as_nothing() -> None:
    """Whatever the loss makes of it; the others count as before."""

    def loss(parameters: Any, example: Any) -> jax.Array:
        return jnp.sum(jnp.sqrt(parameters * example.features[0]))  # not a number below 0, no slope at 0

    data = data_of(np.ones((5, 64)), np.zeros(5))
    problem = mc.Model(data=data, initialise=lambda _: jnp.ones(3), loss=loss, clip=0.1)
    mine = node_data(problem, 0)
    spoilt = mine._replace(features=mine.features.at[1, 0].set(-1.0).at[3, 0].set(0.0))
    whole, less = (problem.gradient_at_public(jnp.ones(3), rows, jax.random.key(0)) for rows in (mine, spoilt))
    np.testing.assert_allclose(less, np.asarray(whole) * 3 / 5, rtol=1e-5)


@pytest.mark.slow
def test_memory_is_bounded_by_blocks() -> None:
    """What a gradient needs besides data and models does not grow with the number of examples."""
    needed = []
    for rows in (1200, 4800):
        data = data_of(np.ones((rows, 64)), np.zeros(rows))
        module = Converted(*(getattr(mc.modules.mlp(64, 10, hidden=(200,)), name) for name in ("initialise", "apply")))
        problem = mc.Model(data=data, module=module, loss="cross-entropy")
        mine, point = node_data(problem, 0), problem.start(jax.random.key(0))
        compiled = jax.jit(problem.gradient_at_public).lower(point, mine, jax.random.key(0)).compile()
        memory: Any = compiled.memory_analysis()
        needed.append(memory.temp_size_in_bytes)
    assert needed[1] <= 1.1 * needed[0]
    assert needed[1] < 4 * per_example.BLOCK_BYTES
