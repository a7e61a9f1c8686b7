"""Plots of a ranking: what methods reach with so many channel uses, and who leads against whom."""

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.algorithms.registry import DEFAULT
from murmurcast.errors import Error
from murmurcast.reports.drawn import Drawn
from murmurcast.runs.ranking import NOBODY, TRUSTED, Ranking, Score

_INK, _GREY, _RULE = "#20242b", "#8a8f98", "#c9cdd3"
_BEST, _OURS, _BAR = "#3a7d44", "#d1495b", "#9fb8c4"
_COLOURS = (
    *("#1f6f8b", "#d1495b", "#3a7d44", "#7b4b94", "#c77d0a", "#2a9d8f", "#8c564b", "#5566c4"),
    *("#b3589a", "#7a8b1e", "#4aa3df", "#a23b1d", "#6b7280", "#e08bb4", "#5a3e2b", "#a89a00"),
)
_MARKERS = ("o", "s", "^", "D")
_DASHES = {"everybody": "-", "eavesdropper and one node": (0, (5, 2)), "eavesdropper": (0, (1.5, 1.5)), TRUSTED: "-."}
_SHORT = {"eavesdropper and one node": " (eavesdr. + 1 node)", "eavesdropper": " (eavesdropper)", TRUSTED: " (server)"}


def uses_figure(ranking: Ranking) -> Figure:
    """The metric against channel uses, one line per method and adversary, one panel per epsilon."""
    _require_scores(ranking)
    lines = _lines(ranking)
    height = max(3.6, 1.3 + 0.19 * len(lines))
    figure = Drawn(figsize=(1.0 + 5.4 * len(ranking.epsilons), height), layout="constrained")
    axes = figure.subplots(1, len(ranking.epsilons), sharey=True, squeeze=False)[0]
    for side, epsilon in zip(axes, ranking.epsilons, strict=True):
        _draw_lines(side, ranking, lines, epsilon)
        side.set_title(f"epsilon {epsilon:g}, delta {ranking.delta:g}, unit {ranking.hidden}", fontsize=9, color=_INK)
    axes[0].set_ylabel(f"published {ranking.metric}, test part")
    return figure


