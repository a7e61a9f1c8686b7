"""Which line is which: hue says the algorithm, shade says the budget, dashes and markers say what else differs.

Up to six runs each have a colour of their own. Beyond, colours are computed, so that no two lines ever look the same:
hues are spread over the circle of OKLCH, in which equal steps look equal, and budgets over its lightness, the largest
the strongest. Every colour has a form for light and one for dark pages.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from murmurcast.runs.result import Result

# Of the six series of a page, in its order: (hue, chroma).
_HUES = ((226.0, 0.088), (18.0, 0.175), (149.0, 0.107), (312.0, 0.112), (63.0, 0.13), (258.0, 0.022))
_LIGHT, _DARK = (0.68, 0.36), (0.52, 0.88)  # lightness of the smallest and of the largest budget
_ALONE = (0.51, 0.72)  # where there is one budget only, for light and dark
_CHROMA = 0.12
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")
OWN_COLOURS_UP_TO = 6


class Key(NamedTuple):
    """What tells a line from others.

    Attributes:
        algorithm: Its hue.
        budget: Its shade; None where nothing is promised, which is the palest.
        rest: Its dashes and marker: whatever else differs.
    """

    algorithm: str
    budget: float | None = None
    rest: str = ""


class Style(NamedTuple):
    """How a line looks.

    Attributes:
        light: Its colour on white, as #rrggbb.
        dark: Its colour on black.
        dash: In plotly's words.
        marker: In plotly's words.
    """

    light: str
    dark: str
    dash: str
    marker: str

    @property
    def colour(self) -> str:
        """For a page: a variable that names both colours, of which its script takes the one that fits."""
        return f"var(--either-{self.light[1:]}-{self.dark[1:]})"

    def band(self, percent: int = 16) -> str:
        """The same colour, of which so much is seen: bands of many lines would cover each other."""
        return f"var(--either-{self.light[1:]}-{self.dark[1:]}-{percent})"


def styles(keys: Sequence[Key]) -> list[Style]:
    """A style for every key; different keys have different ones."""
    algorithms = list(dict.fromkeys(key.algorithm for key in keys))
    budgets: list[float | None] = [None] if any(key.budget is None for key in keys) else []
    budgets += sorted({key.budget for key in keys if key.budget is not None})
    ranks = {budget: place for place, budget in enumerate(budgets)}
    rests = list(dict.fromkeys(key.rest for key in keys))
    looks = list(product(MARKERS, DASHES))
    chosen = []
    for key in keys:
        hue, chroma = _hue(algorithms.index(key.algorithm), len(algorithms))
        share = ranks[key.budget] / (len(ranks) - 1) if len(ranks) > 1 else None
        place = rests.index(key.rest)
        # Dashes first: they are seen in curves without markers, too.
        marker, dash = looks[(place % len(DASHES)) + len(DASHES) * (place // len(DASHES) % len(MARKERS))]
        chosen.append(Style(_colour(hue, chroma, share, 0), _colour(hue, chroma, share, 1), dash, marker))
    return chosen


def of_runs(runs: Sequence[Result]) -> list[Style]:
    """A style for every run: a hue each up to six of them, and beyond by algorithm, budget and name."""
    if len(runs) <= OWN_COLOURS_UP_TO:
        return [
            one._replace(dash=DASHES[at]) for at, one in enumerate(styles([Key(str(at)) for at in range(len(runs))]))
        ]
    pairs = [(run.info["algorithm"], run.info["privacy"]["epsilon"]) for run in runs]
    seen: dict[tuple[str, float | None], int] = {}
    keys = []
    for pair in pairs:  # of runs with the same algorithm and budget, dashes and markers count
        seen[pair] = seen.get(pair, -1) + 1
        keys.append(Key(pair[0], pair[1], str(seen[pair])))
    return styles(keys)


def _hue(place: int, of: int) -> tuple[float, float]:
    """Hue in degrees and chroma of the algorithm at this place."""
    if of <= len(_HUES):
        return _HUES[place]
    return (_HUES[0][0] + 360.0 * place / of) % 360.0, _CHROMA


def _colour(hue: float, chroma: float, share: float | None, theme: int) -> str:
    low, high = (_LIGHT, _DARK)[theme]
    lightness = _ALONE[theme] if share is None else low + share * (high - low)
    return _hex(lightness, chroma, hue)


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """#rrggbb of an OKLCH colour; less colourful where a screen has no such one."""
    angle = math.radians(hue)
    for _ in range(40):
        red_green, blue_yellow = chroma * math.cos(angle), chroma * math.sin(angle)
        linear = _linear(lightness, red_green, blue_yellow)
        if all(-1e-4 <= part <= 1.0001 for part in linear):
            break
        chroma *= 0.93
    return "#" + "".join(f"{round(255 * _encoded(part)):02x}" for part in linear)


def _linear(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    """Linear sRGB of OKLab (B. Ottosson, 2020)."""
    long, middle, short = (
        (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    )
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _encoded(part: float) -> float:
    """The curve of sRGB."""
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055
