"""What a run is to whoever takes it through its epochs, however it is carried out: one compiled loop, or blocks."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from murmurcast._npz import InPieces
from murmurcast.algorithms.base import Info


class Carry(NamedTuple):
    """What goes from epoch to epoch; all arrays [nodes, seeds, ...], of JAX or, of a large network, of the host.

    Attributes:
        state: The algorithm's.
        sent: Energy of the last signal, ||signal||^2; of the strongest where a node sends several.
        loudest: The largest `sent` so far.
        info: What the last updates left for people, by name.
    """

    state: Any
    sent: Any
    loudest: Any
    info: Info


class Advance(Protocol):
    """Takes a run on by some epochs."""

    def __call__(self, given: Any, carry: Carry, first: np.int32, stop: np.int32, /) -> Carry:
        """Epochs first..stop-1; the given carry is used up."""
        ...


class Observe(Protocol):
    """Looks at where a run has come to."""

    def __call__(self, carry: Carry, /) -> dict[str, NDArray[Any]]:
        """Metrics by name: [evaluated nodes, seeds], or of the mean model [seeds]."""
        ...


class Keep(Protocol):
    """Takes what a checkpoint must hold."""

    def __call__(self, carry: Carry, /) -> list[InPieces]:
        """Arrays [nodes, ...] of the host, whatever the number of devices or processes.

        Of several processes all must take all pieces, in this order; only the one that leads gets any.
        """
        ...


class Restore(Protocol):
    """Goes on from a checkpoint."""

    def __call__(self, leaves: list[NDArray[Any]], /) -> Carry:
        """The carry from what `Keep` took, on any number of devices or processes."""
        ...


class Published(Protocol):
    """Takes what nodes may publish, at the end."""

    def __call__(self, carry: Carry, /) -> NDArray[Any]:
        """[nodes, seeds, ...]; the carry is used up."""
        ...


class Program(NamedTuple):
    """A run, ready to go.

    Attributes:
        given: What does not change.
        start: The first carry.
        advance: On by some epochs.
        observe: Metrics of where it has come to.
        keep: What a checkpoint must hold.
        restore: A carry from a checkpoint.
        published: What nodes may publish.
        evaluated: Numbers of the nodes that are evaluated.
        crossing: How many signals cross between processes in a round.
        in_blocks: Whether nodes go block by block, and not in one compiled loop.
    """

    given: Any
    start: Carry
    advance: Advance
    observe: Observe
    keep: Keep
    restore: Restore
    published: Published
    evaluated: NDArray[Any]
    crossing: int = 0
    in_blocks: bool = False


def cast(leaf: Any, dtype: DTypeLike) -> Any:
    """A leaf as an array of NumPy, its numbers of this kind where they are not whole."""
    array = np.asarray(leaf)
    return array.astype(dtype, copy=False) if np.issubdtype(array.dtype, np.floating) else array
