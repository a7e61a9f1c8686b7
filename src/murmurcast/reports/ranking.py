"""The page of a ranking: tables per adversary and budget, charts, the terms, and what could not run."""

import html
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from murmurcast import _files
from murmurcast._json import json_text
from murmurcast.privacy.rounding import at_most
from murmurcast.reports import plots, ranking_plots
from murmurcast.reports.page import (
    Cell,
    Chart,
    Embedded,
    Row,
    Section,
    Table,
    Text,
    Verdict,
    number,
    promised,
    render,
)
from murmurcast.reports.runs import citation, require_path
from murmurcast.runs.ranking import NOBODY, NOT_PAID, TRUSTED, Ranking, Score

PAGE, VALUES = "ranking.html", "ranking.json"
USES_PLOTS, ADVERSARIES_PLOTS = (("uses.png", "uses.pdf"), ("adversaries.png", "adversaries.pdf"))
_DASHES = {"everybody": "solid", "eavesdropper and one node": "dash", "eavesdropper": "dot", TRUSTED: "dashdot"}
_SERIES = 6
HEADINGS = (
    "",
    "method",
    "{metric}",
    "spread",
    "worst node",
    "epsilon",
    "against",
    "epochs x uses",
    "step",
)
LEADING = ("against", "epsilon (unit {unit})", "uses", "first", "{metric}", "next", "{metric}", "apart")
APART = "apart: whether the two means differ by more than two standard errors of their difference"


def write(ranking: Ranking, folder: Path) -> tuple[Path, ...]:
    """Writes values, page and plots into a folder that exists."""
    require_path(folder / PAGE)
    _files.write_atomically(folder / VALUES, json_text(ranking.as_dict(), indent=1).encode())
    _files.write_atomically(folder / PAGE, page_of(ranking).encode(errors="backslashreplace"))
    if not ranking.adversaries:
        return folder / PAGE, folder / VALUES
    for names, figure in (
        (USES_PLOTS, ranking_plots.uses_figure(ranking)),
        (ADVERSARIES_PLOTS, ranking_plots.adversaries_figure(ranking)),
    ):
        for name in names:
            plots.save(figure, folder / name)
    return tuple(folder / name for name in (PAGE, VALUES, *USES_PLOTS, *ADVERSARIES_PLOTS))


def page_of(ranking: Ranking) -> str:
    """The page as text."""
    seeds = f"{ranking.seeds} seed{'s' if ranking.seeds > 1 else ''}"
    budgets = ", ".join(f"{epsilon:g}" for epsilon in ranking.epsilons)
    lead = [
        f"{ranking.nodes} nodes, {seeds}; total epsilon {budgets} at delta {ranking.delta:g}, unit {ranking.hidden}.",
        f"Made by murmurcast {version('murmurcast')}. All of it is in this one file.",
    ]
    sections = [_summary(ranking), *(_against(ranking, who) for who in ranking.adversaries)]
    if any(score.against == NOBODY for score in ranking.scores):
        sections.append(_unprotected(ranking))
    sections += [_terms(ranking), citation()]
    return render(f"Methods ranked on {ranking.name}", lead, sections)


def cells(ranking: Ranking, scores: tuple[Score, ...], *, ranked: bool = True) -> list[Row]:
    """One row per score, under `HEADINGS`; those that are not ranked have no place."""
    return [(str(place) if ranked else "", *_cells(ranking, score)) for place, score in enumerate(scores, 1)]


def headings(ranking: Ranking, of: tuple[str, ...] = HEADINGS) -> tuple[str, ...]:
    """Of a table of scores, or of leaders."""
    return tuple(heading.format(metric=ranking.metric, unit=ranking.hidden) for heading in of)


def leaders(ranking: Ranking) -> list[Row]:
    """Who leads for every adversary and budget, who is next, and whether that is more than chance; under `LEADING`."""
    rows: list[Row] = []
    for against, epsilon, uses in product(ranking.adversaries, ranking.epsilons, ranking.uses):
        scores = [one for one in ranking.table(against, epsilon, uses) if np.isfinite(one.mean)]
        then: Row = ("-", "-", "-")
        for other in scores[1:2]:
            apart = "yes" if clearly_ahead(scores[0], other) else "no"
            then = (other.method, number(other.mean, ".3f"), apart)
        if scores:
            budget = (against, f"{epsilon:g}", str(uses))
            rows.append((*budget, scores[0].method, number(scores[0].mean, ".3f"), *then))
    return rows


