"""How long a per-epoch plan will take, told before it begins.

Its program grows faster than the network does, and a total budget needs none. The laws below were measured on one core
of a usual machine: for the largest sum along the network on whole plans of up to 30,000 nodes and factors of up to
100,000, for all else on single programs of up to 20,000 nodes. What comes of them is an estimate.
"""

from typing import NamedTuple

from murmurcast.network.graph import Network
from murmurcast.planning.plan import PowerRule
from murmurcast.planning.power.largest_sum import goes_along
from murmurcast.planning.power.normal_equations import elimination_order

_WORTH_TELLING = 60.0  # seconds
_SMALL = 3000  # nodes, up to which nobody needs to be told
_ITERATIONS = 80  # of the interior-point method over all rounds: 50 to 110
_FACTOR, _PRODUCTS = 4.5e-11, 7e-8  # seconds for nodes x band^2, and for links x degree


class _Law(NamedTuple):
    """Seconds of all rounds at 200,000 links, and the power with which they grow with the links."""

    seconds: float
    power: float


# Seconds of one program, times 6, 2 and 10 rounds: how many there will be is a guess.
_WITHOUT_LOCALITY = _Law(400.0, 1.2)  # the first-order method
_OTHERS = {"max-min": _Law(180.0, 1.75), "noise": _Law(350.0, 1.5)}


def forecast(network: Network, rule: PowerRule) -> str:
    """How long a per-epoch plan will take and what to take instead, in words; empty where it is not worth telling."""
    seconds = estimated_seconds(network, rule)
    if seconds < _WORTH_TELLING:
        return ""
    return (
        f"a per-epoch plan of {network.nodes} nodes and {network.links} links will take {in_words(seconds)} of "
        'processor time (an estimate); target = "certificate" needs no program, takes seconds, and holds for the whole '
        "run"
    )


def estimated_seconds(network: Network, rule: PowerRule) -> float:
    """Processor time of a per-epoch plan, from how the programs of such networks were measured to grow."""
    nodes, links = network.nodes, network.links
    if nodes <= _SMALL or rule.objective == "balanced":
        return 0.0
    order = elimination_order(network.gains)
    if rule.objective == "sum" and goes_along(order):
        return _ITERATIONS * (_FACTOR * nodes * order.band**2 + _PRODUCTS * links * links / nodes)
    law = _OTHERS.get(rule.objective, _WITHOUT_LOCALITY)
    return float(law.seconds * (links / 2e5) ** law.power)


def in_words(seconds: float) -> str:
    """A time that claims no more digits than an estimate has."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"about {float(f'{seconds / length:.1g}'):g} {unit}"
    return "about a minute"
