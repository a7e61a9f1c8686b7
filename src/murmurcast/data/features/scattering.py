"""Scattering: wavelets, their lengths, and wavelets of those, as kymatio computes them."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows, as_images
from murmurcast.errors import Error


@dataclass(frozen=True, kw_only=True)
class Scattering:
    """The scattering transform of every image, by kymatio.

    Args:
        scales: J: a value stands for 2^J pixels a side.
        angles: L, directions of the wavelets.
        order: How often wavelets are taken, 1 or 2.
    """

    kind: Literal["scattering"] = "scattering"
    scales: int = 2
    angles: int = 8
    order: int = 2
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "every image is filtered by fixed wavelets"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, scales=self.scales, angles=self.angles, order=self.order)
        _check.at_most(8, scales=self.scales)
        _check.at_most(64, angles=self.angles)
        _check.at_most(2, order=self.order)

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:  # noqa: ARG002
        """Many small images are no image."""
        return None

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:
        """[examples, paths x height / 2^J x width / 2^J]."""
        images = as_images(self.kind, rows, shape)
        if 2**self.scales > min(images.shape[1:]):
            raise Error(
                f"{self.scales} scales need images of {2**self.scales} pixels a side, these have {images.shape[1:]}",
                hint="lower scales",
            )
        transform = _transform(self, (images.shape[1], images.shape[2]))
        return np.asarray(transform(images), np.float32).reshape(len(rows), -1)


@cache
def _transform(settings: Scattering, shape: ImageShape) -> Any:
    """The transform itself, whose wavelets take a moment to compute."""
    if find_spec("kymatio") is None:
        raise Error('the feature map "scattering" needs kymatio', hint="pip install murmurcast[scattering]")
    # Not from kymatio.numpy: that also imports its solid harmonics, which current SciPy no longer supports.
    from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D

    return ScatteringNumPy2D(J=settings.scales, shape=shape, L=settings.angles, max_order=settings.order)
