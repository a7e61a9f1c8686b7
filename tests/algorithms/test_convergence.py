"""Where every noiseless method goes: the optimum, the weighed optimum, and how fast."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.network.weights import perron
from murmurcast.planning.plan import Plan
from tests.algorithms.paths import follow, random_draws
from tests.algorithms.reference_paths import instances, plan_of, work_of

Record = Callable[[str, object], None]
QUICK_EPOCHS, LONG = 600, 8_000
METROPOLIS: dict[str, Any] = {"weights": "metropolis", "access": "orthogonal"}
TO_OPTIMUM: dict[str, tuple[str, dict[str, Any]]] = {
    "dsgd": ("dsgd", {}),
    "dsgd, metropolis": ("dsgd", METROPOLIS),
    "subgradient-push": ("subgradient-push", {}),
    "subgradient-push, out-degree": ("subgradient-push", {"weights": "out-degree", "access": "slots"}),
    "row-stochastic": ("row-stochastic", {"step_factor": 0.2}),
    "locally-balanced": ("locally-balanced", {"noise_to_step": 1e-3}),
}
LINEAR: dict[str, tuple[str, dict[str, Any], bool]] = {  # whether steps act on a sum of gradients, K times as long
    "frost": ("frost", {}, True),
    "push-pull": ("push-pull", {}, False),
    "ab": ("push-pull", {"form": "ab"}, False),
    "gradient-tracking": ("gradient-tracking", {}, False),
    "exact-diffusion": ("exact-diffusion", {}, False),
    "exact-diffusion on rows": ("exact-diffusion", {"weights": "row"}, False),
}


def optimum(inputs: dict[str, Any], shares: FloatArray | None = None) -> FloatArray:
    """Of the sum of all quadratics, each with its share."""
    curvature, centre = (np.array(inputs["problem"][name]) for name in ("curvature", "centre"))
    weighed = curvature * (np.ones(len(centre)) if shares is None else shares)[:, None, None]
    return np.linalg.solve(weighed.sum(axis=0), np.einsum("kij,kj->i", weighed, centre))


def quadratic(name: str) -> dict[str, Any]:
    """A reference instance without its ball."""
    inputs: dict[str, Any] = instances()[name]["inputs"] | {"ball": None}
    return inputs


def plan_with(inputs: dict[str, Any], epochs: int, step: float, decay: Any = "constant") -> Plan:
    return plan_of(inputs | {"step": step, "decay": decay}, epochs=epochs)


def errors(algorithm: Algorithm, inputs: dict[str, Any], target: FloatArray) -> FloatArray:
    """[epochs] the worst node's distance."""
    start = np.array(inputs["start"])
    draws = random_draws(algorithm.setup.network.gains, algorithm.epochs, start.shape[1])
    own = follow(algorithm, draws, start, work_of(inputs)).states.own
    return np.asarray(np.linalg.norm(own - target, axis=2).max(axis=1))


def make(case: str, plan: Plan) -> Algorithm:
    name, options = TO_OPTIMUM[case]
    return registry.find(name).make(plan, **options)


@pytest.mark.parametrize("case", TO_OPTIMUM)
def test_shrinking_steps_lead_to_the_optimum(case: str) -> None:
    inputs = quadratic("k5-quadratic")
    off = errors(make(case, plan_with(inputs, QUICK_EPOCHS, 0.5, "sqrt")), inputs, optimum(inputs))
    assert off[-1] < 0.5 * off[QUICK_EPOCHS // 10]
    assert off[-1] < off[QUICK_EPOCHS // 3] < off[QUICK_EPOCHS // 10]


def test_gradient_descent_on_rows_goes_to_the_weighed_point() -> None:
    inputs = quadratic("k5-quadratic")
    plan = plan_with(inputs, 4000, 1.0, "linear")
    pi = perron(plan.mixing.weights)
    weighed, plain = optimum(inputs, pi), optimum(inputs)
    algorithm = mc.dsgd(plan, weights="row")
    distance = float(np.linalg.norm(weighed - plain))
    assert errors(algorithm, inputs, weighed)[-1] < 0.1 * distance
    assert errors(algorithm, inputs, plain)[-1] > 0.8 * distance
    # Divided by z the same weights lead to the optimum itself.
    assert errors(mc.row_stochastic(plan, step_factor=0.2), inputs, plain)[-1] < 0.1 * distance


@pytest.mark.parametrize("case", LINEAR)
def test_constant_steps_lead_to_the_optimum_at_a_linear_rate(case: str) -> None:
    rate, last = slope(case, "k5-quadratic", 300)
    assert 0.85 < rate < 0.93
    assert last < 1e-10


def slope(case: str, name: str, epochs: int) -> tuple[float, float]:
    """Rate per epoch while it falls, and the last error."""
    method, options, sums = LINEAR[case]
    inputs = quadratic(name)
    plan = plan_with(inputs, epochs, 0.1 / (len(inputs["start"]) if sums else 1))
    off = errors(registry.find(method).make(plan, **options), inputs, optimum(inputs))
    falling = np.flatnonzero(off > 1e-11)
    first, later = falling[len(falling) // 2], falling[-1]
    return float((off[later] / off[first]) ** (1 / (later - first))), float(off[-1])


def test_constant_steps_leave_a_bias_without_correction() -> None:
    """What unequal data does to plain methods, and what exact diffusion is for."""
    inputs = quadratic("k5-quadratic")
    off = errors(mc.dsgd(plan_with(inputs, 300, 0.1)), inputs, optimum(inputs))
    assert off[-1] > 0.05
    assert off[-1] == pytest.approx(off[-2], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["k5-quadratic", "k6-quadratic-ball"])
@pytest.mark.parametrize("case", LINEAR)
def test_linear_rates_over_many_epochs(case: str, name: str, record_property: Record) -> None:
    rate, last = slope(case, name, 1500)
    record_property("rate per epoch", rate)
    assert rate < 0.97
    assert last < 1e-13


def with_steps(algorithm: Algorithm, steps: FloatArray) -> Algorithm:
    """The algorithm with steps that fall like 1/t from a start that is not too long."""
    (only,) = algorithm.rounds
    return algorithm._replace(rounds=(only._replace(receiving=only.receiving._replace(step=steps)),))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["k5-quadratic", "k6-quadratic-ball"])
@pytest.mark.parametrize("case", TO_OPTIMUM)
def test_shrinking_steps_over_many_epochs(case: str, name: str, record_property: Record) -> None:
    """The error falls with the step."""
    inputs = quadratic(name)
    divides = case in ("row-stochastic", "locally-balanced")  # by z or pi: K times as long steps
    steps = 0.5 / (1 + 0.02 * np.arange(1.0, LONG + 1)) / (len(inputs["start"]) if divides else 1)
    off = errors(with_steps(make(case, plan_with(inputs, LONG, 0.5)), steps), inputs, optimum(inputs))
    exponent = np.log(off[-1] / off[LONG // 10 - 1]) / np.log(10)
    record_property("exponent", float(exponent))
    assert off[-1] < 0.04
    assert exponent < -0.8
