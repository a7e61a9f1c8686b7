"""Channels from files and from ray tracers: complex gains (.npz, .npy), tables in decibels (.csv), traced responses."""

import csv
import zipfile
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._files import UNREADABLE
from murmurcast.errors import Error
from murmurcast.radio.trace import MAX_ENTRIES, ChannelTrace, ComplexArray, require_entries

Layout = Literal["frequency", "paths"]
MAX_FILE_BYTES = 16 * MAX_ENTRIES + 2**20  # unpacked, of complex gains and what stands beside them
_NAMES = ("gains", "positions", "carrier_hz", "interval_s")
_COLUMNS = "sender,receiver,gain_db or time,sender,receiver,gain_db"
_FORMATS = f".npz with gains[time, from, to], .npy with these gains alone, or .csv headed {_COLUMNS}"
_LARGEST_DB = 600.0  # either way: amplitudes of 1e-30 to 1e30
_AXES: dict[Layout, str] = {
    "frequency": "[receiver, its antenna, sender, its antenna, time, frequency]",
    "paths": "[receiver, its antenna, sender, its antenna, path, time]",
}


def read_channel(path: Path | str) -> ChannelTrace:
    """The channel in a file that was measured, or written by `ChannelTrace.save`.

    Args:
        path: `.npz` with the array `gains`, [time, from, to] or [time, from, to, block], and if known `positions`,
            [nodes, 2] or [nodes, 3] in metres, `carrier_hz` and `interval_s`; `.npy` with the gains alone; or `.csv`
            with one line per link (and step), headed sender,receiver,gain_db (and time, a whole number from 0). A gain
            in decibels is an amplitude of 10^(gain_db / 20), without a phase; a link that a step does not list is not
            heard then.
    """
    path = Path(path)
    _check.readable(path)
    readers = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv}
    if path.suffix not in readers:
        raise Error(f"{path} is not a format of channels", hint=f"use {_FORMATS}")
    try:
        _require_size(path)
        return readers[path.suffix](path)
    except Error as problem:
        raise Error(f"{path}: {problem}", hint=problem.hint) from None
    except UNREADABLE as problem:
        raise Error(
            f"{path} cannot be read as {path.suffix}: {_check.short(problem)}", hint=f"use {_FORMATS}"
        ) from None


def from_ray_tracer(
    response: ArrayLike,
    *,
    layout: Layout,
    rx_antenna: int | None = None,
    tx_antenna: int | None = None,
    positions: ArrayLike | None = None,
    carrier_hz: float | None = None,
    interval_s: float | None = None,
) -> ChannelTrace:
    """A channel from the array of a ray tracer that puts receivers first, such as Sionna RT.

    Every node must be there once as receiver and once as sender, in the same order. Ask the ray tracer for responses
    that are not normalised: neither their energy, which is the path loss, nor their delays, which are the phases.

    Args:
        response: Complex. Layout "frequency", as of `Paths.cfr`: [receiver, its antenna, sender, its antenna, time,
            frequency]; every frequency becomes a block, and a single one leaves gains without that axis. Layout
            "paths", as of the coefficients of `Paths.cir`: [receiver, its antenna, sender, its antenna, path, time];
            paths are added with their phases, which is the gain of a band too narrow to tell their delays apart.
        layout: Which of the two.
        rx_antenna: Which antenna of the receivers; needed where they have several, since no mean of antennas is what
            any of them hears.
        tx_antenna: Which antenna of the senders.
        positions: As in `ChannelTrace`.
        carrier_hz: As in `ChannelTrace`.
        interval_s: As in `ChannelTrace`; one over the sampling frequency of the response.
    """
    _check.one_of(get_args(Layout), layout=layout)
    array = _numeric(response)
    if array.ndim != 6:
        raise Error(
            f"the response has {array.ndim} axes, expected {_AXES[layout]}",
            hint="give one complex array: real + 1j * imaginary, and one entry where there is a batch",
        )
    receivers, senders = array.shape[0], array.shape[2]
    if receivers != senders:
        raise Error(
            f"the response has {receivers} receivers and {senders} senders",
            hint="trace every node as a receiver and as a sender, in the same order",
        )
    rx = _antenna("rx_antenna", rx_antenna, array.shape[1])
    tx = _antenna("tx_antenna", tx_antenna, array.shape[3])
    picked = array[:, rx, :, tx]  # [receiver, sender, ...]
    if layout == "paths":
        gains = picked.sum(axis=2).transpose(2, 1, 0)
    else:
        gains = picked.transpose(2, 1, 0, 3)
        gains = gains[..., 0] if gains.shape[3] == 1 else gains
    return ChannelTrace(gains=gains, positions=positions, carrier_hz=carrier_hz, interval_s=interval_s)


