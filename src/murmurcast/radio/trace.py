"""A channel that was measured or traced by rays: the complex gain of every link, step by step."""

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast import _check, _files
from murmurcast._check import FloatArray
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Error
from murmurcast.network.graph import Network

ComplexArray = NDArray[np.complex128]
MAX_ENTRIES = 2**26  # complex numbers, 1 GiB
_LARGEST_GAIN = 1e30
_ORDER = "gains[time, from, to] or gains[time, from, to, block]"


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelTrace:
    """What a channel did, one step of time after another; nothing in it can be changed.

    Args:
        gains: [time, from, to] or [time, from, to, block], complex amplitudes. `gains[t, i, j]` is the link FROM i TO
            j; 0 means that j does not hear i at that step. A block is a part of the band. What stands on the diagonal
            is ignored, whatever it is, and kept as 0: a node is no neighbour of its own.
        positions: [nodes, 2] or [nodes, 3] where the nodes stand, in metres, if known.
        carrier_hz: The frequency it was measured at, if known.
        interval_s: Seconds between two steps, if known.
    """

    gains: ComplexArray
    positions: FloatArray | None = None
    carrier_hz: float | None = None
    interval_s: float | None = None

    def __init__(
        self,
        *,
        gains: ArrayLike,
        positions: ArrayLike | None = None,
        carrier_hz: float | None = None,
        interval_s: float | None = None,
    ) -> None:
        valid = _valid_gains(gains)
        for name, value in (("carrier_hz", carrier_hz), ("interval_s", interval_s)):
            object.__setattr__(self, name, None if value is None else _one_number(name, value))
        object.__setattr__(self, "gains", valid)
        spots = None if positions is None else _valid_positions(positions, valid.shape[1])
        object.__setattr__(self, "positions", spots)

    @property
    def steps(self) -> int:
        """How many steps of time there are; every epoch takes one."""
        return int(self.gains.shape[0])

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self.gains.shape[1])

    @property
    def blocks(self) -> int:
        """Into how many parts the band is cut; 1 where gains have no such axis."""
        return self.gains.shape[3] if self.gains.ndim == 4 else 1

    @property
    def has_phases(self) -> bool:
        """Whether any gain is other than a real amplitude; a table in decibels knows no phases."""
        return bool((self.gains.imag != 0).any() or (self.gains.real < 0).any())

    @cached_property
    def sha256(self) -> str:
        """Of the gains, with their shape: what a ledger calls the trace by."""
        return sha256_of((self.gains,))

    @cached_property
    def rms(self) -> FloatArray:
        """[from, to] the root mean square of |gain| over time, and over blocks."""
        axes = (0,) if self.gains.ndim == 3 else (0, 3)
        amplitude = np.abs(self.gains)
        largest = amplitude.max(axis=axes, keepdims=True)  # squares of relative values neither vanish nor overflow
        amplitude /= np.where(largest > 0, largest, 1)
        return _check.frozen(largest.squeeze(axis=axes) * np.sqrt(np.square(amplitude, out=amplitude).mean(axis=axes)))

    @cached_property
    def by_receiver(self) -> ComplexArray:
        """[to, time, from] the same numbers, for a program that is spread over receivers; of one block."""
        return self.gains.transpose(2, 0, 1)

    def times_played(self, epochs: int) -> NDArray[np.int64]:
        """[steps that are used] in how many of so many epochs each is; more than once where it is repeated."""
        first = np.arange(min(epochs, self.steps))
        return epochs // self.steps + (first < epochs % self.steps)

    def require(self, epochs: int, repeat: bool = False) -> None:
        """The time axis is long enough for a run.

        Args:
            epochs: Of the run; each takes one step.
            repeat: Whether the first step follows the last, so that any number of epochs will do.

        Raises:
            Error: It ends before the run, at the epoch that is named.
        """
        _check.at_least(1, epochs=epochs)
        if epochs > self.steps and not repeat:
            raise Error(
                f"the channel ends with epoch {self.steps}, and epoch {epochs} is asked for",
                hint="give as many steps of time as there are epochs, or set repeat = true: after the last step "
                "comes the first again",
            )

    def at(self, epoch: int, repeat: bool = False) -> ComplexArray:
        """The gains in an epoch, [from, to] or [from, to, block], read-only.

        Args:
            epoch: From 1; epoch t takes step t - 1.
            repeat: As in `require`.
        """
        _check.at_least(1, epoch=epoch)
        self.require(epoch, repeat)
        return np.asarray(self.gains[(epoch - 1) % self.steps])

    def network(self, power: ArrayLike = 1.0) -> Network:
        """The network to plan with: every pair of nodes that hear each other at any step, by its rms amplitude.

        Args:
            power: As in `Network`.

        Returns:
            Gains are the root mean square of |gain| over time, and over blocks; positions are x and y.
        """
        return Network(gains=self.rms, power=power, positions=None if self.positions is None else self.positions[:, :2])

    def save(self, path: Path | str) -> None:
        """Writes all of it to a `.npz` file that `read_channel` reads, completely or not at all."""
        path = Path(path)
        if path.suffix != ".npz":
            raise Error(f"{path} is not the name of a channel's file", hint="end it in .npz")
        parts: dict[str, Any] = {
            name: value
            for name in ("gains", "positions", "carrier_hz", "interval_s")
            if (value := getattr(self, name)) is not None
        }
        content = io.BytesIO()
        np.savez_compressed(content, **parts)
        _files.write_atomically(path, content.getvalue())


