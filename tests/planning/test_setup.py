"""A setup: what every method takes, with nothing of a method's own in it."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.privacy import discrete
from murmurcast.privacy.releases import GAUSSIAN
from tests.algorithms.networks import NODES, one_way, two_way


def built(unit: str = "record", source: str = "seeded") -> mc.Setup:
    problem = mc.ClippedGradients(clip=0.5, examples_per_node=[10, 20, 30, 40, 50], dim=7)
    budget = mc.Budget(epsilon=2.0, unit=unit, noise_source=source)  # type: ignore[arg-type]
    return mc.Setup(network=one_way(), problem=problem, budget=budget, schedule=mc.Schedule(epochs=9))


def test_it_knows_how_far_gradients_move() -> None:
    np.testing.assert_allclose(built().sensitivity, 1.0 / np.array([10, 20, 30, 40, 50]))
    np.testing.assert_allclose(built("node").sensitivity, np.ones(NODES))
    np.testing.assert_array_equal(built().effective_sensitivity, built().sensitivity)
    secure = built(source="secure")
    expected = discrete.sensitivity(secure.sensitivity, 0.5, [10, 20, 30, 40, 50], 7)
    np.testing.assert_array_equal(secure.effective_sensitivity, expected)
    assert (secure.effective_sensitivity > secure.sensitivity).all()


def test_it_knows_the_law_of_its_noise() -> None:
    assert built().law == GAUSSIAN
    secure = built(source="secure")
    assert (secure.law.name, secure.law.dim) == ("discrete gaussian", 7)
    assert secure.curve_for(np.ones((secure.schedule.epochs, 4))).source == "secure"


def test_its_beginning_is_a_setup() -> None:
    short = built().until(4)
    assert short.schedule.epochs == 4
    np.testing.assert_array_equal(short.schedule.steps, built().schedule.steps[:4])
    with pytest.raises(mc.Error, match="the plan has 9"):
        built().until(10)


def test_a_plan_is_a_setup_with_more() -> None:
    problem = mc.ClippedGradients(clip=0.5, dim=7)
    plan = mc.plan(two_way(), problem, mc.Budget(epsilon=2.0), mc.Schedule(epochs=9))
    assert isinstance(plan, mc.Setup)
    assert isinstance(plan.until(4), mc.Plan)
    assert plan.until(4).z.shape == (4, NODES)
    with pytest.raises(mc.Error, match="two-way links") as raised:
        mc.plan(one_way(), problem, mc.Budget(epsilon=2.0), mc.Schedule(epochs=9))
    assert "both gains" in raised.value.hint


@pytest.mark.slow
def test_methods_that_need_no_plan_take_either() -> None:
    problem = mc.Quadratic.random(NODES, 3)
    plan = mc.plan(two_way(), problem, mc.Budget(epsilon=2.0), mc.Schedule(epochs=9))
    plain = mc.Setup(network=two_way(), problem=problem, budget=plan.budget, schedule=plan.schedule)
    for make in (mc.frost, mc.push_pull, mc.decor, mc.local_only):
        one, other = (mc.run(make(setup), problem, precision="float64") for setup in (plan, plain))
        np.testing.assert_allclose(
            one.published, other.published, rtol=0, atol=1e-12
        )  # an even split: the same weights
    with pytest.raises(mc.Error, match="no plan of Algorithm 1"):
        mc.frost(plain).plan  # noqa: B018
