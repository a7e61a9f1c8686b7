"""Rows scaled to norm 1."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from murmurcast.data.features.base import ImageShape, Rows

# Rounding to float32 lengthens a row by at most 2^-24 of itself: from this far below 1 it never comes to exceed 1.
_JUST_BELOW = 1 - 2.0**-23


@dataclass(frozen=True, kw_only=True)
class UnitNorm:
    """Scales every row to norm 1, and never above: what is rounded is rounded from just below. Rows of zeros stay."""

    kind: Literal["unit-norm"] = "unit-norm"
    version: ClassVar[int] = 1
    data_free: ClassVar[str] = "every row is divided by its own norm"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def shape_after(self, shape: ImageShape | None) -> ImageShape | None:
        """Images stay images."""
        return shape

    def apply(self, rows: Rows, shape: ImageShape | None) -> Rows:  # noqa: ARG002
        """[examples, features], each of norm at most 1.

        Guarantees:
            No row's Euclidean norm, of the float32 numbers as they are, exceeds 1.
        """
        return unit_rows(rows)


def unit_rows(rows: Rows) -> Rows:
    """Every row at norm 1 or just below; rows of zeros as they are."""
    largest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    scaled = rows / np.where(largest > 0, largest, 1.0)  # squares of very large or small numbers stay numbers
    norms = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))[:, None]
    return np.asarray(scaled * (_JUST_BELOW / np.where(norms > 0, norms, 1.0)), np.float32)
