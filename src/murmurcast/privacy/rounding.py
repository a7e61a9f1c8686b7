"""How numbers of a promise are written: rounded up, so that what is read is never less than what holds."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

# Relative: what accounts differ by from computer to computer. A budget of 10 that is met at 10.000000000002 reads 10.
SLACK = 1e-9


def at_most(value: float, digits: int = 4) -> str:
    """The least number of so many digits that is not below the value: for epsilon, delta and mu of a promise.

    >>> at_most(1.00049), at_most(1.0), at_most(0.00001)
    ('1.001', '1', '1e-05')
    """
    return _written(value, digits, -SLACK, ROUND_CEILING)


def at_least(value: float, digits: int = 4) -> str:
    """The largest number of so many digits that is not above the value: for what an attack has shown."""
    return _written(value, digits, SLACK, ROUND_FLOOR)


def at_most_fixed(value: float, places: int) -> str:
    """The least number with so many decimal places that is not below the value."""
    nearest = f"{value:.{places}f}"
    if not math.isfinite(value) or float(nearest) >= value * (1 - SLACK):
        return nearest
    return str(Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_CEILING))


def percent_at_most(share: float) -> str:
    """A share as a percentage that is not below it: one decimal place, more where that would hide what is left.

    >>> percent_at_most(0.5534), percent_at_most(0.99991), percent_at_most(1.0)
    ('55.4 %', '99.991 %', '100 %')
    """
    missing = 1 - share
    if missing <= 0:
        return "100 %"
    places = max(1, min(6, -math.floor(math.log10(missing)) - 2))
    shown = at_most_fixed(100 * share, places)
    return "100 %" if float(shown) >= 100 else f"{shown} %"


def _written(value: float, digits: int, slack: float, direction: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    allowed = Decimal(value * (1 + slack))
    step = Decimal(1).scaleb(allowed.adjusted() - digits + 1)
    rounded = (allowed / step).to_integral_value(direction) * step
    return f"{float(rounded):.{digits}g}"
