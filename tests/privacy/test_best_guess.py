"""What a number means: the best chance of guessing right, from closed forms and from a simulated adversary."""

import math

import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.privacy import best_guess, gaussian
from murmurcast.privacy.conversion import Curve, curve, epsilon_of, mu_of
from murmurcast.privacy.releases import Law, Releases


def test_a_gaussian_mechanism_is_guessed_as_often_as_the_formula_says() -> None:
    generator = np.random.default_rng(3)
    for mu in (0.3, 1.0, 2.7):
        used = generator.random(400_000) < 0.5
        seen = generator.normal(size=used.size) + mu * used
        right = float(np.mean((seen > mu / 2) == used))  # the likelihood-ratio test, the best there is
        assert float(best_guess.of_mu(mu)) == pytest.approx(right, abs=0.004)


def test_randomised_response_is_guessed_as_often_as_pure_epsilon_says() -> None:
    # It answers truly with probability e^epsilon/(1 + e^epsilon); delta of it is answered truly for certain.
    for epsilon, delta in ((0.5, 0.0), (1.0, 0.1), (3.0, 1e-5)):
        truly = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert float(best_guess.of_epsilon(epsilon, delta)) == pytest.approx(delta + (1 - delta) * truly, rel=1e-12)


def test_nothing_learnt_is_a_coin_and_no_noise_is_certainty() -> None:
    assert float(best_guess.of_mu(0)) == float(best_guess.of_epsilon(0)) == 0.5
    assert (
        float(best_guess.of_mu(np.inf)) == float(best_guess.of_epsilon(5000)) == float(best_guess.of_epsilon(0, 1)) == 1
    )


def test_epsilon_and_delta_of_a_gaussian_mechanism_never_say_less_than_its_mu() -> None:
    for mu in (0.1, 0.7, 2.0, 5.0):
        for delta in (1e-9, 1e-5, 1e-2, 0.3):
            epsilon = float(gaussian.epsilon(mu, delta))
            assert float(best_guess.of_epsilon(epsilon, delta)) >= float(best_guess.of_mu(mu)) - 1e-12


def test_noise_on_a_grid_goes_by_its_own_bound() -> None:
    grid = curve("secure", 7, 30)
    assert float(best_guess.best_guess(1.0, Curve(), 1e-5)) == float(best_guess.of_mu(1.0))
    by_bound = best_guess.of_epsilon(grid.epsilon(1.0, 1e-5), 1e-5)
    assert float(best_guess.best_guess(1.0, grid, 1e-5)) == float(by_bound) > float(best_guess.of_mu(1.0))


def test_coins_leave_less_to_be_guessed_than_epsilon_or_mu_alone() -> None:
    """At the same epsilon hardly more than without coins, where the noise of an epoch is large."""
    sampled = Releases(Law("sampled gaussian", rates=(0.1,)), np.full((12, 1), 0.8), "everybody")
    (chance,) = best_guess.of_releases(sampled, 1e-5)
    (epsilon,) = epsilon_of(sampled, 1e-5)
    plain = float(best_guess.of_mu(gaussian.mu(epsilon, 1e-5)))
    assert plain * 0.98 < chance < plain * 1.02
    assert chance < float(best_guess.of_epsilon(epsilon, 1e-5)) - 0.1
    assert chance < float(best_guess.of_mu(mu_of(sampled)[0])) - 0.2


def test_where_nothing_hides_them_every_guess_may_be_right() -> None:
    bare = Releases(Law("sampled gaussian", rates=(0.1, 0.1)), np.array([[np.inf, 0.5]]), "everybody")
    first, second = best_guess.of_releases(bare, 1e-5)
    assert first == 1 > second > 0.5


def test_the_words_name_the_unit_and_round_up() -> None:
    assert "one record was used" in best_guess.in_words(0.5534, "record")
    assert "55.4 %" in best_guess.in_words(0.5534, "record")
    assert "one node's data" in best_guess.in_words(0.5, "node")


def test_what_is_no_promise_is_refused() -> None:
    with pytest.raises(Error):
        best_guess.of_mu(-1)
    with pytest.raises(Error):
        best_guess.of_epsilon(-0.1)
