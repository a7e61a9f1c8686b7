"""Randomness by key: every draw comes from (seed, purpose, epoch, node), so nothing depends on order or on who draws.

For simulation only: whoever knows the seed knows the noise, and float32 normals end at 5.42 standard deviations.
"""

from enum import IntEnum

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike


class Purpose(IntEnum):
    """What a draw is for; never renumber, or old seeds give new numbers."""

    SIGNAL = 1
    BATCH = 2


def roots(seeds: tuple[int, ...]) -> jax.Array:
    """[seeds] one key per seed."""
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))


def at_epoch(root: jax.Array, purpose: Purpose, epoch: ArrayLike) -> jax.Array:
    """The key of a purpose in an epoch; fold a node in before drawing."""
    return jax.random.fold_in(jax.random.fold_in(root, purpose), epoch)


def at_node(key: jax.Array, node: ArrayLike) -> jax.Array:
    """The key of one node; or, folded into a node's key, of one of its links."""
    return jax.random.fold_in(key, node)


def normal(key: jax.Array, shape: tuple[int, ...], dtype: DTypeLike) -> jax.Array:
    """Standard normal draws.

    The older way of numbering draws takes two from each cipher block instead of one: half the work. The newer exists
    to split one draw over devices; here every node draws for itself.
    """
    with jax.threefry_partitionable(False):
        return jax.random.normal(key, shape, dtype)
