"""Whose clip is relied on: that of the problems here, which is proved and tested, and the engine's.

What somebody else's class says of its own clip is a claim. The engine therefore clips whatever gradient such a class
returns, a node's as a whole: a promise about nodes then holds by construction. It cannot see examples inside a node's
gradient, so a promise about records does not; a loss of one example, given to `Model`, is clipped example by example.
"""

from dataclasses import replace

from murmurcast.data.assumptions import DataFacts, facts_of
from murmurcast.data.partition import Partition
from murmurcast.privacy.certificate import Unit
from murmurcast.problems.base import Problem
from murmurcast.problems.clip import Clip
from murmurcast.problems.model import Model
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression

_PROVED = (Model, Quadratic, RidgeRegression, SoftmaxRegression)
_PUBLIC_SHAPE = (Quadratic, RidgeRegression, SoftmaxRegression)  # known from public numbers, and so is where they start


def clips_as_proved(problem: Problem) -> bool:
    """Whether a problem is one of these; a class derived from one may do anything."""
    return type(problem) in _PROVED


def engine_clip(problem: Problem) -> Clip:
    """What the engine itself clips a node's gradient to: nothing where the problem is known to do it."""
    clip = problem.gradient_clip
    if clips_as_proved(problem) or not clip.bounds:
        return replace(clip, per="none")
    return replace(clip, per="node")


def why_not_bounded(problem: Problem, unit: Unit) -> str:
    """Why nothing bounds how far one unit's data can move a gradient; empty where it is bounded."""
    if not problem.gradient_clip.bounds:
        return "gradients are not clipped"
    if unit == "record" and not clips_as_proved(problem):
        return (
            f"{type(problem).__name__} clips its examples by itself, where the engine cannot see it; give the loss of "
            'one example to mc.Model, or plan for unit "node"'
        )
    return ""


def data_facts(problem: Problem) -> DataFacts:
    """How what is public about a problem's data came to be known."""
    own, partition = type(problem) not in _PUBLIC_SHAPE, getattr(problem, "data", None)
    if isinstance(partition, Partition):
        return facts_of(partition, own_model=own)
    return DataFacts("unknown" if own else "none", own_model=own)
