"""Stacks of dense layers: the closed forms behind the clip, and the regressions that they are without hidden layers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.problems import per_example
from murmurcast.problems.losses import LOSSES
from murmurcast.problems.modules.base import ravel
from murmurcast.problems.modules.dense import DenseStack
from tests.problems.one_by_one import clipped_mean, gradients, node_data

RNG = np.random.default_rng(2)
DIGITS = mc.datasets.digits().partition("quantity", 12, seed=1)


class Centred(DenseStack):
    """Subtracts the mean of a block, which nobody sees who gives it one example."""

    def _forward(self, parameters: Any, features: jax.Array, shifts: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        centred = features - features.mean(axis=0) if features.ndim == 2 else features
        return super()._forward(parameters, centred, shifts)


class Doubled(DenseStack):
    """Another model than the stack it is derived from."""

    def apply(self, parameters: Any, features: jax.Array) -> jax.Array:
        return 2 * super().apply(parameters, features)


@pytest.mark.parametrize("kind", [Centred, Doubled])
def test_a_derived_stack_is_trained_example_by_example_as_it_is_applied(kind: type[DenseStack]) -> None:
    """What it made of the methods behind the closed form, nobody has proved anything of."""
    problem = mc.Model(data=DIGITS, module=kind((64, 5, 10)), loss="cross-entropy", clip=0.3, l2=0.1)
    assert problem._dense is None
    point, mine = problem.start(jax.random.key(5)) * 3, node_data(problem, 3)
    singles = gradients(problem, point, mine)
    for public in (True, False):
        take = problem.gradient_at_public if public else problem.gradient_at_private
        expected = clipped_mean(problem, point, singles, public=public)
        np.testing.assert_allclose(take(point, mine, jax.random.key(0)), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("module", [mc.modules.mlp(64, 10, hidden=(5,)), mc.modules.softmax(64, 10)])
def test_shipped_stacks_are_trained_in_closed_form(module: DenseStack, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mc.Model(data=DIGITS, module=module, loss="cross-entropy")
    assert problem._dense == module
    monkeypatch.setattr(per_example, "sum_by_autodiff", None)
    model = jax.ShapeDtypeStruct(problem.shape, np.float32)
    total = jax.eval_shape(lambda *given: problem._sum(given[0], given[1], 0.0), model, node_data(problem, 0))
    assert total.shape == problem.shape


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu", "sigmoid"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.slow
def test_norms_and_products_are_those_of_written_out_gradients(activation: str, bias: bool) -> None:
    with jax.enable_x64(True):
        stack = DenseStack((6, 5, 4, 3), activation, bias)
        parameters = stack.initialise(jax.random.key(1))
        features, targets = jnp.asarray(RNG.standard_normal((9, 6))), jnp.asarray(RNG.integers(0, 3, 9))
        loss = LOSSES["cross-entropy"].of
        reached = stack.backward(parameters, (features, targets), loss)
        whole = jax.vmap(jax.grad(lambda p, x, y: loss(stack.apply(p, x), y)), in_axes=(None, 0, 0))
        gradients = whole(parameters, features, targets)
        for layer, gradient, point in zip(reached, gradients, parameters, strict=True):
            flat = np.stack(
                [np.asarray(ravel(jax.tree.map(lambda leaf, row=row: leaf[row], gradient))) for row in range(9)]
            )
            np.testing.assert_allclose(layer.squares, (flat**2).sum(axis=1), rtol=1e-10)
            np.testing.assert_allclose(layer.along, flat @ np.asarray(ravel(point)), rtol=1e-9, atol=1e-12)
            scale = jnp.asarray(RNG.uniform(0, 1, 9)).at[3].set(0)
            np.testing.assert_allclose(ravel(layer.total(scale)), np.asarray(scale) @ flat, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_softmax_is_the_problem_of_that_name() -> None:
    data = mc.datasets.digits().partition("quantity", 4, seed=1)
    module = mc.Model(data=data, module=mc.modules.softmax(64, 10), loss="cross-entropy", clip=0.3, l2=0.1)
    direct = mc.SoftmaxRegression(data=data, clip=0.3, l2=0.1)
    model = jnp.asarray(RNG.standard_normal((10, 65)), jnp.float32)
    flat = ravel(({"kernel": model[:, :-1].T, "bias": model[:, -1]},))
    mine = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), direct.local_data())
    for take in ("gradient_at_public", "gradient_at_private"):
        expected = getattr(direct, take)(model, mine, jax.random.key(0))
        (result,) = module.parameters(getattr(module, take)(flat, node_data(module, 1), jax.random.key(0)))
        np.testing.assert_allclose(result["kernel"].T, expected[:, :-1], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(result["bias"], expected[:, -1], rtol=1e-4, atol=1e-6)
    for name, value in direct.evaluate(model, direct.test_data()).items():
        np.testing.assert_allclose(module.evaluate(flat, module.test_data())[name], value, rtol=1e-5)
    assert not np.asarray(module.start(jax.random.key(3))).any()


@pytest.mark.slow
def test_ridge_is_the_problem_of_that_name() -> None:
    data = mc.datasets.least_squares(examples=60, features=5).partition("quantity", 3, seed=2)
    module = mc.Model(data=data, module=mc.modules.ridge(5), loss="squared-error", clip=0.3, l2=0.1)
    direct = mc.RidgeRegression(data=data, clip=0.3, l2=0.1)
    model = jnp.asarray(RNG.standard_normal(5), jnp.float32)
    mine = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), direct.local_data())
    for take in ("gradient_at_public", "gradient_at_private"):
        expected = getattr(direct, take)(model, mine, jax.random.key(0))
        result = getattr(module, take)(model, node_data(module, 1), jax.random.key(0))
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
    loss = direct.evaluate(model, direct.test_data())["loss"]
    np.testing.assert_allclose(module.evaluate(model, module.test_data())["loss"], loss, rtol=1e-5)
    assert "accuracy" not in module.evaluate(model, module.test_data())


@pytest.mark.slow
def test_random_starts_keep_the_size_of_what_passes() -> None:
    stack = DenseStack((400, 300, 10))
    hidden, out = stack.initialise(jax.random.key(4))
    assert float(jnp.std(hidden["kernel"])) == pytest.approx(1 / 20, rel=0.02)
    assert float(jnp.std(out["kernel"])) == pytest.approx(1 / np.sqrt(300), rel=0.05)
    assert not np.asarray(hidden["bias"]).any()
    assert stack.apply((hidden, out), jnp.ones((2, 400))).shape == (2, 10)
