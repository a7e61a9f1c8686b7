"""Modules of Flax and Equinox: gradients are those of single examples, and what mixes examples is refused by name."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import murmurcast as mc
from tests.problems.one_by_one import clipped_mean, gradients, node_data

DATA = mc.datasets.digits().partition("quantity", 12, seed=1)


class Linen(linen.Module):  # type: ignore[misc]
    """A network with a convolution, for batches of rows; and faults, if asked."""

    norm: str = "group"
    drop: float = 0.0
    classes: int = 10

    @linen.compact  # type: ignore[untyped-decorator]
    def __call__(self, rows: jax.Array) -> Any:
        images = linen.Conv(4, (3, 3), strides=2)(rows.reshape(-1, 8, 8, 1))
        if self.norm == "group":
            images = linen.GroupNorm(2)(images)
        if self.norm == "batch":
            images = linen.BatchNorm(use_running_average=False)(images)
        if self.norm == "own":
            images = images - images.mean(axis=0)
        outcome = jnp.tanh(images).reshape(len(rows), -1)
        return linen.Dense(self.classes)(linen.Dropout(self.drop, deterministic=False)(outcome))


class Nnx(nnx.Module):  # type: ignore[misc]
    """A network with a hidden layer, for batches of rows; and faults, if asked."""

    def __init__(self, rngs: nnx.Rngs, norm: str = "", drop: float = 0.0) -> None:
        self.hidden, self.out = nnx.Linear(64, 6, rngs=rngs), nnx.Linear(6, 10, rngs=rngs)
        self.norm = nnx.BatchNorm(6, rngs=rngs) if norm == "batch" else None
        self.drop = nnx.Dropout(drop, rngs=rngs) if drop else None

    def __call__(self, rows: jax.Array) -> Any:
        outcome = jnp.tanh(self.hidden(rows))
        outcome = outcome if self.norm is None else self.norm(outcome)
        outcome = outcome if self.drop is None else self.drop(outcome)
        return self.out(outcome)


class TakesTwo(Nnx):
    """Wants to know more than the rows."""

    def __call__(self, rows: jax.Array, train: bool) -> Any:  # type: ignore[override]  # noqa: ARG002
        return super().__call__(rows)


def mlp(key: jax.Array) -> Any:
    return eqx.nn.MLP(64, 10, 6, 1, activation=jnp.tanh, key=key)


def stacked(*layers: Any) -> Any:
    return eqx.nn.Sequential([eqx.nn.Linear(64, 10, key=jax.random.key(0)), *layers])


def problem_of(module: Any) -> mc.Model:
    return mc.Model(data=DATA, module=module, loss="cross-entropy", clip=0.3, l2=0.1)


@pytest.mark.parametrize(
    "module",
    [Linen(), lambda key: Nnx(nnx.Rngs(key)), mlp, stacked(eqx.nn.Dropout(0.5, inference=True))],
    ids=["linen", "nnx", "equinox", "dropout at rest"],
)
@pytest.mark.slow
def test_gradients_are_those_of_single_examples(module: Any) -> None:
    problem = problem_of(module)
    point, mine = problem.start(jax.random.key(5)), node_data(problem, int(np.argmin(DATA.sizes)))
    outcome = jax.jit(problem.gradient_at_public)(point, mine, jax.random.key(0))
    expected = clipped_mean(problem, point, gradients(problem, point, mine), public=True)
    np.testing.assert_allclose(outcome, expected, rtol=1e-5, atol=1e-6)
    metrics = jax.jit(problem.evaluate)(point, problem.test_data())
    assert 0 <= float(metrics["accuracy"]) <= 1
    assert max(problem._tree.layers) + 1 == len(problem._tree.shapes) // 2  # kernel and bias are one layer


@pytest.mark.one_in(2)
@pytest.mark.parametrize("module", [mlp, lambda key: Nnx(nnx.Rngs(key))], ids=["equinox", "nnx"])
def test_a_function_of_a_key_begins_anew_for_every_seed_and_a_module_where_it_stands(module: Any) -> None:
    fresh, given = problem_of(module), problem_of(module(jax.random.key(7)))
    keys = jax.random.key(7), jax.random.key(8)
    one, other = (fresh.start(key) for key in keys)
    assert float(jnp.abs(one - other).max()) > 0.1
    np.testing.assert_array_equal(given.start(keys[0]), given.start(keys[1]))
    np.testing.assert_allclose(given.start(keys[0]), one, rtol=1e-6)
    together = jax.jit(jax.vmap(fresh.start))(jax.random.split(keys[0], 2))  # as the engine asks for all seeds at once
    np.testing.assert_allclose(together[1], fresh.start(jax.random.split(keys[0], 2)[1]), rtol=1e-5, atol=1e-6)


def test_linen_begins_with_its_own_initialiser() -> None:
    problem, key = problem_of(Linen()), jax.random.key(3)
    expected = Linen().init(key, jnp.zeros((1, 64)))["params"]
    jax.tree.map(np.testing.assert_array_equal, problem.parameters(problem.start(key)), expected)


@pytest.mark.parametrize(
    ("module", "words", "hint"),
    [
        (Linen(norm="batch"), "BatchNorm_0 is a BatchNorm", "group norm"),
        (Linen(norm="own"), "mixes examples", "group norm"),
        (Linen(drop=0.5), "Dropout_0 drops units", "leave dropout out"),
        (Linen(classes=7), r"shape \(7,\)", "one output for every class"),
        (lambda key: Nnx(nnx.Rngs(key), norm="batch"), "norm is a BatchNorm", "group norm"),
        (lambda key: Nnx(nnx.Rngs(key), drop=0.5), "drop drops units", "leave dropout out"),
        (stacked(eqx.nn.BatchNorm(10, "batch", mode="batch")), "layers.1 is a BatchNorm", "group norm"),
        (stacked(eqx.nn.Dropout(0.5)), "layers.1 drops units", "inference"),
        (stacked(eqx.nn.Lambda(lambda x: jax.lax.psum(x, "batch"))), "cannot be evaluated", "group norm"),
        (eqx.nn.Linear(64, 10, dtype=jnp.complex64, key=jax.random.key(0)), "complex64", "float32"),
        (
            lambda key: nnx.Linear(7, 10, rngs=nnx.Rngs(key)),
            r"applied to features \[rows, 64\]: TypeError",
            "nothing else",
        ),
        (TakesTwo(nnx.Rngs(0)), r"applied to features \[rows, 64\]: TypeError.*argument: 'train'", "nothing else"),
        (Linen, "Linen is a class", "make one"),
        (lambda _: Linen(), "module of linen", "the module itself"),
        (lambda _: 3, "no module", "a module of Flax"),
        (lambda: 3, "fails: TypeError", "JAX key"),
        (3, "int is no module", "mc.modules"),
    ],
)
def test_what_has_no_gradient_of_its_own_is_refused_by_name(module: Any, words: str, hint: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        problem_of(module)
    assert hint in raised.value.hint


def test_whole_numbers_among_the_parameters_are_refused() -> None:
    class Counting(eqx.Module):  # type: ignore[misc]
        weight: jax.Array
        steps: jax.Array

        def __call__(self, features: jax.Array) -> jax.Array:
            return self.weight @ features

    with pytest.raises(mc.Error, match="steps is of int32") as raised:
        problem_of(Counting(jnp.ones((10, 64)), jnp.arange(3)))
    assert "static" in raised.value.hint


@pytest.mark.slow
def test_convolutions_run_for_all_nodes_and_seeds() -> None:
    """Inside the engine's sharded program, where JAX refuses the gradients of many convolutions at once."""
    network = mc.topologies.ring(12, seed=0)
    problem = mc.Model(data=DATA, module=Linen(), loss="cross-entropy", clip=0.3, batch=1)
    schedule = mc.Schedule(epochs=2, step=0.1, noise_timing="aligned")
    plan = mc.plan(network, problem, mc.Budget(epsilon=50.0, unit="record"), schedule, z="perron")
    result = mc.run(mc.power_controlled(plan), problem, seeds=[0, 1])
    assert mc.certify(result).verdict == "kept"
    assert np.isfinite(result.published).all()
