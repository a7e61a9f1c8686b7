"""Figures that a notebook shows by themselves: the last line of a cell is enough, without any magic."""

import io
import warnings
from typing import Any

from matplotlib.figure import Figure

_SHARPNESS = 2.0  # dots for every pixel, as screens of laptops and phones have them
_PIXELS = 96  # of a page, for every inch


class Drawn(Figure):
    """A figure of matplotlib that belongs to no window and no backend.

    matplotlib's own are shown only where a backend has been told to: with `%matplotlib inline`, or once pyplot is
    imported.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The picture, and the size at which it is meant."""
        width, height = pixels(self)
        return as_png(self), {"width": width, "height": height}


def pixels(figure: Figure) -> tuple[int, int]:
    """How wide and how high a figure is meant to be shown."""
    width, height = (round(float(inches) * _PIXELS) for inches in figure.get_size_inches())
    return width, height


def as_png(figure: Figure) -> bytes:
    """The figure as a picture."""
    kept = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(kept, format="png", dpi=_SHARPNESS * _PIXELS)
    return kept.getvalue()