def adversaries_figure(ranking: Ranking) -> Figure:
    """Bars of all methods, the best on top: a row of panels per adversary, a panel per budget."""
    _require_scores(ranking)
    budgets = list(product(ranking.epsilons, ranking.uses))
    rows = [max(len(ranking.table(who, *budget)) for budget in budgets) for who in ranking.adversaries]
    figure = Drawn(figsize=(3.9 * len(budgets), 0.9 * len(rows) + 0.2 * sum(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(budgets), squeeze=False, sharex=True, height_ratios=[one + 3 for one in rows])
    for (row, against), (column, budget) in product(enumerate(ranking.adversaries), enumerate(budgets)):
        _draw_bars(axes[row, column], ranking, ranking.table(against, *budget))
        _draw_ceiling(axes[row, column], ranking, budget)
        title = f"against {against}\nepsilon {budget[0]:g}, {budget[1]} uses"
        axes[row, column].set_title(title, fontsize=8.5, loc="left", color=_INK)
    for side in axes[-1]:
        side.set_xlabel(f"published {ranking.metric}, test part", fontsize=8)
    return figure


def label(score: Score) -> str:
    """A method, and the adversary where its budget is not about everybody."""
    return _check.printable(score.method[:40]) + _SHORT.get(score.against, "")


def _require_scores(ranking: Ranking) -> None:
    if not ranking.adversaries:
        raise Error("no method that promises anything was ranked: there is nothing to draw", hint="rank other methods")


def _lines(ranking: Ranking) -> list[tuple[str, str]]:
    """(method, adversary) of every line, those against everybody first."""
    known = dict.fromkeys((score.against, score.method) for score in ranking.scores if score.against != NOBODY)
    order = ("everybody", "eavesdropper and one node", "eavesdropper", TRUSTED)
    return [(method, against) for who in order for against, method in known if against == who]


def _draw_lines(axes: Axes, ranking: Ranking, lines: list[tuple[str, str]], epsilon: float) -> None:
    methods = list(dict.fromkeys(method for method, _ in lines))
    ends: list[tuple[float, str, str, bool]] = []
    for method, against in lines:
        scores = [one for one in ranking.scores if (one.method, one.against, one.epsilon) == (method, against, epsilon)]
        scores = sorted((one for one in scores if np.isfinite(one.mean)), key=lambda one: one.uses)
        if not scores:
            continue
        index = methods.index(method)
        colour = _INK if against == TRUSTED else _COLOURS[index % len(_COLOURS)]
        marker, bold = _MARKERS[index // len(_COLOURS) % len(_MARKERS)], method == DEFAULT
        x, y = [one.uses for one in scores], np.array([one.mean for one in scores])
        error = np.array([one.spread or 0.0 for one in scores])
        look: Any = {"color": colour, "linestyle": _DASHES[against], "linewidth": 2.6 if bold else 1.3}
        axes.plot(x, y, marker=marker, markersize=4, zorder=3 if bold else 2, **look)
        axes.errorbar(x, y, error, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.45, capsize=2)
        ends.append((float(y[-1]), label(scores[-1]), colour, bold))
    axes.set_xscale("log")
    axes.set_xticks(ranking.uses, [str(uses) for uses in ranking.uses])
    axes.minorticks_off()
    axes.set_xlabel("channel uses")
    axes.grid(color=_GREY, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.06)
    _write_ends(axes, ends)


def _write_ends(axes: Axes, ends: list[tuple[float, str, str, bool]]) -> None:
    """Every line's name beside its end, none over another."""
    ends = sorted(ends)
    low, high = axes.get_ylim()
    gap = (high - low) / max(24, len(ends))
    places = _apart(np.array([end for end, *_ in ends]), gap, (low, high))
    for (end, words, colour, bold), place in zip(ends, places, strict=True):
        axes.annotate(
            words,
            xy=(1.0, end),
            xytext=(1.08, place),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            fontsize=7,
            fontweight="bold" if bold else "normal",
            color=colour,
            va="center",
            parse_math=False,
            arrowprops={"arrowstyle": "-", "color": _RULE, "linewidth": 0.6, "shrinkA": 0, "relpos": (0, 0.5)},
        )


def _apart(wanted: FloatArray, gap: float, between: tuple[float, float]) -> FloatArray:
    """Places in the same order, as near to the wanted ones as a gap between them allows: pooled neighbours."""
    shifted = wanted - gap * np.arange(len(wanted))
    blocks: list[list[float]] = []
    for value in shifted.tolist():
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    level = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks]) if blocks else shifted
    level = np.clip(level, between[0], between[1] - gap * (len(wanted) - 1))
    return np.asarray(level + gap * np.arange(len(wanted)))


def _draw_bars(axes: Axes, ranking: Ranking, scores: tuple[Score, ...]) -> None:
    finite = [score for score in scores if np.isfinite(score.mean)]
    best = finite[0].method if finite else ""
    colours = [_OURS if one.method == DEFAULT else _BEST if one.method == best else _BAR for one in finite]
    means, places = [one.mean for one in finite], range(len(finite))
    errors = [one.spread or 0.0 for one in finite]
    axes.barh(places, means, xerr=errors, color=colours, height=0.72, error_kw={"elinewidth": 0.8, "ecolor": _INK})
    axes.set_yticks(places, [_check.printable(one.method[:40]) for one in finite], fontsize=7, parse_math=False)
    for place, score in zip(places, finite, strict=True):
        axes.text(0.004, place, f"{score.mean:.3f}", fontsize=6, va="center", transform=axes.get_yaxis_transform())
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(axis="x", color=_GREY, alpha=0.25, linewidth=0.6)
    if ranking.metric == "accuracy":
        axes.set_xlim(0, 1)


def _draw_ceiling(axes: Axes, ranking: Ranking, budget: tuple[float, int]) -> None:
    for score in ranking.ceiling(*budget)[:1]:
        axes.axvline(score.mean, color=_INK, linestyle="-.", linewidth=1)
        where: Any = {"xy": (score.mean, 0.02), "xycoords": ("data", "axes fraction")}
        axes.annotate("trusted server", **where, fontsize=6, ha="right", va="bottom", rotation=90, color=_INK)
