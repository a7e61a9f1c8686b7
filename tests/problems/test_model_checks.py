"""A model that cannot be trained is an error with a way out, before anything is trained."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
    counted = iter(range(99))
    refused("depends on what else", "pure", loss=lambda p, e: loss(p, e) * next(counted))


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
