"""Randomness by key: every draw comes from (seed, purpose, epoch, round, draw, owner), so nothing depends on order.

The cipher is Threefry, as in `jax.random`, with the node in the upper half of the counter and the coordinate in the
lower; node 0 draws exactly what `jax.random.normal` draws.

For simulation only: whoever knows the seed knows the noise, and float32 normals end at 5.42 standard deviations.
"""

import math
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from numpy.typing import NDArray
from scipy.special import ndtri

from murmurcast._cipher import threefry

_ONE = {np.dtype(np.float32): 0x3F800000, np.dtype(np.float64): 0x3FF0000000000000}  # the bits of 1.0


class Purpose(IntEnum):
    """What a draw is for; never renumber, or old seeds give new numbers."""

    SIGNAL = 1  # the first draw of the first round
    BATCH = 2
    DRAW = 3  # all other draws of all rounds
    RECEIVER = 4
    START = 5


class Stream(NamedTuple):
    """Where one epoch's draws come from; all [seeds x size], flat.

    Attributes:
        left: First half of the key of the seed.
        right: Its second half.
        coordinate: Which of the `size` draws of a seed.
    """

    left: jax.Array
    right: jax.Array
    coordinate: jax.Array


def roots(seeds: tuple[int, ...]) -> NDArray[np.uint32]:
    """[seeds, 2] one key per seed."""
    return np.array([(0, seed) for seed in seeds], np.uint32)


def at_epoch(root: jax.Array, purpose: Purpose, epoch: ArrayLike) -> jax.Array:
    """[..., 2] the keys of a purpose in an epoch, from the roots [..., 2] of seeds."""
    return at_node(at_node(root, int(purpose)), epoch)


def draw_key(root: jax.Array, epoch: ArrayLike, round_number: int, draw_number: int) -> jax.Array:
    """[..., 2] the keys of a round's draw in an epoch: no two draws share one, by construction."""
    if round_number == draw_number == 0:
        return at_epoch(root, Purpose.SIGNAL, epoch)
    return at_node(at_node(at_epoch(root, Purpose.DRAW, epoch), round_number), draw_number)


def receiver_key(root: jax.Array, epoch: ArrayLike, round_number: int) -> jax.Array:
    """[..., 2] the keys of the receivers' own noise in a round."""
    return at_node(at_epoch(root, Purpose.RECEIVER, epoch), round_number)


def start_key(root: jax.Array) -> jax.Array:
    """[..., 2] the keys of the public start."""
    return at_node(root, int(Purpose.START))


def at_node(key: jax.Array, number: ArrayLike) -> jax.Array:
    """[..., 2] new keys from keys [..., 2] and the numbers [...] of nodes (or any numbers below 2^32)."""
    return _fold(key, np.uint32(number) if isinstance(number, int) else jnp.asarray(number).astype(jnp.uint32))


@jax.jit  # traced once for all the keys of a run; over arrays as they are, because batching would trace it again
def _fold(key: jax.Array, number: jax.Array) -> jax.Array:
    left, right, number = jnp.broadcast_arrays(key[..., 0], key[..., 1], number)
    return jnp.stack(threefry(left, right, jnp.zeros_like(number), number), axis=-1)


def stream(keys: jax.Array, size: int) -> Stream:
    """For `size` draws of each of the keys [seeds, 2], which are those of an epoch."""
    coordinate = jnp.tile(jax.lax.iota(jnp.uint32, size), len(keys))
    return Stream(jnp.repeat(keys[:, 0], size), jnp.repeat(keys[:, 1], size), coordinate)


def normal(stream: Stream, number: ArrayLike, dtype: DTypeLike) -> jax.Array:
    """[seeds x size] standard normal draws of a node, or of a link or pair by its number."""
    kind = np.dtype(dtype)
    return kind.type(math.sqrt(2)) * jax.lax.erf_inv(_between_minus_one_and_one(stream, number, kind))


def coarse_normal(stream: Stream, number: ArrayLike, dtype: DTypeLike) -> jax.Array:
    """[seeds x size] normal draws of variance 1 from 65,536 equally likely values: receivers' noise, never a signal's.

    As fine as a receiver's converter; no promise rests on them. Looking a value up takes a third of the time of
    inverting the error function.
    """
    left, right = threefry(stream.left, stream.right, jnp.asarray(number).astype(jnp.uint32), stream.coordinate)
    return jnp.asarray(_quantiles(), dtype)[(left ^ right) >> jnp.uint32(16)]


@cache
def _quantiles() -> NDArray[np.float64]:
    """[65536] the middles of as many equally likely parts of the normal law, scaled to variance 1."""
    middles = ndtri((np.arange(2**16) + 0.5) / 2**16)
    return np.asarray(middles / np.sqrt(np.mean(middles**2)))


def laplace(stream: Stream, number: ArrayLike, dtype: DTypeLike) -> jax.Array:
    """[seeds x size] Laplace draws of scale 1."""
    unit = _between_minus_one_and_one(stream, number, np.dtype(dtype))
    return -jnp.sign(unit) * jnp.log1p(-jnp.abs(unit))


def _between_minus_one_and_one(stream: Stream, number: ArrayLike, kind: "np.dtype[Any]") -> jax.Array:
    """[seeds x size] uniform draws, neither end among them."""
    upper = jnp.asarray(number).astype(jnp.uint32)
    left, right = threefry(stream.left, stream.right, upper, stream.coordinate)
    if kind == np.float32:
        bits = (left ^ right) >> jnp.uint32(9)
    else:
        bits = ((left.astype(jnp.uint64) << jnp.uint64(32)) | right) >> jnp.uint64(12)
    # Random bits make a number in [1, 2), hence one in (-1, 1).
    unit = jax.lax.bitcast_convert_type(bits | bits.dtype.type(_ONE[kind]), kind) - kind.type(1)
    least = np.nextafter(kind.type(-1), kind.type(0))
    return jnp.maximum(least, unit * (kind.type(1) - least) + least)
