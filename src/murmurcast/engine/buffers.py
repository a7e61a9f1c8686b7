"""Arrays of the host that compiled programs read where they lie, so that a network's models need no second copy.

A view is an array of JAX on the same memory. JAX takes it for constant; it is not, and nobody may keep what is computed
from it across a write. The engine of large networks reads by a view in one phase and writes by the array between them.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike, NDArray

from murmurcast.algorithms.base import Local, Round
from murmurcast.engine import node
from murmurcast.engine.check import heard_shape, signal_shape

_ALIGNMENT = 64  # bytes: XLA reads host memory in place only from such addresses


class Buffer(NamedTuple):
    """An array of the host and the view that compiled programs have of it."""

    array: NDArray[Any]
    view: jax.Array


def buffer(shape: tuple[int, ...], dtype: DTypeLike) -> Buffer:
    """Zeros; pages that are never written take no memory."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % _ALIGNMENT
    array = raw[begin : begin + size].view(kind).reshape(shape)
    return Buffer(array, jnp.from_dlpack(array, copy=False))


class Use(NamedTuple):
    """What an update does with the leaves of a state, by their places.

    Attributes:
        free: Not read: what was sent, or heard, may lie there meanwhile.
        kept: Handed on as they are.
    """

    free: tuple[int, ...]
    kept: frozenset[int]

    @property
    def has_room(self) -> bool:
        """Whether both what is sent and what is heard find room in the state."""
        return len(self.free) > 1


def use_of_update(one: Round, state: Any, constants: Any, shape: tuple[int, ...], dtype: DTypeLike) -> Use:
    """What a round's update does with a node's state, found out by tracing it.

    Args:
        one: The round.
        state: A node's, by shape.
        constants: One node's entries of the receiving tables, by shape.
        shape: Of a model.
        dtype: Of all numbers.
    """
    # Not the identity: what is projected is another model, and not handed on.
    local = Local(*3 * (jax.lax.optimization_barrier,))
    sent = jax.ShapeDtypeStruct(signal_shape(one.channel, shape), dtype)
    heard = jax.ShapeDtypeStruct(heard_shape(one.channel, shape), dtype)

    def following(state: Any, here: Any, sent: jax.Array, heard: jax.Array) -> Any:
        return node.receive(one, here, state, sent, heard, local).state

    traced = jax.make_jaxpr(following)(state, constants, sent, heard).jaxpr
    leaves = jax.tree.leaves(state)
    inputs = traced.invars[: len(leaves)]
    # By identity: literals are no variables, and cannot be asked whether they are among these.
    read = {id(given) for equation in traced.eqns for given in equation.invars} | {id(out) for out in traced.outvars}
    free = tuple(i for i, leaf in enumerate(inputs) if id(leaf) not in read and _holds_models(leaves[i], shape, dtype))
    if sent.shape != shape or heard.shape != shape:
        free = ()  # several signals, or several that are heard apart, take more room than a model
    kept = frozenset(i for i, leaf in enumerate(inputs) if traced.outvars[i] is leaf)
    return Use(free, kept)


def _holds_models(leaf: Any, shape: tuple[int, ...], dtype: DTypeLike) -> bool:
    return bool(leaf.shape == shape and leaf.dtype == np.dtype(dtype))
