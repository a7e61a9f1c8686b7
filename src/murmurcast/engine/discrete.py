"""Discrete Gaussian noise in integers, many at once, exact but for the last digits of an exponential.

The discrete Gaussian N_Z(0, sigma^2) takes the integer n with probability proportional to rho(n) = exp(-n^2 / (2
sigma^2)). Integers are proposed in blocks and accepted or not:

    1. One random word gives a block b of 2^22 integers y >= 0, an offset within it, and a sign that makes n = y or n =
       -1 - y of it. Of 2^16 slots w_b are the block's, so it is proposed with probability w_b / 2^16, exactly.
    2. n is accepted with probability a(n) = rho(n) / (c w_b). c is any number that keeps all of them below 1.

So n comes out with probability proportional to w_b a(n), hence to rho(n), whatever the numbers w_b are; good ones,
those of a slightly wider Gaussian, only save work. Step 2 compares a(n) with a uniform number of which as many bits are
drawn as it takes: the 25 that are left of the word settle nearly all cases.

What is exact: blocks, offsets, signs, the comparison. What is bounded: a(n) is computed in float64, c aside to a
relative error of less than 4 x 144 + 16 roundings of 2^-53: four in the exponent, which is at most 144 because no block
lies farther out than 16.95 sigma; every one up to 16 sigma is there. Made to add up to 1, probabilities are off by at
most twice that, less than 2^-42. This takes `exp` to be within 8 roundings, as tests find it, in XLA and in NumPy.
"""

from functools import cache
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast._check import FloatArray

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Leaf = Any  # an array of NumPy, or of JAX inside the compiled program

LEAST_STD = 2.0**26  # in integers; the largest is below twice as much
SLOT_BITS, OFFSET_BITS, FIRST_BITS = 16, 22, 25  # of a word, lowest first; the sign stands before the last of them
_REACH = 16  # standard deviations that blocks must cover
_PER_OCTAVE = 16  # proposals, each for stds up to 4.4 % below its own
_HAIR = 2.0**-40  # far above rounding, and of no influence on what comes out


class RandomWords(Protocol):
    """Where random bits come from; unpredictable bits make unpredictable noise."""

    def __call__(self, count: int, /) -> Words:
        """[count] words of 64 random bits."""
        ...


class Proposals(NamedTuple):
    """How blocks are proposed, to Gaussians of std 2^26 times 2^(1/16), 2^(2/16), ... 2, and down to 4.4 % below.

    Attributes:
        block: [16, 2^16] whose slot it is.
        scale: [16, blocks] 2^25 / (c w_b).
    """

    block: Leaf
    scale: Leaf


class Rows(NamedTuple):
    """What every row, or every place, needs of its Gaussian.

    Attributes:
        which: The number of its proposal.
        slope: -1 / (2 sigma^2).
    """

    which: Leaf
    slope: Leaf


