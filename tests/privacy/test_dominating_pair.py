"""Coins and Gaussian noise: the pair of worlds that is counted with is the worst, and composes with what else there is.

Everything is integrated on grids here, without privacy loss distributions.
"""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from murmurcast.privacy import gaussian, sampling
from murmurcast.privacy.sampling import Part, epsilon, parts_of

EPSILONS = (0.05, 0.3, 1.0, 2.0)
DELTA = 1e-3


def on_grid(std: float) -> tuple[np.ndarray, float]:
    axis = np.linspace(-1 - 6 * std, 1 + 6 * std, 401)
    return axis, float(axis[1] - axis[0])


def mixture(rate: float, centre: tuple[float, float], std: float) -> np.ndarray:
    """[grid, grid] the density of a record that joins by a coin and then moves the sum to `centre`."""
    axis, _ = on_grid(std)

    def at(place: tuple[float, float]) -> np.ndarray:
        return np.outer(norm.pdf(axis, place[0], std), norm.pdf(axis, place[1], std))

    return np.asarray((1 - rate) * at((0.0, 0.0)) + rate * at(centre))


def hockey_stick(one: np.ndarray, other: np.ndarray, at: float, step: float) -> float:
    return float(np.maximum(one - np.exp(at) * other, 0).sum() * step**2)


@pytest.mark.parametrize(("rate", "std"), [(0.1, 0.6), (0.4, 1.0), (0.9, 0.8)])
def test_no_two_records_are_told_apart_better_than_opposite_ones(rate: float, std: float) -> None:
    """Whatever the projection makes of them: moves of any length up to g = 1, at any angle, in both orders.

    By Jensen's order: given the lengths, the likelihood ratio is a sum of two log-normal numbers, the wider spread the
    more they go together; and each is wider spread the longer its move is.
    """
    rng = np.random.default_rng(3)
    _, step = on_grid(std)
    worst = {at: hockey_stick(mixture(rate, (-1, 0), std), mixture(rate, (1, 0), std), at, step) for at in EPSILONS}
    lengths, angles = rng.random((14, 2)) ** 0.3, rng.uniform(0, np.pi, 14)
    lengths[:6], angles[:4] = 1.0, (np.pi, 3.0, 2.5, 2.0)
    reached = 0.0
    for (first, second), angle in zip(lengths, angles, strict=True):
        one = mixture(rate, (-first, 0.0), std)
        other = mixture(rate, (-second * np.cos(angle), second * np.sin(angle)), std)
        for at, most in worst.items():
            for pair in ((one, other), (other, one)):
                result = hockey_stick(*pair, at, step)
                assert result <= most * (1 + 2e-3) + 1e-7  # what the grid leaves open
                reached = max(reached, result / most)
    assert reached == pytest.approx(1.0, abs=3e-3)  # the opposite pair is among them


def exact_delta(parts: tuple[Part, Part], at: float) -> float:
    """Of two releases of two kinds together, each along an axis of its own, by an integral over both."""
    axis = np.linspace(-14, 14, 1601)
    step = float(axis[1] - axis[0])
    worlds = []
    for sign in (-1, 1):
        densities = [
            (1 - part.rate) * norm.pdf(axis) + part.rate * norm.pdf(axis, sign * part.ratio / 2) for part in parts
        ]
        worlds.append(np.outer(*densities))
    return hockey_stick(worlds[0], worlds[1], at, step)


@pytest.mark.parametrize(
    "parts",
    [
        (Part(0.2, 1.5, 1), Part(1.0, 0.4, 1)),  # an epoch, and what was released before training
        (Part(0.1, 2.5, 1), Part(0.5, 1.0, 1)),  # two epochs of two runs
        (Part(1.0, 0.7, 1), Part(1.0, 0.4, 1)),
    ],
)
def test_two_releases_together_cost_what_their_integral_says(parts: tuple[Part, Part]) -> None:
    result = epsilon(parts, DELTA)
    assert exact_delta(parts, result) <= DELTA * (1 + 1e-4)  # never too small
    assert exact_delta(parts, result * 0.98) > DELTA  # and hardly too large
    assert epsilon(parts[::-1], DELTA) == pytest.approx(result, rel=1e-6)


def test_what_was_released_before_is_one_gaussian_release() -> None:
    """mu^2 = mu_1^2 + mu_2^2, inside the privacy loss distribution as outside of it."""
    epochs = parts_of(0.1, np.full(12, 1.1))
    apart = epsilon((*epochs, Part(1.0, 0.2, 1), Part(1.0, 0.45, 1)), 1e-5)
    together = epsilon((*epochs, Part(1.0, float(np.hypot(0.2, 0.45)), 1)), 1e-5)
    assert together == pytest.approx(apart, rel=2e-3)
    assert together > epsilon(epochs, 1e-5)
    assert together > float(gaussian.epsilon(np.hypot(0.2, 0.45), 1e-5))


@pytest.mark.slow
def test_it_costs_more_with_every_coin_epoch_and_ratio() -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        rate, ratio, times = float(rng.uniform(0.02, 0.8)), float(rng.uniform(0.05, 2)), int(rng.integers(1, 60))
        here = epsilon((Part(rate, ratio, times),), 1e-5)
        above = (
            Part(min(1.0, rate * 1.2), ratio, times),
            Part(rate, ratio * 1.1, times),
            Part(rate, ratio, times + max(1, times // 5)),
        )
        for part in above:
            assert epsilon((part,), 1e-5) > here
        assert here <= float(gaussian.epsilon(ratio * np.sqrt(times), 1e-5)) * (1 + 1e-3)  # the plain bound holds too


def dropping(place: int, value: float, rate: float, room: int, std: float, x: float) -> float:
    """The density of the sum of three records, one of them of this value; whoever finds no room is left out."""
    values = [0.7, -0.2, 0.5]
    values[place] = value
    total = 0.0
    for coins in itertools.product((0, 1), repeat=3):
        joined = [one for one, coin in zip(values, coins, strict=True) if coin][:room]
        total += float(np.prod([rate if coin else 1 - rate for coin in coins])) * norm.pdf(x, sum(joined), std)
    return float(total)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.slow
def test_records_that_find_no_room_are_counted(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All outcomes of all coins: the real mechanism, which leaves the last out, keeps what is said of it."""
    monkeypatch.setattr(sampling, "OVERFLOW_SHARE", 0.5)
    rate, std, room, delta = 0.15, 0.9, 2, 0.03
    overflow = rate**3  # all three join
    result = epsilon((Part(rate, 2 / std, 1),), delta, overflow)
    assert 0 < result < np.inf
    for one, other in ((1.0, -1.0), (-1.0, 1.0)):

        def excess(x: float, one: float = one, other: float = other) -> float:
            here, there = (dropping(place, value, rate, room, std, x) for value in (one, other))
            return max(0.0, here - float(np.exp(result)) * there)

        assert quad(excess, -9, 9, limit=300)[0] <= delta
    with_much = epsilon((Part(rate, 2 / std, 1),), delta, 10 * overflow)
    assert with_much == np.inf  # more than the share that room may take
