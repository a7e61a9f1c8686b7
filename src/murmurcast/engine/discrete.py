"""Discrete Gaussian noise in integers, many at once, exact but for the last digits of an exponential.

The discrete Gaussian N_Z(0, sigma^2) takes the integer n with probability proportional to rho(n) = exp(-n^2 / (2
sigma^2)). Integers are proposed in blocks and accepted or not:

    1. One random word gives a block b of 2^21 integers y >= 0 (alias method), an offset within it, and a sign that
       makes n = y or n = -1 - y of it. A block is proposed with probability w_b / 2^42, exactly: w_b is an integer.
    2. n is accepted with probability a(n) = rho(n) / (c w_b). c is any number that keeps all of them below 1.

So n comes out with probability proportional to w_b a(n), hence to rho(n), whatever the weights are; good weights, those
of a slightly wider Gaussian, only save work. Step 2 compares a(n) with a uniform number of which as many bits are drawn
as it takes: 16 settle nearly all cases.

What is exact: blocks, offsets, signs, the comparison. What is bounded: a(n) is computed in float64, c aside to a
relative error of less than 4 x 128 + 16 roundings of 2^-53: four in the exponent, which is at most 128 because integers
beyond 16 sigma are never accepted. Made to add up to 1, probabilities are off by at most twice that, less than 2^-42.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray

Words = NDArray[np.uint64]
Source = Callable[[int], Words]  # so many random words of 64 bits

LEAST_STD = 2.0**26  # in integers; the largest is below twice as much
_COLUMN_BITS, _OFFSET_BITS, _SHARE_BITS = 10, 21, 32  # of a word, and one for the sign
_BLOCKS = 2**_COLUMN_BITS
_LARGEST_EXPONENT = 128.0  # 16 standard deviations
_PER_OCTAVE = 16  # proposals, each for stds up to 4.4 % below its own
_HAIR = 2.0**-40  # far above rounding, and of no influence on what comes out


class Proposals(NamedTuple):
    """How blocks are proposed; arrays [16 x 1024], one proposal after the other.

    Attributes:
        weight: c w_b. The integers w_b add up to 2^42 in every proposal.
        share: Of column b's 2^32 chances, how many are of block b itself.
        other: The block that has the rest of them.
    """

    weight: FloatArray
    share: Words
    other: NDArray[np.int64]


class _Rows(NamedTuple):
    """What every row needs; both [rows, 1], or one entry for each of some places.

    Attributes:
        proposal: Where its proposal begins.
        steepness: 1 / (2 sigma^2).
    """

    proposal: NDArray[np.int64]
    steepness: FloatArray


def draw(std: FloatArray, size: int, words: Source) -> NDArray[np.int64]:
    """[rows, size] integers of N_Z(0, std^2), each row with its own std.

    Args:
        std: [rows], 2^26 or more and below 2^27.
        size: How many for each row.
        words: Where random bits come from; unpredictable bits make unpredictable noise.

    Guarantees:
        Every integer's probability is that of the discrete Gaussian, up to a factor within exp(+-2^-42), or 0 beyond 16
        standard deviations: `murmurcast.privacy.discrete` counts both.
    """
    rows = _rows(std)
    found, accepted = _attempt(rows, (len(std), size), words)
    missing = np.flatnonzero(~accepted)
    flat = found.reshape(-1)
    while len(missing):
        row = missing // size
        flat[missing], accepted = _attempt(_Rows(*(part[row, 0] for part in rows)), missing.shape, words)
        missing = missing[~accepted]
    return found


def acceptance(std: float, integers: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """[integers] c w_b and a(n): their product is what an integer comes out in proportion to. For tests."""
    rows = _rows(np.full(1, std))
    weight = proposals().weight[rows.proposal[0, 0] + (np.where(integers < 0, ~integers, integers) >> _OFFSET_BITS)]
    return weight, _acceptance(rows.steepness[0], weight, integers)


def _attempt(rows: _Rows, shape: tuple[int, ...], words: Source) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One integer for every place, and whether it is accepted."""
    offered, count = proposals(), math.prod(shape)
    word = words(count).reshape(shape)
    signed = word.view(np.int64)
    column = signed & (_BLOCKS - 1)
    column += rows.proposal
    other = (word >> np.uint64(64 - _SHARE_BITS)) >= offered.share.take(column)
    place = np.where(other, offered.other.take(column), column)
    offset = (signed >> _COLUMN_BITS) & (2**_OFFSET_BITS - 1)
    sign = (signed << (63 - _COLUMN_BITS - _OFFSET_BITS)) >> 63  # 0 or -1, from the one bit that is left
    integers = (((place & (_BLOCKS - 1)) << _OFFSET_BITS) | offset) ^ sign  # y, or -1 - y
    chance = _acceptance(rows.steepness, offered.weight.take(place), integers)
    return integers, _below(chance, words)


