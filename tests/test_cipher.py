"""Random bits against JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast import _cipher

KEYS = [(0, 0), (7, 123_456), (2**32 - 1, 2**31)]


@pytest.mark.parametrize("words", KEYS)
def test_keys_and_numbers_are_those_of_jax(words: tuple[int, int]) -> None:
    key = jnp.array(words, jnp.uint32)
    theirs = jax.random.wrap_key_data(key)
    for ours, one in zip(_cipher.split(key), jax.random.split(theirs), strict=True):
        np.testing.assert_array_equal(ours, jax.random.key_data(one))
    for count in (1, 2, 33):
        np.testing.assert_array_equal(_cipher.bits(key, count), jax.random.bits(theirs, (count,), jnp.uint32))


@pytest.mark.parametrize("words", KEYS)
@pytest.mark.parametrize("wide", [False, True])
def test_numbers_below_a_limit_are_those_of_jax(words: tuple[int, int], wide: bool) -> None:
    with jax.enable_x64(wide):
        key = jnp.array(words, jnp.uint32)
        limits = jnp.array([1, 2, 3, 10, 65_535, 65_536, 65_537, 14_000, 2**31 - 1] * 5, jnp.int32)
        theirs = jax.random.randint(jax.random.wrap_key_data(key), (len(limits),), 0, limits)
        assert theirs.dtype == (jnp.int64 if wide else jnp.int32)
        np.testing.assert_array_equal(_cipher.below(key, limits), theirs)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_cipher_gives_its_authors_values(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    words = [jnp.uint32(word) for word in (*key, *counter)]
    assert tuple(int(word) for word in _cipher.threefry(*words)) == expected
