"""Everything a user may do to a run, and what it then costs: stops, nodes that drop out, other plans, minibatches."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.engine import train
from murmurcast.privacy.certificate import PLAIN_BOUND
from murmurcast.privacy.conversion import mu_of
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import EPOCHS, Edit, caught, make_plan, quadratic, regression, with_ledger
from tests.conftest import asymmetric_network

STOP, NODE, LAST = 6, 2, 4


@pytest.fixture(scope="module")
def whole() -> Result:
    return mc.run(
        mc.power_controlled(make_plan(quadratic())),
        quadratic(),
        precision="float64",
        options=mc.RunOptions(evaluate_every=1),
    )


@pytest.fixture(scope="module")
def stopped() -> Result:
    algorithm = mc.power_controlled(make_plan(quadratic()))
    return mc.run(algorithm, quadratic(), precision="float64", stop_after=STOP, options=mc.RunOptions(evaluate_every=1))


@pytest.fixture(scope="module")
def thinned() -> Result:
    """Node 2 sends in epochs 1 to 4 only."""
    algorithm = mc.power_controlled(make_plan(quadratic()))
    return mc.run(
        algorithm, quadratic(), precision="float64", drops={NODE: LAST}, options=mc.RunOptions(evaluate_every=1)
    )


def cost(plan: mc.Plan, last: list[int]) -> Any:
    """The certificate written out: node j sends up to epoch last[j]."""
    ratio = plan.sensitivity * plan.schedule.steps[:-1, None] / (plan.z[:-1] * plan.effective_noise[1:])
    return np.array([np.sqrt(np.sum(ratio[: last[node] - 1, node] ** 2)) for node in range(4)])


def test_a_stop_fixed_beforehand_costs_what_was_sent(whole: Result, stopped: Result) -> None:
    plan = make_plan(quadratic())
    outcome = certify(stopped)
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    np.testing.assert_allclose(outcome.mu, cost(plan, [STOP] * 4), rtol=1e-12)
    np.testing.assert_allclose(plan.until(STOP).certificate.mu, outcome.mu, rtol=1e-12)
    assert (outcome.mu < certify(whole).mu).all()
    assert any("stops after epoch 6 was fixed before" in line for line in outcome.assumptions)
    assert stopped.ledger.attrs["epochs"] == stopped.info["epochs"] == STOP
    assert stopped.info["privacy"]["epsilon"] == pytest.approx(float(outcome.epsilon.max()))
    for name in ("own_loss", "published_loss", "sent_power"):  # the same first epochs, number by number
        np.testing.assert_array_equal(stopped.metrics[name], whole.metrics[name].sel(epoch=slice(1, STOP)))


@pytest.mark.parametrize(("make", "tier"), [("central_dp", "trusted server"), ("local_only", "nothing sent")])
def test_other_algorithms_stop_too(make: str, tier: str) -> None:
    algorithm = getattr(mc, make)(make_plan(quadratic()))
    outcome = certify(mc.run(algorithm, quadratic(), stop_after=STOP))
    assert (outcome.verdict, outcome.tier) == ("kept", tier)
    whole = mu_of(algorithm.releases[0])
    np.testing.assert_allclose(outcome.mu, whole * np.sqrt((STOP - 1) / (EPOCHS - 1)), rtol=1e-12)
    assert certify(mc.run(mc.mped2fl(make_plan(quadratic())), quadratic(), stop_after=3)).tier == "none"


@pytest.mark.parametrize(
    "edit",
    [
        lambda ledger: ledger.assign_attrs(stop_after=5),
        lambda ledger: ledger.assign_attrs(stop_after="6"),
        lambda ledger: ledger.assign_attrs(planned_epochs=4),
        lambda ledger: xr.Dataset(
            ledger.variables, attrs={k: v for k, v in ledger.attrs.items() if k != "planned_epochs"}
        ),
    ],
)
def test_a_stop_that_was_edited_is_caught(stopped: Result, edit: Edit) -> None:
    caught(with_ledger(stopped, edit(stopped.ledger)))


def test_a_node_that_drops_out_stops_paying(whole: Result, thinned: Result) -> None:
    plan = make_plan(quadratic())
    last = [EPOCHS, EPOCHS, LAST, EPOCHS]
    outcome = certify(thinned)
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    np.testing.assert_allclose(outcome.mu, cost(plan, last), rtol=1e-12)
    np.testing.assert_allclose(plan.mu_until(np.array(last)), outcome.mu, rtol=1e-12)
    others = [node for node in range(4) if node != NODE]
    np.testing.assert_allclose(outcome.mu[others], certify(whole).mu[others], rtol=1e-12)
    assert outcome.mu[NODE] < certify(whole).mu[NODE]
    assert thinned.ledger.attrs["drops"] == "node 2 after epoch 4"
    assert any("node 2 after epoch 4" in line for line in outcome.assumptions)


def test_a_node_that_dropped_out_holds_its_state_and_sends_nothing(whole: Result, thinned: Result) -> None:
    before, after = slice(1, LAST), slice(LAST + 1, None)
    for name in ("own_loss", "published_loss"):
        own = thinned.metrics[name].isel(seed=0, node=NODE)
        assert len(set(own.sel(epoch=slice(LAST, None)).values.tolist())) == 1
        np.testing.assert_allclose(thinned.metrics[name].sel(epoch=before), whole.metrics[name].sel(epoch=before))
    assert (thinned.metrics["sent_power"].isel(node=NODE).sel(epoch=after) == 0).all()
    assert (thinned.metrics["sent_power"].isel(node=0).sel(epoch=after) > 0).all()


@pytest.mark.parametrize("publish", ["last", "average"])
def test_what_a_dropped_node_publishes_carries_no_gradient_that_nobody_hid(publish: Any) -> None:
    """It is the mixed point of its last epoch: its gradients 1..LAST-1, all sent with noise, and not the one after."""
    algorithm = mc.power_controlled(make_plan(quadratic()), publish=publish)
    options: dict[str, Any] = {"precision": "float64", "seeds": (5,)}
    dropped = mc.run(algorithm, quadratic(), drops={NODE: LAST}, **options)
    until_then = mc.run(algorithm, quadratic(), stop_after=LAST, **options)
    np.testing.assert_allclose(dropped.published[0, NODE], until_then.published[0, NODE], rtol=1e-12)


def test_weights_still_sum_to_one(thinned: Result) -> None:
    ledger = thinned.ledger
    gains = make_plan(quadratic()).network.gains.toarray()
    amplitude, heard = (np.asarray(ledger[name]) for name in ("model_sending_amplitude", "model_receiving_heard"))
    assert len(amplitude) == len(heard) == LAST + 1
    for row in (0, LAST):
        total = heard[row] * (amplitude[row] @ gains) + np.asarray(ledger["model_receiving_kept"])[0] * amplitude[0]
        np.testing.assert_allclose(np.delete(total, NODE), 1.0, rtol=1e-12)


def later(name: str, value: float, node: int = NODE) -> Edit:
    def edit(ledger: xr.Dataset) -> xr.Dataset:
        table = np.array(ledger[name], np.float64)
        table[-1, node] = value
        return ledger.assign({name: (ledger[name].dims, table)})

    return edit


DROP_EDITS: dict[str, Edit] = {
    "says a later epoch": lambda ledger: ledger.assign_attrs(drops="node 2 after epoch 5"),
    "says an earlier epoch": lambda ledger: ledger.assign_attrs(drops="node 2 after epoch 3"),
    "says nothing": lambda ledger: xr.Dataset(
        ledger.variables, attrs={k: v for k, v in ledger.attrs.items() if k != "drops"}
    ),
    "sends on": later("model_sending_amplitude", 0.5),
    "noise goes on": later("model_sending_noise", 0.5),
    "another has dropped": later("model_receiving_sends", 0.0, node=1),
    "has not dropped": later("model_receiving_sends", 1.0),
    "half": later("model_receiving_sends", 0.5),
    "no table": lambda ledger: ledger.drop_vars("model_receiving_sends"),
    "weights": later("model_receiving_heard", 9.0, node=1),
    "noise of another gone": later("model_sending_noise", 0.0, node=1),
    "the whole promise": lambda ledger: ledger.assign(promised_mu=("node", make_plan(quadratic()).certificate.mu)),
}


@pytest.mark.parametrize("name", DROP_EDITS)
def test_edited_drops_are_caught(thinned: Result, name: str) -> None:
    ledger = DROP_EDITS[name](thinned.ledger)
    settings = thinned.info["settings"] | {"drops": ledger.attrs.get("drops")}
    epsilon = float(mc.gaussian.epsilon(float(ledger["promised_mu"].max()), 1e-5))
    caught(with_ledger(thinned, ledger, settings=settings, privacy=thinned.info["privacy"] | {"epsilon": epsilon}))


def test_drops_and_a_stop_together_survive_their_folder(tmp_path: Path) -> None:
    plan = make_plan(quadratic())
    options: dict[str, Any] = {
        "stop_after": 7,
        "drops": {NODE: 3, 0: 5},
        "options": mc.RunOptions(folder=tmp_path / "run"),
    }
    mc.run(mc.power_controlled(plan), quadratic(), **options)
    outcome = certify(mc.load_run(tmp_path / "run"))
    assert outcome.verdict == "kept"
    np.testing.assert_allclose(outcome.mu, cost(plan, [5, 7, 3, 7]), rtol=1e-12)


def test_noiseless_and_ped2fl_drop_too_and_still_promise_nothing() -> None:
    gains = np.array([[0, 0.9, 0.9, 0], [0.5, 0, 0.5, 0.5], [0.7, 0.7, 0, 0], [0, 0.8, 0, 0]])
    network = mc.Network(gains=gains, power=(1.0, 2.0, 0.5, 1.5))
    plan = mc.plan(network, quadratic(), mc.Budget(epsilon=8.0), mc.Schedule(epochs=6))
    for make in (mc.noiseless, mc.ped2fl):
        run = mc.run(make(plan), quadratic(), drops={0: 3})
        assert certify(run).verdict == "nothing is promised"
        assert (run.metrics["sent_power"].isel(node=0, epoch=-1) == 0).all()


@pytest.mark.parametrize(
    ("make", "ends", "named"),
    [
        ("mped2fl", {"drops": {0: 3}}, "cannot drop out"),
        ("central_dp", {"drops": {0: 3}}, "cannot drop out"),
        ("local_only", {"drops": {0: 3}}, "cannot drop out"),
        ("dp_dsgd", {"drops": {0: 3}}, "no account of it is known"),
        ("mafalda", {"drops": {0: 3}}, "no account of it is known"),
        ("row_stochastic_laplace", {"drops": {0: 3}}, "no account of it is known"),
        ("power_controlled", {"drops": {9: 3}}, "node 9"),
        ("power_controlled", {"drops": {-1: 3}}, "node -1"),
        ("power_controlled", {"drops": {1: 0}}, r"drops\.1 is 0"),
        ("power_controlled", {"drops": {1: EPOCHS}}, "9 epochs"),
        ("power_controlled", {"drops": {0: 2, 1: 2, 2: 2}}, "would hear nobody"),
        ("power_controlled", {"stop_after": 1}, "stop_after is 1"),
        ("power_controlled", {"stop_after": EPOCHS + 1}, "9 epochs"),
        ("power_controlled", {"stop_after": 4, "drops": {1: 4}}, "4 epochs"),
    ],
)
def test_impossible_ends_are_errors(make: str, ends: dict[str, Any], named: str) -> None:
    with pytest.raises(mc.Error, match=named):
        mc.run(getattr(mc, make)(make_plan(quadratic())), quadratic(), **ends)


def test_a_resumed_run_has_the_same_ledger_and_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm, problem = mc.power_controlled(make_plan(quadratic())), quadratic()
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)
    ends: dict[str, Any] = {"stop_after": 8, "drops": {NODE: LAST}, "seeds": (3, 8)}

    def stop(done: int, of: int, figures: dict[str, float]) -> None:  # noqa: ARG001
        if done == LAST + 1:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mc.run(algorithm, problem, **ends, options=mc.RunOptions(folder=tmp_path, on_progress=stop))
    with pytest.raises(mc.Error, match="no finished run"):
        mc.load_run(tmp_path)
    with pytest.raises(mc.Error, match="another plan or other settings"):
        mc.run(algorithm, problem, seeds=(3, 8), stop_after=7, options=mc.RunOptions(folder=tmp_path, resume=True))
    resumed = mc.run(algorithm, problem, **ends, options=mc.RunOptions(folder=tmp_path, resume=True))
    straight = mc.run(algorithm, problem, **ends)
    xr.testing.assert_identical(resumed.ledger, straight.ledger)
    np.testing.assert_array_equal(resumed.published, straight.published)
    np.testing.assert_array_equal(certify(resumed).mu, certify(straight).mu)


def other_plan(**changed: Any) -> tuple[mc.Plan, mc.Quadratic]:
    problem = mc.Quadratic.random(4, 2, seed=1, ball=2.0, clip=changed.pop("clip", 1.3))
    settings: dict[str, Any] = {"epochs": 5, "step": 0.2, "decay": "linear", "noise_to_step": (9.0, 7.0, 8.0, 6.0)}
    schedule = mc.Schedule(**settings | changed.pop("schedule", {}))
    network = asymmetric_network(changed.pop("network", 3), 4)
    return mc.plan(network, problem, mc.Budget(epsilon=90.0), schedule, power=mc.PowerRule(maximum=0.6)), problem


@pytest.mark.parametrize(
    "changed",
    [{}, {"clip": 0.4}, {"network": 11}, {"schedule": {"epochs": 12, "noise_timing": "aligned"}}],
    ids=["schedule", "clip", "network", "timing"],
)
def test_runs_with_changed_plans_add_up(whole: Result, changed: dict[str, Any]) -> None:
    plan, problem = other_plan(**changed)
    second = mc.run(mc.power_controlled(plan), problem, seeds=(7,))
    outcome = certify([whole, second])
    assert (outcome.verdict, outcome.tier) == ("kept", "tier 1")
    first = make_plan(quadratic()).certificate.mu
    np.testing.assert_allclose(outcome.mu, np.sqrt(first**2 + plan.certificate.mu**2), rtol=1e-12)
    assert any("how many runs there are and what each costs was fixed" in line for line in outcome.assumptions)


def test_a_stopped_and_a_thinned_run_add_up(stopped: Result, whole: Result) -> None:
    plan = make_plan(quadratic())
    third = mc.run(mc.power_controlled(plan), quadratic(), drops={NODE: LAST}, seeds=(4,))
    fourth = mc.run(mc.power_controlled(plan), quadratic(), stop_after=3, seeds=(5,))
    outcome = certify([stopped, third, fourth])
    parts = [cost(plan, last) for last in ([STOP] * 4, [EPOCHS, EPOCHS, LAST, EPOCHS], [3] * 4)]
    np.testing.assert_allclose(outcome.mu, np.sqrt(np.sum(np.square(parts), axis=0)), rtol=1e-12)
    with pytest.raises(mc.Error, match="same noise twice"):
        certify([whole, stopped])  # both of seed 0


def test_the_same_noise_twice_does_not_add_up(whole: Result) -> None:
    """Two signals with one noise: their difference has none, whatever each of them costs."""
    plan, problem = other_plan()
    with pytest.raises(mc.Error, match="both have seed 0"):
        certify([whole, mc.run(mc.power_controlled(plan), problem)])
    certify([whole, mc.run(mc.local_only(plan), problem)])  # no noise stands behind nothing


def test_other_units_are_refused(whole: Result) -> None:
    records = regression()
    second = mc.run(mc.power_controlled(make_plan(records, "record")), records, seeds=(7,))
    with pytest.raises(mc.Error, match="different units"):
        certify([whole, second])


def test_minibatches_have_the_plain_bound() -> None:
    data = mc.datasets.least_squares(examples=60, features=3, seed=2).partition("iid", nodes=4, seed=1)
    problem = mc.RidgeRegression(data=data, clip=0.7, ball=5.0, batch=5)
    plan = make_plan(problem, "record")
    np.testing.assert_allclose(plan.sensitivity, 2 * 0.7 / 5)
    run = mc.run(mc.power_controlled(plan), problem)
    outcome = certify(run)
    np.testing.assert_allclose(outcome.mu, plan.certificate.mu, rtol=1e-12)
    assert outcome.assumptions.count(PLAIN_BOUND) == 1
    more = {"examples_per_node": np.full(4, 15.0), "sensitivity": np.full(4, 2 * 0.7 / 15)}
    cheaper = run.ledger.assign({name: ("node", values) for name, values in more.items()})
    cheaper["promised_mu"] = run.ledger["promised_mu"] / 3
    quoted = run.info["privacy"] | {"epsilon": float(mc.gaussian.epsilon(outcome.mu.max() / 3, 1e-5))}
    assert "than its batch" in caught(with_ledger(run, cheaper, privacy=quoted))
    full = regression()
    assert PLAIN_BOUND not in certify(mc.run(mc.power_controlled(make_plan(full, "record")), full)).assumptions


@pytest.mark.parametrize("end", [{"stop_after": STOP}, {"stop_after": EPOCHS}, {"drops": {NODE: LAST}}], ids=str)
def test_an_end_makes_no_promise_of_none(end: dict[str, Any]) -> None:
    """An algorithm of one's own that promises nothing promises nothing when it ends early, either."""
    algorithm = mc.power_controlled(make_plan(quadratic()))
    run = mc.run(algorithm._replace(releases=()), quadratic(), **end)
    assert run.info["privacy"]["epsilon"] is None
    assert certify(run).verdict == "nothing is promised"


def test_an_end_that_the_experiment_does_not_have_is_noticed(whole: Result, stopped: Result) -> None:
    from dataclasses import replace

    text = f"[schedule]\nepochs = {EPOCHS}\n[run]\nseeds = 1\n"
    assert certify(replace(whole, experiment=text)).verdict == "kept"
    assert certify(replace(stopped, experiment=text + f"stop_after = {STOP}\n")).verdict == "kept"
    for run, wrong in ((stopped, text), (whole, text + "stop_after = 6\n"), (whole, text + 'drops = {"1" = 2}\n')):
        with pytest.raises(mc.Error, match=r"experiment\.toml"):
            certify(replace(run, experiment=wrong))
