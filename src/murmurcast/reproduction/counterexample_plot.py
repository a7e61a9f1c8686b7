"""The counterexample in one column: how far apart the two worlds look, and what was claimed of it."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmurcast.reproduction import style
from murmurcast.reproduction.counterexample import LOUD, TARGET, Counterexample, curves, epsilons

_SMALL = 7  # points
_ABSENT, _PRESENT = style.LOOKS[0], style.LOOKS[1]


def counterexample_figure(c: Counterexample) -> Figure:
    """Above the attack's statistic in both worlds, below claimed, shown, linear and certified epsilon."""
    figure, (above, below) = style.column(3.9, rows=2)
    _draw_statistic(above, c)
    _draw_epsilons(below, c)
    return figure


def _draw_statistic(axes: Axes, c: Counterexample) -> None:
    axes.set_axisbelow(True)
    _, columns = curves(c)["counterexample-histogram"]
    middle, absent, present, linear_absent, linear_present = columns.T
    width = float(middle[1] - middle[0])
    axes.bar(middle, absent, width, color=_ABSENT.colour, alpha=0.35, label='world "absent"')
    axes.bar(middle, present, width, facecolor="none", edgecolor=_PRESENT.colour, hatch="////", linewidth=0)
    axes.bar(0, 0, 0, facecolor="none", edgecolor=_PRESENT.colour, hatch="////", linewidth=0, label='world "present"')
    axes.plot(middle, linear_absent, color=style.INK, linewidth=1, label="linear diagnostic")
    axes.plot(middle, linear_present, color=style.INK, linewidth=1)
    top = float(columns[:, 1:].max())
    axes.vlines(
        c.attack.measured.threshold, 0, 1.08 * top, color=style.INK, linestyle=":", linewidth=1.2, label="threshold"
    )
    axes.set_ylim(0, 1.55 * top)
    axes.set_xlabel(f"log likelihood ratio of what node {LOUD} hears")
    axes.set_ylabel("density of runs")
    style.legend(axes, loc="upper center", ncols=2, columnspacing=1.2)


def _draw_epsilons(axes: Axes, c: Counterexample) -> None:
    axes.set_axisbelow(True)
    values = epsilons(c)
    shades = ("white", _PRESENT.colour, "#c9ccd1", _ABSENT.colour)
    hatches = ("", "", "....", "")
    places = np.arange(len(values))[::-1]
    bars = axes.barh(places, list(values.values()), 0.62, color=shades, edgecolor=style.INK, linewidth=0.7)
    for bar, hatch, value in zip(bars, hatches, values.values(), strict=True):
        bar.set_hatch(hatch)
        place = (value, bar.get_y() + bar.get_height() / 2)
        axes.annotate(f"{value:.3g}", place, (3, 0), textcoords="offset points", va="center", fontsize=_SMALL)
    axes.axvline(c.claim.epsilon, color=style.INK, linestyle="--", linewidth=0.8)
    axes.set_xlim(0, max(values.values()) * 1.15)
    axes.set_yticks(places, list(values), fontsize=_SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"epsilon of the run about a record of node {TARGET}")
