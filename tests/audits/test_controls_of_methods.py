"""Controls of every kind of method: each breaks its promise in one way and must be caught, its honest twin never.

Quick: one audit of each control. Slow: 10 of each, and as many of its twin.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.audits.adversaries import Gathered
from murmurcast.problems.base import Problem
from tests.audits import faults, method_faults, methods
from tests.audits.systems import Fault, attacked, audits, bowls, falsified_by, softmax

RUNS, RECORD_RUNS, MANY = 400, 500, 10  # what an audit makes by default of 40 and of 32 parameters
LONG = 2.0  # a step with which noise moves a point so far that gradients there are others
SIZE, INDEPENDENCE = "the size of the noise", "the independence of the noise"
SILENCE, POINTS = "signals without noise", "where gradients are taken"


class Control(NamedTuple):
    """A method, what is wrong with it, and who must say so: a check, or an adversary."""

    variant: str
    fault: Fault
    finder: str
    records: bool = False


def halved(algorithm: Algorithm) -> Algorithm:
    return method_faults.all_noise_at(algorithm, 0.5)


CONTROLS = {
    "tracker draws anew": Control("private-gradient-tracking", method_faults.tracker_draws_anew, SILENCE),
    "push-pull draws anew": Control("private-push-pull", method_faults.tracker_draws_anew, SILENCE),
    "old gradient under another draw": Control(
        "private-frost", method_faults.old_gradient_under_another_draw, INDEPENDENCE
    ),
    "tracker's noise halved": Control("private-gradient-tracking", halved, "eavesdropper"),
    "frost's noise halved": Control("private-frost", halved, SIZE),
    "noise left out of the own term": Control("dp-dsgd", faults.own_noise_dropped, "eavesdropper"),
    "Laplace at half its scale": Control("row-stochastic-laplace", halved, "eavesdropper"),
    "Laplace at 90 % of its scale": Control(
        "row-stochastic-laplace", lambda algorithm: method_faults.all_noise_at(algorithm, 0.9), SIZE
    ),
    "gradient at a private point": Control(
        "private-exact-diffusion", method_faults.gradient_without_own_noise, POINTS, records=True
    ),
    "own model passed on": Control("muffliato", method_faults.own_model_passed_on, SILENCE),
    "noise of pairs left out": Control("decor", method_faults.pairs_left_out, "eavesdropper"),
    "one draw for all links": Control("mped2fl", faults.one_draw_for_all_links, "eavesdropper"),
}


def system(control: Control) -> tuple[Algorithm, Problem, int]:
    if control.records:
        return methods.of_records(control.variant, LONG), softmax(), RECORD_RUNS
    return methods.of_nodes(control.variant), bowls(5), RUNS


def audited(control: Control, fault: Fault, count: int) -> Iterator[tuple[Gathered, Algorithm]]:
    """So many audits; all runs at once, unless gradients elsewhere are needed, which are taken once for all."""
    claimed, problem, runs = system(control)
    groups = count if control.finder == POINTS else 1
    for group in range(groups):
        gathered = attacked(claimed, fault(claimed), problem, count // groups * runs, seed=group * runs)
        yield from ((part, claimed) for part in audits(gathered, runs))


QUICK = ("tracker draws anew", "Laplace at half its scale")
COUNTS = [1, pytest.param(MANY, marks=pytest.mark.slow)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CONTROLS]
)
@pytest.mark.parametrize("count", COUNTS)
def test_a_broken_promise_is_caught(name: str, count: int) -> None:
    control = CONTROLS[name]
    for number, (part, claimed) in enumerate(audited(control, control.fault, count)):
        assert control.finder in falsified_by(part, claimed), number


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLS)
def test_the_honest_twin_is_not_accused(name: str) -> None:
    for part, claimed in audited(CONTROLS[name], lambda honest: honest, MANY):
        assert falsified_by(part, claimed) == set()


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["decor", "decor-exact-diffusion"])
@pytest.mark.parametrize("count", COUNTS)
def test_what_holds_against_an_eavesdropper_does_not_hold_against_those_who_know_the_pairs(
    variant: str, count: int
) -> None:
    """The same run: honest about each adversary, and with one adversary's number sold as everybody's."""
    honest = methods.of_nodes(variant)
    sold = method_faults.secret_pairs_claimed_against_everybody(honest)
    gathered = attacked(honest, honest, bowls(5), count * RUNS)
    for part in audits(gathered, RUNS):
        assert falsified_by(part, honest) == set()
        assert "everybody" in falsified_by(part, sold)
