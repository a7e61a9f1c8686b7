"""Feature maps by name, and in words."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from murmurcast import _check
from murmurcast.data.features.base import FeatureMap
from murmurcast.data.features.deskew import Deskew
from murmurcast.data.features.hog import Hog
from murmurcast.data.features.own import Own
from murmurcast.data.features.random_convolution import RandomConvolution
from murmurcast.data.features.random_fourier import RandomFourier
from murmurcast.data.features.scattering import Scattering
from murmurcast.data.features.unit_norm import UnitNorm
from murmurcast.errors import Error

MAPS: dict[str, type[Deskew | Hog | Scattering | RandomFourier | RandomConvolution | UnitNorm]] = {
    "deskew": Deskew,
    "hog": Hog,
    "scattering": Scattering,
    "random-fourier": RandomFourier,
    "random-convolution": RandomConvolution,
    "unit-norm": UnitNorm,
}


def maps_of(given: Iterable[str | FeatureMap]) -> tuple[FeatureMap, ...]:
    """Maps in their order; a string names one with its defaults."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Error("features must be a list of maps", hint='write ["deskew", "hog"]')
    return tuple(_map_of(one) for one in given)


def _map_of(given: object) -> FeatureMap:
    if isinstance(given, str):
        if given not in MAPS:
            raise Error(f'"{given}" is not a feature map', hint=_check.nearest(given, MAPS))
        return MAPS[given]()
    if type(given) in (*MAPS.values(), Own):  # a class derived from one may do anything, and says what its parent says
        return given  # type: ignore[return-value]
    raise Error(
        f"{type(given).__name__} is not a feature map",
        hint='name one, such as "hog", or wrap a function of yours: mc.features.Own(function=..., data_free="...")',
    )


def in_words(one: FeatureMap) -> str:
    """A map with all its parameters, such as hog(cells=7, orientations=8, blur=1.0)."""
    if isinstance(one, Own):
        return f"own({one.name})"
    return _words(one.kind, {field.name: getattr(one, field.name) for field in fields(one)})  # type: ignore[arg-type]


def words_of_section(section: Mapping[str, Any]) -> str:
    """The same, from the plain values of an experiment file that was written out in full; nothing is imported."""
    return f"own({section['map']})" if "map" in section else _words(str(section.get("kind")), section)


def _words(kind: str, values: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{name}={value!r}" for name, value in values.items() if name != "kind")
    return f"{kind}({listed})" if listed else kind
