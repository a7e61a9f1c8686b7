"""The processes that train one network together, and what they tell each other; one process alone is a team too.

Everything goes through JAX's collectives, over one device of every process. All processes must ask for the same things
in the same order.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec
from numpy.typing import NDArray

from murmurcast.engine.numbering import Numbering

_BYTES_AT_ONCE = 2**28  # of what one process sends in one go


class Team(NamedTuple):
    """Who trains together.

    Attributes:
        size: How many processes there are.
        rank: Which of them this is, from 0.
    """

    size: int
    rank: int

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and speaks to people."""
        return self.rank == 0

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """[processes, ...] what every process has, of the same shape at all."""
        if self.size == 1:
            return values[None]
        gathered = _collectives(self.size).gather(_spread(self.size, values))
        return _from_bytes(gathered, (self.size, *values.shape), values.dtype)

    def from_leader(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the process that leads has, of the same shape at all."""
        return self.gather(values)[0]

    def same_everywhere(self, values: NDArray[Any]) -> bool:
        """Whether all processes have the same."""
        return bool((self.gather(values) == values).all())

    def rows_of_all(self, numbering: Numbering, own: NDArray[Any], into: NDArray[Any]) -> NDArray[Any]:
        """[nodes, ...] by their numbers, from the [own rows, ...] of every process.

        Args:
            numbering: Who has which rows.
            own: The rows of this process.
            into: Where they go; its first axis is that of all nodes, by number, or empty: then nothing is kept here.
        """
        most = max(map(len, numbering.parts))
        step = max(1, _BYTES_AT_ONCE // max(1, own[:1].nbytes * self.size))
        for first in range(0, most, step):
            piece = own[first : first + step]
            if self.size > 1:
                filled = np.zeros((min(step, most - first), *own.shape[1:]), own.dtype)
                filled[: len(piece)] = piece
                pieces = self.gather(filled)
            else:
                pieces = piece[None]
            for part, rows in zip(numbering.parts, pieces, strict=True):
                there = part[first : first + step]
                if len(into):
                    into[there] = rows[: len(there)]
        return into

    def exchange(self, numbering: Numbering, rows: NDArray[Any]) -> None:
        """Brings what others say into the rows behind the own ones.

        Args:
            numbering: Who hears whom.
            rows: [own rows and those heard besides, ...]; the own ones are there.
        """
        if self.size == 1:
            return
        most = numbering.widest
        step = max(1, _BYTES_AT_ONCE // max(1, rows[:1].nbytes * self.size))
        ends = len(numbering.own) + np.cumsum([0, *map(len, numbering.halo)])
        for first in range(0, most, step):
            packed = np.zeros((self.size, min(step, most - first), *rows.shape[1:]), rows.dtype)
            for other, wanted in enumerate(numbering.wanted):
                piece = wanted[first : first + step]
                packed[other, : len(piece)] = rows[piece]
            heard = self._swap(packed)
            for other, begin in enumerate(ends[:-1]):
                stop = min(ends[other + 1], begin + first + step)
                if stop > begin + first:
                    rows[begin + first : stop] = heard[other, : stop - begin - first]

    def _swap(self, packed: NDArray[Any]) -> NDArray[Any]:
        """[processes, ...] what every process has for this one, from what this one has for every process."""
        swapped = _collectives(self.size).swap(_spread(self.size, packed.reshape(self.size, -1)))
        return _from_bytes(swapped, packed.shape, packed.dtype)


class _Collectives(NamedTuple):
    """Compiled once for all calls.

    Attributes:
        spread: How a process's part of an array is placed.
        gather: All parts to all processes.
        swap: Of every part [processes, ...] one piece to each process.
    """

    spread: NamedSharding
    gather: Any
    swap: Any


@cache
def _collectives(processes: int) -> _Collectives:
    """Over one device of every process."""
    first: dict[int, Any] = {}
    for device in jax.devices():
        first.setdefault(device.process_index, device)
    mesh = Mesh(np.array([first[process] for process in range(processes)]), ("process",))
    spread = NamedSharding(mesh, Spec("process"))
    swap = jax.shard_map(
        lambda own: jax.lax.all_to_all(own, "process", split_axis=1, concat_axis=1, tiled=True),
        mesh=mesh,
        in_specs=Spec("process"),
        out_specs=Spec("process"),
    )
    return _Collectives(spread, jax.jit(lambda given: given, out_shardings=NamedSharding(mesh, Spec())), jax.jit(swap))


def _spread(processes: int, values: NDArray[Any]) -> jax.Array:
    """[processes, ..., bytes]: as bytes, because JAX would round 64-bit numbers unless told not to."""
    plain = np.ascontiguousarray(values)
    given = plain.reshape(*plain.shape[:-1], -1).view(np.uint8) if plain.ndim else plain.reshape(1).view(np.uint8)
    return jax.make_array_from_process_local_data(_collectives(processes).spread, given[None])


def _from_bytes(found: jax.Array, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> NDArray[Any]:
    return np.ascontiguousarray(np.asarray(found.addressable_data(0))).reshape(-1).view(dtype).reshape(shape)


def team() -> Team:
    """All processes that JAX knows of."""
    return Team(jax.process_count(), jax.process_index())
