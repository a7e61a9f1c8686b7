"""Accuracy against epsilon under one certificate: the paper's model on raw pixels, on features, and a small network."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.reproduction import style
from murmurcast.reproduction.document import Curve, Finding, Table
from murmurcast.reproduction.further import NETWORK, Row
from murmurcast.reproduction.run_tables import accuracy_curve, find
from murmurcast.reproduction.settings import CENTRAL, CERTIFIED_BUDGETS, OURS, Group
from murmurcast.reproduction.training import Run

_MISSING = "murmurcast reproduce --full"


class Line(NamedTuple):
    """One way to learn, at all budgets.

    Attributes:
        name: For people.
        mean: [budgets] accuracy of what is published.
        spread: [budgets] standard deviation over seeds.
    """

    name: str
    mean: FloatArray
    spread: FloatArray


def lines(runs: Sequence[Run], further: Sequence[Row] = ()) -> tuple[Line, ...]:
    """Without a server and with one, on raw pixels, on features, and by a small network where that was trained."""
    listed = [
        _line(runs, "raw pixels", "certified", OURS),
        _line(runs, "raw pixels, trusted server", "certified", CENTRAL),
        _line(runs, "features", "features", OURS),
        _line(runs, "features, trusted server", "features", CENTRAL),
    ]
    for server, name in ((False, NETWORK), (True, f"{NETWORK}, trusted server")):
        rows = [row for row in further if row.name == NETWORK and row.server is server]
        if rows:
            by_budget = {row.epsilon: row for row in rows}
            ordered = [by_budget[budget] for budget in CERTIFIED_BUDGETS]
            means, spreads = ([getattr(row, part) for row in ordered] for part in ("mean", "spread"))
            listed.append(Line(name, np.array(means), np.array(spreads)))
    return tuple(listed)


def _line(runs: Sequence[Run], name: str, group: Group, algorithm: str) -> Line:
    curves = [accuracy_curve(find(runs, group, algorithm, budget)) for budget in CERTIFIED_BUDGETS]
    return Line(name, np.array([one.mean[-1] for one in curves]), np.array([one.spread[-1] for one in curves]))


def findings(listed: Sequence[Line]) -> list[Finding]:
    """What better inputs are worth, budget by budget."""
    by_name = {line.name: line for line in listed}
    raw, described, server = by_name["raw pixels"], by_name["features"], by_name["raw pixels, trusted server"]
    return [
        Finding(
            None,
            f"Certified, epsilon {budget:g} in all: on features the published models reach {described.mean[place]:.3f} "
            f"(spread {described.spread[place]:.3f}), on raw pixels {raw.mean[place]:.3f}; of the errors "
            f"{100 * (1 - described.mean[place]) / (1 - raw.mean[place]):.0f} % are left. A trusted server on raw "
            f"pixels reaches {server.mean[place]:.3f}.",
        )
        for place, budget in enumerate(CERTIFIED_BUDGETS)
    ]


def table(listed: Sequence[Line]) -> Table:
    """One row for every way to learn, one column for every budget."""
    rows = [
        (line.name, *(f"{mean:.4f} ({spread:.4f})" for mean, spread in zip(line.mean, line.spread, strict=True)))
        for line in listed
    ]
    if not any(line.name == NETWORK for line in listed):
        rows.append((NETWORK, *(_MISSING for _ in CERTIFIED_BUDGETS)))
    note = (
        "Test accuracy of published models (spread over seeds); one image hidden, against everybody, or, with a "
        "trusted server, from everybody but it. Features look at no other image; centring and whitening are paid for "
        "out of the same budget. Clip and steps were chosen on public data."
    )
    headings = ("learnt from", *(f"epsilon {budget:g}" for budget in CERTIFIED_BUDGETS))
    return Table("better-inputs", "Accuracy under one total budget", headings, tuple(rows), note)


def curves(listed: Sequence[Line]) -> dict[str, Curve]:
    """All lines, as columns."""
    numbers = [np.array(CERTIFIED_BUDGETS), *(part for line in listed for part in (line.mean, line.spread))]
    names = [line.name.replace(", ", "-").replace(" ", "-") for line in listed]
    headings = ("epsilon", *(f"{name}{part}" for name in names for part in ("", "-spread")))
    return {"better-inputs": Curve(headings, np.column_stack(numbers))}


def figure(listed: Sequence[Line]) -> Figure:
    """Accuracy against epsilon."""
    drawn, (axes,) = style.column(3.0)
    for look, line in zip(style.LOOKS, listed, strict=False):
        axes.errorbar(
            CERTIFIED_BUDGETS,
            line.mean,
            yerr=line.spread,
            color=look.colour,
            linestyle=look.dashes,
            marker=look.marker,
            markersize=4,
            linewidth=1.1,
            capsize=2,
            label=line.name,
        )
    axes.set_xscale("log")
    axes.set_xticks(CERTIFIED_BUDGETS, [f"{budget:g}" for budget in CERTIFIED_BUDGETS])
    axes.minorticks_off()
    axes.set_xlabel(r"$\epsilon$ of the whole run")
    axes.set_ylabel("test accuracy")
    style.legend(drawn, *axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return drawn
