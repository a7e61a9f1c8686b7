"""The figure of an inversion: what was reconstructed, setting by setting, beside the original and the best guess."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.audits.inversion import Inversion, Picture
from murmurcast.reports.drawn import Drawn

_INK, _FAINT, _FRAME = "#20242b", "#5d646f", "#c9ccd1"
_HEAD, _SMALL = 9, 7.5  # points
_WIDTH, _ROW, _HEADS = 7.2, 1.58, 0.55  # inches
_LINE = 18  # characters below a head


def inversion_figure(inversion: Inversion) -> Figure:
    """Rows by how many images a node holds; columns: original, every setting, and the guess without listening."""
    rows, columns = len(inversion.images_per_node), len(inversion.settings) + 2
    figure = Drawn(figsize=(_WIDTH, _HEADS + _ROW * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for row, images in zip(panels, inversion.images_per_node, strict=True):
        _draw(row[0], inversion, inversion.original, "")
        row[0].set_ylabel(
            _row_label(images), fontsize=_HEAD, color=_INK, rotation=0, ha="right", va="center", labelpad=8
        )
        for axes, setting in zip(row[1:-1], inversion.settings, strict=True):
            picture = inversion.picture(setting.name, images)
            _draw(axes, inversion, picture.image, f"error {_number(picture)}\n{_labels(picture, inversion.label)}")
        _draw(row[-1], inversion, inversion.guess, "error 1\n")
    name = inversion.label_names[inversion.label]
    heads = [("original", f'"{name}"'), *((one.name, one.promise) for one in inversion.settings)]
    for axes, (head, below) in zip(panels[0], [*heads, ("best guess", "without listening")], strict=True):
        lines = textwrap.wrap(below, _LINE)
        small = "\n".join([*lines, *[""] * (2 - len(lines))])  # all heads at the same height
        axes.set_title(small, fontsize=_SMALL, color=_FAINT, pad=3)
        axes.annotate(
            head, (0.5, 1), (0, 26), "axes fraction", "offset points", ha="center", fontsize=_HEAD, color=_INK
        )
    return figure


def inversion_caption(inversion: Inversion) -> str:
    """What the figure shows, in words made from its numbers."""
    runs = max(len(picture.errors) for picture in inversion.pictures)
    first = (
        f"One image of {inversion.data}, as an eavesdropper reconstructs it who hears every antenna for "
        f"{inversion.epochs} epochs and knows all other images. Error: mean squared error in units of that of the best "
        f"guess without listening, the mean of all other images; mean and standard error of {runs} runs, the first of "
        "which is shown. Told apart from guessing: at 99 %."
    )
    return " ".join([first, *(_sentence(inversion, setting.name) for setting in inversion.settings)])


def _sentence(inversion: Inversion, setting: str) -> str:
    pictures = [inversion.picture(setting, images) for images in inversion.images_per_node]
    errors = [_number(one) + ("" if one.beats_guessing else " (not told apart from guessing)") for one in pictures]
    counts = [f"{one.images_per_node:,}" for one in pictures]
    return f"{setting[0].upper()}{setting[1:]}: error {_listed(errors)} with {_listed(counts)} images per node."


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _draw(axes: Axes, inversion: Inversion, image: FloatArray, below: str) -> None:
    low, high = inversion.value_range
    axes.imshow(image, cmap="gray_r", vmin=low, vmax=high, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(color=_FRAME, linewidth=0.6)
    axes.set_xlabel(below, fontsize=_SMALL, color=_INK, labelpad=3, linespacing=1.25)


def _row_label(count: int) -> str:
    return f"{count:,} image{'s' if count > 1 else ''}\nper node"


def _number(picture: Picture) -> str:
    if len(picture.errors) == 1:
        return f"{picture.error:.2f}" if picture.error >= 0.005 else "below 0.01"
    digits = 2 if picture.uncertainty >= 0.005 else 3
    return f"{picture.error:.{digits}f} \N{PLUS-MINUS SIGN} {picture.uncertainty:.{digits}f}"


def _labels(picture: Picture, label: int) -> str:
    right = sum(one == label for one in picture.labels)
    return f"label right: {right} of {len(picture.labels)}"
