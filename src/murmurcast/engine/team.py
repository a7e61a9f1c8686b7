"""The processes that train one network together, and what they tell each other; one process alone is a team too.

Everything goes through JAX's collectives, over one device of every process that takes part. All processes must ask for
the same things in the same order.
"""

import hashlib
import socket
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec
from numpy.typing import NDArray

from murmurcast.engine.numbering import Numbering

_BYTES_AT_ONCE = 2**26  # of what one process sends in one go


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

    @property
    def here(self) -> int:
        """How many of the processes are on this machine, and share its memory; all must ask."""
        name = hashlib.sha256(socket.gethostname().encode()).digest()
        return int((self.gather(np.frombuffer(name, np.int64)) == np.frombuffer(name, np.int64)).all(axis=1).sum())

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """[processes, ...] what every process has, of the same shape at all."""
        if self.size == 1:
            return values[None]
        together = _all(self.size)
        gathered = together.gather(_spread(together.spread, values))
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

    def to_leader(self, numbering: Numbering, own: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """[rows, ...] of all nodes, some at a time, part after part; the process that leads gets them, others get none.

        Args:
            numbering: Who has which rows.
            own: [own rows, ...] of this process.
        """
        step = max(1, _BYTES_AT_ONCE // max(1, own[:1].nbytes))
        for process, part in enumerate(numbering.parts):
            for first in range(0, len(part), step):
                if process == self.rank and self.leads:
                    yield own[first : first + step]
                elif process == self.rank:
                    self._swap(0, own[first : first + step], own[:0])
                elif self.leads:
                    like = np.empty((len(part[first : first + step]), *own.shape[1:]), own.dtype)
                    yield self._swap(process, own[:0], like)

    def exchange(self, numbering: Numbering, rows: NDArray[Any]) -> None:
        """Brings what others say into the rows behind the own ones; no row crosses that nobody there hears.

        Args:
            numbering: Who hears whom.
            rows: [own rows and those heard besides, ...]; the own ones are there.
        """
        ends = len(numbering.own) + np.cumsum([0, *map(len, numbering.halo)])
        step = max(1, _BYTES_AT_ONCE // max(1, rows[:1].nbytes))
        for turn in range(self.size):
            other = (turn - self.rank) % self.size  # whose other is this one: no ring of processes waits for itself
            if other == self.rank:
                continue
            wanted, heard = numbering.wanted[other], rows[ends[other] : ends[other + 1]]
            for first in range(0, max(len(wanted), len(heard)), step):
                some = slice(first, first + step)
                heard[some] = self._swap(other, rows[wanted[some]], heard[some])

    def _swap(self, other: int, said: NDArray[Any], heard: NDArray[Any]) -> NDArray[Any]:
        """What another process has for this one, of the shape of `heard`, for what this one has for it."""
        meeting = _meeting(min(self.rank, other), max(self.rank, other))
        first, second = (said, np.zeros_like(heard)) if self.rank < other else (np.zeros_like(heard), said)
        swapped = meeting.swap(_spread(meeting.spread, first), _spread(meeting.spread, second))
        return _from_bytes(swapped[int(self.rank < other)], heard.shape, heard.dtype)


class _All(NamedTuple):
    """All processes, compiled once for all calls.

    Attributes:
        spread: How a process's part of an array is placed.
        gather: All parts to all processes.
    """

    spread: NamedSharding
    gather: Any


class _Meeting(NamedTuple):
    """Two processes, compiled once for all calls; the others know nothing of it.

    Attributes:
        spread: How a process's part of an array is placed.
        swap: The first one's part of one array to the second, the second one's part of another to the first.
    """

    spread: NamedSharding
    swap: Any


@cache
def _all(processes: int) -> _All:
    mesh = _mesh(range(processes))
    gather = jax.jit(lambda given: given, out_shardings=NamedSharding(mesh, Spec()))
    return _All(NamedSharding(mesh, Spec("process")), gather)


@cache
def _meeting(first: int, second: int) -> _Meeting:
    mesh, parts = _mesh((first, second)), Spec("process")

    def swap(one: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.ppermute(one, "process", [(0, 1)]), jax.lax.ppermute(other, "process", [(1, 0)])

    swapped = jax.shard_map(swap, mesh=mesh, in_specs=(parts, parts), out_specs=(parts, parts))
    return _Meeting(NamedSharding(mesh, parts), jax.jit(swapped))


def _mesh(processes: Iterable[int]) -> Mesh:
    """One device of every process."""
    first: dict[int, Any] = {}
    for device in jax.devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[process] for process in processes]), ("process",))


def _spread(spread: NamedSharding, values: NDArray[Any]) -> jax.Array:
    """[processes, bytes]: as bytes, because JAX would round 64-bit numbers unless told not to."""
    given = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return jax.make_array_from_process_local_data(spread, given[None])


def _from_bytes(as_bytes: jax.Array, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> NDArray[Any]:
    return np.ascontiguousarray(np.asarray(as_bytes.addressable_data(0))).reshape(-1).view(dtype).reshape(shape)


def team() -> Team:
    """All processes that JAX knows of."""
    return Team(jax.process_count(), jax.process_index())
