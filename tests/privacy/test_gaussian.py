"""The exact Gaussian curve against published values, 50-digit arithmetic and an independent library."""

import json
from pathlib import Path
from typing import Any

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.errors import Error
from murmurcast.privacy import gaussian

REFERENCE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "reference" / "gaussian_accounting.json").read_text()
)


@pytest.mark.parametrize("case", REFERENCE["gaussian"])
def test_epsilon_of_composed_gaussians(case: dict[str, float]) -> None:
    mu = gaussian.compose(np.full(int(case["T"]), case["sensitivity"] / case["sigma"]))
    assert mu == pytest.approx(case["mu_gdp"], rel=1e-12)
    assert gaussian.epsilon(mu, case["delta"]) == pytest.approx(case["eps_exact_mpmath"], rel=1e-9)


@pytest.mark.parametrize("case", REFERENCE["calibration"])
def test_calibration(case: dict[str, float]) -> None:
    assert 1 / gaussian.mu(case["epsilon"], case["delta"]) == pytest.approx(case["sigma_analytic"], rel=1e-9)
    assert gaussian.classical_epsilon(1 / case["sigma_classical"], case["delta"]) == pytest.approx(case["epsilon"])


@pytest.mark.parametrize("case", REFERENCE["delta_at_eps"])
def test_delta(case: dict[str, Any]) -> None:
    mu = np.sqrt(case["T"]) / case["sigma"]
    assert gaussian.delta(case["epsilon"], mu) == pytest.approx(float(case["delta_exact_mpmath"]), rel=1e-9)


def test_values_of_the_specification() -> None:
    assert gaussian.epsilon(1, 1e-5) == pytest.approx(4.377178095681232, rel=1e-12)
    assert gaussian.delta(1, 1) == pytest.approx(0.1269367375066439, rel=1e-12)
    assert gaussian.mu(1, 1e-5) == pytest.approx(0.26805112321129454, rel=1e-12)


def exact_delta(epsilon: float, mu: float) -> Any:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("epsilon", [1e-4, 3e-3, 0.1, 1.0, 8.0, 60.0, 500.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-5, 1e-2, 0.4])
def test_round_trip_against_many_digits(epsilon: float, delta: float) -> None:
    mu = float(gaussian.mu(epsilon, delta))
    assert float(exact_delta(epsilon, mu)) == pytest.approx(delta, rel=1e-9)
    assert gaussian.delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
    assert gaussian.epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("sigma", "rounds"), [(2.0, 1), (5.0, 30), pytest.param(40.0, 1000, marks=pytest.mark.slow), (0.8, 2)]
)
def test_dp_accounting_agrees_on_composition(sigma: float, rounds: int) -> None:
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-5)
    accountant.compose(dp_accounting.GaussianDpEvent(sigma), rounds)
    mu = gaussian.compose(np.full(rounds, 1 / sigma))
    epsilon = float(gaussian.epsilon(mu, 1e-5))
    assert accountant.get_delta(epsilon) == pytest.approx(1e-5, rel=3e-4)  # its grid rounds the loss up
    exact = dp_accounting.get_epsilon_gaussian(1 / mu, 1e-5)
    assert epsilon == pytest.approx(exact, rel=1e-6)


@given(st.floats(1e-3, 50), st.floats(1e-3, 50), st.floats(1e-10, 0.5))
def test_monotone(first: float, second: float, delta: float) -> None:
    low, high = sorted((first, second))
    assert gaussian.epsilon(low, delta) <= gaussian.epsilon(high, delta) + 1e-12
    assert gaussian.delta(1.0, low) <= gaussian.delta(1.0, high)
    assert gaussian.delta(low, 1.0) >= gaussian.delta(high, 1.0)


def test_ends_are_finite_or_said_to_be_infinite() -> None:
    np.testing.assert_array_equal(gaussian.epsilon([0.0, np.inf], 1e-5), [0.0, np.inf])
    np.testing.assert_array_equal(gaussian.delta(1.0, [0.0, np.inf]), [0.0, 1.0])
    assert gaussian.epsilon(1e6, 1e-5) == pytest.approx(5e11, rel=1e-4)
    assert gaussian.epsilon(1e-9, 0.5) == 0.0


def test_textbook_formula_is_false_above_about_eight() -> None:
    def excess(epsilon: float) -> float:
        mu = epsilon / float(gaussian.classical_epsilon(1, 1e-5))
        return float(gaussian.epsilon(mu, 1e-5)) - epsilon

    assert excess(8.3) < 0 < excess(8.5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, np.nan])
def test_delta_outside_its_range_is_an_error(delta: float) -> None:
    with pytest.raises(Error, match="delta is"):
        gaussian.epsilon(1.0, delta)


def test_negative_epsilon_is_an_error() -> None:
    with pytest.raises(Error, match="epsilon is -1"):
        gaussian.mu(-1.0, 1e-5)