def _numeric(response: ArrayLike) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.asarray(response)
    except ValueError:
        raise Error("the response is not an array", hint="give one complex array") from None
    if array.dtype.kind not in "fiuc":
        raise Error(f"the response holds {array.dtype}, not numbers", hint="give one complex array")
    return array


def _antenna(name: str, asked: int | None, antennas: int) -> int:
    if asked is None:
        if antennas != 1:
            raise Error(
                f"the response has {antennas} antennas and {name} is not given",
                hint=f"name one, such as {name}=0, or trace with one antenna: no mean is taken",
            )
        return 0
    _check.at_least(0, **{name: asked})
    if asked >= antennas:
        raise Error(f"{name} is {asked}, and there are {antennas}", hint="count antennas from 0")
    return asked


def _require_size(path: Path) -> None:
    """Before anything is unpacked."""
    size = path.stat().st_size
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
    if size > MAX_FILE_BYTES:
        raise Error(
            f"{size / 2**30:.1f} GiB of gains, more than {MAX_FILE_BYTES / 2**30:.1f}",
            hint="give fewer steps of time or blocks, or the nodes of one experiment only",
        )


def _read_npy(path: Path) -> ChannelTrace:
    return ChannelTrace(gains=np.load(path, allow_pickle=False))


def _read_npz(path: Path) -> ChannelTrace:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        for name in archive.files:
            if name not in _NAMES:
                raise Error(f"it holds an array called {name!r:.60}", hint=_check.nearest(name, _NAMES))
        if "gains" not in archive.files:
            raise Error("it holds no array called gains", hint="save the channel as gains[time, from, to]")
        arrays = {name: archive[name] for name in archive.files}
    numbers = {name: _one_number(name, arrays[name]) for name in ("carrier_hz", "interval_s") if name in arrays}
    return ChannelTrace(gains=arrays["gains"], positions=arrays.get("positions"), **numbers)


def _one_number(name: str, value: NDArray[Any]) -> float:
    if value.size != 1 or value.dtype.kind not in "fiu":
        raise Error(f"{name} is not one number", hint=f"save {name} as a number")
    return float(value.reshape(()))


def _read_csv(path: Path) -> ChannelTrace:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        lines = csv.reader(stream)
        header = [cell.strip().lower() for cell in next(lines, [])]
        if sorted(header) not in (["gain_db", "receiver", "sender"], ["gain_db", "receiver", "sender", "time"]):
            raise Error(f"it has the columns {', '.join(header) or 'none'}", hint=f"use {_COLUMNS}")
        if not any(row and not row[0].startswith("#") for row in lines):
            raise Error("it lists no link", hint="give one line per link")
    table = np.loadtxt(path, delimiter=",", ndmin=2, skiprows=1, encoding="utf-8-sig")
    if table.shape[1] != len(header) or not np.isfinite(table).all() or np.abs(table).max() > 1e15:
        raise Error(f"it does not hold one number for each of {', '.join(header)}", hint="complete every line")
    return ChannelTrace(gains=_from_table({name: table[:, at] for at, name in enumerate(header)}))


def _from_table(columns: dict[str, FloatArray]) -> ComplexArray:
    """[time, from, to] amplitudes of the lines of a table."""
    decibels = columns["gain_db"]
    if np.abs(decibels).max() > _LARGEST_DB:
        raise Error(
            f"gain_db goes beyond -{_LARGEST_DB:g} to {_LARGEST_DB:g}", hint="leave out the line where there is no link"
        )
    time = columns.get("time", np.zeros(len(decibels)))
    places = np.stack([time, columns["sender"], columns["receiver"]], axis=1)
    whole = places.astype(np.int64)
    if (whole != places).any() or whole.min() < 0:
        raise Error("it has a node or a time that is not a whole number of 0 or more", hint="number all from 0")
    steps, nodes = int(whole[:, 0].max()) + 1, int(whole[:, 1:].max()) + 1
    if len(np.unique(whole[:, 0])) < steps or len(np.unique(whole[:, 1:])) < nodes:
        raise Error(
            f"it leaves out some of the steps 0 to {steps - 1}, or of the nodes 0 to {nodes - 1}",
            hint="number steps and nodes from 0, gapless",
        )
    if len(np.unique(whole, axis=0)) < len(whole):
        raise Error("it gives a link twice", hint="keep one line per time, sender and receiver")
    require_entries((steps, nodes, nodes))
    gains: ComplexArray = np.zeros((steps, nodes, nodes), np.complex128)
    gains[tuple(whole.T)] = 10 ** (decibels / 20)
    return gains
