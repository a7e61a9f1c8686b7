"""The theta that a split is made for and needs itself: one number, sought between bounds.

Taking every split's own theta for the next one may swing between two for ever: a theta that is too small leaves some
node at the floor, whose z calls for one that is too large. Somewhere between two such lies one that its split just
needs. A secant finds it in few rounds, each of which costs a large program.
"""

import math
from typing import Generic, NamedTuple, Protocol, TypeVar

from murmurcast.errors import Infeasible

_ROUNDS = 60
_STEEPEST = 0.9  # up to this growth of what is needed with theta a secant may lead beyond all that was tried

Solution = TypeVar("Solution")
Solution_contra = TypeVar("Solution_contra", contravariant=True)


class Tried(NamedTuple, Generic[Solution]):
    """A theta, the one that its split needs, and the split.

    Attributes:
        theta: What the split was made for.
        needed: The largest 1/z of its weights.
        solution: The split with all that belongs to it.
    """

    theta: float
    needed: float
    solution: Solution

    @property
    def holds(self) -> bool:
        """Whether theta bounds 1/z."""
        return self.needed <= self.theta


class Attempt(Protocol[Solution]):
    """Makes the split for a theta."""

    def __call__(self, theta: float, /) -> Tried[Solution]:
        """The split and the theta that it needs; Infeasible where theta is too large for any."""
        ...


class Hopeless(Protocol[Solution_contra]):
    """Says when to give up."""

    def __call__(self, solution: Solution_contra, /) -> bool:
        """Whether splits for larger thetas are of no use, as this one shows."""
        ...


class _Search(NamedTuple, Generic[Solution]):
    """What is known of the theta sought.

    Attributes:
        slack: How much above what is needed to aim for.
        low: The largest that does not hold.
        high: The smallest that holds.
        earlier: The last that was tried.
        widths: Of the bounds, over time, as logarithms of their ratio.
        least: The smallest that was tried.
    """

    slack: float
    low: Tried[Solution] | None = None
    high: Tried[Solution] | None = None
    earlier: Tried[Solution] | None = None
    widths: tuple[float, ...] = ()
    least: float = math.inf

    @property
    def width(self) -> float:
        """How far apart the bounds are; without end where there is only one."""
        return math.log(self.high.theta / self.low.theta) if self.low and self.high else math.inf

    def after(self, now: Tried[Solution]) -> "tuple[_Search[Solution], float]":
        """What is known with one more that was tried, and the theta to try next."""
        low, high = (self.low, now) if now.holds else (now, self.high)
        least, own = min(self.least, now.theta), now.needed * (1 + self.slack)
        if now.holds and own < least:  # below all that was tried lies what leaves more power to the models
            return self._replace(low=None, high=now, earlier=now, least=least, widths=()), own
        known = self._replace(low=low, high=high, least=least)
        known = known._replace(widths=(*self.widths, known.width))
        return known._replace(earlier=now), known._following(now)

    def _following(self, now: Tried[Solution]) -> float:
        theta = now.theta * math.exp(self._step(now))
        if self.low is None or self.high is None:
            return theta
        slow = len(self.widths) > 2 and self.width > self.widths[-3] / 2
        inside = self.low.theta < theta < self.high.theta
        return theta if inside and not slow else math.sqrt(self.low.theta * self.high.theta)

    def _step(self, now: Tried[Solution]) -> float:
        """By a secant of what is lacking, as logarithms; by what is lacking itself where no secant is to be trusted."""
        lacking = self._lacking(now)
        if self.earlier is None or self.earlier.theta == now.theta:
            return lacking
        slope = (lacking - self._lacking(self.earlier)) / math.log(now.theta / self.earlier.theta)
        bounded = self.low is not None and self.high is not None
        return -lacking / slope if slope < (0 if bounded else _STEEPEST - 1) else lacking

    def _lacking(self, tried: Tried[Solution]) -> float:
        return math.log(tried.needed * (1 + self.slack) / tried.theta)


def settled_theta(
    attempt: Attempt[Solution], start: float, slack: float, hopeless: Hopeless[Solution]
) -> Tried[Solution] | None:
    """The split whose theta bounds 1/z, and by no more than three times the slack.

    Args:
        attempt: Makes the split for a theta.
        start: The theta to begin with.
        slack: How much above what is needed to aim for.
        hopeless: Says when to give up.

    Returns:
        The split. Where what is needed jumps past theta, or rounds run out, the tightest that holds; None where none
        does, or none could be of use.
    """
    search, theta = _Search[Solution](slack), start
    for _ in range(_ROUNDS):
        try:
            now = attempt(theta)
        except Infeasible:
            if search.low is None or theta <= search.low.theta * (1 + slack):
                return search.high
            theta = math.sqrt(search.low.theta * theta)
            continue
        if now.holds and now.theta <= now.needed * (1 + 3 * slack):
            return now
        if not now.holds and hopeless(now.solution):
            return None
        search, theta = search.after(now)
        if search.width <= slack:
            break
    return search.high
