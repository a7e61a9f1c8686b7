"""Gain models: how well a link carries, drawn for each direction on its own.

Gains are amplitudes |h|. A model is a small frozen object; `draw` gives one gain per directed link. Those in metres and
hertz are in `path_loss`, where both directions share one draw.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.path_loss import FreeSpace as FreeSpace
from murmurcast.network.path_loss import Indoor as Indoor
from murmurcast.network.path_loss import Street as Street
from murmurcast.network.path_loss import check_carrier, free_space_loss_db, require_positions


class GainModel(Protocol):
    """Anything that can draw the gains of directed links.

    A model whose `reciprocal` is True is asked for one gain per pair of neighbours, which both directions share.
    """

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:
        """One gain per link; `distance` [links] is None where nodes have no positions."""
        ...


@dataclass(frozen=True, kw_only=True)
class Constant:
    """Every link has the same gain."""

    kind: Literal["constant"] = "constant"
    value: float = 1.0
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(value=self.value)

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:  # noqa: ARG002
        """The same gain for every link."""
        return np.full(links, self.value)


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Gains uniform between two amplitudes."""

    kind: Literal["uniform"] = "uniform"
    low: float = 0.3
    high: float = 1.0
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(low=self.low, high=self.high)
        if self.low > self.high:
            raise Error(f"low is {self.low:g}, above high {self.high:g}", hint="swap low and high")

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:  # noqa: ARG002
        """Independent uniform gains."""
        return generator.uniform(self.low, self.high, links)


@dataclass(frozen=True, kw_only=True)
class Rayleigh:
    """Rayleigh fading: no line of sight. `rms` is the root mean square amplitude."""

    kind: Literal["rayleigh"] = "rayleigh"
    rms: float = 1.0
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(rms=self.rms)

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:  # noqa: ARG002
        """Independent Rayleigh gains."""
        return self.rms * np.sqrt(generator.standard_exponential(links))


@dataclass(frozen=True, kw_only=True)
class Rician:
    """Rician fading: a line of sight `k_factor_db` decibels above the scattered power; `rms` amplitude in all."""

    kind: Literal["rician"] = "rician"
    k_factor_db: float = 6.0
    rms: float = 1.0
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(rms=self.rms)
        if not abs(self.k_factor_db) <= 300:
            raise Error(f"k_factor_db is {self.k_factor_db:g}, expected -300 to 300", hint="give it in decibels")

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:  # noqa: ARG002
        """Independent Rician gains."""
        ratio = 10 ** (self.k_factor_db / 10)
        scattered = generator.normal(scale=np.sqrt(0.5 / (1 + ratio)), size=(2, links))
        return np.asarray(self.rms * np.hypot(np.sqrt(ratio / (1 + ratio)) + scattered[0], scattered[1]))


@dataclass(frozen=True, kw_only=True)
class LogDistance:
    """Log-distance path loss with log-normal shadowing; needs positions.

    gain in dB = reference_gain_db - 10 exponent log10(distance / reference_distance) + N(0, shadowing_db^2).
    Distances are in the unit of the positions. With `carrier_hz` they are metres, and the reference gain is that of
    free space at the reference distance.
    """

    kind: Literal["log-distance"] = "log-distance"
    exponent: float = 3.0
    reference_distance: float = 1.0
    reference_gain_db: float = 0.0
    shadowing_db: float = 0.0
    carrier_hz: float | None = None
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(exponent=self.exponent, reference_distance=self.reference_distance)
        _check.not_negative(shadowing_db=self.shadowing_db)
        check_carrier(self.carrier_hz)
        if self.carrier_hz is not None and self.reference_gain_db != 0:
            raise Error(
                f"reference_gain_db is {self.reference_gain_db:g}, and carrier_hz says it follows from free space",
                hint="give one of reference_gain_db and carrier_hz",
            )

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:
        """Gains that fall with distance, each direction shadowed on its own."""
        distance = require_positions(self.kind, distance)
        shadow = generator.normal(scale=self.shadowing_db, size=links)
        reference = self.reference_gain_db
        if self.carrier_hz is not None:
            reference = -float(free_space_loss_db(self.reference_distance, self.carrier_hz))
        decibel = reference - 10 * self.exponent * np.log10(distance / self.reference_distance) + shadow
        with np.errstate(over="ignore"):  # the network refuses an infinite gain, and names the link
            return np.asarray(10 ** (decibel / 20))


_PAPER_AS_PRINTED = {
    1: [[0, 0.92, 0.94, 0.98], [0.92, 0, 0.92, 0.96], [0.92, 0.96, 0, 0.95], [0.88, 0.92, 0.98, 0]],
    2: [[0, 0.92, 0.94, 0.98], [0.92, 0, 0.92, 0.96], [0.95, 0.943, 0, 0.95], [0.95, 0.96, 0.98, 0]],
}


def paper(case: int) -> FloatArray:
    """The paper's gain matrix 1 or 2, TRANSPOSED: read with rows as receivers, then turned to the order used here.

    In the paper's stated order (row sends) both matrices would give the same power split; with rows as receivers the
    two budgets differ as its figures do. `paper(case).T` is the matrix as printed.
    """
    if case not in _PAPER_AS_PRINTED:
        raise Error(f"the paper has no gain matrix {case}", hint="use 1 or 2")
    return np.array(_PAPER_AS_PRINTED[case]).T
