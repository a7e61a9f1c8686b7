"""Budgets that protect nobody are named in words."""

from typing import Any

import pytest

import murmurcast as mc
from murmurcast.planning.warnings import without_meaning
from tests.conftest import asymmetric_network


def warned(**budget: Any) -> str:
    network = asymmetric_network(2, 4)
    data = mc.datasets.digits().partition("iid", nodes=network.nodes)
    problem = mc.SoftmaxRegression(data=data, clip=1.0, clipping="example")
    plan = mc.plan(network, problem, mc.Budget(**{"epsilon": 1.0, **budget}), mc.Schedule(epochs=4))
    return "\n".join(line for line in plan.warnings if "without meaning" in line)


@pytest.mark.parametrize("unit", ["node", "record"])
@pytest.mark.parametrize("delta", [0.5, 1 / 359])  # the smallest node of four has 359 records
def test_a_delta_that_lets_a_record_be_published(unit: str, delta: float) -> None:
    assert warned(delta=delta, unit=unit).startswith("delta without meaning")


def test_an_epsilon_that_hides_nothing() -> None:
    result = warned(epsilon=5000.0, unit="record")
    assert result.startswith("epsilon without meaning")
    assert "100 % of the time" in result


def test_budgets_with_a_meaning_pass() -> None:
    assert warned(epsilon=10.0, delta=1e-5, unit="record") == ""
    assert warned(delta=1 / 360, unit="record") == ""


def test_a_minibatch_does_not_make_a_large_delta_small() -> None:
    network = asymmetric_network(1, 3)
    data = mc.datasets.digits().partition("iid", nodes=3)
    problem = mc.SoftmaxRegression(data=data, clip=1.0, clipping="example", batch=8)
    plan = mc.plan(network, problem, mc.Budget(epsilon=1.0, delta=0.01, unit="record"), mc.Schedule(epochs=4))
    assert any(line.startswith("delta without meaning") for line in plan.warnings)


def test_where_sizes_are_unknown_or_few_delta_is_judged_as_of_a_hundred() -> None:
    assert without_meaning(0.6, 0.01, "node", 0, 4)
    assert without_meaning(0.6, 0.5, "record", 1, 4)
    assert not without_meaning(0.6, 0.009, "node", 0, 4)
    assert without_meaning(0.6, 0.001, "node", 0, 1000)
