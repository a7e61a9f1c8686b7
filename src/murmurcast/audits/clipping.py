"""Hostile data: whether one unit can change a gradient by more than the sensitivity that a promise is made with.

Canaries are planted behind the clip. This looks at the clip itself: pairs of worlds whose data differ in one unit or in
several, chosen to pull the gradient as far as possible to one side and to the other. Several units may change it by as
many times the sensitivity: if they change it further, one of them does.
"""

from typing import Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast.audits.hostile import Pair, hostile_pairs
from murmurcast.engine import node as one_node
from murmurcast.privacy.certificate import Unit
from murmurcast.problems.base import Data, Problem

LARGEST_SHARE = 1 + 1e-4  # of the sensitivity: gradients are in float32
Point = Literal["mixed", "own"]
_POINTS = (0.0, 0.1, 10.0)  # sizes of the models at which gradients are taken


class Clipped(NamedTuple):
    """What hostile data did to gradients.

    Attributes:
        share: The largest change of a gradient that was found, as a share of the most that is allowed; None where no
            data could be made hostile.
        worst: What made it, in words; or why nothing could be tried.
        pairs: How many pairs of worlds were tried.
        enlarged: Whether data was as large as it may be, in some pair; else rows were only exchanged.
    """

    share: float | None
    worst: str
    pairs: int = 0
    enlarged: bool = True

    @property
    def refutes(self) -> bool:
        """Whether a unit can do more than the promise is made with."""
        return self.share is not None and self.share > LARGEST_SHARE

    @property
    def in_words(self) -> str:
        """A line."""
        if self.share is None:
            return f"NOT LOOKED AT: {self.worst}"
        by = f" by {self.worst}" if self.refutes else ""
        changed = f"hostile data changed the gradient by at most {self.share:.3g} times the sensitivity{by}"
        limits = "" if self.enlarged else "; rows were only exchanged, not enlarged"
        return f"{changed}, in {self.pairs} pairs of worlds{limits}"

    @property
    def unseen(self) -> tuple[str, ...]:
        """What could not be tried, in words."""
        if self.share is None:
            return (f"the clip: {self.worst}",)
        if not self.enlarged:
            return ("rows larger than those of the data: without a data set they were only exchanged, not enlarged",)
        return ()


def try_hostile_data(problem: Problem, unit: Unit, point: Point = "mixed", seed: int = 0) -> Clipped:
    """The largest change of a gradient that was found, as a share of what is allowed; at most 1 if all is well.

    Args:
        problem: Whose gradients.
        unit: What differs between the worlds: one record, or all data of the node.
        point: Where gradients are taken: at the public mixed point, or at the node's own.
        seed: Of models, data and minibatches.
    """
    rng = np.random.default_rng(seed)
    models = [jnp.asarray(size * rng.standard_normal(problem.shape), jnp.float32) for size in _POINTS]
    worst, largest, count, enlarged = "", -1.0, 0, False
    gradients: dict[int, _Gradient] = {}  # compiled once for every problem that several pairs share
    for pair in hostile_pairs(problem, unit, rng):
        count, enlarged = count + 1, enlarged or pair.enlarged
        key = jax.random.key(int(rng.integers(2**31)))
        gradient = gradients.setdefault(id(pair.problem), _gradient(pair.problem, unit, point))
        chosen = models if pair.tries_all_models else [models[count % len(models)]]
        for model in chosen:
            share = _change(pair, gradient, model, key) / pair.allowed
            if share > largest:
                largest, worst = share, pair.words
    if not count:
        return Clipped(None, f"no data of {type(problem).__name__} could be made hostile")
    return Clipped(largest, worst, count, enlarged)


class _Gradient(Protocol):
    """A node's gradient."""

    def __call__(self, model: jax.Array, mine: Data, key: jax.Array, /) -> jax.Array:
        """At a model, on the node's data, for the minibatch that the key chooses."""
        ...


def _change(pair: Pair, gradient: _Gradient, model: jax.Array, key: jax.Array) -> float:
    one, other = (np.asarray(gradient(model, mine, key), np.float64) for mine in pair.worlds)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return np.inf
    return float(np.linalg.norm(one - other))


def _gradient(problem: Problem, unit: Unit, point: Point) -> _Gradient:
    """As nodes take it; about records, as the problem itself clips it.

    The engine's clip of a whole node, where there is one, would only hide what a record does.
    """
    of_records = problem.gradient_at_public if point == "mixed" else problem.gradient_at_private
    if unit == "record":
        return jax.jit(of_records)

    def of_node(model: jax.Array, mine: Data, key: jax.Array) -> jax.Array:
        able = one_node.local(problem, mine, key)
        take = able.gradient_at_public if point == "mixed" else able.gradient_at_private
        return jnp.asarray(take(model))

    return jax.jit(of_node)
