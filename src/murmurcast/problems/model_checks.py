"""What is checked of a model before anything is trained, so that it fails in our words and with a way out."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.base import Initialise, Module, Parameters, ParameterTree
from murmurcast.problems.per_example import Example, Loss, Predict

# Operations of JAX by which a loss could see examples together or show them: what leaves the compiled program, what is
# done otherwise with many examples than with one, and what has devices of its own. Sums over an axis of the engine's
# need no name here: where programs are traced there is none, so they cannot be in one.
_REFUSED = {
    "calls back into Python": ("pure_callback", "io_callback", "buffer_callback", "debug_callback"),
    "prints what it sees": ("debug_print",),
    "calls foreign code": ("ffi_call", "pallas_call", "tpu_custom_call"),
    "has a batching rule of its own": (
        "custom_vmap_call",
        "custom_partitioning",
        "call_hi_primitive",
        "call_hi_primitive_linearized",
    ),
    "is spread over devices by itself": ("shard_map", "xla_pmap"),
}
_SAME = 1e-4  # relative: what the order of sums may change


@dataclass(frozen=True, eq=False)
class CheckedGradient:
    """The gradient of a loss by its parameters, as it was checked and not otherwise.

    Whenever JAX traces a function, it runs its Python anew, and that may do otherwise: where nodes are trained there is
    an axis over which a loss could reach other nodes' examples, and where it is checked there is none. So a gradient is
    traced once for every shape and type of numbers, where there is no axis; that program is checked, and that program
    runs. Compiled, it is no other than what JAX traces in place.

    Attributes:
        loss: Of one example.
    """

    loss: Loss
    _programs: dict[Any, ClosedJaxpr] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, parameters: Parameters, example: Example, /) -> Parameters:
        """A tree as that of the parameters."""
        slopes = jaxpr_as_fun(self.program(parameters, example))(*jax.tree.leaves((parameters, example)))
        return jax.tree.unflatten(jax.tree.structure(parameters), slopes)

    @property
    def constants(self) -> tuple[Any, ...]:
        """Of the program that was checked first, when the model was made."""
        return tuple(constants(next(iter(self._programs.values())))) if self._programs else ()

    def program(self, parameters: Parameters, example: Example) -> ClosedJaxpr:
        """What runs for arguments of these shapes and types; traced and checked where they are the first of theirs."""
        leaves, structure = jax.tree.flatten((parameters, example))
        kinds = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)
        if (structure, kinds) not in self._programs:
            # Of the gradient, not of the loss: the backward rule of a `custom_vjp` is nowhere in the loss itself.
            gradient, arguments = jax.grad(lambda *given: self.loss(*given)), jax.tree.unflatten(structure, kinds)
            self._programs[structure, kinds] = _checked_program("gradient of the loss", gradient, *arguments)
        return self._programs[structure, kinds]


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


def require_loss(gradient: CheckedGradient, initialise: Initialise, examples: Example) -> None:
    """The loss is a finite scalar, of its own example alone.

    Args:
        gradient: Of the loss of one example.
        initialise: Where it is tried.
        examples: Two of the test part, which no promise covers: trying others would show something of them.
    """
    loss, parameters = gradient.loss, jax.eval_shape(initialise, jax.random.key(0))
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
    _checked_program("loss", lambda *given: loss(*given), parameters, one)
    gradient.program(parameters, one)
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
    """What a function gives, by shape."""
    with _in_our_words(what):
        return jax.eval_shape(lambda *given: function(*given), *arguments)


@contextmanager
def _in_our_words(what: str) -> Iterator[None]:
    """Whatever goes wrong in somebody else's code is said in our words."""
    try:
        yield
    except Error:
        raise
    except Exception as problem:  # noqa: BLE001 - their code may fail in any way
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


def _checked_program(what: str, function: Any, *arguments: Any) -> ClosedJaxpr:
    """What a function comes to in JAX, if it has nothing by which it could remember, pass on, show or mix examples."""
    with _in_our_words(f"the {what}"):
        program: ClosedJaxpr = _apart(lambda: jax.make_jaxpr(function)(*arguments))
    used = primitives(program)
    names, known = {str(one) for one in used}, _primitives_of_jax()
    reasons = [(name, words) for words, refused in _REFUSED.items() for name in refused if name in names]
    # Whatever it is called: the examples of a block go through the rule that its author wrote for many.
    reasons += [(name, "has a batching rule of its own") for name in sorted(map(str, used - known))]
    reasons += [(name, "has a side effect") for name in sorted(type(effect).__name__ for effect in program.effects)]
    # JAX takes what another trace is about to compute, such as a block of examples, for a constant.
    reasons += [("a tracer", "takes in what others compute") for one in constants(program) if isinstance(one, Tracer)]
    for name, words in reasons:
        raise Error(
            f"the {what} {words} ({name}), where examples could be seen, one by one or together",
            hint="write it in JAX alone, for one example, and let it print nothing",
        )
    return program


def _apart(function: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own, where JAX knows of no axis and of nothing else that is traced."""
    settings = jax.config.values  # those of this thread
    wide, precision = settings["jax_enable_x64"], settings["jax_default_matmul_precision"]

    def with_settings() -> Any:
        with jax.enable_x64(wide), jax.default_matmul_precision(precision):
            return function()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(with_settings).result()


def _primitives_of_jax() -> set[Primitive]:
    """All operations that JAX brings; a library's or a user's own is none of them, even under the same name."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "jax"]
    return {one for module in modules for one in vars(module).values() if isinstance(one, Primitive)}


def constants(program: ClosedJaxpr) -> list[Any]:
    """All that a program holds besides its operations, inner programs included."""
    inner = [
        part for equation in _equations(program.jaxpr) for part in jax.tree.leaves(equation.params, is_leaf=_closed)
    ]
    return [one for part in (program, *filter(_closed, inner)) for one in part.consts]


def _closed(part: Any) -> bool:
    return isinstance(part, ClosedJaxpr)


def primitives(program: ClosedJaxpr) -> set[Primitive]:
    """All operations in a program."""
    return {equation.primitive for equation in _equations(program.jaxpr)}


def _equations(jaxpr: Any) -> "list[Any]":
    """All equations of a program, those of inner programs too."""
    equations = list(jaxpr.eqns)
    for equation in jaxpr.eqns:
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda part: hasattr(part, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                equations += _equations(inner)
    return equations
