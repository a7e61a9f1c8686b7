"""Histograms of oriented gradients: where in an image edges lie, and which way they run."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows, as_images, pooled
from murmurcast.data.features.unit_norm import unit_rows


@dataclass(frozen=True, kw_only=True)
class Hog:
    """Histograms of oriented gradients, square-rooted and scaled to norm 1; all entries are 0 or more.

    Gradients are Gaussian derivatives. A pixel votes with its gradient's length for the two signed orientations
    nearest to its direction, in proportion, and for the cells around it by triangular windows one cell wide.

    Args:
        cells: Cells a side.
        orientations: Directions all around, light to dark apart from dark to light.
        blur: Standard deviation of the Gaussian, in pixels.
    """

    kind: Literal["hog"] = "hog"
    cells: int = 7
    orientations: int = 8
    blur: float = 1.0
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "every image is described by its own gradients"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, cells=self.cells)
        _check.at_least(2, orientations=self.orientations)
        _check.positive(blur=self.blur)
        _check.at_most(64, cells=self.cells, orientations=self.orientations, blur=self.blur)

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:  # noqa: ARG002
        """Histograms are no images."""
        return None

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:
        """[examples, cells x cells x orientations].

        Guarantees:
            Every entry is 0 or more, and no row's Euclidean norm, of the float32 numbers as they are, exceeds 1.
        """
        images = as_images(self.kind, rows, shape)
        down, right = _gradient(images, self.blur)
        length = np.hypot(down, right)
        turn = np.arctan2(down, right) * np.float32(self.orientations / (2 * np.pi))  # in orientations
        votes = np.empty((self.orientations, *images.shape), np.float32)
        for orientation in range(self.orientations):
            away = np.abs(turn - orientation)
            votes[orientation] = length * np.maximum(0, 1 - np.minimum(away, np.abs(self.orientations - away)))
        cells = pooled(votes, self.cells)  # [orientations, examples, cells, cells]
        return unit_rows(np.sqrt(cells).transpose(1, 2, 3, 0).reshape(len(rows), -1))


def _gradient(images: NDArray[np.float32], blur: float) -> tuple[Rows, Rows]:
    """Derivatives down and to the right, smoothed by a Gaussian; beyond its edges an image goes on as at the edge."""
    (blur_rows, slope_rows), (blur_columns, slope_columns) = (_filters(size, blur) for size in images.shape[1:])
    return slope_rows @ (images @ blur_columns.T), blur_rows @ (images @ slope_columns.T)


def _filters(pixels: int, blur: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """[pixels, pixels] the Gaussian and its derivative along a line, as matrices."""
    from scipy.ndimage import gaussian_filter1d  # slow to import, and few runs need it

    unit = np.eye(pixels)
    plain, slope = (gaussian_filter1d(unit, blur, axis=0, order=order, mode="nearest") for order in (0, 1))
    return plain.astype(np.float32), slope.astype(np.float32)
