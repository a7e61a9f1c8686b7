"""Hostile data reaches the sensitivity of every honest problem and not more, and finds a clip that misses."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast.audits.clipping import Clipped, Point, try_hostile_data
from murmurcast.data.datasets import least_squares, logistic
from murmurcast.problems.model import Model
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression

NODES = 4


def softmax(**options: Any) -> SoftmaxRegression:
    data = logistic(examples=80, features=3, classes=3, seed=1).partition("sorted", NODES)
    return SoftmaxRegression(data=data, **({"clip": 0.4, "l2": 0.02} | options))


@pytest.mark.parametrize("unit", ["record", "node"])
def test_hostile_data_reaches_the_sensitivity_and_not_more(unit: Any) -> None:
    clipping: Any = "example" if unit == "record" else "node"
    data = least_squares(examples=60, features=3, seed=2).partition("sorted", NODES)
    for problem in (softmax(clipping=clipping), RidgeRegression(data=data, clip=0.7, clipping=clipping)):
        points: tuple[Point, ...] = ("mixed", "own")
        for point in points:
            result = try_hostile_data(problem, unit, point)
            assert result.share == pytest.approx(1.0, abs=0.02)
            assert not result.refutes


def test_a_loss_of_ones_own_is_tried() -> None:
    data = logistic(examples=80, features=3, classes=3, seed=1).partition("sorted", NODES)

    def loss(parameters: Any, example: Any) -> jax.Array:
        return -jax.nn.log_softmax(parameters["w"] @ example.features)[example.target]

    problem = Model(data=data, clip=0.4, initialise=lambda _: {"w": jnp.zeros((3, 3))}, loss=loss)
    assert try_hostile_data(problem, "record").share == pytest.approx(1.0, abs=0.02)


def test_hostile_data_finds_a_missing_clip() -> None:
    result = try_hostile_data(softmax(clipping="none"), "record")
    assert (result.share or 0) > 100
    assert "size 1e+12" in result.in_words
    bowl = Quadratic.random(NODES, 6, seed=3, clip=0.5)
    assert try_hostile_data(bowl, "node").share == pytest.approx(1.0, abs=1e-4)


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """A problem of somebody's own, around one of ours; `times` too long."""

    inner: SoftmaxRegression
    times: float = 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def gradient_at_public(self, model: jax.Array, mine: Any, key: jax.Array) -> jax.Array:
        return self.times * self.inner.gradient_at_public(model, mine, key)


class Plain:
    """A problem of somebody's own that keeps its data as it likes, and clips its records by itself, or not."""

    def __init__(self, clipped: bool, rows: bool = True) -> None:
        rng = np.random.default_rng(1)
        self.features, self.targets = rng.standard_normal((NODES, 12, 3)), rng.standard_normal((NODES, 12))
        self.inner, self.clipped, self.rows = softmax(l2=0.0), clipped, rows
        self.nodes, self.shape, self.dim = NODES, (3,), 3
        self.gradient_clip = replace(self.inner.gradient_clip, examples_per_node=12)
        self.examples_per_node = np.full(NODES, 12.0)
        del self.inner

    def local_data(self) -> Any:
        if self.rows:
            return {"x": self.features, "y": self.targets, "weight": np.ones((NODES, 12))}
        return {"total": np.arange(NODES)}

    def gradient_at_public(self, model: jax.Array, mine: Any, key: jax.Array) -> jax.Array:  # noqa: ARG002
        each = (mine["x"] @ model - mine["y"])[:, None] * mine["x"]
        largest = jnp.abs(each).max(axis=1) + 1e-20  # squares of 1e24 leave float32
        norms = jnp.linalg.norm(each / largest[:, None], axis=1) * largest
        short = jnp.minimum(1.0, 0.4 / jnp.maximum(norms, 1e-9))[:, None] if self.clipped else 1.0
        return jnp.asarray((mine["weight"][:, None] * each * short).sum(axis=0) / 12)


def tried(problem: Any, unit: Any = "record") -> Clipped:
    return try_hostile_data(problem, unit)


def test_a_problem_of_anybodys_own_is_tried() -> None:
    assert tried(Wrapped(inner=softmax())).share == pytest.approx(1.0, abs=0.02)
    long = tried(Wrapped(inner=softmax(), times=59.0))
    assert long.share == pytest.approx(59.0, rel=0.02)
    assert long.refutes
    assert 0.5 < (tried(Plain(clipped=True)).share or 0) < 1.0001
    assert tried(Plain(clipped=False)).refutes


def test_where_it_cannot_be_tried_it_says_so() -> None:
    result = tried(Plain(clipped=False, rows=False))
    assert result.share is None
    assert not result.refutes
    assert result.in_words == "NOT LOOKED AT: no data of Plain could be made hostile"


class WithNorms(Plain):
    """Its arrays hang together: one holds the squares of another, so no row can be enlarged by itself."""

    def local_data(self) -> Any:
        return {**super().local_data(), "norm": np.linalg.norm(self.features, axis=2)}


def test_rows_that_are_only_exchanged_are_said_to_be() -> None:
    exchanged, enlarged = tried(WithNorms(clipped=True)), tried(Plain(clipped=True))
    assert (exchanged.enlarged, enlarged.enlarged) == (False, True)
    assert exchanged.in_words.endswith("; rows were only exchanged, not enlarged")
    assert "exchanged" not in enlarged.in_words
    assert [len(result.unseen) for result in (exchanged, enlarged, tried(Plain(clipped=True, rows=False)))] == [1, 0, 1]
