"""The plot of a link budget: the signal-to-noise ratio of every link, and what receivers need."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from murmurcast.radio.link_budget import LinkBudget
from murmurcast.reports.drawn import Drawn

_LINK, _NEED, _INK, _FAINT = "#1f6f8b", "#c77d0a", "#20242b", "#8a8f98"
_CROWD = 400  # links from which on points are smaller


def link_figure(budget: LinkBudget) -> Figure:
    """SNR of every directed link against its length, or by rank where nodes have no positions.

    The band is the range of all receivers' SNR*, each of its worst epoch: where what a receiver hears lies above its
    own, the noise that hides data is larger than the receiver's. At 0 dB a signal is as strong as the noise.
    """
    figure = Drawn(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    across, label = _across(budget)
    size = 30 if len(across) <= _CROWD else 10
    axes.scatter(across, budget.snr_db, s=size, color=_LINK, alpha=0.7, linewidths=0, label="link", zorder=3)
    _draw_levels(axes, budget.needed_snr_db.max(axis=0))
    axes.set_xlabel(label)
    axes.set_ylabel("signal-to-noise ratio, dB per symbol")
    if budget.distance_m is not None and across.max() > 4 * max(across.min(), 1e-9):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(y=0.12)
    axes.grid(color=_FAINT, alpha=0.25, linewidth=0.6)
    axes.spines[["top"]].set_visible(False)
    _add_received_power(axes, budget)
    axes.legend(frameon=False, loc="best", fontsize=8.5)
    return figure


def _across(budget: LinkBudget) -> "tuple[np.ndarray[tuple[int], np.dtype[np.float64]], str]":
    if budget.distance_m is not None:
        return np.maximum(budget.distance_m, 1e-3), "distance, m"
    rank = np.empty(len(budget.snr_db))
    rank[np.argsort(-budget.snr_db, kind="stable")] = np.arange(1, len(rank) + 1)
    return rank, "links, strongest first"


def _draw_levels(axes: Axes, needed: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> None:
    axes.axhline(0, color=_INK, linewidth=1.2, linestyle="--", label="receiver noise (0 dB)", zorder=2)
    if not np.isfinite(needed).all():
        return
    words = "SNR* of receivers: median, and all of them"
    axes.axhspan(float(needed.min()), float(needed.max()), color=_NEED, alpha=0.18, linewidth=0, zorder=1)
    axes.axhline(float(np.median(needed)), color=_NEED, linewidth=1.6, label=words, zorder=2)


def _add_received_power(axes: Axes, budget: LinkBudget) -> None:
    """A second scale, where all receivers have one noise."""
    floor = float(budget.noise_dbm[0])
    if np.ptp(budget.noise_dbm) > 1e-9 * abs(floor):
        axes.spines[["right"]].set_visible(False)
        return
    right = axes.secondary_yaxis(
        "right", functions=(lambda snr: np.asarray(snr) + floor, lambda power: np.asarray(power) - floor)
    )
    right.set_ylabel("received power, dBm")
