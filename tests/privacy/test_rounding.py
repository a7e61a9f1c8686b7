"""Numbers of a promise are rounded up, what an attack has shown is rounded down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurcast.privacy.rounding import SLACK, at_least, at_most, at_most_fixed, percent_at_most


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.00049, "1.001"),
        (1.0, "1"),
        (10.000000000000002, "10"),
        (20.7614, "20.77"),
        (9.99901, "10"),
        (0.0, "0"),
        (1e-5, "1e-05"),
        (11790.3, "1.18e+04"),
        (float("inf"), "inf"),
    ],
)
def test_an_epsilon_is_never_shown_below_what_it_is(value: float, shown: str) -> None:
    assert at_most(value) == shown


@given(st.floats(1e-12, 1e12), st.integers(2, 7))
def test_both_directions_enclose_the_value(value: float, digits: int) -> None:
    above, below = float(at_most(value, digits)), float(at_least(value, digits))
    assert below * (1 - SLACK) <= value <= above * (1 + 2 * SLACK)
    assert above - below <= 10.0 ** (2 - digits) * value
    assert float(at_most_fixed(value, 3)) >= value * (1 - 2 * SLACK)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.5, "50.0 %"), (0.5534, "55.4 %"), (0.99991, "99.991 %"), (1.0, "100 %"), (1 - 1e-12, "100 %")],
)
def test_a_percentage_is_rounded_up(share: float, shown: str) -> None:
    assert percent_at_most(share) == shown


def test_fixed_places_round_up() -> None:
    assert at_most_fixed(0.99991, 4) == "1.0000"
    assert at_most_fixed(0.12341, 4) == "0.1235"
    assert at_most_fixed(123456.0, 4) == "123456.0000"
    assert at_most_fixed(float("inf"), 3) == "inf"
