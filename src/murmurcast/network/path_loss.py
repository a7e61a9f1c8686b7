"""Gain models with real path loss: free space, an office and a street, in metres and hertz.

The two surroundings are those of Table 7.4.1-1 of 3GPP TR 38.901: InH (office) and UMi (street canyon). Coefficients,
break point and shadowing were compared with ns-3's public implementation of that table, the coefficients with others
too, and agree in every digit; the table itself was not at hand.

Positions are in metres, and heights are left out: a distance between positions stands for the table's 3D distance.
Distances below one metre count as one metre. Antennas have no gain.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.errors import Error

SPEED_OF_LIGHT = 299_792_458.0  # m/s
_NEAREST = 1.0  # metres; nearer than that no model here means anything
_POLE, _HAND = 10.0, 1.5  # metres, the antennas' heights in the table's street
_STREET_LEVEL = 1.0  # metres, the effective height of traffic in the table's street


@dataclass(frozen=True, kw_only=True)
class FreeSpace:
    """Friis: nothing between and around the antennas, which stand in each other's sight; needs positions in metres.

    Args:
        carrier_hz: f_c; None takes the radio's.
        reciprocal: Whether both directions of a link have the same gain; without shadowing they always do.
    """

    kind: Literal["free-space"] = "free-space"
    carrier_hz: float | None = None
    reciprocal: bool = True
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        check_carrier(self.carrier_hz)

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:  # noqa: ARG002
        """One gain per link; nothing here is random."""
        metres, carrier = _known(self.kind, distance, self.carrier_hz)
        return amplitude(free_space_loss_db(metres, carrier))


@dataclass(frozen=True, kw_only=True)
class Indoor:
    """An office after 3GPP TR 38.901 (InH), 1 to 150 m, 0.5 to 100 GHz; needs positions in metres.

    Loss in dB, d in metres and f in GHz:
        in sight      32.4 + 17.3 lg d + 20 lg f,                          shadowing 3 dB
        not in sight  the larger of that and 17.3 + 38.3 lg d + 24.9 lg f, shadowing 8.03 dB

    Args:
        line_of_sight: Whether all nodes see each other.
        carrier_hz: f_c; None takes the radio's.
        shadowing: Whether links are shadowed, log-normally.
        reciprocal: Whether both directions of a link share one draw, as in reality.
    """

    kind: Literal["indoor"] = "indoor"
    line_of_sight: bool = False
    carrier_hz: float | None = None
    shadowing: bool = True
    reciprocal: bool = True
    range_m: ClassVar = (1.0, 150.0)  # where the table holds
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        check_carrier(self.carrier_hz)

    def loss_db(self, distance: FloatArray, carrier_hz: float) -> FloatArray:
        """Median loss, in decibels."""
        far, high = np.log10(distance), np.log10(carrier_hz / 1e9)
        in_sight = 32.4 + 17.3 * far + 20 * high
        return np.asarray(in_sight if self.line_of_sight else np.maximum(in_sight, 17.3 + 38.3 * far + 24.9 * high))

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:
        """One gain per link, shadowed on its own."""
        metres, carrier = _known(self.kind, distance, self.carrier_hz)
        spread = 0.0 if not self.shadowing else 3.0 if self.line_of_sight else 8.03
        return amplitude(self.loss_db(metres, carrier) + generator.normal(scale=spread, size=links))


@dataclass(frozen=True, kw_only=True)
class Street:
    """A street canyon after 3GPP TR 38.901 (UMi), 10 m to 5 km, 0.5 to 100 GHz; needs positions in metres.

    Loss in dB, d in metres and f in GHz:
        in sight      32.4 + 21 lg d + 20 lg f,                            shadowing 4 dB
            beyond the break point b = 4 (10 - 1)(1.5 - 1) f_c / c:
                      32.4 + 40 lg d + 20 lg f - 9.5 lg(b^2 + (10 - 1.5)^2)
        not in sight  the larger of that and 22.4 + 35.3 lg d + 21.3 lg f, shadowing 7.82 dB

    The table is for an antenna at 10 m and one at 1.5 m; between two at street level less arrives than it says.

    Args:
        line_of_sight: Whether all nodes see each other.
        carrier_hz: f_c; None takes the radio's.
        shadowing: Whether links are shadowed, log-normally.
        reciprocal: Whether both directions of a link share one draw, as in reality.
    """

    kind: Literal["street"] = "street"
    line_of_sight: bool = False
    carrier_hz: float | None = None
    shadowing: bool = True
    reciprocal: bool = True
    range_m: ClassVar = (10.0, 5000.0)  # where the table holds
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        check_carrier(self.carrier_hz)

    def loss_db(self, distance: FloatArray, carrier_hz: float) -> FloatArray:
        """Median loss, in decibels."""
        far, high = np.log10(distance), np.log10(carrier_hz / 1e9)
        break_point = 4 * (_POLE - _STREET_LEVEL) * (_HAND - _STREET_LEVEL) * carrier_hz / SPEED_OF_LIGHT
        near = 21 * far
        beyond = 40 * far - 9.5 * np.log10(break_point**2 + (_POLE - _HAND) ** 2)
        in_sight = 32.4 + 20 * high + np.where(distance <= break_point, near, beyond)
        return np.asarray(in_sight if self.line_of_sight else np.maximum(in_sight, 22.4 + 35.3 * far + 21.3 * high))

    def draw(self, generator: np.random.Generator, links: int, distance: FloatArray | None) -> FloatArray:
        """One gain per link, shadowed on its own."""
        metres, carrier = _known(self.kind, distance, self.carrier_hz)
        spread = 0.0 if not self.shadowing else 4.0 if self.line_of_sight else 7.82
        return amplitude(self.loss_db(metres, carrier) + generator.normal(scale=spread, size=links))


PathLoss = FreeSpace | Indoor | Street


def with_carrier(model: PathLoss, carrier_hz: float) -> PathLoss:
    """The model with the radio's carrier, where it has none of its own."""
    return model if model.carrier_hz is not None else replace(model, carrier_hz=carrier_hz)


