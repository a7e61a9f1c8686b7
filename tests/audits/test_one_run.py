"""The bound for many canaries in one run: against simulation, closed forms, and the theorem's own shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from murmurcast.audits.one_run import epsilon_lower_bound, measure, probability
from murmurcast.errors import Error


def test_without_delta_it_is_the_binomial_tail() -> None:
    chance = np.exp(0.7) / (1 + np.exp(0.7))
    assert probability(1000, 200, 150, 0.7, 0.0) == pytest.approx(binom.sf(149, 200, chance))
    assert probability(1000, 200, 0, 0.7, 1e-3) == 1.0


def test_delta_adds_its_share() -> None:
    """With one guess of one canary, right: P <= q + 2 delta P[B = 0]."""
    chance = np.exp(0.3) / (1 + np.exp(0.3))
    assert probability(1, 1, 1, 0.3, 0.01) == pytest.approx(chance + 2 * 0.01 * (1 - chance))


@given(
    guesses=st.integers(1, 400),
    share=st.floats(0, 1),
    canaries=st.integers(400, 5000),
    delta=st.sampled_from([0.0, 1e-6, 1e-3]),
)
def test_monotone(guesses: int, share: float, canaries: int, delta: float) -> None:
    right = round(share * guesses)
    values = [probability(canaries, guesses, right, epsilon, delta) for epsilon in (0.0, 0.5, 2.0, 8.0)]
    assert all(0 <= value <= 1 for value in values)
    assert (np.diff(values) >= -1e-9).all()
    bound = epsilon_lower_bound(canaries, guesses, right, delta, 0.95)
    assert bound >= epsilon_lower_bound(canaries, guesses, max(0, right - 5), delta, 0.95) - 1e-9
    assert bound >= epsilon_lower_bound(canaries, guesses, right, 1e-2, 0.95) - 1e-9
    assert bound >= epsilon_lower_bound(canaries, guesses, right, delta, 0.99) - 1e-9


def test_the_bound_is_refuted_at_the_confidence_and_not_beyond() -> None:
    bound = epsilon_lower_bound(2000, 300, 230, 1e-5, 0.95)
    assert probability(2000, 300, 230, bound, 1e-5) == pytest.approx(0.05, abs=1e-6)
    assert epsilon_lower_bound(2000, 300, 150, 1e-5, 0.95) == 0.0
    assert (
        3 < epsilon_lower_bound(300, 300, 300, 0.0, 0.95) == pytest.approx(np.log(1 / (0.05 ** (-1 / 300) - 1)), 1e-6)
    )


def test_randomised_response_is_bounded_rightly_and_nearly_tightly() -> None:
    """Its epsilon is known exactly: the bound exceeds it in at most 5 % of trials, and comes near."""
    epsilon, canaries, rng = 1.0, 2000, np.random.default_rng(3)
    bounds = []
    for _ in range(200):
        truthful = rng.random(canaries) < np.exp(epsilon) / (1 + np.exp(epsilon))
        bounds.append(epsilon_lower_bound(canaries, canaries, int(truthful.sum()), 0.0, 0.95))
    assert np.mean(np.array(bounds) > epsilon) <= 0.09
    assert np.median(bounds) > 0.88


def test_revealing_everything_with_probability_delta_needs_the_second_term() -> None:
    """A mechanism that is (0, delta)-DP and shows all signs with probability delta is not refuted more often."""
    delta, canaries = 0.04, 100
    assert epsilon_lower_bound(canaries, canaries, canaries, 0.0, 0.95) > 2
    assert epsilon_lower_bound(canaries, canaries, canaries, delta, 0.95) == 0.0


def test_surest_guesses_are_chosen_on_other_canaries() -> None:
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], 8000)
    loud = rng.random(8000) < 0.03  # few canaries leak, and they are the loud ones
    statistic = np.where(loud, 9 * signs, 0) + rng.standard_normal(8000)
    result = measure((statistic[:4000], signs[:4000]), (statistic[4000:], signs[4000:]), 1e-5, 0.95)
    assert (result.canaries, result.guesses) in [(4000, 80), (4000, 40)]
    assert result.right >= result.guesses - 2
    assert result.epsilon > 2
    silent = measure((0 * signs[:4000], signs[:4000]), (0 * signs[4000:], signs[4000:]), 1e-5, 0.95)
    assert silent.epsilon == 0.0


def test_a_confidence_beyond_its_range_is_an_error() -> None:
    with pytest.raises(Error, match="confidence"):
        epsilon_lower_bound(10, 10, 5, 1e-5, 1.0)
