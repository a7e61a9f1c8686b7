"""Who learns what, from the ledger alone: the plan's own numbers."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.reports import coalitions
from murmurcast.reports.page import Cell, Table, Text
from murmurcast.reports.runs import page_of
from tests.conftest import asymmetric_network
from tests.reports.examples import algorithm, example, plan, problem


def test_the_ledger_says_what_the_plan_says() -> None:
    result, built = coalitions.system(example("power_controlled")), plan()
    assert result is not None
    np.testing.assert_allclose(result.weights, built.mixing.weights.toarray(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(result.effective_noise, built.effective_noise, rtol=1e-12)
    np.testing.assert_allclose(result.push, built.sensitivity * built.schedule.steps[:, None] / built.z, rtol=1e-12)
    from_ledger, from_plan = coalitions.of_run(example("power_controlled")), built.collusion()
    assert from_ledger is not None
    np.testing.assert_allclose(from_ledger.single_mu, from_plan.single_mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(from_ledger.pair_mu, from_plan.pair_mu, rtol=1e-9)
    np.testing.assert_array_equal(from_ledger.pair, from_plan.pair)


def test_the_table() -> None:
    (table,) = coalitions.blocks(example("power_controlled"))
    assert isinstance(table, Table)
    assert table.headings == ("target", "certified", *(f"to {node}" for node in range(5)), "worst two", "who")
    assert "not a guarantee" in table.note
    assert "Tried" not in table.note
    for target, row in enumerate(table.rows):
        for receiver in range(5):
            text = row[2 + receiver][0]
            near = receiver in plan().network.neighbours(target)
            assert text == "-" if receiver == target else text.endswith("+") == near
    assert "Who learns what" in page_of([example("power_controlled")])


def test_runs_of_another_kind_have_none() -> None:
    for name in ("mped2fl", "noiseless", "central_dp", "local_only"):
        assert coalitions.blocks(example(name)) == []


def test_nodes_that_drop_out_change_the_weights() -> None:
    run = mc.run(algorithm("power_controlled"), problem(), drops={3: 5})
    (text,) = coalitions.blocks(run)
    assert isinstance(text, Text)
    assert "weights change" in text.paragraphs[0]


def test_a_larger_network_shows_the_worst() -> None:
    network = mc.topologies.geometric(14, seed=3)
    built = mc.Quadratic.random(14, dim=2, seed=1, ball=2.0)
    larger = mc.plan(network, built, mc.Budget(epsilon=8.0), mc.Schedule(epochs=200, step=0.1))
    run = mc.run(mc.power_controlled(larger), built)
    (table,) = coalitions.blocks(run)
    assert isinstance(table, Table)
    assert table.headings == ("target", "certified", "worst one", "who", "worst two", "who")
    assert "of 91 pairs" in table.note
    assert len(table.rows) == 14


@pytest.mark.parametrize("source", ["seeded", "secure"])
def test_certified_is_what_is_certified(source: str) -> None:
    built = mc.Quadratic.random(4, dim=3, seed=1)
    schedule = mc.Schedule(epochs=6, step=0.1, noise_timing="aligned", noise_to_step=(30.0, 40.0, 50.0, 60.0))
    network = asymmetric_network(5, nodes=4)
    budget = mc.Budget(epsilon=6.0, target="per-epoch", noise_source=source)  # type: ignore[arg-type]
    run = mc.run(mc.power_controlled(mc.plan(network, built, budget, schedule)), built, precision="float64")
    (table,) = coalitions.blocks(run)
    assert isinstance(table, Table)
    shown = [cell[1] for _, cell, *_ in table.rows if isinstance(cell, Cell)]
    np.testing.assert_allclose(shown, certify(run).epsilon, rtol=1e-9)  # type: ignore[arg-type]
