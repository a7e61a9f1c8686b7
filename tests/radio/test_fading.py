"""Fading: unit mean power, the promised correlation, and factors that depend on seed and link alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import j0

from murmurcast.radio import fading

LINKS = np.array([[0, 1], [1, 0], [2, 5], [5, 2], [1, 2], [7, 3]])


def many(seed: int) -> fading.Sinusoids:
    return fading.sinusoids(np.stack([np.arange(3000), np.arange(3000) + 5000], axis=1), seed)


def test_the_two_directions_of_a_link_share_one_factor_and_no_two_links_do() -> None:
    drawn = fading.sinusoids(LINKS, seed=3)
    assert drawn.angles.shape == drawn.phases.shape == (6, 16)
    factor = fading.jakes(17, *drawn, 0.1)
    assert factor[0] == factor[1]
    assert factor[2] == factor[3]
    assert len(np.unique(factor)) == 4


def test_a_links_draw_depends_on_the_seed_and_its_nodes_only() -> None:
    together = fading.sinusoids(LINKS, seed=3)
    alone = fading.sinusoids(np.array([[3, 7]]), seed=3)
    np.testing.assert_array_equal(alone.angles[0], together.angles[5])
    np.testing.assert_array_equal(alone.phases[0], together.phases[5])
    other = fading.sinusoids(np.array([[3, 7]]), seed=4)
    assert not np.isclose(other.angles, alone.angles).any()


def test_angles_and_phases_are_uniform_and_have_nothing_to_do_with_each_other() -> None:
    drawn = many(0)
    for one in drawn:
        counts, _ = np.histogram(one, bins=20, range=(0, 2 * np.pi))
        assert abs(counts - 2400).max() < 5 * 49
    links, sinusoids = drawn.angles.shape
    likeness = np.corrcoef(np.cos(np.concatenate([drawn.angles, drawn.phases], axis=1)).T)
    assert abs(likeness - np.eye(2 * sinusoids)).max() < 5 / np.sqrt(links)


@pytest.mark.parametrize("doppler", [0.03, 0.4])
def test_factors_have_unit_mean_power_and_the_bessel_correlation(doppler: float) -> None:
    drawn = many(1)
    times = np.arange(12)
    factor = fading.jakes(times, *drawn, doppler)
    assert factor.shape == (12, 3000)
    np.testing.assert_allclose((np.abs(factor) ** 2).mean(axis=1), 1, atol=0.1)
    np.testing.assert_allclose((np.abs(factor) ** 4).mean(), 2 - 1 / 16, atol=0.1)
    result = (factor[0].conj() * factor).mean(axis=1)
    np.testing.assert_allclose(result, j0(2 * np.pi * doppler * times), atol=0.1)
    np.testing.assert_allclose(fading.correlation(times, doppler), j0(2 * np.pi * doppler * times))


def test_any_epoch_is_known_at_once() -> None:
    drawn = fading.sinusoids(LINKS, seed=3)
    np.testing.assert_allclose(fading.jakes(np.arange(50), *drawn, 0.2)[31], fading.jakes(31, *drawn, 0.2), rtol=1e-13)
    still = fading.jakes(np.arange(50), *drawn, 0.0)
    np.testing.assert_array_equal(still, np.broadcast_to(still[0], still.shape))


def test_a_compiled_program_finds_the_same_with_a_traced_epoch() -> None:
    drawn = fading.sinusoids(LINKS, seed=3)
    angles, phases = jnp.asarray(drawn.angles), jnp.asarray(drawn.phases)
    compiled = jax.jit(lambda epoch: fading.with_line_of_sight(fading.jakes(epoch, angles, phases, 0.1), 3.0))
    result = np.asarray(compiled(23))
    np.testing.assert_allclose(result, fading.with_line_of_sight(fading.jakes(23, *drawn, 0.1), 3.0), atol=1e-4)


@pytest.mark.parametrize("k_factor_db", [None, -5.0, 6.0])
def test_a_line_of_sight_leaves_the_mean_power_and_calms_the_rest(k_factor_db: float | None) -> None:
    scattered = fading.rayleigh(np.random.default_rng(2), (40_000,))
    factor = fading.with_line_of_sight(scattered, k_factor_db)
    ratio = 0.0 if k_factor_db is None else 10 ** (k_factor_db / 10)
    power = np.abs(factor) ** 2
    np.testing.assert_allclose(power.mean(), 1, atol=0.03)
    np.testing.assert_allclose(power.var(), (1 + 2 * ratio) / (1 + ratio) ** 2, atol=0.06)
    np.testing.assert_allclose(factor.mean(), np.sqrt(ratio / (1 + ratio)), atol=0.02)