def clearly_ahead(first: Score, other: Score) -> bool:
    """Whether two means are more than two standard errors of their difference apart; never with one seed."""
    if first.spread is None or other.spread is None:
        return False
    error = np.sqrt(first.spread**2 / len(first.by_seed) + other.spread**2 / len(other.by_seed))
    return bool(abs(first.mean - other.mean) > 2 * error or not np.isfinite(other.mean))


def _cells(ranking: Ranking, score: Score) -> Row:
    chosen = "".join(f", {name} {value:g}" for name, value in score.options.items())
    edge = ", end of the grid" if score.at_edge else ""
    step = f"{score.decay} {score.step:.3g}{chosen}{edge}"
    worst = int(np.argmin(score.by_node) if ranking.metric == "accuracy" else np.argmax(score.by_node))
    return (
        score.method,
        number(score.mean, ".3f"),
        number(score.spread, ".3f"),
        Cell(f"{score.by_node[worst]:.3f}", score.by_node[worst]),
        Cell("none") if score.certified is None else promised(score.certified, 3),
        score.against,
        f"{score.epochs} x {score.uses_per_epoch}",
        Cell(step),
    )


def _summary(ranking: Ranking) -> Section:
    warning = Verdict(f"{NOT_PAID[0].upper()}{NOT_PAID[1:]}.", "warning")
    ahead = Table("Who leads", headings(ranking, LEADING), tuple(leaders(ranking)), APART)
    charts = tuple(
        Chart(
            _lines(ranking, epsilon),
            f"Published {ranking.metric} on the test part against channel uses, at epsilon {at_most(epsilon)} (delta "
            f"{ranking.delta:g}, unit {ranking.hidden}). Solid: against everybody; dashed: an eavesdropper and one "
            "node; dotted: an eavesdropper; dash-dotted: if a server is trusted. Bars: one standard deviation over "
            "seeds.",
            f"uses-{place}",
        )
        for place, epsilon in enumerate(ranking.epsilons)
    )
    return Section("Summary", (warning, ahead, *(charts if ranking.adversaries else ())), "summary")


def _against(ranking: Ranking, against: str) -> Section:
    """Bars and tables of one adversary."""
    note = (
        "Mean over nodes and seeds of what is published; spread: standard deviation over seeds; epsilon: recomputed "
        "from the run's ledger. The row without a place is what a trusted server reaches."
    )
    tables = tuple(
        Table(
            f"epsilon {epsilon:g} (delta {ranking.delta:g}, unit {ranking.hidden}) against {against}, {uses} uses",
            headings(ranking),
            (
                *cells(ranking, ranking.table(against, epsilon, uses)),
                *cells(ranking, ranking.ceiling(epsilon, uses), ranked=False),
            ),
            note,
        )
        for epsilon, uses in product(ranking.epsilons, ranking.uses)
    )
    name = against.replace(" ", "-")
    caption = f"Published {ranking.metric} at equal epsilon against {against}, for every budget."
    return Section(f"Against {against}", (Chart(_bars(ranking, against), caption, f"bars-{name}"), *tables), name)


def _unprotected(ranking: Ranking) -> Section:
    tables = tuple(
        Table(f"No privacy, {uses} channel uses", headings(ranking), tuple(cells(ranking, ranking.unprotected(uses))))
        for uses in ranking.uses
    )
    return Section("No privacy", (Text(("What is reached where nothing is promised.",)), *tables), "no-privacy")


def _terms(ranking: Ranking) -> Section:
    left_out = Table("Not ranked", ("method", "why"), tuple((one.method, one.reason) for one in ranking.left_out))
    blocks = (
        Text(terms()),
        *((left_out,) if ranking.left_out else ()),
        Embedded("All values, as JSON", json_text(ranking.as_dict(), indent=1), "ranking"),
    )
    return Section("Terms", blocks, "terms")


