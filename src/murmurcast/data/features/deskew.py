"""Images put upright: their centre of mass to the middle, their slant taken away."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows, as_images

_LEAST_SPREAD = 1e-6  # pixels squared: an image on a single line has no slant


@dataclass(frozen=True, kw_only=True)
class Deskew:
    """Centres every image by its first moments, and shears it upright by its second.

    Args:
        max_slope: The largest slope that is taken away, in columns a row.
    """

    kind: Literal["deskew"] = "deskew"
    max_slope: float = 1.5
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "every image is moved and sheared by its own moments"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(max_slope=self.max_slope)

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:
        """Images stay images."""
        return shape

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:
        """[examples, pixels], bilinear between pixels, 0 outside; an image without a bright pixel stays as it is."""
        images = as_images(self.kind, rows, shape)
        (row, column), slope, lit = _moments(images)
        _, height, width = images.shape
        down, right = np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2
        slope = np.clip(slope, -self.max_slope, self.max_slope)
        from_row = down + row[:, None]
        from_column = right + (column[:, None] + slope[:, None] * down)[:, :, None]
        upright = _bilinear(images, from_row, from_column)
        return np.where(lit[:, None], upright.reshape(rows.shape), rows)


def _moments(images: NDArray[np.float32]) -> tuple[tuple[Rows, Rows], Rows, NDArray[np.bool_]]:
    """Of every image: its centre (row and column), its slope in columns a row, and whether it has any mass."""
    _, height, width = images.shape
    weight = np.maximum(images, 0)
    by_row, by_column = weight.sum(axis=2, dtype=np.float64), weight.sum(axis=1, dtype=np.float64)
    mass = by_row.sum(axis=1)
    lit = mass > 0
    mass = np.where(lit, mass, 1.0)
    row, column = by_row @ np.arange(height) / mass, by_column @ np.arange(width) / mass
    spread = by_row @ np.arange(height) ** 2 / mass - row**2
    across = (weight @ np.arange(width, dtype=np.float32)).astype(np.float64)
    together = across @ np.arange(height) / mass - row * column
    slope = np.where(spread > _LEAST_SPREAD, together / np.maximum(spread, _LEAST_SPREAD), 0.0)
    return (row, column), slope, lit


def _bilinear(images: NDArray[np.float32], rows: NDArray[np.float64], columns: NDArray[np.float64]) -> Rows:
    """Images at points between pixels: rows [examples, height], columns [examples, height, width]."""
    count, height, width = images.shape
    # A border of zeros takes what lies outside; further out is the same.
    framed = np.zeros((count, height + 2, width + 2), np.float32)
    framed[:, 1:-1, 1:-1] = images
    rows, columns = np.clip(rows + 1, 0, height + 1), np.clip(columns + 1, 0, width + 1)
    top = np.minimum(rows.astype(np.int64), height)
    left = np.minimum(columns.astype(np.int64), width)
    below, beside = (rows - top).astype(np.float32)[:, :, None], (columns - left).astype(np.float32)
    start = (np.arange(count)[:, None] * (height + 2) + top)[:, :, None] * (width + 2) + left
    flat = framed.ravel()
    upper = flat[start] * (1 - beside) + flat[start + 1] * beside
    lower = flat[start + width + 2] * (1 - beside) + flat[start + width + 3] * beside
    return np.asarray(upper * (1 - below) + lower * below, np.float32)
