"""What does not fit is told before anything is compiled, in our own words."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm, Local, State
from murmurcast.engine.check import require_fitting
from tests.algorithms.networks import NODES, two_way
from tests.conftest import changed


def ours(problem: Any) -> Algorithm:
    return mc.power_controlled(mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=3)))


@dataclass(frozen=True, kw_only=True, eq=False)
class WithoutLoss(mc.Quadratic):
    def evaluate(self, model: jax.Array, test: Any) -> dict[str, jax.Array]:
        return {"distance": jnp.linalg.norm(model - test.optimum)}


@dataclass(frozen=True, kw_only=True, eq=False)
class WithVectors(mc.Quadratic):
    def evaluate(self, model: jax.Array, test: Any) -> dict[str, jax.Array]:  # noqa: ARG002
        return {"loss": model}


@pytest.mark.parametrize("kind", [WithoutLoss, WithVectors])
def test_a_problem_must_have_a_loss(kind: type[mc.Quadratic]) -> None:
    """Before training, and not when the run is loaded again."""
    plain = mc.Quadratic.random(NODES, 3)
    problem = kind(curvature=plain.curvature, centre=plain.centre)
    with pytest.raises(mc.Error, match="evaluates a model to") as raised:
        mc.run(ours(problem), problem)
    assert '"loss"' in raised.value.hint


def no_published(start: Any, local: Local) -> Any:  # noqa: ARG001
    return (start,)


def other_shape(start: Any, local: Local) -> State:  # noqa: ARG001
    return State(start, start[:2])


@pytest.mark.parametrize(("init", "words"), [(no_published, "no own"), (other_shape, "no published")])
def test_a_state_must_hold_models(init: Any, words: str) -> None:
    problem = mc.Quadratic.random(NODES, 3)
    with pytest.raises(mc.Error, match=words) as raised:
        mc.run(ours(problem)._replace(init=init), problem)
    assert "published" in raised.value.hint


def test_an_update_must_give_back_the_state_it_got() -> None:
    problem = mc.Quadratic.random(NODES, 3)

    def update(here: Any, state: State, sent: Any, heard: Any, local: Local) -> State:  # noqa: ARG001
        return State(state.own, jnp.stack([heard, heard]))

    with pytest.raises(mc.Error, match="another state"):
        mc.run(changed(ours(problem), update=update), problem)


def test_errors_inside_a_method_name_it() -> None:
    problem = mc.Quadratic.random(NODES, 3)
    for part, words in (("send", "send of"), ("update", "update of")):
        broken = changed(ours(problem), **{part: lambda here, *_: here.no_such_table})
        with pytest.raises(mc.Error, match=words) as raised:
            mc.run(broken, problem)
        assert "check_algorithm" in raised.value.hint


SIGNALS: dict[str, tuple[Any, str]] = {
    "two messages": (lambda own: jnp.stack([own, own]), r"shape \(2, 3\).*air.*carries \(3,\)"),
    "more numbers": (lambda own: jnp.tile(own, 2), r"shape \(6,\)"),
    "tuple": (lambda own: (own, own), "shape tuple"),
    "dict": (lambda own: {"model": own}, "shape dict"),
    "number": (lambda _: 1.0, "carries"),
    "nothing": (lambda _: None, "carries"),
    "integers": (lambda own: own.astype(int), "int32.*float32"),
    "complex": (lambda own: own * 1j, "complex64.*float32"),
    "index": (lambda own: [own][1], "IndexError"),
    "branch": (lambda own: own if own[0] > 0 else -own, "Bool"),
    "conversion": (lambda own: np.sin(np.asarray(own)), "Tracer"),
    "division": (lambda own: own * (1 // 0), "ZeroDivisionError"),
}

USES: dict[str, Any] = {
    "run": lambda _, broken, problem: mc.run(broken, problem),
    "audit of a claim": lambda _, broken, problem: mc.audit(broken, problem, runs=50),
    "audit of what is done": lambda honest, broken, problem: mc.audit(honest, problem, actual=broken, runs=50),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("use", USES)
def test_a_signal_that_does_not_fit_is_an_error_with_a_way_out(signal: str, use: str) -> None:
    problem = mc.Quadratic.random(NODES, 3)
    honest = ours(problem)
    wrong, words = SIGNALS[signal]
    broken = changed(honest, send=lambda here, state, drawn: wrong(state.own))  # noqa: ARG005
    with pytest.raises(mc.Error, match=words) as raised:
        USES[use](honest, broken, problem)
    assert raised.value.hint


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_state_keeps_its_types(precision: Any) -> None:
    problem = mc.Quadratic.random(NODES, 3)

    def update(here: Any, state: State, sent: Any, heard: Any, local: Local) -> State:  # noqa: ARG001
        return State(state.own, heard.astype("float16"))

    with pytest.raises(mc.Error, match="another state") as raised:
        mc.run(changed(ours(problem), update=update), problem, precision=precision)
    assert "types" in raised.value.hint
    require_fitting(ours(problem), problem, problem.test_data(), precision)  # also where JAX computes in 32 bits


@pytest.mark.parametrize("name", ["my model", "two_words", ""])
def test_names_of_rounds_are_words(name: str) -> None:
    problem = mc.Quadratic.random(NODES, 3)
    with pytest.raises(mc.Error, match="are called"):
        mc.run(changed(ours(problem), name=name), problem)


def test_a_draw_of_another_name_is_told() -> None:
    problem = mc.Quadratic.random(NODES, 3)
    with pytest.raises(mc.Error, match="KeyError"):
        mc.run(changed(ours(problem), send=lambda here, state, drawn: drawn["nois"] * here.amplitude), problem)  # noqa: ARG005
