"""Bounds against exact binomial tails, and on mechanisms whose epsilon is known."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from murmurcast.audits.bounds import (
    best_threshold,
    clopper_pearson_lower,
    clopper_pearson_upper,
    epsilon_lower_bound,
    measure,
    mu_lower_bound,
    smallest_cut,
)
from murmurcast.errors import Error
from murmurcast.privacy import gaussian


def rates_of_best_test(epsilon: float, mu: float) -> tuple[float, float]:
    """Of N(0, 1) against N(mu, 1): FPR and TPR where the likelihood ratio is e^epsilon."""
    threshold = epsilon / mu + mu / 2
    return float(norm.sf(threshold)), float(norm.sf(threshold - mu))


@pytest.mark.parametrize(("count", "trials"), [(1, 10), (3, 10), (9, 10), (40, 2000), (1999, 2000)])
def test_bounds_are_where_the_binomial_tail_is_what_is_left(count: int, trials: int) -> None:
    low, high = clopper_pearson_lower(count, trials, 0.975), clopper_pearson_upper(count, trials, 0.975)
    assert binom.sf(count - 1, trials, float(low)) == pytest.approx(0.025, rel=1e-9)
    assert binom.cdf(count, trials, float(high)) == pytest.approx(0.025, rel=1e-9)
    assert low < count / trials < high


def test_ends_have_closed_forms() -> None:
    assert clopper_pearson_lower(0, 50, 0.9) == 0
    assert clopper_pearson_upper(50, 50, 0.9) == 1
    assert clopper_pearson_upper(0, 50, 0.9) == pytest.approx(1 - 0.1 ** (1 / 50))
    assert clopper_pearson_lower(50, 50, 0.9) == pytest.approx(0.1 ** (1 / 50))


def test_perfect_guesses_show_about_the_log_of_the_trials() -> None:
    shown = float(epsilon_lower_bound(0, 4000, 4000, 1e-4))
    wrong = 1 - 0.025 ** (1 / 4000)
    assert shown == pytest.approx(np.log((1 - wrong - 1e-4) / wrong), rel=1e-12)
    assert shown == pytest.approx(np.log(4000 / 3.7), abs=0.01)


def test_both_directions_count_and_nothing_shown_is_zero() -> None:
    assert epsilon_lower_bound(1000, 1000, 2000, 1e-5) == 0
    assert epsilon_lower_bound(1200, 1000, 2000, 1e-5) == 0
    assert epsilon_lower_bound(1, 900, 2000, 1e-5) == pytest.approx(float(epsilon_lower_bound(1100, 1999, 2000, 1e-5)))
    assert epsilon_lower_bound(0, 1, 2000, 0.5) == 0


def test_less_is_shown_with_more_confidence_or_a_larger_delta() -> None:
    shown = [float(epsilon_lower_bound(10, 900, 1000, 1e-5, confidence)) for confidence in (0.5, 0.9, 0.95, 0.999)]
    assert shown == sorted(shown, reverse=True)
    shown = [float(epsilon_lower_bound(10, 900, 1000, delta)) for delta in (0.0, 0.01, 0.1, 0.5)]
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize(("mu", "delta"), [(0.3, 1e-5), (1.0, 0.05), (2.0, 1e-3)])
def test_bound_exceeds_the_truth_no_oftener_than_stated(mu: float, delta: float) -> None:
    """The test is the best one of the mechanism, where the bound comes nearest to the truth."""
    repetitions, trials, confidence = 300, 1000, 0.9
    truth = float(gaussian.epsilon(mu, delta))
    rng = np.random.default_rng(5)
    wrong, right = (rng.binomial(trials, rate, repetitions) for rate in rates_of_best_test(truth, mu))
    above = int((epsilon_lower_bound(wrong, right, trials, delta, confidence) > truth).sum())
    assert above <= binom.ppf(0.999, repetitions, 1 - confidence)


def test_threshold_chosen_on_half_of_the_trials_keeps_the_confidence() -> None:
    mu, delta, repetitions = 1.0, 1e-3, 300
    truth, rng = float(gaussian.epsilon(mu, delta)), np.random.default_rng(6)
    shown = np.array(
        [measure(rng.standard_normal(400), mu + rng.standard_normal(400), delta).epsilon for _ in range(repetitions)]
    )
    assert (shown > truth).sum() <= binom.ppf(0.999, repetitions, 0.05)
    assert np.median(shown) > 0.5


def test_gap_to_the_truth_shrinks_like_one_over_root_trials() -> None:
    mu, delta = 1.0, 0.02
    truth = float(gaussian.epsilon(mu, delta))
    wrong, right = rates_of_best_test(truth, mu)
    shown = [float(epsilon_lower_bound(round(n * wrong), round(n * right), n, delta)) for n in (10**4, 10**6, 10**8)]
    gaps = truth - np.array(shown)
    assert (gaps > 0).all()
    np.testing.assert_allclose(gaps[1:] / gaps[:-1], 0.1, rtol=0.2)


def test_many_trials_come_close() -> None:
    """As close as the two bounds of rates allow, and once more that for the luck of the counts."""
    mu, delta, trials = 1.0, 0.02, 20_000
    rng = np.random.default_rng(7)
    result = measure(rng.standard_normal(2 * trials), mu + rng.standard_normal(2 * trials), delta)
    truth = float(gaussian.epsilon(mu, delta))
    wrong, right = rates_of_best_test(truth, mu)
    slack = norm.ppf(0.975) * (np.sqrt(right * (1 - right) / trials) / (right - delta) + 1 / np.sqrt(trials * wrong))
    assert truth - 2 * slack < result.epsilon <= truth
    assert slack < 0.15 * truth


def test_threshold_is_the_best_of_its_own_trials() -> None:
    rng = np.random.default_rng(8)
    absent, present = rng.standard_normal(60), 1.5 + rng.standard_normal(60)
    threshold = best_threshold(absent, present, 1e-3)
    counts = [((absent > t).sum(), (present > t).sum()) for t in np.linspace(-4, 6, 2001)]
    most = max(float(epsilon_lower_bound(wrong, right, 60, 1e-3)) for wrong, right in counts)
    chosen = float(epsilon_lower_bound((absent > threshold).sum(), (present > threshold).sum(), 60, 1e-3))
    assert chosen == pytest.approx(most)


def test_counts_are_of_the_second_half() -> None:
    absent, present = np.array([0.0, 1.0, 5.0, 6.0, 7.0]), np.array([2.0, 3.0, 0.0, 0.0, 9.0])
    result = measure(absent, present, 1e-5)
    assert result.trials == 3
    assert result.false_positives == (absent[2:] > result.threshold).sum()
    assert result.true_positives == (present[2:] > result.threshold).sum()


def test_impossible_counts_are_errors() -> None:
    for count in (-1, 11):
        with pytest.raises(Error, match="count"):
            epsilon_lower_bound(count, 5, 10, 1e-5)
    with pytest.raises(Error, match="delta"):
        epsilon_lower_bound(1, 5, 10, -0.1)
    with pytest.raises(Error, match="confidence"):
        epsilon_lower_bound(1, 5, 10, 1e-5, confidence=1.0)
    with pytest.raises(Error, match="shapes"):
        measure(np.zeros(3), np.zeros(4), 1e-5)


def test_mu_is_refuted_by_accuracy() -> None:
    """2 Phi^-1 of the Clopper-Pearson bound; half right and less refutes nothing."""
    lower = float(clopper_pearson_lower(700, 1000, 0.95))
    assert mu_lower_bound(700, 1000, 0.95) == pytest.approx(2 * norm.ppf(lower))
    assert (mu_lower_bound([0, 300, 500], 1000, 0.95) == 0).all()


def test_mu_of_gaussian_worlds_is_bounded_at_the_confidence() -> None:
    rng, mu, trials = np.random.default_rng(4), 0.8, 2000
    result = mu_lower_bound(rng.binomial(trials, norm.cdf(mu / 2), size=4000), trials, 0.95)
    assert 0.03 < np.mean(result > mu) <= 0.055
    assert np.median(result) > 0.8 * mu


@pytest.mark.parametrize(("reached", "allowed"), [(0.5, 0.5), (0.3, 0.5), (2.0, 2.0)])
def test_the_smallest_cut_is_caught_9_times_out_of_10(reached: float, allowed: float) -> None:
    trials, confidence = 3000, 0.99
    share = smallest_cut(reached, allowed, trials, confidence)
    assert 0 < share < 1
    rng = np.random.default_rng(8)
    right = rng.binomial(trials, norm.cdf(reached / share / 2), size=4000)
    assert np.mean(mu_lower_bound(right, trials, confidence) > allowed) == pytest.approx(0.9, abs=0.02)


def test_no_cut_is_caught_where_nothing_can_be_refuted() -> None:
    assert smallest_cut(1.0, np.inf, 1000, 0.95) == 0.0
    assert smallest_cut(1.0, 50.0, 1000, 0.95) == 0.0
    assert smallest_cut(0.0, 1.0, 1000, 0.95) == 0.0
    assert smallest_cut(9.0, 1.0, 1000, 0.95) == 1.0
