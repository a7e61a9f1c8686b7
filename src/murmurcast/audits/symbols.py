"""Coordinates as the complex symbols in which a radio carries them: u = v[0::2] + i v[1::2].

Where phases count, what is heard of a symbol is its two coordinates turned into each other. A turn back by the phase of
what a canary does leaves each coordinate with its own canary, and noise as it was.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from murmurcast._check import FloatArray

Symbols = NDArray[np.float64 | np.complex128]


def as_symbols(values: NDArray[Any], kind: DTypeLike) -> Symbols:
    """[..., symbols] of [..., dim], a last coordinate without its like beside 0; as they are where `kind` is real."""
    if np.dtype(kind).kind != "c":
        return values.astype(np.float64)
    padded = np.pad(values, (*((0, 0),) * (values.ndim - 1), (0, values.shape[-1] % 2)))
    return np.asarray(padded[..., 0::2] + 1j * padded[..., 1::2], np.complex128)


def as_numbers(symbols: Symbols, dim: int) -> FloatArray:
    """[..., dim] the coordinates again."""
    if not np.iscomplexobj(symbols):
        return np.asarray(symbols)
    both = np.stack([symbols.real, symbols.imag], axis=-1)
    return np.asarray(both.reshape(*symbols.shape[:-1], -1)[..., :dim])


def turned(readings: Symbols, shift: Symbols, dim: int) -> tuple[FloatArray, FloatArray]:
    """Readings [readings, ..., dim] and shifts [readings] in real numbers, each turned back by its shift's phase."""
    if not np.iscomplexobj(readings):
        return np.asarray(readings), np.asarray(shift.real)
    size = np.abs(shift)
    phase = np.where(size > 0, shift / np.where(size > 0, size, 1.0), 1.0)
    back = phase.conj().reshape(-1, *(1,) * (readings.ndim - 1))
    return as_numbers(back * readings, dim), size
