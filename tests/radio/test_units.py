"""Link budgets: watts, symbols, seconds; the reference's numbers, and what must hold for any."""

import numpy as np
import pytest

from murmurcast.radio import units
from murmurcast.radio.settings import Radio
from tests.radio.reference import Instance, instances, require_equal

UNITS = instances("units")


@pytest.mark.parametrize("one", UNITS, ids=lambda one: one.name)
def test_the_link_budget_is_the_expected_one(one: Instance) -> None:
    given, expected = one.inputs, one.expected
    radio = Radio(
        power_dbm=given["power_dbm"],
        bandwidth_hz=given["bandwidth"],
        noise_figure_db=given["noise_figure_db"],
        temperature_k=given["temperature"],
        self_interference_db=given["self_interference_db"],
        duplex="full",
    )
    power, alpha, dim = radio.power_w, given["alpha"], given["dim"]
    noise = radio.noise_w(power)
    require_equal(power, expected["power_w"])
    require_equal(noise, expected["noise_w"])
    scale = units.public_scale(alpha, given["noise_std"], dim, given["radius"])
    require_equal(scale, expected["scale"])
    gains = given["gains"]
    compensation = gains.T @ np.sqrt(alpha * power) / (gains > 0).sum(axis=0)
    require_equal(compensation, expected["compensation"])
    tau = units.receiver_noise_std(noise, compensation, given["normaliser"], scale)
    require_equal(tau, expected["receiver_noise_std"])
    energy = units.energy_over_power(alpha, given["noise_std"], dim, given["radius"])
    require_equal(units.power_used(scale, energy, dim), expected["power_used"])
    require_equal(units.pilot_gain(power, alpha, scale), expected["pilot_gain"])
    snr = units.snr_db(gains, power[:, None], noise[None, :])
    require_equal(snr.T[gains.T > 0], expected["snr_db"][gains.T > 0])


@pytest.mark.parametrize("one", UNITS, ids=lambda one: one.name)
def test_a_digital_link_is_the_expected_one(one: Instance) -> None:
    given, expected = one.inputs, one.expected
    gains, power, noise = given["gains"], expected["power_w"], expected["noise_w"]
    snr = units.snr_db(gains, power[:, None], noise[None, :])
    weakest = np.where(gains > 0, snr, np.inf).min(axis=1)
    bits = units.bits_per_symbol(weakest, given["gap_db"])
    require_equal(bits, expected["digital_bits_per_symbol"])
    symbols = given["dim"] * given["bits"] / bits
    require_equal(symbols, expected["digital_symbols"])
    require_equal(symbols.sum() / given["bandwidth"], expected["digital_seconds_own_slots"])


@pytest.mark.parametrize("seed", range(5))
def test_nobody_sends_more_than_its_power_per_symbol_and_the_loudest_uses_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, noise = rng.uniform(0.1, 0.9, 5), rng.uniform(0.01, 2.0, (7, 5))
    scale = units.public_scale(alpha, noise, 30, 4.0)
    used = units.power_used(scale, units.energy_over_power(alpha, noise, 30, 4.0), 30)
    assert (used <= 1 + 1e-12).all()
    np.testing.assert_allclose(used.max(axis=1), 1)


def test_receiver_noise_halves_when_the_power_is_four_times_as_large() -> None:
    scale, compensation = np.array([0.3, 0.5]), np.array([1e-5, 3e-5])
    noise = np.full(2, 2e-14)
    before = units.receiver_noise_std(noise, compensation, 3, scale)
    np.testing.assert_allclose(units.receiver_noise_std(noise, 2 * compensation, 3, scale), before / 2)
    np.testing.assert_allclose(units.receiver_noise_std(noise / 4, compensation, 3, scale), before / 2)


def test_decibels_go_both_ways() -> None:
    np.testing.assert_allclose(units.watts([0, 20, 30]), [1e-3, 0.1, 1.0])
    np.testing.assert_allclose(units.dbm(units.watts([-90.0, 12.5])), [-90, 12.5])
