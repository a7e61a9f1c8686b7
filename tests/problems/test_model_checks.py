"""A model that cannot be trained is an error with a way out, before anything is trained."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

import murmurcast as mc

DATA = mc.datasets.digits().partition("quantity", 12, seed=1)


def initialise(key: jax.Array) -> Any:
    return {"out": jax.random.normal(key, (10, 64))}


def loss(parameters: Any, example: Any) -> jax.Array:
    scores = parameters["out"] @ example.features
    found: jax.Array = jax.nn.logsumexp(scores) - scores[example.target]
    return found


def refused(words: str, hint: str, **given: Any) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        mc.Model(data=DATA, **({"initialise": initialise, "loss": loss} | given))
    assert hint in raised.value.hint


def test_a_sound_model_is_taken() -> None:
    assert mc.Model(data=DATA, initialise=initialise, loss=loss).dim == 640


def test_the_loss_is_one_finite_number() -> None:
    refused("loss is not finite", "log", loss=lambda p, e: jnp.log(0.0 * p["out"].sum()) + loss(p, e))
    refused("gradient is not finite", "log", loss=lambda p, e: jnp.sqrt(0 * jnp.sum(p["out"])) + 0 * loss(p, e))
    refused(r"shape \(10,\)", "scalar", loss=lambda p, e: p["out"] @ e.features)
    refused("int32, which has no gradient", "counts", loss=lambda *_: 3)
    refused("shape tuple, expected one number", "scalar", loss=lambda p, e: (loss(p, e), 1.0))
    refused("cannot be evaluated: TypeError", "one example", loss=lambda p, e: p["out"] @ e.features[:3])
    refused("cannot be evaluated: KeyError", "one example", loss=lambda p, _: p["in"])


def test_parameters_are_floating_point_arrays_of_fixed_shapes() -> None:
    refused("out is of int32", "float32", initialise=lambda _: {"out": jnp.ones((10, 64), jnp.int32)})
    refused("no parameters", "at least one", initialise=lambda _: {})
    refused("fails: TypeError", "JAX key", initialise=lambda: {"out": jnp.ones(3)})
    sizes = iter(range(3, 99))
    refused("other shapes", "constants", initialise=lambda _: {"out": jnp.ones(next(sizes))})


def test_a_loss_of_other_examples_is_refused() -> None:
    refused("cannot be evaluated: NameError", "group norm", loss=lambda p, e: jax.lax.pmean(loss(p, e), "batch"))
    seen: list[Any] = []

    def remembering(features: Any) -> Any:
        seen.append(np.asarray(features))
        return np.float32(sum(one.sum() for one in seen))

    def calls_back(parameters: Any, example: Any) -> jax.Array:
        shape = jax.ShapeDtypeStruct((), np.float32)
        outside: jax.Array = jax.pure_callback(remembering, shape, example.features, vmap_method="sequential")
        return loss(parameters, example) + outside

    refused("calls back into Python", "JAX alone", loss=jax.jit(calls_back))
    assert not seen

    @jax.custom_batching.custom_vmap
    def mixed(features: jax.Array) -> jax.Array:
        return features

    @mixed.def_vmap
    def _mixes_more_than_two(size: int, batched: Any, features: jax.Array) -> Any:
        return (features if size < 3 else features + features.sum(axis=0)), batched[0]

    refused(
        "a batching rule of its own", "one example", loss=lambda p, e: loss(p, e._replace(features=mixed(e.features)))
    )
    refused("prints what it sees", "print nothing", loss=lambda p, e: [jax.debug.print("{}", e.target), loss(p, e)][1])
    refused("Python .debug_callback", "alone", loss=lambda p, e: [jax.debug.callback(print, e.target), loss(p, e)][1])
    foreign = jax.ffi.ffi_call("anything", jax.ShapeDtypeStruct((64,), np.float32))
    refused("calls foreign code", "alone", loss=lambda p, e: loss(p, e._replace(features=foreign(e.features))))
    counted = iter(range(99))
    refused("depends on what else", "pure", loss=lambda p, e: loss(p, e) * next(counted))


@pytest.mark.parametrize("way", ["custom_vmap", "callback", "print"])
def test_a_gradient_that_mixes_or_shows_examples_is_refused(way: str) -> None:
    """Where the loss itself is sound: a backward rule of its own is no part of it."""

    @jax.custom_batching.custom_vmap
    def averaged(slope: jax.Array) -> jax.Array:
        return slope

    @averaged.def_vmap
    def _over_examples(size: int, batched: Any, slope: jax.Array) -> Any:  # noqa: ARG001
        return jnp.broadcast_to(slope.mean(axis=0, keepdims=True), slope.shape), True

    def backward(features: jax.Array, slope: jax.Array) -> tuple[jax.Array, jax.Array]:
        changed = jnp.broadcast_to(features, (10, 64)) * slope
        if way == "custom_vmap":
            changed = averaged(changed)
        elif way == "callback":
            shape = jax.ShapeDtypeStruct((10, 64), np.float32)
            changed = jax.pure_callback(np.asarray, shape, changed, vmap_method="broadcast_all")
        else:
            jax.debug.print("{}", changed)
        return changed, jnp.zeros_like(features)

    @jax.custom_vjp
    def total(weights: jax.Array, features: jax.Array) -> jax.Array:
        return jnp.sum(weights @ features)

    total.defvjp(lambda weights, features: (total(weights, features), features), backward)
    words = {"custom_vmap": "a batching rule of its own", "callback": "calls back", "print": "prints what it sees"}
    refused(f"gradient of the loss .*{words[way]}", "JAX alone", loss=lambda p, e: total(p["out"], e.features))


def test_a_loss_without_a_gradient_is_refused() -> None:
    def looping(parameters: Any, example: Any) -> jax.Array:
        start = loss(parameters, example)
        return jax.lax.while_loop(lambda value: value > 1, lambda value: value / 2, start)

    refused("gradient of the loss cannot be evaluated: ValueError", "one example", loss=looping)


def test_more_parameters_than_memory_can_have_are_refused() -> None:
    """Before any of them is made: by their shapes."""
    huge = 10**11

    def module(key: jax.Array) -> Any:
        return eqx.nn.MLP(64, 10, huge, 1, key=key)

    for wide in (mc.modules.mlp(64, 10, hidden=[huge]), linen.Dense(huge), module):
        refused("parameters; training needs", "smaller layers", module=wide, initialise=None, loss="cross-entropy")


def test_predictions_are_labels() -> None:
    refused(r"shape \(10,\)", "argmax", predict=lambda p, x: p["out"] @ x)
    refused("predict cannot be evaluated", "one example", predict=lambda _, x: x["out"])


def test_a_model_is_a_module_or_functions() -> None:
    module = mc.modules.mlp(64, 10)
    refused("a module with a loss by name", "mc.modules", module=module)
    refused("a module with a loss by name", "mc.modules", module=module, initialise=None)
    refused("a module with a loss by name", "mc.modules", loss="cross-entropy")
    refused("loss is", "cross-entropy", module=module, initialise=None, loss="cross-entropi")
    refused("labels, not for squared-error", "cross-entropy", module=module, initialise=None, loss="squared-error")
    refused("predicts them already", "leave", module=module, initialise=None, loss="cross-entropy", predict=loss)
    refused("cannot be evaluated", "one example", module=mc.modules.mlp(9, 10), initialise=None, loss="cross-entropy")
