"""Intervals over seeds, against closed forms, against scipy's tests, and by how often they hold the truth."""

import numpy as np
import pytest
from scipy import stats

from murmurcast.runs.over_seeds import Difference, difference, half_width, interval


def by_seed(values: "list[float] | np.ndarray[tuple[int], np.dtype[np.float64]]", first: int = 0) -> dict[int, float]:
    return {first + at: float(value) for at, value in enumerate(values)}


def test_two_seeds_by_hand() -> None:
    """Mean 0.75, standard error 0.05, and 12.706 standard errors with one degree of freedom."""
    result = interval(np.array([0.8, 0.7]))
    assert result is not None
    assert result == pytest.approx((0.75 - 12.7062 * 0.05, 0.75 + 12.7062 * 0.05), rel=1e-5)
    assert half_width(result) == pytest.approx(0.63531, rel=1e-4)


def test_one_seed_has_no_interval() -> None:
    assert interval(np.array([0.8])) is None
    assert difference({3: 0.8}, {3: 0.5}) == Difference(pytest.approx(0.3), None, True)  # type: ignore[arg-type]
    assert difference({3: 0.8}, {4: 0.5, 5: 0.7}).interval is None
    assert difference({3: 0.8, 4: 0.6}, {4: 0.5}).interval is None


def test_the_same_seeds_are_paired_in_any_order() -> None:
    rng = np.random.default_rng(1)
    shared, ours, rival = rng.normal(0, 5, 6), rng.normal(1.0, 0.1, 6), rng.normal(0.6, 0.1, 6)
    one, first = by_seed(shared + ours), by_seed(shared + rival)
    result = difference(one, dict(reversed(first.items())))
    expected = stats.ttest_rel(list(one.values()), list(first.values())).confidence_interval(0.95)
    assert result.paired
    assert result.interval == pytest.approx((expected.low, expected.high))
    assert result.mean == pytest.approx(float((ours - rival).mean()))
    # What seeds share cancels: not paired, nothing could be seen.
    apart = difference(one, by_seed(shared + rival, first=100))
    assert result.interval is not None
    assert apart.interval is not None
    assert half_width(result.interval) < 0.05 * half_width(apart.interval)


def test_other_seeds_are_not_paired() -> None:
    rng = np.random.default_rng(2)
    values, others = rng.normal(0, 1, 5), rng.normal(1, 3, 9)
    result = difference(by_seed(values), by_seed(others, first=3))
    expected = stats.ttest_ind(values, others, equal_var=False).confidence_interval(0.95)
    assert not result.paired
    assert result.interval == pytest.approx((expected.low, expected.high))


def test_runs_without_any_spread_differ_exactly() -> None:
    same = difference(by_seed([0.5, 0.5]), by_seed([0.25, 0.25], first=7))
    assert same == Difference(0.25, (0.25, 0.25), False)
    assert difference(by_seed([0.5, 0.5]), by_seed([0.25, 0.25])).interval == (0.25, 0.25)


def test_runs_that_diverged_have_no_numbers_and_no_warning() -> None:
    assert difference(by_seed([1e200, 2e200]), by_seed([0.0, 1.0], first=5)).mean == 1.5e200  # squares overflow
    for values in ([np.nan, 1.0], [np.inf, 1.0], [np.inf, -np.inf]):
        result = interval(np.array(values))
        assert result is not None
        assert not np.isfinite(result).all()
        assert not np.isfinite(difference(by_seed(values), by_seed([0.0, 1.0])).mean)
        assert not np.isfinite(difference(by_seed(values), by_seed([0.0, 1.0], first=5)).mean)


@pytest.mark.parametrize("seeds", [2, 4, 9])
def test_intervals_hold_the_truth_19_times_of_20(seeds: int) -> None:
    """Of normal draws; with a normal quantile instead of Student's, 2 seeds would hold it 7 times of 10."""
    rng = np.random.default_rng(seeds)
    trials = 4000
    kept = 0
    for draws in rng.normal(3.0, 2.0, (trials, seeds)):
        result = interval(draws)
        assert result is not None
        kept += result[0] <= 3.0 <= result[1]
    assert abs(kept / trials - 0.95) < 4 * (0.95 * 0.05 / trials) ** 0.5
