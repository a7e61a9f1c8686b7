"""Flax modules, of `linen` and of `nnx`: written for batches, so each example is a batch of one."""

from typing import Any

import flax
import jax
import jax.numpy as jnp
from flax import nnx

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.base import Converted, Parameters, require_memory
from murmurcast.problems.modules.convert import refuse_dropout, refuse_mixing, require_unmixed


def from_linen(module: Any, features: jax.Array) -> Converted:
    """A linen module, with its own initialiser."""
    _require_stateless(module, features)

    def initialise(key: jax.Array) -> Parameters:
        return module.init(key, jnp.zeros_like(features[:1]))["params"]

    def apply_to_all(parameters: Parameters, rows: jax.Array) -> jax.Array:
        return module.apply({"params": parameters}, rows)

    return _one_by_one(initialise, apply_to_all, features)


def from_nnx(given: Any, features: jax.Array) -> Converted:
    """An nnx module as it stands, or a function from a key to one."""
    module = given if isinstance(given, nnx.Module) else given(jax.random.key(0))
    for path, layer in nnx.iter_graph(module):
        name = ".".join(map(str, path)) or type(layer).__name__
        if isinstance(layer, nnx.BatchNorm):
            raise refuse_mixing(name, "BatchNorm")
        if isinstance(layer, nnx.Dropout) and layer.rate > 0 and not layer.deterministic:
            raise refuse_dropout(name)
    graph, weights, rest = nnx.split(module, nnx.Param, ...)

    def initialise(key: jax.Array) -> Parameters:
        return nnx.to_pure_dict(nnx.state(module if module is given else given(key), nnx.Param))

    def apply_to_all(parameters: Parameters, rows: jax.Array) -> jax.Array:
        state = jax.tree.map(lambda leaf: leaf, weights)
        nnx.replace_by_pure_dict(state, parameters)
        return nnx.merge(graph, state, rest)(rows)

    return _one_by_one(initialise, apply_to_all, features)


def _one_by_one(initialise: Any, apply_to_all: Any, features: jax.Array) -> Converted:
    def apply(parameters: Parameters, one: jax.Array) -> jax.Array:
        return apply_to_all(parameters, one[None])[0]

    require_memory(jax.tree.leaves(jax.eval_shape(initialise, jax.random.key(0))))
    require_unmixed(apply_to_all, apply, initialise(jax.random.key(0)), features)
    return Converted(initialise, apply)


def _require_stateless(module: Any, features: jax.Array) -> None:
    """A linen module has parameters and nothing else, and draws nothing when it is applied."""

    def try_it(key: jax.Array) -> Any:
        variables = module.init(key, features)
        module.apply(variables, features, mutable=list(variables))
        return variables

    try:
        variables = jax.eval_shape(try_it, jax.random.key(0))
    except flax.errors.InvalidRngError as problem:
        layer = str(problem).partition(" needs PRNG")[0]
        raise refuse_dropout(_check.short(Exception(layer))) from None
    except Exception as problem:  # noqa: BLE001 - whatever somebody else's code raises is said in our words
        raise Error(
            f"{type(module).__name__} cannot be applied to features [rows, {features.shape[1]}]: "
            f"{type(problem).__name__}: {_check.short(problem)}",
            hint="let it take a batch of rows of features and nothing else",
        ) from None
    states = [name for name in variables if name != "params"]
    if "batch_stats" in states:
        leaves, _ = jax.tree_util.tree_flatten_with_path(variables["batch_stats"])
        layer = jax.tree_util.keystr(leaves[0][0][:-1], simple=True, separator="/")
        raise refuse_mixing(layer, "BatchNorm")
    if states:
        raise Error(
            f"{type(module).__name__} keeps a state ({', '.join(states)}) from batch to batch, which no clip bounds",
            hint="use layers with parameters only",
        )
