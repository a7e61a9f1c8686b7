"""What a feature map is: a fixed rule from one example to one row of numbers, chosen without looking at private data.

A map sees every example alone. What it does to one record therefore depends on no other, and a promise about one record
before the map is the same promise after it: nothing is released, and nothing costs privacy.
"""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurcast.errors import Error

Rows = NDArray[np.float32]
ImageShape = tuple[int, int]


class FeatureMap(Protocol):
    """A map, as a small frozen object with its parameters.

    Attributes:
        kind: Its name in an experiment file.
        version: Counted up whenever the same parameters give other numbers: what was cached before is then not used.
        data_free: Why it looks at no data, in words.
    """

    version: ClassVar[int]

    @property
    def kind(self) -> str:
        """Its name in an experiment file."""
        ...

    @property
    def data_free(self) -> str:
        """Why it looks at no data, in words; empty where nobody says so."""
        ...

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:
        """[examples, features] float32 to [examples, other features], every example alone.

        Args:
            rows: Examples, one a row.
            shape: Rows and columns of the images that the examples are; None where they are none.
        """
        ...

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:
        """What image every row is afterwards; None where it is none."""
        ...


def as_images(kind: str, rows: Rows, shape: ImageShape | None) -> NDArray[np.float32]:
    """[examples, height, width], for a map that needs images."""
    if shape is None:
        raise Error(
            f'the feature map "{kind}" needs images, and the shape of these examples is not known',
            hint="give images as [examples, height, width] to mc.datasets.from_arrays, or data.image_shape = [28, 28] "
            "in a file; maps of images come before those that end in plain numbers",
        )
    return rows.reshape(-1, *shape)


def windows(pixels: int, cells: int) -> NDArray[np.float32]:
    """[cells, pixels] how much a pixel counts for each of the cells of a line: triangles that overlap by half.

    Cells are pixels / cells wide, and a triangle falls to 0 at its neighbours' centres.
    """
    width = pixels / cells
    centres = (np.arange(cells) + 0.5) * width
    distance = np.abs(np.arange(pixels) + 0.5 - centres[:, None])
    return np.maximum(0, 1 - distance / width).astype(np.float32)


def pooled(images: NDArray[np.float32], cells: int) -> NDArray[np.float32]:
    """[..., height, width] summed up over cells x cells windows, [..., cells, cells]."""
    *_, height, width = images.shape
    return windows(height, cells) @ (images @ windows(width, cells).T)
