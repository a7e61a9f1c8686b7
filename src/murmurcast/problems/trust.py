"""Whose clip is relied on: that of the problems here, which is proved and tested, and the engine's.

What somebody else's class says of its own clip is a claim. The engine therefore clips whatever gradient such a class
returns, a node's as a whole: a promise about nodes then holds by construction. It cannot see examples inside a node's
gradient, so a promise about records does not; a loss of one example, given to `Model`, is clipped example by example.
"""

from dataclasses import replace
from inspect import isfunction
from typing import TYPE_CHECKING, Protocol

from murmurcast.data.assumptions import DataFacts, facts_of
from murmurcast.data.partition import Partition
from murmurcast.privacy.certificate import Unit
from murmurcast.problems.clip import Clip

if TYPE_CHECKING:
    from murmurcast.problems.base import Problem


class Clipped(Protocol):
    """Whatever says what its gradients are clipped to: a problem, or facts that a plan is given by hand."""

    @property
    def gradient_clip(self) -> Clip:
        """What gradients are clipped to."""
        ...


def clips_as_proved(problem: Clipped) -> bool:
    """Whether a problem is one of these: a class derived from one, or a method put in its place, may do anything."""
    # Plans need no engine, which all of these import.
    from murmurcast.problems.model import Model
    from murmurcast.problems.quadratic import Quadratic
    from murmurcast.problems.ridge import RidgeRegression
    from murmurcast.problems.softmax import SoftmaxRegression

    of_the_house = type(problem) in (Model, Quadratic, RidgeRegression, SoftmaxRegression)
    return of_the_house and not any(isfunction(getattr(type(problem), name, None)) for name in vars(problem))


def engine_clip(problem: "Problem") -> Clip:
    """What the engine itself clips a node's gradient to: nothing where the problem is known to do it."""
    clip = problem.gradient_clip
    if clips_as_proved(problem) or not clip.bounds:
        return replace(clip, per="none")
    return replace(clip, per="node")


def why_not_bounded(problem: Clipped, unit: Unit) -> str:
    """Why nothing bounds how far one unit's data can move a gradient; empty where it is bounded.

    Facts that were given by hand have no gradient to look at: they are believed until the run brings its problem.
    """
    clip = problem.gradient_clip
    if not clip.bounds:
        return "gradients are not clipped"
    if unit == "record" and clip.per == "node":
        return "unit record needs every example's gradient clipped, and the node's is"
    by_hand = not hasattr(problem, "gradient_at_public")
    if unit == "record" and not by_hand and not clips_as_proved(problem):
        return (
            f"{type(problem).__name__} clips its examples by itself, where the engine cannot see it; give the loss of "
            'one example to mc.Model, or plan for unit "node"'
        )
    return ""


def data_facts(problem: "Problem") -> DataFacts:
    """How what is public about a problem's data came to be known."""
    from murmurcast.problems.quadratic import Quadratic
    from murmurcast.problems.ridge import RidgeRegression
    from murmurcast.problems.softmax import SoftmaxRegression

    # The shape of these is known from public numbers, and so is where they start.
    own = type(problem) not in (Quadratic, RidgeRegression, SoftmaxRegression)
    partition = getattr(problem, "data", None)
    if isinstance(partition, Partition):
        return facts_of(partition, own_model=own)
    return DataFacts("unknown" if own else "none", own_model=own)
