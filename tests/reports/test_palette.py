"""Hue says the algorithm, shade the budget, and nothing repeats."""

import colorsys
from itertools import product

import pytest

from murmurcast.reports.palette import Key, Style, of_runs, styles
from tests.reports.examples import example


def rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def luminance(colour: str) -> float:
    """As in the guidelines on contrast (WCAG 2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def hue(colour: str) -> float:
    return colorsys.rgb_to_hls(*rgb(colour))[0]


GRID = [
    Key(f"method {a}", budget, rest) for a, budget, rest in product(range(9), (0.5, 1.0, 2.0, 8.0), ("x", "y", "z"))
]


def test_no_two_lines_look_the_same() -> None:
    result = styles(GRID)
    assert len(set(result)) == len(GRID) == 108
    assert len({(one.light, one.dash) for one in result}) == len(GRID)
    assert len({(one.dark, one.dash) for one in result}) == len(GRID)


def test_many_rests_differ_by_markers_when_dashes_are_used_up() -> None:
    result = styles([Key("a", 1.0, str(rest)) for rest in range(48)])
    assert len({(one.dash, one.marker) for one in result}) == 48


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_hue_belongs_to_the_algorithm_and_shade_to_the_budget(theme: str) -> None:
    budgets = (0.5, 1.0, 2.0)
    result = styles([Key(name, budget) for name, budget in product("abcde", budgets)])
    by_algorithm = [[getattr(one, theme) for one in result[at : at + 3]] for at in range(0, 15, 3)]
    for shades in by_algorithm:
        hues = [hue(one) for one in shades]
        assert all(min(abs(one - hues[0]), 1 - abs(one - hues[0])) < 0.06 for one in hues)
        lights = [luminance(one) for one in shades]
        # The largest budget stands out most: the darkest on white, the lightest on black.
        assert lights == sorted(lights, reverse=theme == "light")
    middle = [hue(shades[1]) for shades in by_algorithm]
    apart = [min(abs(a - b), 1 - abs(a - b)) for a, b in product(middle, middle) if a is not b]
    assert min(apart) > 0.06


def test_every_colour_can_be_seen_on_its_page() -> None:
    for one in styles(GRID):
        assert contrast(one.light, "#fcfcfa") > 2.5
        assert contrast(one.dark, "#14171b") > 2.5


def test_what_promises_nothing_is_the_palest() -> None:
    nothing, small, large = styles([Key("a", None), Key("a", 0.1), Key("a", 3.0)])
    assert luminance(nothing.light) > luminance(small.light) > luminance(large.light)


def test_colours_are_written_for_both_themes() -> None:
    style = Style("#010203", "#a0b0c0", "dot", "x")
    assert style.colour == "var(--either-010203-a0b0c0)"
    assert style.band() == "var(--either-010203-a0b0c0-16)"


def test_few_runs_have_a_hue_each_and_of_many_none_repeats() -> None:
    names = ("power_controlled", "mped2fl", "noiseless")
    few = of_runs([example(name) for name in names] * 2)
    assert len({one.light for one in few}) == 6
    many = of_runs([example(name) for name in names] * 4)
    assert len({(one.light, one.dash) for one in many}) == 12
    assert len({one.light for one in many}) == 3
