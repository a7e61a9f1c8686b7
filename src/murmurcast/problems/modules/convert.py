"""Modules of other libraries as two pure functions; a library is known by the module's class, and imported then."""

from typing import Any, Literal

import jax
import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.problems.modules.base import Module, require_memory

Library = Literal["linen", "nnx", "equinox", "torch"]
_HOMES: dict[str, Library] = {
    "flax.linen.": "linen",
    "flax.nnx.": "nnx",
    "equinox.": "equinox",
    "torch.nn.": "torch",
}
_EXPECTED = (
    "give one of mc.modules, a module of Flax, Equinox or PyTorch, or a function from a JAX key to a module of Flax "
    "(nnx) or Equinox"
)
_SAME = 1e-4  # relative: what the order of sums may change


def as_module(given: Any, features: jax.Array) -> Module:
    """Whatever a user calls a module, as one of ours.

    Args:
        given: A module, or a function from a key to one.
        features: [rows, features] of a few examples that no promise covers, to try it on.
    """
    if isinstance(given, type):
        raise Error(f"{given.__name__} is a class, expected a module", hint=f"make one of it; {_EXPECTED}")
    library = library_of(given)
    if library is None and isinstance(given, Module):
        return given
    if library is None and callable(given):
        library = library_of(_tried(given))
        if library in ("linen", "torch") or library is None:
            raise Error(
                f"the function makes a {'module of ' + library if library else 'thing that is no module'}",
                hint="give the module itself" if library else _EXPECTED,
            )
        return _converted(library, given, features)
    if library is None:
        raise Error(f"{type(given).__name__} is no module", hint=_EXPECTED)
    return _converted(library, given, features)


def library_of(given: Any) -> Library | None:
    """Whose module it is."""
    homes = [f"{kind.__module__}." for kind in type(given).__mro__ if kind.__name__ == "Module"]
    return next((name for start, name in _HOMES.items() for home in homes if home.startswith(start)), None)


def _tried(make: Any) -> Any:
    """What a function makes of a key, by shape."""
    kept = []
    try:
        jax.eval_shape(lambda key: kept.append(make(key)), jax.random.key(0))
    except Exception as problem:  # noqa: BLE001 - whatever somebody else's code raises is said in our words
        raise Error(
            f"the function that makes the module fails: {type(problem).__name__}: {_check.short(problem)}",
            hint=f"it is called with a JAX key; {_EXPECTED}",
        ) from None
    require_memory(jax.tree.leaves(kept[0]))
    return kept[0]


def _converted(library: Library, given: Any, features: jax.Array) -> Module:
    if library == "equinox":
        from murmurcast.problems.modules.from_equinox import from_equinox

        return from_equinox(given)
    if library == "torch":
        from murmurcast.problems.modules.from_torch import from_torch

        return from_torch(given, features)
    from murmurcast.problems.modules.from_flax import from_linen, from_nnx

    return from_linen(given, features) if library == "linen" else from_nnx(given, features)


def refuse_mixing(layer: str, kind: str) -> Error:
    """A layer that looks at several examples at once."""
    return Error(
        f"the layer {layer} is a {kind}: it mixes the examples of a batch, so none has a gradient of its own to clip",
        hint="use group norm or layer norm instead, which look at one example",
    )


def refuse_dropout(layer: str) -> Error:
    """A layer that draws at random, with nothing to draw from."""
    return Error(
        f"the layer {layer} drops units at random, and has no key to draw from",
        hint="leave dropout out, or set it to inference mode: clipping and noise already regularise",
    )


def require_unmixed(apply_to_all: Any, apply: Any, parameters: Any, features: jax.Array) -> None:
    """A module that takes a batch gives every example what it gives it alone.

    Args:
        apply_to_all: The outputs of a batch.
        apply: The outputs of one example.
        parameters: Of the module.
        features: [rows, features] a few examples.
    """
    try:
        together = np.asarray(apply_to_all(parameters, features))
        alone = np.stack([np.asarray(apply(parameters, row)) for row in features])
    except Exception as problem:  # noqa: BLE001 - whatever somebody else's code raises is said in our words
        raise Error(
            f"the module cannot be applied to features [rows, {features.shape[1]}]: "
            f"{type(problem).__name__}: {_check.short(problem)}",
            hint="let it take a batch of rows of features and nothing else",
        ) from None
    if together.shape != alone.shape or not np.allclose(together, alone, rtol=_SAME, atol=_SAME):
        raise Error(
            "the module gives an example other outputs in a batch than alone: it mixes examples, as batch norm does",
            hint="use group norm or layer norm instead, and keep the batch axis apart",
        )
