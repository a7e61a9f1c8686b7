"""What a sweep varies: values of keys, ranges to draw from, and the points that come of them."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.experiments.load import toml_value
from murmurcast.runs.sweep import ALGORITHM, Point, point_of

MAX_POINTS = 100_000
_DIGITS = 4  # of a number that is drawn: as many as anybody wants to read or to type again


class Range(NamedTuple):
    """Where a value is drawn from, both ends included; whole numbers where both ends are.

    Attributes:
        low: The lower end.
        high: The upper end.
        scale: "linear", or "log" for numbers above 0 that matter by their ratio.
    """

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"

    @property
    def is_whole(self) -> bool:
        """Whether whole numbers are drawn."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def at(self, share: float) -> float:
        """The value at a share in [0, 1) of the way from low to high."""
        low, high = (self.low - 0.5, self.high + 0.5) if self.is_whole else (self.low, self.high)
        if self.scale == "log":
            low, high = math.log(max(low, 0.5) if self.is_whole else low), math.log(high)
        value = low + share * (high - low)
        value = math.exp(value) if self.scale == "log" else value
        if self.is_whole:
            return int(min(max(round(value), self.low), self.high))
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)


def parse_grid(words: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """KEY=VALUE,VALUE,... of the command line, by key."""
    grid: dict[str, tuple[Any, ...]] = {}
    for item in words:
        key, text = _split("--grid", item, "privacy.epsilon=0.5,1,2")
        if key in grid:
            raise Error(f"--grid {key} is given twice", hint=f"give all values at once: --grid {key}=1,2,3")
        listed = toml_value(f"--grid {key}", f"[{text}]")
        # What is not TOML is a list of bare words, such as names of methods.
        values = listed if isinstance(listed, list) else [toml_value(f"--grid {key}", one) for one in _parts(text)]
        grid[key] = tuple(values)
    return grid


def parse_ranges(words: Sequence[str]) -> dict[str, Range]:
    """KEY=LOW:HIGH or KEY=LOW:HIGH:log of the command line, by key."""
    ranges: dict[str, Range] = {}
    example = "schedule.step=0.1:1:log"
    for item in words:
        key, text = _split("--range", item, example)
        low, _, rest = text.partition(":")
        high, _, scale = rest.partition(":")
        ends = [toml_value(f"--range {key}", one) for one in (low, high)]
        if any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
            raise Error(f"--range {item}: {low!r:.40} and {high!r:.40} are not two numbers", hint=f"write {example}")
        if key in ranges:
            raise Error(f"--range {key} is given twice", hint="give each key once")
        ranges[key] = Range(ends[0], ends[1], scale or "linear")  # type: ignore[arg-type] # checked with all others
    return ranges


def as_grid(given: object) -> dict[str, tuple[Any, ...]]:
    """Values by key as somebody wrote them in Python or in a file, as plain ones; what is no grid is refused."""
    grid: dict[str, tuple[Any, ...]] = {}
    for key, values in _items("the grid", given, '{"privacy.epsilon": [0.5, 1.0]}'):
        values = _plain(values)
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise Error(
                f"the grid has no values of {key}: {values!r:.60} is not a list",
                hint=f'give a list, such as {{"{key}": [1, 2]}}',
            )
        grid[key] = tuple(_plain(one) for one in values)
        for one in grid[key]:
            _require_plain(key, one)
    return grid


def as_ranges(given: object) -> dict[str, Range]:
    """Ranges by key as somebody wrote them in Python, checked for their shape; what they say is checked with others."""
    ranges: dict[str, Range] = {}
    for key, one in _items("ranges", given, '{"schedule.step": (0.1, 1.0, "log")}'):
        parts = [_plain(part) for part in one] if isinstance(one, list | tuple | np.ndarray) else []
        ends, scale = parts[:2], parts[2:]
        numeric = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
        if len(ends) < 2 or len(scale) > 1 or not numeric:
            raise Error(
                f"the range of {key} is {one!r:.60}, expected two numbers",
                hint=f'give (low, high) or (low, high, "log"), such as {{"{key}": (0.1, 1.0)}}',
            )
        ranges[key] = Range(*parts)
    return ranges


def points(
    grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range], draws: int | None, seed: int
) -> tuple[Point, ...]:
    """All combinations of the grid's values, each with every draw from the ranges.

    Draws do not depend on the grid, so that every method meets the same ones; and the first are the same however many
    there are, so that a sweep can grow.
    """
    _require(grid, ranges, draws)
    drawn: list[dict[str, Any]] = [{}]
    if ranges:
        shares = {key: _shares(key, seed, draws or 0) for key in ranges}
        drawn = [{key: one.at(shares[key][at]) for key, one in ranges.items()} for at in range(draws or 0)]
    count = len(drawn) * math.prod(map(len, grid.values()))
    if count > MAX_POINTS:
        raise Error(f"the sweep has {count} points, more than {MAX_POINTS}", hint="vary fewer values")
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    all_points = [point_of(values | others) for others in drawn for values in combinations]
    return tuple({point.name: point for point in all_points}.values())  # whole numbers are drawn more than once


