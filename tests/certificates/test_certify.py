"""Costs recomputed from the ledgers of real runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import murmurcast as mc
from murmurcast.algorithms.account import exposed_ratio
from murmurcast.algorithms.tables import row_of
from murmurcast.certificates.certify import certify
from murmurcast.engine import train
from murmurcast.experiments import load as experiment_files
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import (
    caught,
    entry,
    make_plan,
    quadratic,
    regression,
    scaled,
    with_attributes,
    with_ledger,
)
from tests.conftest import asymmetric_network
from tests.planning.test_reference import INSTANCES, experiment_text


@pytest.fixture(scope="module")
def ours() -> Result:
    problem = quadratic()
    return mc.run(
        mc.power_controlled(make_plan(problem)),
        problem,
        seeds=(3, 8),
        options=mc.RunOptions(evaluate_every=4, name="ours"),
    )


@pytest.fixture(scope="module")
def of_records() -> Result:
    problem = regression()
    return mc.run(mc.power_controlled(make_plan(problem, "record")), problem, options=mc.RunOptions(name="of records"))


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: f"instance-{instance['id']}")
def test_reference_instances_from_real_ledgers(instance: dict[str, Any]) -> None:
    plan = experiment_files.parse(experiment_text(instance["inputs"]).encode(), "instance").build_plan()
    problem = mc.Quadratic.random(plan.network.nodes, 1, seed=1, clip=instance["inputs"]["G"])
    outcome = certify(mc.run(mc.power_controlled(plan), problem))
    np.testing.assert_allclose(outcome.mu, instance["expected"]["mu_local"], rtol=1e-7)
    np.testing.assert_allclose(outcome.epsilon.max(), instance["expected"]["eps_of_mu"], rtol=1e-7)
    assert (outcome.verdict, outcome.tier, outcome.unit) == ("kept", "tier 1", "node")


@pytest.mark.parametrize("unit", ["node", "record"])
@pytest.mark.parametrize(("timing", "z"), [("paper", "recursive"), ("aligned", "perron")])
def test_the_ledger_costs_what_the_plan_certifies(unit: str, timing: str, z: str, tmp_path: Path) -> None:
    problem = regression()
    plan = make_plan(problem, unit, timing, z)
    run = mc.run(mc.power_controlled(plan), problem, options=mc.RunOptions(folder=tmp_path / "run"))
    for result in (run, mc.load_run(tmp_path / "run")):
        outcome = certify(result)
        np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-12)
        np.testing.assert_allclose(outcome.epsilon, plan.certificate.epsilon, rtol=1e-9)
        assert len(set(outcome.mu)) == 4
        assert (outcome.verdict, outcome.tier, outcome.unit, outcome.delta) == ("kept", "tier 1", unit, 1e-5)
        assert "certificate" in outcome.basis


def test_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = quadratic()
    plan = make_plan(problem)
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)

    def stop(done: int, of: int, figures: dict[str, float]) -> None:  # noqa: ARG001
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mc.run(
            mc.power_controlled(plan), problem, seeds=(3, 8), options=mc.RunOptions(folder=tmp_path, on_progress=stop)
        )
    outcome = certify(
        mc.run(mc.power_controlled(plan), problem, seeds=(3, 8), options=mc.RunOptions(folder=tmp_path, resume=True))
    )
    np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-12)
    assert outcome.verdict == "kept"


def test_gradients_at_the_own_point_keep_unit_node_only(of_records: Result) -> None:
    problem = quadratic()
    assert certify(mc.run(mc.power_controlled(make_plan(problem), gradient_at="own"), problem)).verdict == "kept"
    info = of_records.info | {"settings": {"gradient_at": "own", "publish": "last"}}
    words = caught(with_ledger(of_records, of_records.ledger.assign_attrs(gradient_at="own"), **info))
    assert "no certificate" in words


def test_record_level_needs_examples_and_their_clip(of_records: Result) -> None:
    ledger = of_records.ledger
    assert "examples_per_node" in caught(with_ledger(of_records, ledger.drop_vars("examples_per_node")))
    assert "sensitivity" in caught(with_ledger(of_records, scaled("examples_per_node", 2.0)(ledger)))
    assert "clips nodes" in caught(with_ledger(of_records, ledger.assign_attrs(clipping="node")))
    assert "without examples" in caught(with_ledger(of_records, entry("examples_per_node", 0.0)(ledger)))
    assert any("not a person" in line for line in certify(of_records).assumptions)


def test_a_promise_lowered_everywhere_is_caught(ours: Result) -> None:
    """Ledger and run.json agree with each other, and not with what was sent."""
    ledger = scaled("promised_mu", 0.5)(ours.ledger)
    epsilon = float(mc.gaussian.epsilon(float(ledger["promised_mu"].max()), 1e-5))
    run = with_ledger(ours, ledger, privacy=ours.info["privacy"] | {"epsilon": epsilon})
    outcome = certify(run)
    assert outcome.verdict == "broken"
    assert set(outcome.verdicts) == {"costs more"}
    np.testing.assert_allclose(outcome.mu, certify(ours).mu)


def test_a_node_that_keeps_nothing_of_its_own() -> None:
    """R is the largest degree: its amplitude shows in what its neighbours hear only."""
    problem = quadratic()
    budget, schedule = mc.Budget(epsilon=9.0), mc.Schedule(epochs=5)
    plan = mc.plan(asymmetric_network(3, 4), problem, budget, schedule, normaliser="max-degree", z="perron")
    run = mc.run(mc.power_controlled(plan), problem)
    kept = np.asarray(run.ledger["model_receiving_kept"])[0]
    assert (kept == 0).any()
    np.testing.assert_allclose(certify(run).mu, plan.certificate.mu, rtol=1e-12)
    amplitude = np.array(run.ledger["model_sending_amplitude"])
    amplitude[0, int(np.argmin(kept))] /= 2
    assert "belong together" in caught(
        with_ledger(run, run.ledger.assign(model_sending_amplitude=(("always", "node"), amplitude)))
    )


def cut_short(run: Result, epochs: int) -> Result:
    ledger = run.ledger.isel(epoch=slice(0, epochs), model_receiving_z_row=slice(0, epochs)).assign_attrs(epochs=epochs)
    kept = with_ledger(run, ledger)
    metrics = run.metrics.sel(epoch=run.metrics["epoch"] <= epochs)
    return Result(metrics=metrics, ledger=ledger, published=kept.published, info=kept.info)


def test_a_ledger_cut_short_is_not_certified(ours: Result) -> None:
    """Somebody may have stopped because of what he saw: then the epochs sent so far do not bound the cost."""
    assert "not fixed before the run" in caught(cut_short(ours, 5))


def test_one_transmission_exposes_nothing() -> None:
    one = np.ones((1, 2))
    assert exposed_ratio(np.ones(2), one, one).tolist() == [[0.0, 0.0]]


@given(data=st.data(), rows=st.tuples(*[st.integers(1, 6)] * 3), epochs=st.integers(6, 9))
@settings(max_examples=40)
def test_the_last_row_stands_for_all_later_epochs(data: st.DataObject, rows: tuple[int, ...], epochs: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    z, amplitude, noise = (rng.uniform(0.1, 2.0, (count, 3)) for count in rows)
    steps, schedule = rng.uniform(0.1, 2.0, (2, epochs))
    sensitivity = rng.uniform(0.1, 2.0, 3)
    total = np.zeros(3)
    for t in range(1, epochs):  # as the formula is written, epoch by epoch
        s = noise[min(t, len(noise) - 1)] * schedule[t] / amplitude[min(t, len(amplitude) - 1)]
        total += (sensitivity * steps[t - 1] / (z[min(t - 1, len(z) - 1)] * s)) ** 2
    everywhere = np.arange(1, epochs + 1)
    std = schedule[:, None] * row_of(noise, everywhere) / row_of(amplitude, everywhere)
    outcome = exposed_ratio(sensitivity, steps[:, None] / row_of(z, everywhere), std)
    assert outcome.shape == (epochs, 3)
    np.testing.assert_allclose(np.sum(outcome**2, axis=0), total, rtol=1e-12)


def test_no_step_and_no_noise_cost_infinitely_much() -> None:
    """0/0: neither is known to be there. Who has dropped out sends neither, and pays nothing."""
    none, one = np.zeros((3, 2)), np.ones(2)
    assert exposed_ratio(one, none, none).tolist() == [[0.0, 0.0], [np.inf, np.inf], [np.inf, np.inf]]
    dropped = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert exposed_ratio(one, none, none, dropped).tolist() == [[0.0, 0.0], [0.0, np.inf], [0.0, np.inf]]


def test_a_trusted_server() -> None:
    problem = regression()
    plan = make_plan(problem, "record")
    run = mc.run(mc.central_dp(plan), problem, options=mc.RunOptions(name="central"))
    outcome = certify(run)
    assert (outcome.verdict, outcome.tier) == ("kept", "trusted server")
    np.testing.assert_allclose(outcome.mu.max(), plan.certificate.mu.max(), rtol=1e-12)
    np.testing.assert_allclose(outcome.mu, outcome.promised_mu, rtol=1e-12)
    assert "server" in outcome.adversary
    assert "certif" not in " ".join((outcome.basis, outcome.adversary, *outcome.assumptions))
    caught(with_ledger(run, scaled("gradient_sending_noise", 0.5)(run.ledger)))
    caught(with_ledger(run, entry("gradient_sending_noise", np.nan)(run.ledger)))
    caught(with_ledger(run, run.ledger.drop_vars("gradient_receiving_step")))
    for edit in (with_attributes(gradient_channel="air"), with_attributes(rounds="gradient model")):
        caught(with_ledger(run, edit(run.ledger)))
    again = with_attributes(gradient_draws="noise: noise again, 1 epochs ago")
    assert "noise again" in caught(with_ledger(run, again(run.ledger)))
    everybody = run.info["privacy"] | {"against": "everybody"}
    assert "against everybody" in caught(with_ledger(run, run.ledger, privacy=everybody))


def test_promises_against_weaker_adversaries_are_held_to_what_was_sent() -> None:
    problem = quadratic()
    run = mc.run(mc.decor(make_plan(problem)), problem)
    outcome = certify(run)
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    stated = run.info["privacy"]["weaker"]
    assert [one["against"] for one in stated] == [who for who, _ in outcome.weaker] == list(ADVERSARIES[1:3])
    for one, (_, epsilon) in zip(stated, outcome.weaker, strict=True):
        assert one["epsilon"] == pytest.approx(float(epsilon.max()), rel=1e-9)
    lower = [one | {"epsilon": one["epsilon"] / 2} for one in stated]
    for wrong in (lower, [], stated[:1], stated + stated[:1], [one | {"epsilon": None} for one in stated]):
        assert "weaker" in caught(with_ledger(run, run.ledger, privacy=run.info["privacy"] | {"weaker": wrong}))
    for name in ("promised_mu_against_eavesdropper", "promised_mu_against_eavesdropper_and_one_node"):
        assert "against an eavesdropper" in caught(with_ledger(run, scaled(name, 0.5)(run.ledger)))
        assert f"has no {name}" in caught(with_ledger(run, run.ledger.drop_vars(name)))


def test_nothing_sent() -> None:
    problem = quadratic(clipping="none")
    run = mc.run(mc.local_only(make_plan(problem)), problem)
    outcome = certify(run)
    assert (outcome.verdict, outcome.tier, outcome.mu.tolist()) == ("kept", "nothing sent", [0.0] * 4)
    caught(with_ledger(run, run.ledger.assign(model_sending_noise=run.ledger["power"])))
    leaked = Result(metrics=run.metrics, ledger=run.ledger, published=run.published + 1, info=run.info)
    assert "published" in caught(leaked)
    one = run.published.copy()
    one[:, 2] += 1
    of_another_kind = run.info | {"problem": run.info["problem"] | {"kind": "Mine"}}
    leaked = Result(metrics=run.metrics, ledger=run.ledger, published=one, info=of_another_kind)
    assert "published" in caught(leaked)


@pytest.mark.parametrize(
    ("make", "clipping", "why"),
    [
        (mc.noiseless, "node", "no noise is sent"),
        (mc.mped2fl, "node", "weakest links"),
        (mc.power_controlled, "none", "not clipped"),
    ],
)
def test_nothing_is_promised(make: Any, clipping: Any, why: str) -> None:
    problem = quadratic(clipping=clipping)
    run = mc.run(make(make_plan(problem)), problem)
    outcome = certify(run)
    assert outcome.verdict == "nothing is promised"
    assert why in outcome.basis
    assert np.isinf(outcome.mu).all()
    assert "certif" not in outcome.basis
    promised = run.ledger.assign(promised_mu=("node", np.full(4, 2.0)))
    epsilon = float(mc.gaussian.epsilon(2.0, 1e-5))
    outcome = certify(with_ledger(run, promised, privacy=run.info["privacy"] | {"epsilon": epsilon}))
    assert outcome.verdict == "broken"


def test_ped2fl_promises_nothing() -> None:
    gains = np.array([[0, 0.9, 0.9, 0], [0.5, 0, 0.5, 0.5], [0.7, 0.7, 0, 0], [0, 0.8, 0, 0]])
    problem = quadratic()
    network = mc.Network(gains=gains, power=(1.0, 2.0, 0.5, 1.5))
    plan = mc.plan(network, problem, mc.Budget(epsilon=8.0), mc.Schedule(epochs=4))
    assert "weakest sender" in certify(mc.run(mc.ped2fl(plan), problem)).basis


def test_an_algorithm_of_ones_own_promises_nothing_or_cannot_be_checked(ours: Result) -> None:
    info = {"algorithm": "mine", "privacy": ours.info["privacy"] | {"epsilon": None, "against": "nobody"}}
    ledger = ours.ledger.assign_attrs(algorithm="mine")
    assert "cannot be checked" in caught(with_ledger(ours, ledger, algorithm="mine"))
    free = ledger.assign(promised_mu=("node", np.full(4, np.inf)))
    assert certify(with_ledger(ours, free, **info)).basis.endswith("it brings no account")


def test_runs_compose(ours: Result) -> None:
    problem = quadratic()
    other = mc.run(
        mc.power_controlled(make_plan(problem, timing="aligned")),
        problem,
        seeds=(1, 2),
        options=mc.RunOptions(name="other"),
    )
    parts, both = [certify(ours), certify(other)], certify([ours, other])
    np.testing.assert_allclose(both.mu, np.hypot(parts[0].mu, parts[1].mu), rtol=1e-14)
    for node in range(4):
        assert both.mu[node] == pytest.approx(mc.gaussian.compose([part.mu[node] for part in parts]), rel=1e-14)
    np.testing.assert_allclose(both.promised_mu, both.mu, rtol=1e-12)
    np.testing.assert_allclose(both.epsilon, mc.gaussian.epsilon(both.mu, 1e-5))
    assert (both.verdict, both.tier) == ("kept", "tier 1")
    assert any("same data by the same nodes" in line for line in both.assumptions)
    server = mc.run(mc.central_dp(make_plan(problem)), problem)
    assert certify([ours, server]).tier == "trusted server"
    alone = mc.run(mc.local_only(make_plan(problem)), problem)
    together = certify([alone, ours])
    assert together.tier == "tier 1"
    np.testing.assert_array_equal(together.mu, parts[0].mu)
    loud = mc.run(mc.noiseless(make_plan(problem)), problem)
    assert certify([ours, loud]).verdict == "nothing is promised"
    broken = with_ledger(ours, scaled("model_sending_noise", 0.5)(ours.ledger))
    assert certify([other, broken, loud]).verdict == "broken"


def test_runs_that_do_not_compose(ours: Result, of_records: Result) -> None:
    with pytest.raises(mc.Error, match="different units"):
        certify([ours, of_records])
    with pytest.raises(mc.Error, match="no run"):
        certify([])
    with pytest.raises(mc.Error, match="delta"):
        certify(ours, delta=1.5)
    problem = mc.Quadratic.random(3, 2, seed=1)
    small = mc.plan(asymmetric_network(4, 3), problem, mc.Budget(epsilon=9.0, delta=1e-6), mc.Schedule(epochs=4))
    with pytest.raises(mc.Error, match="numbers of nodes"):
        certify([ours, mc.run(mc.power_controlled(small), problem)])
    stricter = with_ledger(
        ours,
        ours.ledger.assign_attrs(delta=1e-6),
        privacy=ours.info["privacy"]
        | {"delta": 1e-6, "epsilon": float(mc.gaussian.epsilon(certify(ours).mu.max(), 1e-6))},
        seeds=[11, 12],
    )
    with pytest.raises(mc.Error, match="different deltas"):
        certify([ours, stricter])
    assert certify([ours, stricter], delta=1e-7).delta == 1e-7


def test_delta_and_seeds(ours: Result) -> None:
    outcome = certify(ours, delta=1e-8)
    np.testing.assert_allclose(outcome.epsilon, mc.gaussian.epsilon(outcome.mu, 1e-8))
    assert any("of the 2 seeds" in line for line in outcome.assumptions)


def test_only_saved_files_are_needed() -> None:
    """Neither the engine nor JAX is loaded."""
    words = "import murmurcast.certificates.certify, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0
