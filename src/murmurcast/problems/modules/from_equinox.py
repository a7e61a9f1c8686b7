"""Equinox modules: written for one example, so they are called as they are."""

from typing import Any

import equinox as eqx
import jax

from murmurcast.errors import Error
from murmurcast.problems.modules.base import Converted, Parameters
from murmurcast.problems.modules.convert import refuse_dropout, refuse_mixing


def from_equinox(given: Any) -> Converted:
    """A module, or a function from a key to one; arrays of floating point are its parameters."""
    module = given if isinstance(given, eqx.Module) else given(jax.random.key(0))
    _require_own_gradients(module)
    fixed = eqx.filter(module, eqx.is_inexact_array, inverse=True)

    def initialise(key: jax.Array) -> Parameters:
        return eqx.filter(module if module is given else given(key), eqx.is_inexact_array)

    def apply(parameters: Parameters, features: jax.Array) -> jax.Array:
        return eqx.combine(parameters, fixed)(features)

    return Converted(initialise, apply)


def _require_own_gradients(module: Any) -> None:
    """No layer mixes examples, keeps a state, draws at random, or has whole numbers to learn."""
    special = (eqx.nn.BatchNorm, eqx.nn.Dropout, eqx.nn.StateIndex)
    leaves, _ = jax.tree_util.tree_flatten_with_path(module, is_leaf=lambda part: isinstance(part, special))
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if isinstance(leaf, eqx.nn.BatchNorm):
            raise refuse_mixing(name, "BatchNorm")
        if isinstance(leaf, eqx.nn.Dropout) and leaf.p > 0 and not leaf.inference:
            raise refuse_dropout(name)
        if isinstance(leaf, eqx.nn.StateIndex):
            raise Error(
                f"the layer {name} keeps a state from example to example, which no clip bounds",
                hint="use a layer without state, such as group norm",
            )
        if eqx.is_array(leaf) and not eqx.is_inexact_array(leaf):
            raise Error(
                f"the parameter {name} is of {leaf.dtype}, which has no gradient",
                hint="keep it as a static field of the module, or make it float32",
            )
