"""What receivers make of what they hear: given trajectories, rows that sum to 1, a common model that passes."""

from typing import Any

import numpy as np
import pytest

from murmurcast.radio import combining, units
from murmurcast.radio.combining import Combining, Pilot
from tests.radio.reference import Instance, instances, require_equal

ACCESS = ("aligned", "own-slot", "referenced")


def complex_symbols(values: Any) -> Any:
    return values[..., 0::2] + 1j * values[..., 1::2]


def real_parameters(symbols: Any) -> Any:
    return np.stack([symbols.real, symbols.imag], axis=-1).reshape(*symbols.shape[:-1], -1)


def combined(access: str, arriving: Any, linked: Any, pilot: Pilot, given: dict[str, Any]) -> Combining:
    if access == "referenced":
        return combining.referenced(arriving, linked, pilot, given["mean_power"], given["kappa"], given["c"])
    of = combining.aligned if access == "aligned" else combining.own_slot
    return of(arriving, linked, pilot, given["normaliser"])


@pytest.mark.parametrize("one", instances("train"), ids=lambda one: one.name)
def test_a_trajectory_is_the_expected_one(one: Instance) -> None:
    given, expected = one.inputs, one.expected
    alpha, power = given["alpha"], given["power_w"]
    nodes, dim = given["eta"].shape[1:]
    scale = units.public_scale(alpha, given["noise_std"], dim, given["radius"])
    require_equal(scale, expected["scale"])
    effective = np.sqrt((1 - alpha) / alpha) * given["noise_std"]
    require_equal(effective, expected["effective_noise"])
    own, reference = np.zeros((nodes, dim)), np.zeros(dim)
    mixed = np.zeros((nodes, dim))
    for epoch in range(given["epochs"]):
        if given["recentre_every"] and epoch and epoch % given["recentre_every"] == 0:
            reference = mixed[0]
        amplitude = scale[epoch] * np.sqrt(alpha * power)
        symbols = complex_symbols(own + effective[epoch][:, None] * given["eta"][epoch] - reference)
        for number in range(given["rounds"]):
            gains = given["gains"][epoch, number]
            pilot = Pilot(given["pilot_noise"][epoch, number], given["compensation_error"][epoch, number], np.zeros(1))
            arriving = (gains * amplitude[:, None]).T
            settings = given | {"mean_power": given["average_power"] * scale[epoch] ** 2}
            result = combined(given["combine"], arriving, gains.T != 0, pilot, settings)
            # The noise's phase is the pilot's: undo what the real parts of both have in common.
            factor = result.weights.sum(axis=1) / arriving.sum(axis=1)
            noise = factor[:, None] * given["receiver_noise"][epoch, number]
            symbols = result.weights @ symbols + result.own[:, None] * symbols + noise
            np.testing.assert_allclose(np.abs(factor), result.noise, rtol=1e-12)
        mixed = real_parameters(symbols) + reference
        require_equal(mixed, expected["mixed"][epoch])
        gradient = np.einsum("kij,kj->ki", given["curvature"], mixed - given["centre"])
        own = mixed - given["steps"][epoch] * gradient / given["divisor"][:, None]
        require_equal(own, expected["own"][epoch])


def drawn(access: str, seed: int) -> tuple[Any, Any, Pilot, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    linked = rng.random((6, 6)) < 0.6
    np.fill_diagonal(linked, False)
    linked[0] = False  # hears nobody
    arriving = np.where(linked, rng.uniform(0.2, 2.0, (6, 6)), 0).astype(complex)
    if access != "aligned":
        arriving *= np.exp(2j * np.pi * rng.random((6, 6)))
    error = np.zeros((6, 6) if access == "own-slot" else 6, complex)
    pilot = Pilot(error, np.zeros(6), np.zeros(6))
    return arriving, linked, pilot, {"normaliser": 6, "mean_power": np.full(6, 2.0), "kappa": 1.0, "c": 1.0}


@pytest.mark.parametrize("access", ACCESS)
@pytest.mark.parametrize("seed", range(5))
def test_rows_sum_to_one_and_a_common_model_passes_unchanged(access: str, seed: int) -> None:
    arriving, linked, pilot, settings = drawn(access, seed)
    result = combined(access, arriving, linked, pilot, settings)
    np.testing.assert_allclose(result.weights.sum(axis=1) + result.own, 1, atol=1e-12)
    assert result.own[0] == 1  # who hears nobody keeps its own
    assert result.noise[0] == 0
    common = np.tile(np.array([1.0 + 2j, -3.0]), (6, 1))
    np.testing.assert_allclose(result.weights @ common + result.own[:, None] * common, common, atol=1e-11)


@pytest.mark.parametrize("access", ACCESS)
def test_a_pilot_that_is_too_weak_leaves_the_own_point(access: str) -> None:
    arriving, linked, pilot, settings = drawn(access, 1)
    result = combined(access, arriving, linked, pilot._replace(least=np.full(6, 1e9)), settings)
    assert (result.weights == 0).all()
    assert (result.own == 1).all()
    assert (result.noise == 0).all()


def test_in_slots_of_their_own_noise_is_larger_by_the_number_of_neighbours() -> None:
    gains = np.where(~np.eye(5, dtype=bool), 0.7, 0).astype(complex)
    linked = gains != 0
    together = combining.aligned(gains, linked, Pilot(np.zeros(5), np.zeros(5), np.zeros(5)), 5)
    alone = combining.own_slot(gains, linked, Pilot(np.zeros((5, 5)), np.zeros(5), np.zeros(5)), 5)
    np.testing.assert_allclose(alone.weights, together.weights)
    np.testing.assert_allclose(alone.noise**2, 4 * together.noise**2)
