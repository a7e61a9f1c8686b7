"""Records that join by coins: exact integrals, no coins, one coin more, several runs, and room that runs out."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from murmurcast.privacy import gaussian, sampling
from murmurcast.privacy.conversion import EXACT, curve_of, epsilon_of, joined, mu_of
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases
from murmurcast.privacy.sampling import Part, epsilon, largest_factor, parts_of

DELTA = 1e-5


def exact_delta(rate: float, ratio: float, at: float) -> float:
    """Of one release: the integral of max(0, P - e^epsilon Q), the worlds at -1 and +1 under noise of 2 over ratio."""
    std = 2 / ratio

    def density(x: float, centre: float) -> float:
        return float((1 - rate) * norm.pdf(x, 0, std) + rate * norm.pdf(x, centre, std))

    def excess(x: float) -> float:
        return max(0.0, density(x, -1.0) - float(np.exp(at)) * density(x, 1.0))

    return float(quad(excess, -1 - 12 * std, 1 + 12 * std, limit=400, epsabs=1e-13)[0])


@pytest.mark.parametrize(("rate", "ratio", "delta"), [(0.1, 2.0, 1e-3), (0.3, 0.8, 1e-3), (0.03, 3.0, 1e-4)])
def test_one_release_costs_what_its_integral_says(rate: float, ratio: float, delta: float) -> None:
    result = epsilon((Part(rate, ratio, 1),), delta)
    assert exact_delta(rate, ratio, result) <= delta * (1 + 1e-6)  # never too small
    assert exact_delta(rate, ratio, result * 0.99) > delta  # and hardly too large


@pytest.mark.parametrize(("ratio", "times"), [(0.25, 200), (0.02, 50), (1.0, 3)])
def test_without_coins_it_is_the_gaussian_curve(ratio: float, times: int) -> None:
    """q = 1: sensitivity 2 C over the noise."""
    expected = float(gaussian.epsilon(ratio * np.sqrt(times), DELTA))
    result = epsilon(parts_of(1.0, np.full(times, ratio)), DELTA)
    assert expected * (1 - 1e-9) <= result <= expected * (1 + 1e-3)


def test_rarer_coins_hide_more_and_more_releases_cost_more() -> None:
    costs = [epsilon(parts_of(rate, np.full(20, 0.5)), DELTA) for rate in (0.05, 0.2, 0.7, 1.0)]
    assert costs == sorted(costs)
    assert costs[0] < 0.2 * costs[-1]
    assert epsilon(parts_of(0.2, np.full(40, 0.5)), DELTA) > costs[1]


def test_ratios_that_are_nearly_the_same_are_counted_as_the_largest() -> None:
    ratios = np.array([0.0, 0.3, 0.3 * (1 - 5e-4), 0.1])
    assert parts_of(0.2, ratios) == (Part(0.2, 0.3, 2), Part(0.2, 0.1, 1))


def test_a_budget_is_met_and_hardly_missed() -> None:
    shares = parts_of(0.1, np.full(30, 30**-0.5))
    before = (Part(1.0, 0.05, 1),)
    factor = largest_factor(shares, 1.0, DELTA, before, overflow=1e-12)
    result = epsilon((*sampling.scaled(shares, factor), *before), DELTA, 1e-12)
    assert 0.9999 <= result <= 1.0
    assert largest_factor(shares, 1.0, DELTA, (Part(1.0, 5.0, 1),)) == 0  # what is fixed costs more than that


@pytest.mark.parametrize(("budget", "before", "overflow"), [(0.05, 0.01, 0.0), (7.0, 0.01, 0.0), (1.0, 0.2632, 1e-12)])
def test_budgets_are_met_to_a_millionth(budget: float, before: float, overflow: float) -> None:
    """Small ones, large ones, and one of which what is fixed takes nearly all."""
    shares, fixed = (Part(0.2, 0.5, 4), Part(0.2, 0.1, 2)), (Part(1.0, before, 1),)
    factor = largest_factor(shares, budget, DELTA, fixed, overflow)
    met = epsilon((*sampling.scaled(shares, factor), *fixed), DELTA, overflow)
    assert budget * (1 - 2e-6) <= met <= budget


@pytest.mark.slow
def test_room_sets_the_limit_where_it_runs_out_before_the_budget() -> None:
    """Overflow costs more than its share of delta from some epsilon on, which is below the budget."""
    shares = (Part(0.2, 0.5, 4),)
    limit = np.log(sampling.OVERFLOW_SHARE * DELTA / 1e-9 - 1)
    factor = largest_factor(shares, 5.0, DELTA, overflow=1e-9)
    assert epsilon(sampling.scaled(shares, factor), DELTA, 1e-9) == pytest.approx(limit, rel=1e-3)
    assert epsilon(sampling.scaled(shares, factor * 1.001), DELTA, 1e-9) == np.inf


def test_room_that_runs_out_is_counted() -> None:
    parts = (Part(0.1, 0.5, 10),)
    without, with_some, with_much = (epsilon(parts, DELTA, overflow) for overflow in (0.0, 1e-12, 1e-8))
    assert without < with_some < without * 1.001
    assert with_much == np.inf
    assert epsilon((Part(0.1, np.inf, 1),), DELTA) == np.inf
    assert epsilon((), DELTA) == 0


RATIO = np.array([[0.0, 0.0], [0.4, 0.9], [0.4, 0.5]])
SAMPLED = Law("sampled gaussian", rates=(0.2, 0.5), overflow=1e-20)


def test_releases_have_the_plain_mu_and_a_smaller_epsilon() -> None:
    releases = Releases(SAMPLED, RATIO, "everybody")
    plain = releases._replace(law=GAUSSIAN)
    np.testing.assert_allclose(mu_of(releases), mu_of(plain))
    cost = epsilon_of(releases, DELTA)
    assert (cost < epsilon_of(plain, DELTA)).all()
    for node in range(2):
        alone = epsilon(parts_of(SAMPLED.rates[node], RATIO[:, node]), DELTA, 3e-20)
        assert cost[node] == pytest.approx(alone, rel=1e-6)
    curve = curve_of(releases)
    assert float(curve.epsilon(mu_of(releases)[1], DELTA)) >= cost[1]  # of one number, the worst node that has it


def test_what_was_released_before_is_added() -> None:
    releases = Releases(SAMPLED._replace(rates=(1.0, 1.0)), RATIO, "everybody", before=0.3)
    mu = np.sqrt((RATIO**2).sum(axis=0) + 0.3**2)
    np.testing.assert_allclose(mu_of(releases), mu)
    np.testing.assert_allclose(epsilon_of(releases, DELTA), gaussian.epsilon(mu, DELTA), rtol=2e-3)
    allowed = curve_of(releases).mu_of_steps(3.0, DELTA)
    np.testing.assert_allclose(np.hypot(allowed, 0.3), gaussian.mu(3.0, DELTA), rtol=2e-3)


def test_runs_together_keep_what_coins_hide() -> None:
    one = Releases(SAMPLED, RATIO, "everybody", before=0.1)
    other = Releases(GAUSSIAN, RATIO / 2, "everybody")
    mus = [mu_of(one), mu_of(other)]
    total = np.sqrt(np.sum(np.square(mus), axis=0))
    together = joined([curve_of(one), EXACT], mus).epsilon(total, DELTA)
    assert (together > epsilon_of(one, DELTA)).all()
    assert (together < gaussian.epsilon(total, DELTA)).all()
    for node in range(2):
        parts = (*parts_of(SAMPLED.rates[node], RATIO[:, node]), Part(1.0, float(np.hypot(0.1, mus[1][node])), 1))
        assert together[node] == pytest.approx(epsilon(parts, DELTA, 3e-20), rel=1e-4)
    assert joined([EXACT, EXACT], mus) == EXACT