def free_space_loss_db(distance: FloatArray | float, carrier_hz: float) -> FloatArray:
    """Friis: 20 lg(4 pi d f_c / c), between antennas without gain."""
    return np.asarray(20 * np.log10(4 * np.pi * np.asarray(distance, np.float64) * carrier_hz / SPEED_OF_LIGHT))


def amplitude(loss_db: FloatArray) -> FloatArray:
    """|h| of a loss in decibels."""
    return np.asarray(10 ** (-loss_db / 20))


def require_positions(kind: str, distance: FloatArray | None) -> FloatArray:
    """Distances are known, as gains that fall with them need."""
    if distance is None:
        raise Error(
            f"{kind} gains need positions, and this network has none",
            hint="use a topology that has positions (geometric, grid, ring, path, star, complete, diamond)",
        )
    return distance


def check_carrier(carrier_hz: float | None) -> None:
    """A frequency that radios have, in hertz, or none."""
    if carrier_hz is not None and not 1e6 <= carrier_hz <= 1e12:
        raise Error(
            f"carrier_hz is {carrier_hz:g}, expected 1e6 to 1e12", hint="give it in hertz: 2.4e9 is 2.4 gigahertz"
        )


def _known(kind: str, distance: FloatArray | None, carrier_hz: float | None) -> tuple[FloatArray, float]:
    """Distances of at least a metre, and the carrier."""
    metres = require_positions(kind, distance)
    if carrier_hz is None:
        raise Error(
            f"{kind} gains need a carrier frequency",
            hint="add carrier_hz = 2.4e9 to the gain, or a [radio] section, whose carrier is then taken",
        )
    return np.maximum(metres, _NEAREST), carrier_hz