def terms() -> tuple[str, ...]:
    """On which terms methods are ranked."""
    return (
        "Equal privacy: every method gets the least noise that meets the budget by its own account, against the "
        "adversary named. Equal channel uses: a method with two messages in an epoch has half the epochs.",
        "Tuned alike: the same grid of step lengths for all, and besides it what a method's authors leave to be "
        "chosen. Settings are chosen on every fifth record of the training part, with the noise that the rest needs; "
        "the test part is looked at once, with fresh seeds, after training on the whole training part.",
        "Published models are averaged alike where a method's promise covers that. The first message, free of data, "
        "carries no noise. What diverges loses.",
    )


def _lines(ranking: Ranking, epsilon: float) -> go.Figure:
    figure = go.Figure()
    known = dict.fromkeys((score.method, score.against) for score in ranking.scores if score.epsilon == epsilon)
    methods = list(dict.fromkeys(method for method, _ in known))
    last = {(one.method, one.against): one for one in ranking.ordered(ranking.scores) if one.epsilon == epsilon}
    for method, against in ((one.method, one.against) for one in ranking.ordered(last.values())):
        scores = [one for one in ranking.scores if (one.method, one.against, one.epsilon) == (method, against, epsilon)]
        scores = sorted((one for one in scores if np.isfinite(one.mean)), key=lambda one: one.uses)
        series = methods.index(method) % _SERIES + 1
        figure.add_scatter(
            x=[one.uses for one in scores],
            y=[one.mean for one in scores],
            error_y={"array": [one.spread or 0.0 for one in scores], "thickness": 1, "width": 3},
            name=html.escape(method if against == "everybody" else f"{method}, {against}", quote=False),
            mode="lines+markers",
            marker={"symbol": methods.index(method) // _SERIES, "size": 7},
            line={"color": f"var(--series-{series})", "dash": _DASHES[against], "width": 2},
            hovertemplate="%{fullData.name}<br>%{x} uses: %{y:.4f}<extra></extra>",
        )
    figure.update_xaxes(
        title="channel uses", type="log", tickvals=list(ranking.uses), ticktext=list(map(str, ranking.uses))
    )
    figure.update_yaxes(title=f"published {ranking.metric}")
    legend = {"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top", "font": {"size": 11}}
    return figure.update_layout(showlegend=True, legend=legend, height=max(420, 60 + 20 * len(known)))


def _bars(ranking: Ranking, against: str) -> go.Figure:
    """Methods from the best on top, by their mean over all budgets; one bar per budget."""
    budgets = list(product(ranking.epsilons, ranking.uses))
    tables = [{score.method: score for score in ranking.table(against, *budget)} for budget in budgets]
    methods = sorted({name for table in tables for name in table}, key=lambda name: _overall(ranking, tables, name))
    figure = go.Figure()
    for place, ((epsilon, uses), table) in enumerate(zip(budgets, tables, strict=True)):
        scores = [table[name] for name in methods if name in table]
        figure.add_bar(
            y=[html.escape(one.method, quote=False) for one in scores],
            x=[one.mean if np.isfinite(one.mean) else None for one in scores],
            error_x={"array": [one.spread or 0.0 for one in scores], "thickness": 1, "width": 2},
            orientation="h",
            name=f"epsilon {epsilon:g}, {uses} uses",
            marker={"color": f"var(--series-{place % _SERIES + 1})"},
            hovertemplate="%{y}<br>%{fullData.name}: %{x:.4f}<extra></extra>",
        )
    figure.update_xaxes(title=f"published {ranking.metric}", rangemode="tozero")
    figure.update_layout(barmode="group", bargap=0.25, showlegend=True, legend={"traceorder": "normal"})
    return figure.update_layout(height=120 + len(methods) * (14 + 9 * len(budgets)))


def _overall(ranking: Ranking, tables: list[dict[str, Score]], name: str) -> float:
    """The larger the better; below all where every run diverged."""
    means = [table[name].mean for table in tables if name in table and np.isfinite(table[name].mean)]
    sign = 1 if ranking.metric == "accuracy" else -1
    return sign * float(np.mean(means)) if means else -np.inf
