"""What discrete noise costs: known values, an independent accountant, exact small cases, and the rounding."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from murmurcast._check import FloatArray
from murmurcast.privacy import conversion, discrete, gaussian
from murmurcast.privacy.conversion import Curve

SAMPLES = 7850 * 1000


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_conversion_agrees_with_an_independent_accountant(mu: float, delta: float) -> None:
    orders = 1 + np.exp(np.linspace(-8, 12, 40_001))
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, orders * mu**2 / 2, delta)
    ours = float(discrete.epsilon(mu, delta))
    assert ours <= theirs * (1 + 1e-12) + 1e-15
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("mu", "delta"), [(0.27, 1e-5), (1.0, 1e-5), (3.5, 1e-6)])
def test_formula_by_the_definition(mu: float, delta: float) -> None:
    """Corollary 13 the other way round: delta = inf over a of exp((a-1)(a rho - eps)) / (a-1) (1 - 1/a)^a."""
    epsilon, rho = float(discrete.epsilon(mu, delta)), mu**2 / 2
    orders = 1 + np.exp(np.linspace(-6, 8, 200_001))
    logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    np.testing.assert_allclose(math.exp(logs.min()), delta, rtol=1e-6)


@pytest.mark.parametrize(("sigma", "shift"), [(0.7, 1), (2.0, 1), (5.0, 3), (40.0, 17)])
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_discrete_gaussians_keep_the_bound_exactly(sigma: float, shift: int, delta: float) -> None:
    """The real delta, summed over all integers, at the epsilon that is promised; and not by a wide margin."""
    integers = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)

    def probability(centre: int) -> FloatArray:
        weight = np.exp(-((integers - centre) ** 2) / (2 * sigma**2))
        return np.asarray(weight / np.exp(-(integers**2) / (2 * sigma**2)).sum())

    def real(epsilon: float) -> float:
        return float(np.maximum(probability(0) - math.exp(epsilon) * probability(shift), 0).sum())

    promised = float(discrete.epsilon(shift / sigma, delta))
    assert real(promised) <= delta
    if sigma > 1:
        assert real(0.8 * promised) > delta


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 10.0, 40.0])
@pytest.mark.parametrize("samples", [0, SAMPLES])
def test_budget_and_cost_are_inverse(epsilon: float, samples: int) -> None:
    mu = discrete.mu(epsilon, 1e-5, samples)
    assert float(discrete.epsilon(mu, 1e-5, samples)) <= epsilon
    assert float(discrete.epsilon(mu * (1 + 1e-9), 1e-5, samples)) > epsilon * (1 - 1e-8)
    assert mu < gaussian.mu(epsilon, 1e-5)


@given(mu=st.floats(0, 7.5), more=st.floats(0, 0.5), delta=st.floats(1e-9, 0.5), samples=st.integers(0, SAMPLES))
def test_more_shift_more_draws_and_less_delta_never_cost_less(
    mu: float, more: float, delta: float, samples: int
) -> None:
    here = float(discrete.epsilon(mu, delta, samples))
    hair = 1e-11 * (1 + here)
    assert float(discrete.epsilon(mu + more, delta, samples)) >= here - hair
    assert float(discrete.epsilon(mu, delta, samples + 1000)) >= here - hair
    assert float(discrete.epsilon(mu, delta / 2, samples)) >= here - hair
    assert here >= float(gaussian.epsilon(mu, delta)) - hair


def test_the_sampler_costs_next_to_nothing_and_is_counted() -> None:
    ideal, drawn = float(discrete.epsilon(1.0, 1e-5)), float(discrete.epsilon(1.0, 1e-5, SAMPLES))
    error = SAMPLES * discrete.SAMPLER_ERROR
    assert 2 * error <= drawn - ideal <= 3 * error
    assert drawn - ideal < 1e-5
    # Noise that ends at 16 standard deviations cannot hide a shift of nearly as many.
    assert np.isinf(discrete.epsilon(12.0, 1e-5, SAMPLES))
    assert np.isfinite(discrete.epsilon(12.0, 1e-5))
    assert np.isinf(discrete.epsilon(np.inf, 1e-5, SAMPLES))
    assert discrete.epsilon(0.0, 1e-5, SAMPLES) == 0


@given(noise=st.floats(1e-30, 1e30))
def test_the_grid_is_a_power_of_two_of_the_stated_fineness(noise: float) -> None:
    spacing = float(discrete.spacing(noise))
    assert math.frexp(spacing)[0] == 0.5
    assert 2**26 <= noise / spacing < 2**27


@given(
    point=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    change=st.floats(0, 1e4),
    seed=st.integers(0, 2**32 - 1),
    power=st.integers(-20, 5),
)
def test_rounding_moves_integers_by_at_most_one_more_in_each_coordinate(
    point: list[float], change: float, seed: int, power: int
) -> None:
    """||round(x/D) - round(x'/D)|| <= ||x - x'||/D + sqrt(m), half of what is counted."""
    x, spacing = np.array(point), 2.0**power
    direction = np.random.default_rng(seed).standard_normal(len(x))
    other = x + change * direction / np.linalg.norm(direction)
    moved = np.linalg.norm(np.round(x / spacing) - np.round(other / spacing))
    assert moved <= np.linalg.norm(x - other) / spacing + math.sqrt(len(x)) * (1 + 1e-9)


def test_a_budget_beyond_all_bounds_stays_within_them() -> None:
    """A hair of rounding in what follows does not end in an infinite epsilon."""
    largest = discrete.mu(1e4, 1e-5, 13_000)
    assert 8 < largest < 10
    assert np.isfinite(discrete.epsilon(largest * (1 + 5e-10), 1e-5, 13_000))
    assert np.isinf(discrete.epsilon(largest * (1 + 5e-9), 1e-5, 13_000))


def test_rounding_over_a_run() -> None:
    """The closed form bounds the sum over epochs, and is 2^-25 sqrt(m (T - 1))."""
    generator = np.random.default_rng(0)
    dim, epochs = 7850, 300
    per_epoch = generator.uniform(0.001, 0.1, epochs - 1)
    noise = generator.uniform(0.01, 10, epochs - 1)
    exact = np.linalg.norm(per_epoch + 2 * math.sqrt(dim) * discrete.spacing(noise) / noise)
    bound = np.linalg.norm(per_epoch) + discrete.rounding(dim, epochs)
    assert exact <= bound <= exact * (1 + 1e-3)
    np.testing.assert_allclose(discrete.rounding(dim, epochs), 2**-25 * math.sqrt(dim * (epochs - 1)), rtol=1e-15)


def test_curves() -> None:
    assert conversion.curve("seeded", 5, 9) == conversion.EXACT
    secure = conversion.curve("secure", 5, 9)
    assert secure == Curve("secure", discrete.rounding(5, 9), 45)
    assert float(secure.total_mu(np.array(1.0))) == 1.0 + secure.rounding
    mu = secure.mu_of_steps(3.0, 1e-5)
    assert float(secure.epsilon(secure.total_mu(np.array(mu)), 1e-5)) <= 3 * (1 + 1e-12)
    assert conversion.EXACT.mu_of_steps(3.0, 1e-5) == gaussian.mu(3.0, 1e-5)
    with pytest.raises(ValueError, match="rounding"):
        conversion.curve("secure", 10**12, 10**6).mu_of_steps(0.1, 1e-5)
