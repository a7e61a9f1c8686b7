"""Gain models draw what they say."""

import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.network import gains
from murmurcast.network.gains import Constant, GainModel, LogDistance, Rayleigh, Rician, Uniform

MANY = 200_000


def draw(model: GainModel, distance: float = 1.0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return model.draw(np.random.default_rng(0), MANY, np.full(MANY, distance))


def test_uniform_stays_within_its_ends() -> None:
    result = draw(Uniform(low=0.2, high=0.9))
    assert 0.2 <= result.min() < 0.201
    assert 0.899 < result.max() <= 0.9
    assert result.mean() == pytest.approx(0.55, abs=0.002)


@pytest.mark.parametrize("model", [Rayleigh(rms=0.7), Rician(rms=0.7, k_factor_db=3.0)])
def test_fading_has_its_rms(model: GainModel) -> None:
    assert np.sqrt(np.mean(draw(model) ** 2)) == pytest.approx(0.7, rel=0.01)


def test_rayleigh_power_is_exponential() -> None:
    power = draw(Rayleigh(rms=2.0)) ** 2 / 4
    assert np.mean(power > 1) == pytest.approx(np.exp(-1), abs=0.005)


def test_rician_with_strong_sight_hardly_fades() -> None:
    assert draw(Rician(k_factor_db=40.0)).std() < 0.01
    assert draw(Rician(k_factor_db=-40.0)).std() == pytest.approx(draw(Rayleigh()).std(), rel=0.02)


def test_log_distance_without_shadowing_is_the_formula() -> None:
    model = LogDistance(exponent=3.0, reference_distance=2.0, reference_gain_db=-6.0)
    # Ten times the reference distance costs 30 dB of power.
    assert draw(model, distance=20.0) == pytest.approx(10 ** (-36 / 20))


def test_shadowing_is_in_decibels() -> None:
    decibel = 20 * np.log10(draw(LogDistance(shadowing_db=4.0)))
    assert decibel.std() == pytest.approx(4.0, rel=0.01)


def test_log_distance_needs_positions() -> None:
    with pytest.raises(Error, match="need positions"):
        LogDistance().draw(np.random.default_rng(0), 3, None)


def test_paper_matrices_are_transposed() -> None:
    assert gains.paper(1)[0, 3] == 0.88  # printed as the entry of row 4, column 1
    assert gains.paper(2)[1, 2] == 0.943
    with pytest.raises(Error, match="no gain matrix 3"):
        gains.paper(3)


def test_impossible_models_are_refused() -> None:
    with pytest.raises(Error, match="low is 2, above high 1"):
        Uniform(low=2.0, high=1.0)
    with pytest.raises(Error, match="value is 0"):
        Constant(value=0.0)
