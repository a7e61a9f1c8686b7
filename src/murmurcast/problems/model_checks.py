"""What is checked of a model before anything is trained, so that it fails in our words and with a way out."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.base import Initialise, Module, Parameters, ParameterTree
from murmurcast.problems.per_example import Example, Loss, Predict

# Primitives by which a loss could see examples together or show them: what leaves the compiled program, and what is
# done otherwise with many examples than with one.
_REFUSED_PRIMITIVES = {"pure_callback": "calls back into Python", "io_callback": "calls back into Python"}
_REFUSED_PRIMITIVES |= {"debug_callback": "calls back into Python", "debug_print": "prints what it sees"}
_REFUSED_PRIMITIVES |= {"ffi_call": "calls foreign code", "custom_vmap_call": "has a batching rule of its own"}
_SAME = 1e-4  # relative: what the order of sums may change


def require_outputs(module: Module, tree: ParameterTree, features: jax.Array, expected: int) -> None:
    """A module gives so many outputs for the features of one example."""
    parameters = jax.tree.unflatten(tree.structure, [jax.ShapeDtypeStruct(s, features.dtype) for s in tree.shapes])
    outputs = _traced("the module", lambda given, one: module.apply(given, one), parameters, features[0])
    if getattr(outputs, "shape", None) not in ((expected,), *([()] if expected == 1 else [])):
        shape = getattr(outputs, "shape", type(outputs).__name__)
        raise Error(
            f"the module gives outputs of shape {shape} for one example, expected ({expected},)",
            hint="let its last layer have one output for every class, or one for a value",
        )


def require_loss(loss: Loss, initialise: Initialise, examples: Example) -> None:
    """The loss is a finite scalar, of its own example alone.

    Args:
        loss: Of one example.
        initialise: Where it is tried.
        examples: Two of the test part, which no promise covers: trying others would show something of them.
    """
    parameters = jax.eval_shape(initialise, jax.random.key(0))
    one = jax.tree.map(lambda leaf: leaf[0], examples)
    value = _traced("the loss", loss, parameters, one)
    if getattr(value, "shape", None) != ():
        shape = getattr(value, "shape", type(value).__name__)
        raise Error(
            f"the loss of one example has shape {shape}, expected one number",
            hint="return a scalar for one example; the engine takes them one by one and averages",
        )
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise Error(
            f"the loss of one example is {value.dtype}, which has no gradient",
            hint="return a real number with a fraction: mean errors or likelihoods, not counts",
        )
    _require_apart(loss, parameters, one)
    alone, together, finite = map(np.asarray, _tried(_hashable(loss), _hashable(initialise), examples))
    if not np.isfinite(alone).all() or not finite:
        what = "gradient" if np.isfinite(alone).all() else "loss"
        raise Error(
            f"the {what} is not finite where nodes begin",
            hint="scale the data or the initial parameters; look for log(0), 0/0 and roots of 0",
        )
    if not np.allclose(together, alone, rtol=_SAME, atol=_SAME):
        raise Error(
            "an example's loss depends on what else is evaluated: the clip would not bound one record",
            hint="make the loss a pure function of its arguments",
        )


def _hashable(function: Any) -> Any:
    """The function, or one that does the same and can be looked up."""
    try:
        hash(function)
    except TypeError:
        return lambda *given: function(*given)
    return function


@partial(jax.jit, static_argnums=(0, 1))  # compiled once for a model, whatever data it is put on
def _tried(loss: Loss, initialise: Initialise, examples: Example) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The losses of two examples, each alone and both together, and whether the gradient is finite."""
    parameters = initialise(jax.random.key(0))
    rows = [jax.tree.map(lambda leaf, row=row: leaf[row], examples) for row in (0, 1)]
    alone = jnp.stack([loss(parameters, row) for row in rows])
    slopes = jax.tree.leaves(jax.grad(loss)(parameters, rows[0]))
    finite = jnp.stack([jnp.isfinite(slope).all() for slope in slopes]).all()
    return alone, jax.vmap(loss, in_axes=(None, 0))(parameters, examples), finite


def require_label(predict: Predict, initialise: Initialise, features: jax.Array) -> None:
    """A prediction is one label."""
    label = _traced("predict", predict, jax.eval_shape(initialise, jax.random.key(0)), features[0])
    if getattr(label, "shape", None) != ():
        raise Error(
            f"predict gives shape {getattr(label, 'shape', type(label).__name__)}, expected one label",
            hint="return jnp.argmax(scores) of one example",
        )


def _traced(what: str, function: Any, *arguments: Any) -> Any:
    """What a function gives, by shape; whatever goes wrong in it is said in our words."""
    try:
        return jax.eval_shape(lambda *given: function(*given), *arguments)
    except Error:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever somebody else's code raises is said in our words
        raise Error(
            f"{what} cannot be evaluated: {type(problem).__name__}: {_check.short(problem)}", hint=_way_out(problem)
        ) from None


def _way_out(problem: Exception) -> str:
    text = f"{type(problem).__name__} {problem}".lower()
    if "axis name" in text or "batch_norm" in text:
        return "it looks at other examples, as batch norm does: use group norm, or layer norm"
    if "prng" in text or "dropout" in text:
        return "leave dropout out, or set it to inference mode: clipping and noise already regularise"
    return "try it by hand on one example: the features of one row, without a batch axis"


def _require_apart(loss: Loss, parameters: Parameters, example: Example) -> None:
    """A loss has no operation by which it could remember, pass on, show or mix examples.

    Nor has its gradient: the backward rule of a `custom_vjp` is nowhere in the loss itself.
    """
    gradient = jax.value_and_grad(lambda *given: loss(*given))
    for what, function in (("loss", loss), ("gradient of the loss", gradient)):
        _traced(f"the {what}", function, parameters, example)
        used = primitives(function, parameters, example)
        for name, words in _REFUSED_PRIMITIVES.items():
            if name in used:
                raise Error(
                    f"the {what} {words} ({name}), where examples could be seen, one by one or together",
                    hint="write it in JAX alone, for one example, and let it print nothing",
                )


def primitives(function: Any, parameters: Parameters, example: Example) -> set[str]:
    """The names of all operations in a loss, or in its gradient."""
    return {str(equation.primitive) for equation in _equations(jax.make_jaxpr(function)(parameters, example).jaxpr)}


def _equations(jaxpr: Any) -> "list[Any]":
    """All equations of a program, those of inner programs too."""
    equations = list(jaxpr.eqns)
    for equation in jaxpr.eqns:
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda part: hasattr(part, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                equations += _equations(inner)
    return equations