def fill(out: FloatArray, std: FloatArray, words: RandomWords) -> None:
    """Fills [rows, size] with integers of N_Z(0, std^2), as floats that hold them exactly; each row has its own std.

    Args:
        out: [rows, size] what to fill.
        std: [rows], 2^26 or more and below 2^27.
        words: Where random bits come from; unpredictable bits make unpredictable noise.

    Guarantees:
        Every integer's probability is that of the discrete Gaussian, up to a factor within exp(+-2^-42), or 0 somewhere
        beyond 16 standard deviations: `murmurcast.privacy.discrete` counts both.
    """
    rows = rows_of(std)
    with jax.enable_x64(True):
        word = words(out.size).view(np.int64).reshape(out.shape)
        integers, rest = map(np.asarray, propose(word, rows, _on_device()))
    out[...] = integers
    missing = _refused(rest, words)
    size = out.shape[1]
    while len(missing):
        these = Rows(*(part[missing // size] for part in rows))
        again, rest = _propose(np, words(len(missing)).view(np.int64), these, proposals())
        out[missing // size, missing % size] = again
        missing = missing[_refused(rest, words)]


def rows_of(std: FloatArray) -> Rows:
    """[rows] what rows of these standard deviations need."""
    if not ((std >= LEAST_STD) & (std < 2 * LEAST_STD)).all():
        raise ValueError("std leaves 2^26 to 2^27")
    which = np.floor(_PER_OCTAVE * np.log2(std / LEAST_STD)).clip(0, _PER_OCTAVE - 1).astype(np.int64)
    return Rows(which, -1 / (2 * std * std))


def _propose(library: Any, word: Any, rows: Rows, offered: Proposals) -> tuple[Any, Any]:
    """The integer of every word, and 2^25 a(n) minus the word's first bits; in NumPy or JAX.

    The integer is accepted if a fresh uniform number is below that difference, which is exact: what is taken off a
    float has no finer digits than it.
    """
    block = offered.block[rows.which, word & (2**SLOT_BITS - 1)].astype(library.int64)
    offset = (word >> SLOT_BITS) & (2**OFFSET_BITS - 1)
    sign = (word << FIRST_BITS) >> 63  # 0 or -1
    first = (word >> (64 - FIRST_BITS)) & (2**FIRST_BITS - 1)
    integer = (((block << OFFSET_BITS) | offset) ^ sign).astype(library.float64)  # y, or -1 - y
    return integer, library.exp(integer * integer * rows.slope) * offered.scale[rows.which, block] - first


@jax.jit
def propose(word: jax.Array, rows: Rows, offered: Proposals) -> tuple[jax.Array, jax.Array]:
    """[rows, size] integers, and what decides on them: see `_propose`. One pass over memory."""
    return _propose(jnp, word, Rows(*(part[:, None] for part in rows)), offered)


def _refused(rest: FloatArray, words: RandomWords) -> Integers:
    """The flat places where a fresh uniform number is not below `rest`."""
    places = np.flatnonzero(rest < 1)
    return places[~below(rest.reshape(-1)[places], words)]


def below(rest: FloatArray, words: RandomWords) -> NDArray[np.bool_]:
    """Whether fresh uniform numbers are below `rest`; exact, for as many bits are drawn as it takes."""
    is_below = rest >= 1
    unsure = np.flatnonzero((rest > 0) & ~is_below)
    rest = rest[unsure]
    while len(unsure):
        bits = (words(len(unsure)) >> np.uint64(11)).astype(np.float64)  # 53, as many as a float holds
        whole = np.floor(rest * 2.0**53)
        is_below[unsure[bits < whole]] = True
        rest = rest * 2.0**53 - whole
        still = (bits == whole) & (rest > 0)
        unsure, rest = unsure[still], rest[still]
    return is_below


@cache
def proposals() -> Proposals:
    """All proposals; blocks that one has not are never proposed."""
    octave = [_proposal(LEAST_STD * 2.0 ** ((number + 1) / _PER_OCTAVE)) for number in range(_PER_OCTAVE)]
    most = max(len(scale) for _, scale in octave)
    return Proposals(
        np.stack([block for block, _ in octave]),
        np.stack([np.pad(scale, (0, most - len(scale))) for _, scale in octave]),
    )


@cache
def _on_device() -> Proposals:
    """The same as arrays of JAX, so that no call has to copy them."""
    return Proposals(*map(jnp.asarray, proposals()))


def _proposal(std: float) -> tuple[NDArray[np.uint16], FloatArray]:
    blocks = int(np.ceil(_REACH * std / 2**OFFSET_BITS))
    density = np.exp(-((np.arange(blocks) * 2.0**OFFSET_BITS) ** 2) / (2 * std * std))  # where a block is densest
    # As many slots to each as it needs, and at least one; what is left goes to the first, where it does no harm.
    slots = np.ceil(density / density.sum() * (2**SLOT_BITS - blocks)).astype(np.int64)
    slots[0] += 2**SLOT_BITS - slots.sum()
    # Narrower Gaussians fall faster from block to block, so c is good for all of them.
    largest = float((density / slots).max()) * (1 + _HAIR)
    return np.repeat(np.arange(blocks, dtype=np.uint16), slots), 2.0**FIRST_BITS / (largest * slots)
