"""A model that cannot be trained is an error with a way out, before anything is trained."""

from contextlib import suppress
from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from jax.experimental.buffer_callback import buffer_callback
from jax.extend.core import Primitive
from jax.interpreters import batching
from jax.sharding import PartitionSpec as Spec

import murmurcast as mc
from murmurcast.problems.base import Data
from murmurcast.problems.model_checks import CheckedGradient
from murmurcast.problems.per_example import Example
from tests.problems.one_by_one import node_data

DATA = mc.datasets.digits().partition("quantity", 12, seed=1)


def initialise(key: jax.Array) -> Any:
    return {"out": jax.random.normal(key, (10, 64))}


def loss(parameters: Any, example: Any) -> jax.Array:
    scores = parameters["out"] @ example.features
    result: jax.Array = jax.nn.logsumexp(scores) - scores[example.target]
    return result


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


def test_callbacks_on_buffers_and_what_has_devices_of_its_own_are_refused() -> None:
    outside = buffer_callback(lambda *_: None, jax.ShapeDtypeStruct((), np.float32), vmap_method="broadcast_all")
    refused(r"calls back .*buffer_callback", "JAX alone", loss=lambda p, e: loss(p, e) + outside(e.features))
    mesh = jax.make_mesh((1,), ("node",))

    def spread(features: jax.Array) -> jax.Array:
        whole: jax.Array = jax.shard_map(
            lambda own: jax.lax.psum(own, "node"), mesh=mesh, in_specs=Spec(), out_specs=Spec(), check_vma=False
        )(features)
        return whole

    def alone(parameters: Any, example: Any) -> jax.Array:
        everybody: jax.Array = jax.lax.stop_gradient(jax.jit(spread)(example.features)).sum()
        return loss(parameters, example) + 0 * everybody

    refused("spread over devices by itself .shard_map", "JAX alone", loss=alone)


def test_operations_that_jax_does_not_bring_are_refused_whatever_they_are_called() -> None:
    """What they do with many examples is up to their authors: this one of Equinox looks at all of them."""
    words, hint = "batching rule of its own", "JAX alone"
    refused(f"{words} .unvmap_max", hint, loss=lambda p, e: loss(p, e) - eqxi.unvmap_max(e.features))
    add: Any = Primitive("add")
    add.def_abstract_eval(lambda features: features)
    batching.primitive_batchers[add] = lambda given, at: (given[0] - given[0].mean(axis=0), at[0])
    refused(f"{words} .add.", hint, loss=lambda p, e: loss(p, e._replace(features=add.bind(e.features))))


def test_a_loss_that_remembers_is_refused() -> None:
    memory = jax.new_ref(jnp.zeros(()))

    def remembering(parameters: Any, example: Any) -> jax.Array:
        memory[...] = memory[...] + 1
        remembered: jax.Array = loss(parameters, example) * memory[...]
        return remembered

    refused("side effect .ReadEffect", "JAX alone", loss=remembering)


def test_operations_of_jax_are_taken_and_axes_of_ones_own() -> None:
    """Sorting, solving and looping look at one example alone, and so does a sum over its own features by name."""

    def rich(parameters: Any, example: Any) -> jax.Array:
        features = example.features
        total: jax.Array = jax.vmap(lambda own: jax.lax.psum(own, "features"), axis_name="features")(features)[0]
        outer = jnp.eye(3) + jnp.outer(features[:3], features[:3])
        looped, _ = jax.lax.scan(lambda carry, one: (carry + one, None), jnp.zeros(()), jnp.sort(features))
        again: Any = jax.checkpoint(jax.scipy.special.gammaln)
        chosen: Any = jax.lax.cond(example.target > 3, jnp.sin, jnp.cos, again(2 + total))
        value: jax.Array = loss(parameters, example) * (1 + looped) + jnp.linalg.slogdet(outer)[1] * chosen
        return value

    problem = mc.Model(data=DATA, initialise=initialise, loss=rich)
    point, mine = problem.start(jax.random.key(0)), node_data(problem, 0)
    assert jnp.isfinite(jax.jit(problem.gradient_at_public)(point, mine, jax.random.key(0))).all()