def in_turns(points: Sequence[Point]) -> list[Point]:
    """The points in such an order that those which need a program of their own come early, one of each kind.

    Methods need programs of their own; while one worker compiles a method's, others compile those of others.
    """
    seen: dict[str, int] = {}
    keys = []
    for place, point in enumerate(points):
        kind = str(point.values.get(ALGORITHM, ""))
        keys.append((seen.get(kind, 0), place))
        seen[kind] = seen.get(kind, 0) + 1
    return [points[place] for _, place in sorted(keys)]


def _require(grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range], draws: int | None) -> None:
    if not grid and not ranges:
        raise Error(
            "there is nothing to vary", hint="give --grid privacy.epsilon=0.5,1,2, or write [sweep.grid] in the file"
        )
    _require_keys((*grid, *ranges))
    for key, values in grid.items():
        if isinstance(values, str) or not values:
            raise Error(f"the grid has no values of {key}", hint=f"give some: {key} = [1, 2]")
        if len({repr(value) for value in values}) < len(values):
            raise Error(f"the grid has a value of {key} twice", hint="give each once")
        if key in ranges:
            raise Error(f"{key} is both in the grid and in the ranges", hint="leave one of them out")
    if bool(ranges) != (draws is not None):
        raise Error(
            "there are ranges, and no number of draws" if ranges else "there is nothing to draw from",
            hint="give --random N with --range KEY=LOW:HIGH, or neither",
        )
    if draws is not None:
        _check.at_least(1, random=draws)
    for key, one in ranges.items():
        _require_range(key, one)


def _require_keys(keys: Sequence[str]) -> None:
    for key in keys:
        if key == "run.seeds":
            raise Error("run.seeds is not varied: all points have the same seeds", hint="say how many with --seeds")
        if f"{key}.".startswith("sweep."):
            raise Error(
                f"{key} is not varied: it says what a sweep varies, and no run depends on it",
                hint="vary keys of other sections; how many seeds every point has is said with --seeds",
            )


def _items(what: str, given: object, example: str) -> list[tuple[str, Any]]:
    """Keys and what they are given, of a dict whose keys are words."""
    if not isinstance(given, Mapping):
        raise Error(f"{what}: {type(given).__name__} is given, expected a dict", hint=f"write {example}")
    for key in given:
        if not isinstance(key, str):
            raise Error(f"{what}: {key!r:.60} is not a dotted key", hint=f"write {example}")
    return list(given.items())


def _plain(value: Any) -> Any:
    """A value of NumPy as one of Python."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _require_plain(key: str, value: Any) -> None:
    """The value is one that can be kept in the sweep's folder."""
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise Error(
            f"the grid has a value of {key} of type {type(value).__name__}",
            hint="give numbers, words, lists or tables of them, as an experiment file has them",
        ) from None


def _require_range(key: str, one: Range) -> None:
    if one.scale not in ("linear", "log"):
        raise Error(f'the scale of {key} is "{one.scale}"', hint=_check.nearest(str(one.scale), ("linear", "log")))
    if not (math.isfinite(one.low) and math.isfinite(one.high) and one.low < one.high):
        raise Error(f"the range of {key} is {one.low:g} to {one.high:g}", hint="give the lower end first")
    if one.scale == "log" and one.low <= 0:
        raise Error(f"the range of {key} begins at {one.low:g}, which has no logarithm", hint="begin above 0")


def _shares(key: str, seed: int, draws: int) -> list[float]:
    """Shares in [0, 1), of this key alone."""
    word = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    return [float(share) for share in np.random.default_rng([seed, word]).random(draws)]


def _split(option: str, item: str, example: str) -> tuple[str, str]:
    key, equals, text = item.partition("=")
    if not equals or not key.strip() or not text.strip():
        raise Error(f"{option} {item}: a key and its values are expected", hint=f"write {option} {example}")
    return key.strip(), text.strip()


def _parts(text: str) -> list[str]:
    """Cut at commas that are in no quotes and no brackets."""
    parts, depth, quote, begun = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote or letter in "\"'":
            quote = "" if letter == quote else (quote or letter)
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begun:place].strip())
            begun = place + 1
    return [*parts, text[begun:].strip()]