def require_entries(shape: tuple[int, ...]) -> None:
    """So many gains can be held."""
    entries = int(np.prod(np.asarray(shape, dtype=np.float64)))
    if entries > MAX_ENTRIES:
        raise Error(
            f"the channel has {' x '.join(map(str, shape))} gains, more than {MAX_ENTRIES}",
            hint="give fewer steps of time or blocks, or the nodes of one experiment only",
        )


def _valid_gains(gains: ArrayLike) -> ComplexArray:
    try:
        given: NDArray[Any] = np.asarray(gains)
    except ValueError:
        raise Error("gains is not an array", hint=f"give {_ORDER}") from None
    if given.dtype.kind not in "fiuc":
        raise Error(f"gains holds {given.dtype}, not numbers", hint="give complex amplitudes")
    shape = " x ".join(map(str, given.shape)) or "one number"
    if given.ndim == 2:
        raise Error(f"gains is {shape} and has no time axis", hint="give gains[None]: one step of time")
    if given.ndim not in (3, 4) or given.shape[1] != given.shape[2]:
        raise Error(f"gains is {shape}, expected {_ORDER}", hint="give as many senders as receivers, at every step")
    if given.shape[1] < 2 or 0 in given.shape:
        raise Error(f"gains is {shape}, expected 2 nodes and 1 step at the least", hint=f"give {_ORDER}")
    require_entries(given.shape)
    with np.errstate(all="ignore"):  # what overflows is refused below
        kept: ComplexArray = np.array(given, dtype=np.complex128)
        own = np.arange(kept.shape[1])
        kept[:, own, own] = 0
        _forbid(~np.isfinite(kept), "not a finite number")
        _forbid(np.abs(kept) > _LARGEST_GAIN, f"above {_LARGEST_GAIN:g}")
    kept.flags.writeable = False
    return kept


def _forbid(bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        place = ", ".join(map(str, np.argwhere(bad)[0]))
        raise Error(f"gains[{place}] is {what}", hint="give an amplitude, or 0 where a node is not heard")


def _one_number(name: str, value: float) -> float:
    if np.ndim(value) != 0:
        raise Error(f"{name} is not one number", hint=f"give {name} as a number")
    _check.positive(**{name: value})
    return float(value)


def _valid_positions(positions: ArrayLike, nodes: int) -> FloatArray:
    try:
        array = np.array(positions, dtype=np.float64)
    except (TypeError, ValueError):
        raise Error("positions must be numeric", hint="give x and y, or x, y and z, of every node") from None
    if array.shape not in ((nodes, 2), (nodes, 3)) or not np.isfinite(array).all():
        raise Error(
            f"positions has shape {array.shape}, expected {nodes} x 2 or {nodes} x 3 finite numbers, in metres",
            hint="give x and y, or x, y and z, of every node",
        )
    return _check.frozen(array)
