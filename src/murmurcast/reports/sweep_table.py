"""A sweep as one table: what every point reached, and what it costs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.privacy.rounding import at_most
from murmurcast.reports.page import Cell, Row, number
from murmurcast.runs.ranking import NOT_PAID
from murmurcast.runs.result import samples_in_words, spread_over_seeds
from murmurcast.runs.sweep import Point, Sweep
from murmurcast.runs.sweep_data import labels

NOTE = (
    "mean over nodes and seeds; spread: standard deviation over seeds; worst node: its mean over seeds\n"
    f"epsilon paid: recomputed from the ledger, for the node that pays most\n{NOT_PAID}"
)
_VAGUE = ("file", "kind", "max", "min", "seed")


class Summary(NamedTuple):
    """What one point came to.

    Attributes:
        mean: Of the metric at the last epoch, over nodes and seeds.
        spread: Standard deviation over seeds of the mean over nodes; None with one seed.
        worst: The worst node's mean over seeds.
        seeds: How many.
        epochs: How many.
        channel_uses: In all.
        epsilon: What the run costs the node that pays most; None where nothing is promised, or no account holds.
        delta: Beside it.
    """

    mean: float
    spread: float | None
    worst: float
    seeds: int
    epochs: int
    channel_uses: int
    epsilon: float | None
    delta: float


def shown_metric(sweep: Sweep, metric: str | None) -> str:
    """The metric that was asked for, or the first that every run has of published models."""
    names = [
        {str(name) for name, one in run.metrics.items() if "node" in one.dims and "epoch" in one.dims}
        for run in sweep.runs.values()
    ]
    known = set.intersection(*names) if names else set()
    if metric is None:
        return "published_accuracy" if "published_accuracy" in known else "published_loss"
    if metric not in known:
        raise Error(f'"{metric}" is not a metric of all runs of this sweep', hint=_check.nearest(metric, known))
    return metric


def summary(sweep: Sweep, point: Point, metric: str) -> Summary:
    """What a finished point came to."""
    run = sweep.runs[point.name]
    final = np.asarray(run.final(metric), np.float64)
    by_node = final.mean(axis=0)
    return Summary(
        mean=float(final.mean()),
        spread=float(spread_over_seeds(final.mean(axis=1))) if len(final) > 1 else None,
        worst=float(by_node.min() if metric.endswith("accuracy") else by_node.max()),
        seeds=len(final),
        epochs=int(run.info["epochs"]),
        channel_uses=int(run.metrics["channel_uses"][-1]),
        epsilon=sweep.epsilons[point.name],
        delta=float(run.info["privacy"]["delta"]),
    )


def note(sweep: Sweep) -> str:
    """What must be said below the table, a line each."""
    return "\n".join((NOTE, *samples_in_words(*sweep.runs.values())))


def headings(sweep: Sweep, metric: str) -> tuple[str, ...]:
    """What the columns of `cells` are."""
    covered = ("epsilon paid",) if metric.startswith("published_") else ()
    return (*map(short_key, sweep.axes), metric, "spread", "worst node", "epochs", "uses", *covered)


def cells(sweep: Sweep, metric: str) -> list[Row]:
    """One row for every finished point, in the order of what was varied."""
    covered = metric.startswith("published_")  # a promise covers no others, and stands beside no others
    rows: list[Row] = []
    for point in in_order(sweep):
        one = summary(sweep, point, metric)
        against = sweep.runs[point.name].info["privacy"]["against"]
        weaker = "" if against in ("everybody", "nobody") else f" ({against})"
        cost = Cell("not promised") if one.epsilon is None else Cell(f"{at_most(one.epsilon, 3)}{weaker}", one.epsilon)
        rows.append(
            (
                *(_value(point, key) for key in sweep.axes),
                number(one.mean, ".4f"),
                number(one.spread, ".4f"),
                number(one.worst, ".4f"),
                str(one.epochs),
                str(one.channel_uses),
                *((cost,) if covered else ()),
            )
        )
    return rows


def failed(sweep: Sweep) -> list[tuple[str, str, str]]:
    """Points that failed, why, and how often they were tried."""
    return [(one.name, one.problem, str(one.attempts)) for one in sweep.failures]


def in_order(sweep: Sweep) -> list[Point]:
    """Finished points, sorted by numbers, and words as they were given."""
    done = sweep.done
    keys = [_places(labels(done, key)) for key in sweep.axes]
    order = sorted(range(len(done)), key=lambda at: tuple(places[at] for places in keys))
    return [done[at] for at in order]


def short_key(key: str) -> str:
    """The last part of a dotted key; of a name, what it is the name of, and of a word for many things, of which."""
    *above, last = key.split(".")
    if not above:
        return last
    return above[-1] if last == "name" else f"{above[-1]} {last}" if last in _VAGUE else last


def _places(values: Sequence[float | str]) -> list[float]:
    """Numbers by size; words by where they first stand."""
    if all(isinstance(value, int | float) for value in values):
        return [float(value) for value in values]
    first = list(dict.fromkeys(values))
    return [float(first.index(value)) for value in values]


def _value(point: Point, key: str) -> Cell:
    value = point.values[key]
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(point.text(key), float(value) if numeric else None)
