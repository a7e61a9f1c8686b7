"""Floating-point noise tells data by its low bits; noise on a grid does not.

The game: a node says one number, and an observer who knows both candidates for its value guesses which it was.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Sending, State, send_model_with_noise
from murmurcast.algorithms.grid_noise import SendingOnGrid, send_on_grid
from murmurcast.engine import noise, secure
from murmurcast.engine.noise import Purpose
from murmurcast.privacy import discrete, gaussian

AMPLITUDE, NOISE, SCHEDULE = 0.7, 1.9, 0.6
STD = NOISE * SCHEDULE / AMPLITUDE
DRAWS = 40_000
SIZE = 2**23  # of the set of all float32 draws: they are made of 23 random bits


def seeded(seed: int) -> NDArray[np.float32]:
    key = noise.at_epoch(noise.roots((seed,))[0], Purpose.SIGNAL, 1)
    return np.asarray(noise.normal(noise.stream(key[None], DRAWS), 0, "float32"))


def say(value: float, drawn: NDArray[np.float32]) -> NDArray[np.float32]:
    """What Algorithm 1 really sends with seeded noise."""
    here = Sending(*map(jnp.float32, (AMPLITUDE, NOISE, SCHEDULE)))
    state = State(jnp.float32(value), jnp.float32(0))
    return np.asarray(jax.jit(lambda noise: send_model_with_noise(here, state, {"noise": noise}))(drawn))


def say_on_grid(value: float) -> FloatArray:
    """What Algorithm 1 really sends with secure noise, in steps of the grid."""
    with jax.enable_x64(True):
        spacing = float(discrete.spacing(STD))
        here = SendingOnGrid(1.0, NOISE, SCHEDULE, spacing)
        drawn = secure.draw(np.full(1, STD / spacing), DRAWS, secure.sources())[0]
        state = State(jnp.float64(value), jnp.float64(0))
        return np.asarray(send_on_grid(here, state, {"noise": jnp.asarray(drawn)})) / spacing


@pytest.fixture(scope="module")
def possible() -> NDArray[np.float32]:
    """All that can be said of the value 0: the engine's own formula for every one of its 2^23 draws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "threefry", lambda *words: (words[3] << jnp.uint32(9), jnp.zeros_like(words[3])))
        everything = noise.normal(noise.stream(jnp.zeros((1, 2), jnp.uint32), SIZE), 0, "float32")
    assert len(np.unique(everything)) == SIZE
    return np.unique(say(0.0, np.asarray(everything)))


@pytest.mark.parametrize("change", [1.0, 0.001])
def test_floating_point_noise_leaks_its_low_bits(change: float, possible: NDArray[np.float32]) -> None:
    """Is this a number that the value 0 can give? Real Gaussian noise would allow hardly any advantage."""
    said_of_zero, said_of_change = say(0.0, seeded(3)), say(change, seeded(4))
    advantage = np.isin(said_of_zero, possible).mean() - np.isin(said_of_change, possible).mean()
    allowed = float(gaussian.delta(0.0, change / STD))  # total variation: the best advantage there is
    assert advantage > 0.8
    assert advantage > 3 * allowed
    # The claim itself is refuted: epsilon 1 at this delta would need P(impossible for 0) <= e P(.| 0) + delta = delta.
    assert advantage > 30 * float(gaussian.delta(1.0, change / STD))


@pytest.mark.parametrize("change", [1.0, 0.001])
def test_the_grid_closes_it(change: float) -> None:
    """All integers are possible for both values, and low bits tell nothing."""
    zero, other = say_on_grid(0.0), say_on_grid(change)
    for said in (zero, other):
        assert np.array_equal(said, np.round(said))  # the same test: every number is one that 0 can give
    shift = round(change / float(discrete.spacing(STD)))
    assert np.abs(zero).max() + shift < discrete.REACH * 2**26  # supports overlap wherever anything is drawn
    for bits in (1, 4, 8):
        cells = [np.bincount(said.astype(np.int64) & (2**bits - 1), minlength=2**bits) for said in (zero, other)]
        # Train the best guess on one half of the cells' counts, play it on fresh draws.
        guess = cells[0] > cells[1]
        fresh = [say_on_grid(value).astype(np.int64) & (2**bits - 1) for value in (0.0, change)]
        advantage = float(guess[fresh[0]].mean() - guess[fresh[1]].mean())
        assert advantage < 5 * np.sqrt(0.5 / DRAWS)


def test_on_the_grid_the_best_test_stays_within_the_bound() -> None:
    """The likelihood ratio of discrete Gaussians is monotone, so a threshold is the best test there is."""
    for change in (0.1, 1.0):
        mu = change / STD + discrete.rounding(1, 2)
        zero, other = say_on_grid(0.0), say_on_grid(change)
        middle = change / float(discrete.spacing(STD)) / 2
        advantage = float((other > middle).mean() - (zero > middle).mean())
        error = 5 * np.sqrt(0.5 / DRAWS)
        assert advantage <= float(gaussian.delta(0.0, mu)) + error
        assert advantage >= float(gaussian.delta(0.0, mu)) - error  # and it learns what it may
        for delta in (1e-3, 0.1):
            epsilon = float(discrete.epsilon(mu, delta, 1))
            for edge in np.quantile(other, [0.5, 0.9, 0.99]):
                assert (other > edge).mean() <= np.exp(epsilon) * (zero > edge).mean() + delta + 2 * error
