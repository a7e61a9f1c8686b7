"""Costs of runs with secure noise, recomputed from their ledgers; and what an edited one meets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.privacy import discrete
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import (
    EDITS,
    NEEDED,
    SECURE_EDITS,
    Edit,
    caught,
    make_plan,
    quadratic,
    regression,
    with_ledger,
)


def built(problem: Any, unit: str = "node", source: str = "secure", **settings: Any) -> Result:
    algorithm = mc.power_controlled(make_plan(problem, unit, source=source))
    options = mc.RunOptions(evaluate_every=4, name="ours")
    return mc.run(algorithm, problem, precision="float64", **settings, options=options)


@pytest.fixture(scope="module")
def ours() -> Result:
    return built(quadratic(), seeds=(3,))


@pytest.mark.parametrize("unit", ["node", "record"])
@pytest.mark.parametrize(("timing", "z"), [("paper", "recursive"), ("aligned", "perron")])
def test_the_ledger_costs_what_the_plan_certifies(unit: str, timing: str, z: str, tmp_path: Path) -> None:
    problem = regression()
    plan = make_plan(problem, unit, timing, z, "secure")
    run = mc.run(
        mc.power_controlled(plan), problem, precision="float64", options=mc.RunOptions(folder=tmp_path / "run")
    )
    for result in (run, mc.load_run(tmp_path / "run")):
        outcome = certify(result)
        np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-12)
        np.testing.assert_allclose(outcome.epsilon, plan.certificate.epsilon, rtol=1e-9)
        assert len(set(outcome.mu)) == 4
        assert (outcome.verdict, outcome.tier, outcome.unit, outcome.delta) == ("kept", "tier 1", unit, 1e-5)
        assert "discrete Gaussian's bound" in outcome.basis
        assert "only the certificate is claimed" in outcome.note
        assert any("rounding is counted" in line for line in outcome.assumptions)
        assert not any("not counted" in line for line in outcome.assumptions)


def test_a_secure_run_costs_more_than_the_same_run_in_real_numbers(ours: Result) -> None:
    seeded = certify(built(quadratic(), source="seeded"))
    plan = make_plan(quadratic(), source="secure")
    outcome = certify(ours)
    steps = discrete.sensitivity(plan.sensitivity, 1.3, 0, 2) / plan.sensitivity
    pushed = plan.sensitivity * plan.schedule.steps[:-1, None] / (plan.z[:-1] * plan.effective_noise[1:])
    mu = np.sqrt((pushed**2).sum(axis=0))
    np.testing.assert_allclose(outcome.mu, steps * mu + discrete.rounding(2, 9), rtol=1e-12)
    assert (outcome.epsilon > mc.gaussian.epsilon(mu, 1e-5)).all()
    assert seeded.note.startswith("simulation")


@pytest.mark.parametrize("edit", (EDITS | SECURE_EDITS).values(), ids=(EDITS | SECURE_EDITS).keys())
def test_edits_are_caught(ours: Result, edit: Edit) -> None:
    assert caught(with_ledger(ours, edit(ours.ledger))).startswith('run "ours": ')


@pytest.mark.parametrize("name", [*NEEDED, "model_sending_spacing", "model_receiving_limit"])
def test_a_ledger_that_lacks_something_is_refused(ours: Result, name: str) -> None:
    assert f"has no {name}" in caught(with_ledger(ours, ours.ledger.drop_vars(name)))


def test_a_broken_promise_claims_nothing(ours: Result) -> None:
    outcome = certify(with_ledger(ours, SECURE_EDITS["noise and spacing halved"](ours.ledger)))
    assert outcome.verdict == "broken"
    assert set(outcome.verdicts) == {"costs more"}
    assert "nothing is claimed" in outcome.note


def test_all_words_of_the_source_agree(ours: Result) -> None:
    """A seeded run dressed up as a secure one, and the other way round."""
    seeded = built(quadratic(), source="seeded")
    stated = seeded.info["privacy"] | {"noise_source": "secure"}
    assert "noise source" in caught(with_ledger(seeded, seeded.ledger, privacy=stated))
    dressed = seeded.ledger.assign_attrs(noise_source="secure", dim=2, sampler_error=discrete.SAMPLER_ERROR)
    assert "its law is gaussian" in caught(with_ledger(seeded, dressed, privacy=stated))
    dressed = dressed.assign_attrs(law="discrete gaussian")
    assert "quotes epsilon" in caught(with_ledger(seeded, dressed, privacy=stated))
    worst = float(discrete.epsilon(float(dressed["promised_mu"].max()), 1e-5, 18))
    stated = stated | {"epsilon": worst}
    assert "normal of a node" in caught(with_ledger(seeded, dressed, privacy=stated))
    dressed = dressed.assign_attrs(model_draws="noise: discrete gaussian of a node")
    assert "has no model_receiving_limit" in caught(with_ledger(seeded, dressed, privacy=stated))
    stated = ours.info["privacy"] | {"noise_source": "seeded"}
    ledger = ours.ledger.assign_attrs(noise_source="seeded", law="gaussian")
    worst = float(mc.gaussian.epsilon(float(ledger["promised_mu"].max()), 1e-5))
    stated = stated | {"epsilon": worst}
    assert "discrete gaussian of a node" in caught(with_ledger(ours, ledger, privacy=stated))
    ledger = ledger.assign_attrs(model_draws="noise: normal of a node")
    assert "does not use" in caught(with_ledger(ours, ledger, privacy=stated))


def test_a_ledger_that_does_not_say_where_its_noise_came_from_is_refused() -> None:
    seeded = built(quadratic(), source="seeded")
    ledger = seeded.ledger.copy()
    ledger.attrs.pop("noise_source")
    stated = {key: value for key, value in seeded.info["privacy"].items() if key != "noise_source"}
    with pytest.raises(mc.Error, match="does not say its noise_source"):
        certify(with_ledger(seeded, ledger, privacy=stated))


def test_runs_together_are_by_the_weaker_curve() -> None:
    short, seeded = built(quadratic(), stop_after=3), built(quadratic(), source="seeded", stop_after=3)
    both, twice = certify([short, seeded]), certify([short, short])
    np.testing.assert_allclose(both.mu**2, certify(short).mu ** 2 + certify(seeded).mu ** 2)
    np.testing.assert_allclose(both.epsilon, discrete.epsilon(both.mu, 1e-5, 6))
    np.testing.assert_allclose(twice.epsilon, discrete.epsilon(np.sqrt(2) * certify(short).mu, 1e-5, 12))
    assert np.isfinite([both.epsilon, twice.epsilon]).all()
    assert both.note.startswith("simulation")  # one transcript is known to whoever knows its seed
    assert "certificate is claimed" in twice.note


def test_less_noise_more_epochs_and_more_parameters_cost_more() -> None:
    def cost(dim: int, epochs: int, epsilon: float) -> float:
        problem = mc.ClippedGradients(dim=dim)
        budget = mc.Budget(epsilon=epsilon, noise_source="secure")
        schedule = mc.Schedule(epochs=epochs, step=0.1)
        return float(mc.plan(make_plan(quadratic()).network, problem, budget, schedule).effective_noise[0, 0])

    usual = cost(7850, 50, 1.0)
    assert cost(785_000, 50, 1.0) > usual
    assert cost(7850, 60, 1.0) > usual
    assert cost(7850, 50, 1.1) < usual


def test_a_stop_fixed_beforehand_costs_what_was_sent(ours: Result) -> None:
    stopped = certify(built(quadratic(), stop_after=5))
    assert stopped.verdict == "kept"
    plan = make_plan(quadratic(), source="secure")
    np.testing.assert_allclose(stopped.mu, plan.until(5).certificate.mu, rtol=1e-12)
    assert (stopped.mu < certify(ours).mu).all()


def test_a_run_with_secure_noise_has_one_seed(ours: Result) -> None:
    """Each seed is a run on the same data: two of them would cost more than is promised and claimed."""
    with pytest.raises(mc.Error, match="one seed"):
        built(quadratic(), seeds=(3, 8))
    twice = replace(
        ours,
        published=np.concatenate([ours.published] * 2),
        metrics=ours.metrics.isel(seed=[0, 0]).assign_coords(seed=[3, 8]),
        info=ours.info | {"seeds": [3, 8]},
    )
    assert "has secure noise and 2 seeds" in caught(twice)


def test_no_epsilon_is_said_where_the_bound_has_none(ours: Result) -> None:
    assert np.isfinite(certify(ours).epsilon).all()
    for many, delta in (([ours, ours], None), ([ours], 1e-60)):
        with pytest.raises(mc.Error, match="says nothing about so large a cost"):
            certify(many, delta)


def test_nobody_drops_out_of_a_run_with_secure_noise() -> None:
    with pytest.raises(mc.Error, match="drop out"):
        built(quadratic(), drops={1: 4})


def test_runs_with_the_same_seed_have_noise_of_their_own() -> None:
    one, other = (built(quadratic(), seeds=(3,), stop_after=3) for _ in range(2))
    both = certify([one, other])
    assert both.verdict == "kept"
    np.testing.assert_allclose(both.mu, np.sqrt(2) * certify(one).mu)
