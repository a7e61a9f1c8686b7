"""Records that join an epoch by a secret coin each: who joined, and how many, is known to nobody but the node.

What is known of it is fixed beforehand: the coin's probability, and how many records an epoch has room for. Whatever is
computed has that size, filled up, so that neither shapes nor times tell how many joined. If more do, the last of them
are left out; room is such that this hardly ever happens, and promises count it.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from murmurcast.errors import Error

if TYPE_CHECKING:
    import jax

SamplingRule = Literal["fixed", "poisson"]
MAX_RECORDS = 2**31 - 1  # of a node: beyond, binomial tails are not known
_OVERFLOW = 2.0**-64  # of one epoch of one node, at most


class Sampling(NamedTuple):
    """How records join.

    Attributes:
        batch: How many are expected in an epoch; clipped gradients are divided by this, however many there are.
        sizes: Of every node, how many it has.
        room: For how many there is room.
    """

    batch: int
    sizes: tuple[int, ...]
    room: int

    @property
    def rates(self) -> tuple[float, ...]:
        """The coin's probability at every node."""
        return tuple(self.batch / size for size in self.sizes)

    @property
    def overflow(self) -> float:
        """The probability that more join one epoch than there is room for, at the node where it is largest."""
        # A node with fewer records than there is room for cannot overflow; asked beyond them, bdtrc is not a number.
        tails = (
            float(bdtrc(min(self.room, size), size, rate)) for size, rate in zip(self.sizes, self.rates, strict=True)
        )
        return max(tails)


def sampling(batch: int, sizes: NDArray[np.int64]) -> Sampling:
    """With room for all who ever join, but for an overflow that no promise would notice."""
    distinct = np.unique(sizes)
    least, most = int(distinct[0]), int(distinct[-1])
    if not 1 <= batch <= least:
        raise Error(f"batch is {batch}, and a node has {least} records", hint=f"set batch from 1 to {least}")
    if most > MAX_RECORDS:
        raise Error(f"a node has {most} records", hint=f"share the data out so that none has over {MAX_RECORDS}")

    def hardly_overflows(room: int) -> bool:
        return bool(np.max(bdtrc(np.minimum(room, distinct), distinct, batch / distinct)) <= _OVERFLOW)

    # The tail falls as room grows, and at `most` it is 0: all fit.
    room = batch + bisect_left(range(batch, most), True, key=hardly_overflows)
    return Sampling(batch, tuple(map(int, sizes)), room)


def joined(key: "jax.Array", size: "jax.Array", batch: int, rows: int) -> "jax.Array":
    """[rows] whether each record joins, by a coin of its own; of what fills up beyond `size`, none does.

    The coin's probability is batch/size, rounded down to a multiple of 2^-32: a rarer coin hides no less.
    """
    import jax
    import jax.numpy as jnp

    from murmurcast._cipher import bits

    coins = bits(jax.random.key_data(key), rows)
    examples = size.astype(jnp.uint32)
    threshold = jnp.uint32(batch) * (jnp.uint32(2**32 - 1) // examples)
    return ((coins < threshold) | (examples <= batch)) & (jnp.arange(rows) < size)
