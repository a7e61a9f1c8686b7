"""Several records of one person: k times the sensitivity, from the budget to the certificate."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Altered
from murmurcast.privacy import discrete
from murmurcast.problems.clip import Clip
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import make_plan, with_ledger
from tests.conftest import asymmetric_network

RECORDS = 3


def regression() -> mc.RidgeRegression:
    """Nodes with unequal numbers of records, none with fewer than a person may have."""
    data = mc.datasets.least_squares(examples=300, features=3, seed=2).partition("quantity", nodes=4, seed=1)
    problem = mc.RidgeRegression(data=data, clip=0.7, ball=5.0)
    assert problem.examples_per_node.min() > RECORDS
    assert len(set(problem.examples_per_node)) == 4
    return problem


def budget(**options: Any) -> mc.Budget:
    usual: dict[str, Any] = {"epsilon": 90.0, "unit": "record"}
    return mc.Budget(**(usual | options))


def planned(noise: Any, **options: Any) -> mc.Plan:
    schedule = mc.Schedule(epochs=9, step=0.3, noise_timing="paper", noise_to_step=noise)
    rule = mc.PowerRule(maximum=0.6)
    return mc.plan(asymmetric_network(3, 4), regression(), budget(**options), schedule, power=rule)


def of_three(algorithm: Any = mc.power_controlled) -> Result:
    problem = regression()
    plan = planned((3.0, 4.0, 5.0, 6.0), records_per_person=RECORDS)
    return mc.run(algorithm(replace(plan, problem=problem)), problem, seeds=(4,))


def test_mu_is_so_many_times_as_large_at_the_same_noise() -> None:
    one = planned((3.0, 4.0, 5.0, 6.0))
    # The same split and noise, and nothing else: only whom it hides is another.
    three = replace(one, budget=replace(one.budget, records_per_person=RECORDS))
    np.testing.assert_allclose(three.sensitivity, RECORDS * one.sensitivity, rtol=1e-15)
    np.testing.assert_allclose(three.sensitivity, 2 * 0.7 * RECORDS / regression().examples_per_node, rtol=1e-15)
    np.testing.assert_allclose(three.certificate.mu, RECORDS * one.certificate.mu, rtol=1e-14)
    np.testing.assert_array_equal(three.certificate.epsilon, mc.gaussian.epsilon(three.certificate.mu, 1e-5))


def test_noise_is_so_many_times_as_large_at_the_same_budget() -> None:
    one, three = planned("auto", epsilon=2.0), planned("auto", epsilon=2.0, records_per_person=RECORDS)
    np.testing.assert_allclose(three.noise_to_step, RECORDS * one.noise_to_step, rtol=1e-14)
    np.testing.assert_allclose(three.certificate.mu, one.certificate.mu, rtol=1e-12)
    assert three.certificate.epsilon.max() == pytest.approx(2.0, rel=1e-9)


def test_secure_noise_hides_them_and_counts_its_rounding_once() -> None:
    problem, one = regression(), make_plan(regression(), "record", source="secure")
    three = replace(one, budget=replace(one.budget, records_per_person=RECORDS))
    lost = discrete.sensitivity(np.zeros(4), 0.7, problem.examples_per_node, problem.dim)
    np.testing.assert_allclose(three.effective_sensitivity, RECORDS * one.sensitivity + lost, rtol=1e-15)
    rounding = one.curve.rounding
    np.testing.assert_allclose(three.certificate.mu - rounding, RECORDS * (one.certificate.mu - rounding), rtol=1e-9)


@pytest.mark.parametrize("algorithm", [mc.power_controlled, mc.orthogonal, mc.central_dp])
def test_a_run_is_recomputed_for_so_many(algorithm: Any) -> None:
    run = of_three(algorithm)
    outcome = mc.certify(run)
    assert (outcome.verdict, outcome.records_per_person) == ("kept", RECORDS)
    assert outcome.hidden == "person with up to 3 records"
    assert run.ledger.attrs["records_per_person"] == RECORDS
    assert "no person has more than 3 records" in " ".join(outcome.assumptions)
    assert "person with up to 3 records" in run.info["privacy"]["basis"]
    shown = str(mc.compare(run, metric="published_loss"))
    assert "(person with up to 3 records)" in shown or algorithm is mc.central_dp


def test_a_ledger_cannot_hide_fewer_than_it_says(tmp_path: Path) -> None:
    run = of_three()
    fewer = run.ledger.assign_attrs(records_per_person=1)
    privacy = run.info["privacy"] | {"records_per_person": 1}
    with pytest.raises(Altered, match=r"number of records per person is 3 in run\.json, and 1 in the ledger"):
        mc.certify(with_ledger(run, fewer))
    with pytest.raises(Altered, match="sensitivity"):
        mc.certify(with_ledger(run, fewer, privacy=privacy))
    # All of it made consistent: only the experiment still knows.
    cheap = fewer.assign(sensitivity=run.ledger["sensitivity"] / 3, promised_mu=run.ledger["promised_mu"] / 3)
    epsilon = float(mc.gaussian.epsilon(cheap["promised_mu"].max(), 1e-5))
    words = {"epsilon": epsilon, "basis": "certificate, unit record, against everybody"}
    forged = with_ledger(run, cheap, privacy=privacy | words)
    assert mc.certify(forged).verdict == "kept"
    with pytest.raises(Altered, match=r"records_per_person is 3 in experiment\.toml, and 1 in the ledger"):
        mc.certify(replace(forged, experiment="[privacy]\nrecords_per_person = 3\n"))
    for value in (0.5, 2.5, 1000):
        odd = with_ledger(run, run.ledger.assign_attrs(records_per_person=value))
        odd.info["privacy"]["records_per_person"] = value
        with pytest.raises(Altered, match="records"):
            mc.certify(odd)
    odd = with_ledger(run, run.ledger, privacy=run.info["privacy"] | {"records_per_person": "3"})
    odd.save(tmp_path)
    with pytest.raises(Altered, match=r"privacy\.records_per_person"):
        mc.load_run(tmp_path)


def test_runs_that_hide_different_numbers_do_not_add_up() -> None:
    problem = regression()
    one = mc.run(mc.power_controlled(make_plan(problem, "record")), problem, seeds=(1,))
    assert "records_per_person" not in one.ledger.attrs
    with pytest.raises(mc.Error, match="different numbers of records per person"):
        mc.certify([one, of_three()])


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (0, -1, 2.0, "2"):
        with pytest.raises(mc.Error, match="records_per_person"):
            budget(records_per_person=wrong)
    with pytest.raises(mc.Error, match="unit node") as refused:
        budget(unit="node", records_per_person=2)
    assert 'unit = "record"' in refused.value.hint
    clip = Clip(limit=1.0, per="example", examples_per_node=(9, 4, 5))
    np.testing.assert_array_equal(clip.sensitivity("record", 3, 4), 8 / np.array([9, 4, 5]))
    with pytest.raises(mc.Error, match="records_per_person is 5, and node 1 averages over 4") as refused:
        clip.sensitivity("record", 3, 5)
    assert 'unit = "node"' in refused.value.hint


def test_too_many_are_refused_before_the_work() -> None:
    """Also for a method without a plan, which asks nobody how far a gradient moves."""
    problem = regression()
    setup = mc.Setup(
        network=asymmetric_network(3, 4),
        problem=problem,
        budget=budget(records_per_person=1000),
        schedule=mc.Schedule(epochs=2, noise_to_step=1.0),
    )

    def never(*_: object) -> None:
        raise AssertionError("it trains")

    with pytest.raises(mc.Error, match="records_per_person is 1000"):
        mc.run(mc.local_only(setup), problem, options=mc.RunOptions(on_progress=never))
