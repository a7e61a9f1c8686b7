"""What methods share that track the sum of all gradients: a state with a tracker, and its start."""

from __future__ import annotations

from typing import NamedTuple

from murmurcast.algorithms.base import Local, Model
from murmurcast.algorithms.tables import Leaf


class State(NamedTuple):
    """What a node needs for its next step.

    Attributes:
        own: x.
        published: x as well: no noise covers it.
        tracker: What the node holds of the sum of all gradients.
        gradient: g(x), as it was counted last.
    """

    own: Model
    published: Model
    tracker: Model
    gradient: Model


class MixingFactors(NamedTuple):
    """Constants of a mixed point: the factors of what is heard, and of what the node sent itself."""

    heard: Leaf
    kept: Leaf


def begin(start: Model, local: Local) -> State:
    """The tracker starts at the gradient of the public start; the ledger counts it."""
    gradient = local.gradient_at_public(start)
    return State(start, start, gradient, gradient)