def _acceptance(steepness: FloatArray, weight: FloatArray, integers: NDArray[np.int64]) -> FloatArray:
    """a(n) = rho(n) / (c w_b)."""
    exponent = np.square(integers, dtype=np.float64, casting="unsafe")
    exponent *= -steepness
    chance = np.exp(exponent)
    chance /= weight
    chance[exponent < -_LARGEST_EXPONENT] = 0
    return chance


def _below(chance: FloatArray, words: Source) -> NDArray[np.bool_]:
    """Whether uniform numbers are below chances; exact.

    The first 16 bits settle nearly all, the next 53 nearly all others. All differences here are exact: what is taken
    off a float has no finer digits than it.
    """
    first = words(-(-chance.size // 4)).view(np.uint16)[: chance.size].reshape(chance.shape)
    rest = chance * 2.0**16
    rest -= first
    below = rest >= 1
    unsure = np.flatnonzero((rest > 0) & ~below)
    rest, settled = rest.reshape(-1)[unsure], below.reshape(-1)
    while len(unsure):
        bits = (words(len(unsure)) >> np.uint64(11)).astype(np.float64)  # 53, as many as a float holds
        whole = np.floor(rest * 2.0**53)
        settled[unsure[bits < whole]] = True
        rest = rest * 2.0**53 - whole
        still = (bits == whole) & (rest > 0)
        unsure, rest = unsure[still], rest[still]
    return below


def _rows(std: FloatArray) -> _Rows:
    if not ((std >= LEAST_STD) & (std < 2 * LEAST_STD)).all():
        raise ValueError("std leaves 2^26 to 2^27")
    which = np.clip(np.floor(_PER_OCTAVE * np.log2(std / LEAST_STD)), 0, _PER_OCTAVE - 1).astype(np.int64)
    return _Rows((which * _BLOCKS)[:, None], (1 / (2 * std * std))[:, None])


@cache
def proposals() -> Proposals:
    """All proposals: Gaussians of std 2^26 times 2^(1/16), 2^(2/16), ... 2, cut to integers."""
    parts = [_proposal(LEAST_STD * 2.0 ** ((number + 1) / _PER_OCTAVE)) for number in range(_PER_OCTAVE)]
    weight, share, other = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    begins = np.repeat(np.arange(_PER_OCTAVE) * _BLOCKS, _BLOCKS)
    return Proposals(weight, share, other + begins)


def _proposal(std: float) -> tuple[FloatArray, Words, NDArray[np.int64]]:
    """Weights, and Walker's alias tables in Vose's way, all in integers."""
    total = _BLOCKS << _SHARE_BITS
    density = np.exp(-((np.arange(_BLOCKS) * 2.0**_OFFSET_BITS) ** 2) / (2 * std * std))
    weight = np.ceil(density / density.sum() * (total - 2 * _BLOCKS)).astype(np.int64).clip(1)
    weight[0] += total - weight.sum()
    left = [int(value) for value in weight]
    share, other = [1 << _SHARE_BITS] * _BLOCKS, list(range(_BLOCKS))
    small = [block for block in range(_BLOCKS) if left[block] < 1 << _SHARE_BITS]
    large = [block for block in range(_BLOCKS) if left[block] >= 1 << _SHARE_BITS]
    while small:
        poor, rich = small.pop(), large[-1]
        share[poor], other[poor] = left[poor], rich
        left[rich] -= (1 << _SHARE_BITS) - left[poor]
        if left[rich] < 1 << _SHARE_BITS:
            small.append(large.pop())
    # Narrower Gaussians fall faster from block to block, so c is good for all of them.
    scale = float((density / weight).max()) * (1 + _HAIR)
    return weight * scale, np.array(share, np.uint64), np.array(other, np.int64)
