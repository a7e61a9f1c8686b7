"""The sampler of discrete Gaussian noise: its probabilities in exact arithmetic, and what it draws."""

from decimal import Decimal, localcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from murmurcast._check import FloatArray
from murmurcast.engine import discrete
from murmurcast.engine.discrete import RandomWords, Words
from murmurcast.privacy.discrete import FINENESS, REACH, SAMPLER_ERROR

STDS = (2.0**26, 2.0**26 * 1.0442, 1.3 * 2.0**26, 2.0**26.5, np.nextafter(2.0**27, 0))
WIDTH = 2**22


def words(seed: int) -> RandomWords:
    generator = np.random.default_rng(seed)

    def draw(count: int) -> Words:
        return generator.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)

    return draw


def drawn_from(std: float, size: int, seed: int) -> FloatArray:
    result = np.empty((1, size))
    discrete.fill(result, np.full(1, std), words(seed))
    return np.asarray(result[0])


def slots_of(std: float) -> NDArray[np.int64]:
    """[blocks] how many of all slots are a block's."""
    return np.asarray(np.bincount(discrete.proposals().block[discrete.rows_of(np.full(1, std)).which[0]]))


def word_of(std: float, integers: NDArray[np.int64], first: int = 0) -> NDArray[np.int64]:
    """A word for each integer: the first slot of its block, its offset and sign, and the given first bits."""
    y = np.where(integers < 0, ~integers, integers)
    slot = np.concatenate([[0], np.cumsum(slots_of(std))])[y // WIDTH]
    return np.asarray(slot | ((y % WIDTH) << 16) | (np.where(integers < 0, 1, 0) << 38) | (np.int64(first) << 39))


def chances(library: Any, std: float, integers: NDArray[np.int64]) -> FloatArray:
    """a(n) as the compiled program (jax) or the one for second attempts (numpy) has it; the integers must come out."""
    rows, word = discrete.rows_of(np.full(1, std)), word_of(std, integers)[None]
    with jax.enable_x64(True):
        if library is jnp:
            result, rest = discrete.propose(jnp.asarray(word), rows, discrete._on_device())
        else:
            result, rest = discrete._propose(np, word, rows, discrete.proposals())
    assert np.array_equal(np.asarray(result)[0], integers.astype(np.float64))
    return np.asarray(np.asarray(rest)[0] / 2**discrete.FIRST_BITS)


def picked(std: float) -> NDArray[np.int64]:
    """Integers near 0, at both ends of blocks, out to the end, of both signs."""
    generator = np.random.default_rng(7)
    end = len(slots_of(std)) * WIDTH
    edges = np.arange(0, end, 3 * WIDTH)
    near = (generator.standard_normal(300) * std).astype(np.int64)
    within = generator.integers(-end, end, 300)
    return np.concatenate([np.arange(-3, 4), near, within, edges, edges + WIDTH - 1, -1 - edges, [end - 1, -end]])


def test_the_sampler_and_the_account_mean_the_same_noise() -> None:
    assert 2.0**FINENESS == discrete.LEAST_STD
    assert discrete._REACH == REACH


@pytest.mark.parametrize("library", [jnp, np], ids=["compiled", "numpy"])
@pytest.mark.parametrize("std", STDS)
def test_probabilities_are_those_of_the_discrete_gaussian(std: float, library: Any) -> None:
    """Slots times acceptance against rho(n), in 50 digits: the same up to one common factor and half the stated error.

    The error of the sum of all is at most that of one, so the probabilities themselves are within the stated error.
    """
    integers = picked(std)
    chance, slots = chances(library, std, integers), slots_of(std)[np.where(integers < 0, ~integers, integers) // WIDTH]
    assert ((chance > 0) & (chance <= 1)).all()
    with localcontext() as context:
        context.prec = 50
        logs = [
            (int(count) * Decimal(float(a))).ln() + Decimal(int(n)) ** 2 / (2 * Decimal(std) ** 2)
            for n, count, a in zip(integers, slots, chance, strict=True)
        ]
        spread = max(logs) - min(logs)  # c is common to all
    assert spread <= Decimal(SAMPLER_ERROR / 2)


@pytest.mark.parametrize("std", STDS)
def test_blocks_reach_as_far_as_they_must_and_no_farther_than_is_counted(std: float) -> None:
    slots = slots_of(std)
    assert slots.sum() == 2**16
    assert slots.min() >= 1
    assert REACH * std <= len(slots) * WIDTH <= 16.95 * std
    roundings = 4 * 16.95**2 / 2 + 16
    assert 2 * roundings * 2.0**-53 <= SAMPLER_ERROR
    assert chances(np, std, np.arange(16) * WIDTH).min() > 0.5  # few are proposed in vain


def test_words_are_made_of_disjoint_bits() -> None:
    """Slot, offset, sign and first bits; y and -1 - y reach every integer once."""
    std, integers = STDS[0], np.array([0, -1, 1, -2, WIDTH - 1, -WIDTH, WIDTH, -WIDTH - 1, 5 * WIDTH + 12345])
    rows = discrete.rows_of(np.full(1, std))
    for first in (0, 1, 2**25 - 1):
        result, rest = discrete._propose(np, word_of(std, integers, first)[None], rows, discrete.proposals())
        assert np.array_equal(result[0], integers.astype(np.float64))
        np.testing.assert_allclose(rest[0] + first, chances(np, std, integers) * 2**25, rtol=1e-15)


@pytest.mark.parametrize(
    ("rest", "next_words", "expected"),
    [
        (1.0, [], True),
        (17.5, [], True),
        (0.0, [], False),
        (-0.5, [], False),
        (0.25, [2**62 - 2**11], True),
        (0.25, [2**62], False),
        (2.0**-53, [0], True),
        (2.0**-53, [2**11], False),
        (2.0**-54, [0, 2**62], True),  # undecided once: 0 against a half
        (2.0**-54, [0, 2**63], False),
        (2.0**-200, [0, 0, 0, 2**63], False),
    ],
)
def test_comparison_takes_as_many_bits_as_it_needs(rest: float, next_words: list[int], expected: bool) -> None:
    given = iter(next_words)
    result = discrete.below(np.array([rest]), lambda count: np.array([next(given)] * count, np.uint64))
    assert result.tolist() == [expected]
    assert next(given, None) is None


def chi_square(drawn: FloatArray, std: float) -> float:
    """The p-value of standardised draws in 200 cells of equal probability."""
    edges = stats.norm.ppf(np.linspace(0, 1, 201)[1:-1])
    counts = np.bincount(np.searchsorted(edges, drawn / std), minlength=200)
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("std", STDS)
def test_draws_have_the_promised_distribution_and_a_wrong_scale_is_noticed(std: float) -> None:
    """At 2^26 integers per standard deviation, cells of the real Gaussian are those of the discrete one."""
    drawn = drawn_from(std, 400_000, 11)
    assert chi_square(drawn, std) > 1e-4
    assert chi_square(drawn, std * 1.02) < 1e-10
    assert chi_square(drawn + 0.03 * std, std) < 1e-10


def test_low_bits_are_uniform_and_independent_of_the_sign() -> None:
    drawn = drawn_from(1.7 * 2.0**26, 400_000, 5).astype(np.int64)
    for shift in (0, 7, 14):
        cells = ((drawn >> shift) & 127) + 128 * (drawn >= 0)
        assert stats.chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-4


def test_rows_have_their_own_scale() -> None:
    std = np.geomspace(2.0**26, 2.0**27 * 0.999, 50)
    drawn = np.empty((50, 4000))
    discrete.fill(drawn, std, words(3))
    result = drawn.std(axis=1) / std
    assert np.abs(result - 1).max() < 5 / np.sqrt(2 * 4000)
    assert np.abs(np.asarray(np.corrcoef(drawn))[np.triu_indices(50, 1)]).max() < 6 / np.sqrt(4000)


@pytest.mark.parametrize("std", [2.0**26 * 0.99, 2.0**27, np.nan])
def test_other_scales_are_refused(std: float) -> None:
    with pytest.raises(ValueError, match="2\\^26"):
        drawn_from(std, 3, 0)
