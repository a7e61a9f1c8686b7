"""Random convolutions: an untrained layer of filters, rectified and pooled."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from murmurcast import _check
from murmurcast.data.features.base import ImageShape, Rows, as_images, pooled
from murmurcast.errors import Error

_PURPOSE = 6  # of the draws, beside the seed


@dataclass(frozen=True, kw_only=True)
class RandomConvolution:
    """Filters of mean 0 and norm 1, drawn by a public seed; what they find is rectified and summed up over cells.

    Args:
        filters: How many.
        size: Pixels a side of a filter.
        cells: Cells a side, as in `Hog`.
        seed: Of the draws; public.
    """

    kind: Literal["random-convolution"] = "random-convolution"
    filters: int = 32
    size: int = 5
    cells: int = 4
    seed: int = 0
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "its filters are drawn from a public seed"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, filters=self.filters, cells=self.cells)
        _check.at_least(2, size=self.size)
        _check.at_most(1024, filters=self.filters)
        _check.at_most(64, cells=self.cells, size=self.size)
        _check.at_least(0, seed=self.seed)

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:  # noqa: ARG002
        """What filters find is no image."""
        return None

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:
        """[examples, filters x cells x cells], all 0 or more."""
        images = as_images(self.kind, rows, shape)
        if self.size > min(images.shape[1:]):
            raise Error(
                f"filters of {self.size} x {self.size} pixels do not fit into images of {images.shape[1:]}",
                hint=f"set size to {min(images.shape[1:])} or less",
            )
        generator = np.random.default_rng([self.seed, _PURPOSE])
        filters = generator.standard_normal((self.filters, self.size**2))
        filters -= filters.mean(axis=1, keepdims=True)
        filters /= np.linalg.norm(filters, axis=1, keepdims=True)
        patches = np.lib.stride_tricks.sliding_window_view(images, (self.size, self.size), axis=(1, 2))
        flat = np.ascontiguousarray(patches.reshape(-1, self.size**2))
        answers = np.maximum(filters.astype(np.float32) @ flat.T, 0).reshape(self.filters, *patches.shape[:3])
        return np.ascontiguousarray(pooled(answers, self.cells).transpose(1, 0, 2, 3)).reshape(len(rows), -1)
