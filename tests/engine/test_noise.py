"""The noise is what was promised, and a scale 5 % off would be noticed."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from murmurcast._check import FloatArray
from murmurcast.channels.public_draws import PublicDraws
from murmurcast.channels.public_draws import Purpose as PublicPurpose
from murmurcast.engine import noise
from murmurcast.engine.noise import Purpose

EPOCHS, NODES, DIM = 20, 6, 2000


def drawn(seed: int = 11, dtype: str = "float32") -> FloatArray:
    """[epochs, nodes, dim]."""
    with jax.enable_x64(dtype == "float64"):
        root = noise.roots((seed,))[0]

        def one(epoch: jax.Array, node: jax.Array) -> jax.Array:
            return noise.normal(noise.stream(noise.at_epoch(root, Purpose.SIGNAL, epoch)[None], DIM), node, dtype)

        over_nodes = jax.vmap(one, in_axes=(None, 0))
        epochs, nodes = jnp.arange(1, EPOCHS + 1), jnp.arange(NODES)
        return np.asarray(jax.vmap(over_nodes, in_axes=(0, None))(epochs, nodes), np.float64)


def is_standard_normal(sample: FloatArray, level: float = 1e-4) -> bool:
    """Kolmogorov-Smirnov on the shape, chi-square on the scale."""
    flat = sample.ravel()
    shape = stats.kstest(flat, "norm").pvalue
    energy = float(np.sum(flat**2))
    scale = 2 * min(stats.chi2.cdf(energy, flat.size), stats.chi2.sf(energy, flat.size))
    return bool(shape > level and scale > level)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_is_standard_normal_and_a_wrong_scale_is_rejected(dtype: str) -> None:
    sample = drawn(dtype=dtype)
    assert is_standard_normal(sample)
    for node in range(NODES):
        one = sample[:, node]
        assert is_standard_normal(one)
        assert not is_standard_normal(1.05 * one)
        assert not is_standard_normal(0.95 * one)


@pytest.mark.slow
def test_receivers_noise_is_normal_of_variance_one_and_the_same_in_both_precisions() -> None:
    keys = noise.receiver_key(jnp.asarray(noise.roots((7,))), 3, 1)
    exact = np.asarray(noise.coarse_normal(noise.stream(keys, 200_000), 2, "float32"), np.float64)
    assert stats.kstest(exact, "norm").pvalue > 1e-3
    assert stats.kstest(1.01 * exact, "norm").pvalue < 1e-3
    assert exact.var() == pytest.approx(1, abs=0.01)
    assert np.abs(exact).max() > 4
    with jax.enable_x64(True):
        wide = np.asarray(noise.coarse_normal(noise.stream(keys, 200_000), 2, "float64"))
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, exact, rtol=1e-6, atol=1e-9)


def test_nodes_and_epochs_are_independent() -> None:
    rows = drawn().reshape(EPOCHS * NODES, DIM)
    correlation = rows @ rows.T / DIM
    off = correlation[np.triu_indices(len(rows), 1)] * np.sqrt(DIM)  # standard normal if independent
    assert np.abs(off).max() < stats.norm.isf(1e-4 / len(off))
    assert is_standard_normal(off)
    # Noise that a neighbour shares, or that comes again in the next epoch, would be noticed.
    shared = rows.copy()
    shared[1] = 0.5 * rows[0] + np.sqrt(0.75) * rows[1]
    assert abs(shared[0] @ shared[1] / np.sqrt(DIM)) > stats.norm.isf(1e-4 / len(off))


def test_coordinates_are_independent() -> None:
    sample = drawn().reshape(-1, DIM)
    lagged = np.sum(sample[:, :-1] * sample[:, 1:]) / np.sqrt(sample[:, 1:].size)
    halves = np.sum(sample[:, : DIM // 2] * sample[:, DIM // 2 :]) / np.sqrt(sample.size / 2)
    assert max(abs(lagged), abs(halves)) < 4.5  # the two outputs of one cipher block lie half a row apart


def test_seeds_purposes_and_epochs_have_their_own_keys() -> None:
    keys = {
        tuple(np.asarray(noise.at_epoch(root, purpose, epoch)).tolist())
        for root in noise.roots((0, 1, 2**32 - 1))
        for purpose in Purpose
        for epoch in (1, 2, 3, 10_000_000)
    }
    assert len(keys) == 3 * len(Purpose) * 4


def test_rounds_draws_receivers_and_the_start_have_their_own_keys() -> None:
    root, places = noise.roots((5,))[0], [(epoch, one) for epoch in (1, 2, 3) for one in (0, 1, 2)]
    built = [
        *(noise.draw_key(root, epoch, one, draw) for epoch, one in places for draw in (0, 1, 2)),
        *(noise.receiver_key(root, epoch, one) for epoch, one in places),
        *(noise.at_epoch(root, Purpose.BATCH, epoch) for epoch in (1, 2, 3)),
        noise.start_key(root),
    ]
    assert len({tuple(np.asarray(key).tolist()) for key in built}) == len(built)
    np.testing.assert_array_equal(noise.draw_key(root, 2, 0, 0), noise.at_epoch(root, Purpose.SIGNAL, 2))


def test_no_secret_draw_has_the_key_of_a_public_one() -> None:
    """A radio's seed and a run's are both 0 unless said: what is public of the one must tell nothing of the other."""
    numbers = jnp.arange(12)

    def grown(keys: jax.Array) -> jax.Array:
        """[..., 12, 2] the keys that follow from keys [..., 2]."""
        return noise.at_node(keys[..., None, :], numbers)

    purposes = grown(jnp.asarray(noise.roots((0, 3))))
    epochs = grown(purposes)
    secret = [purposes, epochs, grown(epochs)]
    public = [
        jax.random.key_data(PublicDraws(seed, when, np.float32).key_of(purpose))
        for seed, when, purpose in product((0, 3), (None, 1, 2), PublicPurpose)
    ]
    owners = grown(jnp.stack(public))

    def as_set(keys: jax.Array) -> set[tuple[int, ...]]:
        return set(map(tuple, np.asarray(keys).reshape(-1, 2).tolist()))

    assert not set().union(*map(as_set, secret)) & (as_set(jnp.stack(public)) | as_set(owners))


def test_seeds_in_company_draw_what_they_draw_alone() -> None:
    keys = jnp.stack([noise.at_epoch(root, Purpose.SIGNAL, 4) for root in noise.roots((3, 9))])
    together = noise.normal(noise.stream(keys, 13), 2, "float32").reshape(2, 13)
    for row, key in enumerate(keys):
        assert np.array_equal(together[row], noise.normal(noise.stream(key[None], 13), 2, "float32"))


def test_keys_and_the_first_nodes_draws_are_those_of_jax_to_the_bit() -> None:
    for seed, epoch in ((0, 1), (7, 123_456), (2**32 - 1, 10_000_000)):
        theirs = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), int(Purpose.SIGNAL)), epoch)
        ours = noise.at_epoch(noise.roots((seed,))[0], Purpose.SIGNAL, epoch)
        assert np.array_equal(jax.random.key_data(theirs), ours)
        for size in (1, 21, 7850):
            drawn = noise.normal(noise.stream(ours[None], size), 0, "float32")
            assert np.array_equal(jax.random.normal(theirs, (size,), "float32"), drawn)
