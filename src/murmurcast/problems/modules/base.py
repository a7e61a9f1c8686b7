"""What a module offers, and trees of parameters as one flat array."""

import math
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast import _check
from murmurcast.errors import Error

Parameters = Any  # a pytree of arrays
_COPIES = 3  # of the parameters that are there at once, at least: the model, its gradient, what is sent


class Initialise(Protocol):
    """Makes the parameters that all nodes begin with, from a public key: free of data."""

    def __call__(self, key: jax.Array, /) -> Parameters:
        """A tree of arrays."""
        ...


@runtime_checkable
class Module(Protocol):
    """A model as two pure functions, in JAX: whatever is trained comes to this."""

    def initialise(self, key: jax.Array) -> Parameters:
        """Where all nodes begin, from a public key."""
        ...

    def apply(self, parameters: Parameters, features: jax.Array) -> jax.Array:
        """[outputs] for the features of one example."""
        ...


class Converted(NamedTuple):
    """A module of another library, as two functions; that it can be trained was checked when it was converted.

    Attributes:
        initialise: Where all nodes begin.
        apply: The outputs for the features of one example.
    """

    initialise: Any
    apply: Any


class ParameterTree(NamedTuple):
    """How a tree of parameters lies in one flat array.

    Attributes:
        structure: Of the tree.
        shapes: Of its leaves.
        names: Of its leaves, such as "hidden/kernel".
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def layers(self) -> tuple[int, ...]:
        """The number of every leaf's layer: leaves that stand together in the tree, such as kernel and bias, are one.

        Leaves at the top stand alone.
        """
        above = [re.split(r"[/.](?=[^/.]*$)", name)[0] for name in self.names]
        order = {name: number for number, name in enumerate(dict.fromkeys(above))}
        return tuple(order[name] for name in above)

    def unravel(self, flat: jax.Array) -> Parameters:
        """The tree of a flat array, in the array's own precision."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        parts = jnp.split(flat, ends[:-1])
        return jax.tree.unflatten(
            self.structure, [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        )


def ravel(tree: Parameters) -> jax.Array:
    """All leaves as one flat array."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def require_memory(leaves: Iterable[Any]) -> None:
    """So many parameters have room in this machine, before any of them is."""
    count = sum(math.prod(getattr(leaf, "shape", ())) for leaf in leaves)
    needed = 4 * _COPIES * count
    if needed > _memory():
        raise Error(
            f"the model has {count:.3g} parameters; training needs {needed / 2**30:.3g} GiB for one node, and this "
            f"machine has {_memory() / 2**30:.3g}",
            hint="use fewer or smaller layers",
        )


def _memory() -> int:
    """Bytes that the machine has; where it does not say, what no machine has for less than a fortune."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return 2**40
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def tree_of(initialise: Initialise) -> ParameterTree:
    """The tree that an initialiser makes: floating-point arrays whose shapes are always the same."""
    try:
        first, second = (jax.eval_shape(lambda key: initialise(key), jax.random.key(seed)) for seed in (0, 1))
    except Error:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever somebody else's code raises is said in our words
        raise Error(
            f"initialise fails: {type(problem).__name__}: {_check.short(problem)}",
            hint="let it make a tree of arrays from a JAX key, by pure functions",
        ) from None
    require_memory(jax.tree.leaves(first))
    structure: Any
    leaves, structure = jax.tree_util.tree_flatten_with_path(first)
    names = tuple(jax.tree_util.keystr(path, simple=True, separator="/") or "the model" for path, _ in leaves)
    shapes = [leaf.shape for _, leaf in leaves]
    if not sum(int(np.prod(shape)) for shape in shapes):
        raise Error("initialise makes no parameters", hint="return a tree with at least one array in it")
    if structure != jax.tree.structure(second) or shapes != [leaf.shape for leaf in jax.tree.leaves(second)]:
        raise Error(
            "initialise makes trees of other shapes when it is called again",
            hint="let shapes depend on nothing but constants: all nodes and seeds share one",
        )
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise Error(
                f"the parameter {name} is of {leaf.dtype}, which has no gradient",
                hint="keep whole numbers and flags out of the tree, as constants of the loss; make weights float32",
            )
    return ParameterTree(structure, tuple(shapes), names)
