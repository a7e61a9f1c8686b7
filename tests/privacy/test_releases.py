"""Releases: what they come to, by law; masks of stops and drops; what is refused."""

import numpy as np
import pytest
from scipy.stats import norm

from murmurcast.errors import Error
from murmurcast.privacy import discrete, gaussian, laplace
from murmurcast.privacy.conversion import after, curve_of, epsilon_of, mu_of
from murmurcast.privacy.releases import GAUSSIAN, LAPLACE, Law, Releases, nothing_released

RATIO = np.array([[0.0, 0.0, 0.0], [0.3, 0.1, 0.2], [0.4, 0.0, 0.1]])


def test_gaussian_releases_add_up_in_squares() -> None:
    result = mu_of(Releases(GAUSSIAN, RATIO, "everybody"))
    np.testing.assert_allclose(result, np.sqrt((RATIO**2).sum(axis=0)))
    np.testing.assert_allclose(epsilon_of(Releases(GAUSSIAN, RATIO, "everybody"), 1e-5), gaussian.epsilon(result, 1e-5))


def test_discrete_releases_count_rounding_and_the_sampler() -> None:
    releases = Releases(Law("discrete gaussian", dim=7), RATIO, "everybody")
    mu = np.sqrt((RATIO**2).sum(axis=0)) + discrete.rounding(7, 3)
    np.testing.assert_allclose(mu_of(releases), mu, rtol=1e-15)
    np.testing.assert_allclose(epsilon_of(releases, 1e-5), discrete.epsilon(mu, 1e-5, 21))
    assert (epsilon_of(releases, 1e-5) > epsilon_of(releases._replace(law=GAUSSIAN), 1e-5)).all()


def laplace_delta(ratio: float, epsilon: float) -> float:
    """Exact for one Laplace release of one number: max(0, 1 - e^((epsilon - ratio)/2))."""
    return max(0.0, 1 - float(np.exp((epsilon - ratio) / 2)))


@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0])
def test_laplace_bounds_hold_for_one_release_and_are_not_wild(ratio: float) -> None:
    releases = Releases(LAPLACE, np.array([[ratio]]), "everybody")
    (mu,) = laplace.mu(releases.ratio)
    exact_mu = -2 * norm.ppf(1 / (1 + np.exp(ratio)))  # of pure DP as Gaussian DP
    assert exact_mu <= mu <= 1.05 * exact_mu
    for delta in (1e-2, 1e-5):
        (epsilon,) = epsilon_of(releases, delta)
        assert laplace_delta(ratio, float(epsilon)) <= delta


def test_laplace_composes_no_worse_than_exact_accounting() -> None:
    """100 releases, against the privacy loss distribution of an independent library."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    ratio, delta = 0.1, 1e-5
    exact = pld.from_laplace_mechanism(1 / ratio, value_discretization_interval=1e-4).self_compose(100)
    (ours,) = epsilon_of(Releases(LAPLACE, np.full((100, 1), ratio), "everybody"), delta)
    truth = exact.get_epsilon_for_delta(delta)
    assert truth <= ours <= 1.25 * truth


def test_ends_are_masks() -> None:
    releases = Releases(GAUSSIAN, RATIO, "everybody")
    np.testing.assert_array_equal(releases.until(2).ratio, RATIO[:2])
    masked = releases.until([3, 1, 2]).ratio
    np.testing.assert_array_equal(masked, [[0, 0, 0], [0.3, 0, 0.2], [0.4, 0, 0]])


def test_what_is_not_hidden_is_infinite_and_nothing_is_nothing() -> None:
    open_ = Releases(GAUSSIAN, np.array([[0.0, 1.0], [np.inf, 1.0]]), "everybody")
    np.testing.assert_array_equal(np.isinf(epsilon_of(open_, 1e-5)), [True, False])
    np.testing.assert_array_equal(epsilon_of(nothing_released(3, 2), 1e-5), 0)


def test_what_was_released_before_adds_up_in_squares() -> None:
    releases = after(0.3, Releases(GAUSSIAN, RATIO, "everybody"))
    expected = np.sqrt((RATIO**2).sum(axis=0) + 0.09)
    np.testing.assert_allclose(mu_of(releases), expected)
    np.testing.assert_allclose(epsilon_of(releases, 1e-5), gaussian.epsilon(expected, 1e-5))
    np.testing.assert_allclose(mu_of(releases.until(2)), np.sqrt((RATIO[:2] ** 2).sum(axis=0) + 0.09))
    left = curve_of(releases).mu_of_steps(3.0, 1e-5)
    assert float(np.hypot(left, 0.3)) == pytest.approx(float(gaussian.mu(3.0, 1e-5)))


@pytest.mark.parametrize("law", [LAPLACE, Law("none"), Law("discrete gaussian", dim=3)])
def test_no_account_is_known_of_other_laws_after_a_release(law: Law) -> None:
    with pytest.raises(Error, match="released under Gaussian noise") as raised:
        after(0.3, Releases(law, RATIO, "everybody"))
    assert "centring" in raised.value.hint
    assert after(0.0, Releases(law, RATIO, "everybody")).before == 0
