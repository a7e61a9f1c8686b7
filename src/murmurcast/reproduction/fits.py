"""Least squares fits of regret over T, and exponents of growth."""

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray

LATER = 1 / 20  # of the longest horizon: fits of the later part leave out what comes before
_END = 1 / 4  # of the longest horizon: the local exponent is taken from there on
LAWS: MappingProxyType[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {"log T": np.log, "sqrt T": np.sqrt, "T": np.asarray}
)


class Fit(NamedTuple):
    """constant + slope * law(T).

    Attributes:
        law: A key of `LAWS`.
        constant: a.
        slope: b.
        residual: Root mean square of what is left, over the mean of what was fitted.
    """

    law: str
    constant: float
    slope: float
    residual: float

    def at(self, horizons: FloatArray) -> FloatArray:
        """The fitted values."""
        return np.asarray(self.constant + self.slope * LAWS[self.law](horizons))


class Exponent(NamedTuple):
    """y ~ x^value, with the standard error of the value."""

    value: float
    error: float


def line(x: FloatArray, y: FloatArray) -> FloatArray:
    """[2, ...] constant and slope of the least squares line through y [points, ...] at x [points]."""
    design = np.stack([np.ones_like(x), x], axis=1)
    return np.asarray(np.tensordot(np.linalg.pinv(design), y, axes=1))


def fit(law: str, horizons: FloatArray, regret: FloatArray) -> Fit:
    """A law fitted to regret [points] at horizons [points]."""
    constant, slope = line(LAWS[law](horizons), regret)
    left = regret - constant - slope * LAWS[law](horizons)
    return Fit(law, float(constant), float(slope), float(np.sqrt(np.mean(left**2)) / np.mean(regret)))


def fits(horizons: FloatArray, regret: FloatArray) -> tuple[Fit, ...]:
    """All laws, in the order of `LAWS`."""
    return tuple(fit(law, horizons, regret) for law in LAWS)


def best(candidates: tuple[Fit, ...]) -> Fit:
    """The fit that leaves least."""
    return min(candidates, key=lambda candidate: candidate.residual)


def later(horizons: FloatArray) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """[points] which horizons belong to the later part."""
    return np.asarray(horizons >= LATER * horizons[-1])


def power_law(x: FloatArray, y: FloatArray, error: FloatArray | None = None) -> Exponent:
    """The slope of log y against log x, [points] each, at least three.

    Its standard error is the larger of two: what the scatter about the line says, and what independent standard errors
    of y [points] bring with them, where they are given. Few points can lie on a line by luck.
    """
    across, up = np.log(x), np.log(y)
    constant, slope = line(across, up)
    left = up - constant - slope * across
    apart = across - across.mean()
    spread = np.sum(apart**2)
    scatter = np.sqrt(np.sum(left**2) / (len(x) - 2) / spread)
    brought = 0.0 if error is None else np.sqrt(np.sum((apart * error / y) ** 2)) / spread
    return Exponent(float(slope), float(max(scatter, brought)))


def local_exponent(horizons: FloatArray, regret: FloatArray) -> float:
    """The exponent d log R / d log T over the last part of the horizons; for log T it tends to 0."""
    end = horizons >= _END * horizons[-1]
    return float(line(np.log(horizons[end]), np.log(regret[end]))[1])
