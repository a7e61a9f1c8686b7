"""Plots of a sweep: a metric against a key that was varied, with a band of one standard deviation over seeds."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from murmurcast import _check
from murmurcast.reports.drawn import Drawn
from murmurcast.reports.sweep_lines import Line, View, view
from murmurcast.reports.sweep_table import short_key, shown_metric
from murmurcast.runs.sweep import Sweep, text_of

_INK, _GREY = "#20242b", "#8a8f98"
DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1.2, 1.6)),
    "dashdot": (0, (5, 2, 1.2, 2)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 3, 1.2, 3)),
}
_MARKERS = dict(
    zip(
        ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down"),
        ("o", "s", "D", "^", "X", "*", "P", "v"),
        strict=True,
    )
)
_TICKS = 12  # values that are written; of more, what matplotlib chooses
_COLUMNS = 3


def sweep_figure(sweep: Sweep, metric: str | None = None, against: str | None = None) -> Figure:
    """A metric at the last epoch against a key: mean over nodes and seeds, band over seeds.

    Args:
        sweep: At least one of its points is done.
        metric: A metric of every node; by default the accuracy of published models, or their loss.
        against: The key; by default the budget, or the first that has several numbers.
    """
    shown = view(sweep, shown_metric(sweep, metric), against)
    columns = min(_COLUMNS, len(shown.panels))
    rows = -(-len(shown.panels) // columns)
    lines = max(len(panel.lines) for panel in shown.panels)
    height = max(3.9, 0.9 + 0.235 * lines) if rows == 1 else 3.4 * rows + 0.4
    figure = Drawn(figsize=((4.9 if columns == 1 else 3.9 * columns) + 2.4, height), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, sharex=True, squeeze=False)
    for side, panel in zip(axes.flat, shown.panels, strict=False):
        for line in panel.lines:
            _draw(side, line, shown)
        _dress(side, shown)
        side.set_title(_check.printable(panel.title), fontsize=9.5, color=_INK, parse_math=False)
    for side in list(axes.flat)[len(shown.panels) :]:
        side.set_visible(False)
    for side in axes[:, 0]:
        side.set_ylabel(_check.printable(shown.metric.replace("_", " ")), parse_math=False)
    _add_names(figure, shown)
    return figure


def _draw(axes: Axes, line: Line, shown: View) -> None:
    x: Any = line.x if shown.is_numeric else [shown.values.index(value) for value in line.x]
    joined = shown.is_numeric and not shown.is_drawn
    look: Any = {"color": line.style.light, "marker": _MARKERS[line.style.marker], "markersize": 4.5}
    axes.plot(x, line.mean, linestyle=DASHES[line.style.dash] if joined else "", linewidth=1.7, **look)
    if joined and len(x) > 1:
        low, high = line.mean - line.spread, line.mean + line.spread
        lines = max(len(panel.lines) for panel in shown.panels)  # of many, bands would cover each other
        axes.fill_between(x, low, high, color=line.style.light, alpha=min(0.15, 0.6 / lines), linewidth=0)
    elif np.any(line.spread):
        axes.errorbar(x, line.mean, line.spread, fmt="none", ecolor=line.style.light, elinewidth=0.9, capsize=2)


def _dress(axes: Axes, shown: View) -> None:
    """Scale, ticks at the values themselves where they are few, grid."""
    if shown.is_logarithmic:
        axes.set_xscale("log")
    texts = [_check.printable(text_of(value))[:24] for value in shown.values]
    if not shown.is_numeric:
        turned: Any = {"rotation": 30, "ha": "right"} if sum(map(len, texts)) > 36 else {}
        axes.set_xticks(range(len(texts)), texts, parse_math=False, **turned)
        axes.margins(x=0.12)
    elif len(texts) <= _TICKS and not shown.is_drawn:
        axes.set_xticks(shown.values, texts)
        axes.xaxis.set_minor_locator(NullLocator())
    elif shown.is_logarithmic:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(_check.printable(short_key(shown.against)), parse_math=False)
    axes.grid(color=_GREY, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _add_names(figure: Figure, shown: View) -> None:
    """One legend for all panels, beside them; names are written in afterwards, where "_" and "$" are letters."""
    lines = {line.name: line for panel in shown.panels for line in panel.lines}
    if len(lines) < 2:
        return
    joined = shown.is_numeric and not shown.is_drawn
    handles = []
    for line in lines.values():
        axes = figure.axes[0]
        (handle,) = axes.plot(
            [],
            [],
            color=line.style.light,
            linestyle=DASHES[line.style.dash] if joined else "",
            marker=_MARKERS[line.style.marker],
            markersize=4.5,
        )
        handles.append(handle)
    legend = figure.legend(
        handles, list(map(str, range(len(lines)))), loc="outside right upper", frameon=False, fontsize=8.5
    )
    for text, name in zip(legend.get_texts(), lines, strict=True):
        text.set(text=_check.printable(name[:60]), parse_math=False)
