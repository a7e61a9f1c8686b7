"""The look of printed figures: one column of an IEEE page, told apart without colour."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN = 3.5  # inches
INK = "#20242b"
_GRID = "#8a8f98"
_TEXT = 8  # points


class Look(NamedTuple):
    """How a curve is drawn; all three differ, so that a curve is known by each of them."""

    colour: str
    dashes: str | tuple[int, tuple[int, ...]]
    marker: str


# Light and dark alternate: printed in grey, neighbours still differ.
LOOKS = (
    Look("#0b4f6c", "-", "o"),
    Look("#e07a1f", "--", "s"),
    Look("#7a1f3d", "-.", "^"),
    Look("#6fa84f", ":", "D"),
    Look("#20242b", (0, (5, 1, 1, 1, 1, 1)), "v"),
    Look("#8a6fc0", (0, (8, 2)), "P"),
)


def column(height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure one column wide with its panels, from the top."""
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    panels = list(np.ravel(figure.subplots(rows, 1)))
    for axes in panels:
        axes.grid(color=_GRID, alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=_TEXT - 1, width=0.6, length=2.5)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set_size(_TEXT)
    return figure, panels


def title(axes: Axes, text: str) -> None:
    """A panel's title, small and to the left."""
    axes.set_title(text, loc="left", fontsize=_TEXT)


def legend(place: Axes | Figure, *what: Any, **where: Any) -> None:
    """The legend of a panel or of a whole figure, small and without a frame; arguments as matplotlib's."""
    place.legend(*what, frameon=False, fontsize=_TEXT - 1, handlelength=2.6, labelspacing=0.3, **where)