def gradients_of_two(problem: mc.Model) -> Any:
    """At one point, of two nodes: as the engine takes them, with an axis that has a name."""
    point = problem.start(jax.random.key(5))
    first, second = (node_data(problem, number) for number in (3, 4))
    both: Data = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, second)
    take: Any = jax.vmap(lambda mine: problem.gradient_at_public(point, mine, jax.random.key(0)), axis_name="node")
    return point, first, take(both)


@pytest.mark.parametrize("way", ["names an axis", "looks at tracers"])
def test_a_loss_that_sees_others_only_where_it_is_trained_sees_nobody(way: str) -> None:
    """Where it is checked there is no axis and no block of examples, so that it would go another way there."""

    def reaching(parameters: Any, example: Any) -> jax.Array:
        seen = example.features
        if way == "names an axis":
            with suppress(NameError):
                seen = jax.lax.psum(seen, "node")
        elif hasattr(seen, "batch_dim") and len(seen.val) > 2:  # more than there are to try it on
            seen = seen.val
        brightness: jax.Array = seen.sum()
        return loss(parameters, example) * brightness

    honest = mc.Model(data=DATA, initialise=initialise, loss=lambda p, e: loss(p, e) * e.features.sum(), clip=100)
    problem = mc.Model(data=DATA, initialise=initialise, loss=reaching, clip=100)
    point, mine, together = gradients_of_two(problem)
    np.testing.assert_allclose(together[0], honest.gradient_at_public(point, mine, jax.random.key(0)), rtol=1e-5)
    np.testing.assert_array_equal(together, gradients_of_two(honest)[2])


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_what_was_checked_is_what_is_trained(precision: str) -> None:
    """Python that changes its mind later on is not asked again; other numbers are traced, and checked, anew."""
    later = {"factor": 1.0, "prints": False}

    def changing(parameters: Any, example: Any) -> jax.Array:
        if later["prints"]:
            jax.debug.print("{}", example.target)
        return loss(parameters, example) * later["factor"]

    with jax.enable_x64(precision == "float64"):
        problem = mc.Model(data=DATA, initialise=initialise, loss=changing)
        point, mine = problem.start(jax.random.key(0)).astype(precision), node_data(problem, 0, precision)
        before = problem.gradient_at_public(point, mine, jax.random.key(0))
        later |= {"factor": 7.0, "prints": True}
        again = problem.gradient_at_public(point, mine, jax.random.key(0))
        assert before.dtype == precision
        np.testing.assert_array_equal(again, before)
        with pytest.raises(mc.Error, match="gradient of the loss prints what it sees"):
            problem.gradient_at_public(point.astype("float16"), mine, jax.random.key(0))


def test_settings_that_jax_keeps_by_thread_hold_for_what_is_traced() -> None:
    with jax.default_matmul_precision("highest"):
        problem = mc.Model(data=DATA, initialise=initialise, loss=loss)
    parameters = jax.eval_shape(initialise, jax.random.key(0))
    one = Example(*(jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in problem.test_data()))
    assert "HIGHEST" in str(problem._gradient.program(parameters, one))


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


def test_what_others_are_computing_is_no_constant() -> None:
    """A loss that reaches for the examples of a block, which the engine is just tracing."""
    reached: list[Any] = []

    def sly(parameters: Any, example: Any) -> jax.Array:
        return loss(parameters, example) + sum(jnp.sum(one) for one in reached)

    gradient = CheckedGradient(sly)
    parameters, example = {"out": jnp.ones((10, 64))}, Example(jnp.ones(64), jnp.int32(3))

    def engine(block: jax.Array) -> Any:
        reached.append(block)
        return gradient(parameters, example)

    with pytest.raises(mc.Error, match="takes in what others compute"):
        jax.make_jaxpr(engine)(jnp.ones(3))
