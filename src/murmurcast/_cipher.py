"""Threefry-2x32, the cipher behind `jax.random`, with its rounds written out; it gives the very bits that JAX gives.

JAX keeps the rounds in a loop, which on a CPU costs several passes over memory, and tens of small steps for a handful
of numbers. Written out over flat arrays they are one pass that fills the processor's registers.
"""

import jax
import jax.numpy as jnp
import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(
    key_left: jax.Array, key_right: jax.Array, left: jax.Array, right: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    keys = (key_left, key_right, key_left ^ key_right ^ jnp.uint32(_PARITY))
    left, right = left + keys[0], right + keys[1]
    # In the primitives themselves: tracing a hundred operators of jax.numpy took as long as a short run trains.
    add, either, xor = jax.lax.add, jax.lax.bitwise_or, jax.lax.bitwise_xor
    shift_left, shift_right = jax.lax.shift_left, jax.lax.shift_right_logical
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            left = add(left, right)
            rotated = either(shift_left(right, np.uint32(distance)), shift_right(right, np.uint32(32 - distance)))
            right = xor(rotated, left)
        left = add(left, keys[(group + 1) % 3])
        right = add(add(right, keys[(group + 2) % 3]), np.uint32(group + 1))
    return left, right


def split(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """[2], [2] two keys from a key [2], those of `jax.random.split`."""
    left, right = _counted(key, 2)
    return jnp.stack([left[0], right[0]]), jnp.stack([left[1], right[1]])


def bits(key: jax.Array, count: int) -> jax.Array:
    """[count] random numbers of 32 bits, those of `jax.random.bits`."""
    left, right = _counted(key, count)
    return jax.lax.bitwise_xor(left, right)


def below(key: jax.Array, limits: jax.Array) -> jax.Array:
    """[count] random numbers of 0 or more, each below its limit of at least 1; those of `jax.random.randint`.

    As there, they are made of 64 bits, and are other ones, where JAX computes in 64 bits.
    """
    wide = jax.dtypes.canonicalize_dtype(np.int64) == np.int64
    upper, lower = (_wide_bits(half, len(limits)) if wide else bits(half, len(limits)) for half in split(key))
    span = limits.astype(upper.dtype)
    of_half = upper.dtype.type(2 ** (4 * upper.dtype.itemsize)) % span
    number = (upper % span * (of_half * of_half % span) + lower % span) % span
    return jnp.asarray(number, limits.dtype)


def _wide_bits(key: jax.Array, count: int) -> jax.Array:
    """[count] random numbers of 64 bits."""
    left, right = (half.astype(jnp.uint64) for half in _counted(key, count))
    return jax.lax.bitwise_or(left << jnp.uint64(32), right)


def _counted(key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """[count], [count] what the cipher makes of 0, 1, ... below count."""
    left, right = (jnp.broadcast_to(half, (count,)) for half in key)
    counter = jax.lax.iota(jnp.uint32, count)
    return threefry(left, right, jnp.zeros_like(counter), counter)
