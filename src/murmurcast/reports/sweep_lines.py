"""What a plot of a sweep shows: a metric against one of the keys that were varied, a line for each of the others."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.reports.palette import DASHES, MARKERS, Key, Style, styles
from murmurcast.reports.sweep_table import short_key
from murmurcast.runs.result import spread_over_seeds
from murmurcast.runs.sweep import ALGORITHM, BUDGET, Point, Sweep, text_of
from murmurcast.runs.sweep_data import in_order, labels

MAX_PANELS = 12
_RATIO = 8.0  # of the largest to the smallest value, from which on a scale is logarithmic


class Line(NamedTuple):
    """One line.

    Attributes:
        name: What the legend says.
        style: How it looks.
        x: Where its points stand: numbers, or words.
        mean: Of the metric at the last epoch, over nodes and seeds.
        spread: Standard deviation over seeds of the mean over nodes; 0 with one seed.
    """

    name: str
    style: Style
    x: list[Any]
    mean: FloatArray
    spread: FloatArray


class Panel(NamedTuple):
    """Lines that are drawn together; `title` says what they share that others do not."""

    title: str
    lines: tuple[Line, ...]


class View(NamedTuple):
    """All that a plot needs.

    Attributes:
        metric: On the vertical axis.
        against: The key on the horizontal axis.
        values: All of its values, in order.
        is_numeric: Whether they are numbers.
        is_logarithmic: Whether they are far apart.
        is_drawn: Whether points were drawn, so that nothing joins them.
        panels: At least one.
    """

    metric: str
    against: str
    values: list[Any]
    is_numeric: bool
    is_logarithmic: bool
    is_drawn: bool
    panels: tuple[Panel, ...]


def default_axis(sweep: Sweep) -> str:
    """What a sweep is drawn against if nobody says: the budget, or the first key with several numbers."""
    numeric = [key for key in sweep.axes if is_drawable(sweep, key)]
    return BUDGET if BUDGET in numeric else (*numeric, *sweep.axes)[0]


def is_drawable(sweep: Sweep, key: str) -> bool:
    """Whether a key has several numbers, which have an order to draw along."""
    return _is_numeric(labels(sweep.done, key)) and len(_values(sweep, key)) > 1


def view(sweep: Sweep, metric: str, against: str | None = None) -> View:
    """Means over nodes and seeds at the last epoch, against a key; every other key tells lines apart."""
    against = against or default_axis(sweep)
    if against not in sweep.axes:
        raise Error(f'"{against}" was not varied', hint=_check.nearest(against, sweep.axes))
    if not sweep.runs:
        raise Error("no point of the sweep is done: there is nothing to draw", hint="finish it first")
    others = [key for key in sweep.axes if key != against and key not in sweep.drawn and len(_values(sweep, key)) > 1]
    plain = [key for key in others if key not in (ALGORITHM, BUDGET)]
    # One further key makes dashes and markers; from the second on, each combination has a panel of its own.
    rest = next((key for key in plain if len(_values(sweep, key)) <= len(DASHES) * len(MARKERS)), None)
    apart = [key for key in plain if key != rest]
    combinations = list(product(*(_values(sweep, key) for key in apart)))
    if len(combinations) > MAX_PANELS:
        raise Error(
            f"the plot would have {len(combinations)} panels, for every combination of {', '.join(apart)}",
            hint=f"draw a sweep over fewer keys; at most {MAX_PANELS} panels are drawn",
        )
    drawn = sorted((key for key in others if key not in apart), key=lambda key: key != ALGORITHM)
    looks = _looks(sweep, drawn, rest)
    panels = [
        _panel(sweep, metric, against, dict(zip(apart, values, strict=True)), drawn, looks) for values in combinations
    ]
    values = _values(sweep, against)
    numeric = _is_numeric(values)
    far = numeric and min(values) > 0 and max(values) >= _RATIO * min(values)
    return View(metric, against, values, numeric, far, bool(sweep.drawn), tuple(one for one in panels if one.lines))


def _looks(sweep: Sweep, keys: Sequence[str], rest: str | None) -> dict[tuple[Any, ...], Style]:
    """A style for every combination of the keys that tell lines apart."""
    ordered = [list(dict.fromkeys(_label(point, key) for point in _sorted(sweep))) for key in keys]
    known = {_identity(point, keys) for point in sweep.done}
    identities = [one for one in product(*ordered) if one in known]
    at = {key: place for place, key in enumerate(keys)}

    def part(identity: tuple[Any, ...], key: str | None) -> Any:
        return identity[at[key]] if key in at else None

    style_keys = [
        Key(str(part(one, ALGORITHM) or ""), part(one, BUDGET), "" if rest is None else str(part(one, rest)))
        for one in identities
    ]
    return dict(zip(identities, styles(style_keys), strict=True))


def _panel(
    sweep: Sweep,
    metric: str,
    against: str,
    fixed: dict[str, Any],
    keys: Sequence[str],
    looks: dict[tuple[Any, ...], Style],
) -> Panel:
    """The lines of the points that share these values."""
    mine = [point for point in _sorted(sweep) if all(_label(point, key) == value for key, value in fixed.items())]
    lines = []
    for identity, style in looks.items():
        points = sorted(
            (point for point in mine if _identity(point, keys) == identity),
            key=lambda point: _values(sweep, against).index(_label(point, against)),
        )
        if not points:
            continue
        by_seed = [np.asarray(sweep.runs[point.name].final(metric), np.float64).mean(axis=1) for point in points]
        name = ", ".join(_words(key, value) for key, value in zip(keys, identity, strict=True))
        spread = [float(spread_over_seeds(one)) if len(one) > 1 else 0.0 for one in by_seed]
        lines.append(
            Line(
                name=name or sweep.name,
                style=style,
                x=[_label(point, against) for point in points],
                mean=np.array([one.mean() for one in by_seed]),
                spread=np.array(spread),
            )
        )
    return Panel(", ".join(_words(key, value) for key, value in fixed.items()), tuple(lines))


def _sorted(sweep: Sweep) -> list[Point]:
    from murmurcast.reports.sweep_table import in_order as ordered

    return ordered(sweep)


def _values(sweep: Sweep, key: str) -> list[Any]:
    return in_order(labels(sweep.done, key))


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _label(point: Point, key: str) -> Any:
    value = point.values[key]
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else text_of(value)


def _identity(point: Point, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_label(point, key) for key in keys)


def _words(key: str, value: Any) -> str:
    text = text_of(value)
    return text if key == ALGORITHM else f"{short_key(key)} {text}"
