"""Every entry of a run is accounted for: what honest runs write is known, and what nothing stands behind is refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.certificates.compare import shown
from murmurcast.certificates.known import METRICS, WORDS
from murmurcast.engine import large, observe
from murmurcast.errors import Altered
from murmurcast.privacy import cancelling
from murmurcast.reports import ledger as reported
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import (
    Edit,
    caught,
    make_plan,
    quadratic,
    scaled,
    with_attributes,
    with_ledger,
)
from tests.conftest import asymmetric_network

ALIKE = mc.Schedule(epochs=3, step=0.2, noise_timing="aligned", decay="constant")


@cache
def run_of(name: str) -> Result:
    problem = quadratic()
    make: Any = getattr(mc, name.replace("-", "_"))
    return mc.run(make(make_plan(problem)), problem)


def with_coins(network: mc.Network, **options: Any) -> Result:
    data = mc.datasets.logistic(examples=12 * network.nodes, features=2, classes=2, seed=1)
    problem = mc.SoftmaxRegression(
        data=data.partition("iid", nodes=network.nodes, seed=2), clip=0.5, batch=4, sampling="poisson"
    )
    plan = mc.plan(network, problem, mc.Budget(epsilon=3.0, unit="record"), ALIKE, z="perron")
    return mc.run(mc.power_controlled(plan), problem, **options)


@cache
def by_coins() -> Result:
    return with_coins(asymmetric_network(3, 4))


def test_a_public_sample_of_nodes_tells_of_no_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where models of a sample are evaluated, what was sent is recorded of all senders."""
    monkeypatch.setattr(large, "FEWEST_NODES", 1)
    monkeypatch.setattr(large, "_MAX_SHARE_OF_PAIRS", 2.0)
    monkeypatch.setattr(observe, "MOST_EVALUATED", 5)
    monkeypatch.setattr(observe, "SAMPLE", 4)
    run = with_coins(asymmetric_network(4, 9))
    assert (run.metrics.sizes["sender"], run.metrics.sizes["node"]) == (9, 4)
    assert certify(run).verdict == "kept"
    assert {str(name) for name in run.metrics.variables} <= METRICS


@pytest.mark.slow
def test_a_large_network_keeps_its_promise_under_coins() -> None:
    nodes = observe.MOST_EVALUATED + 1
    run = with_coins(mc.topologies.ring(nodes, seed=2), options=mc.RunOptions(evaluate_every=3))
    assert run.metrics.sizes["sender"] == nodes
    assert certify(run).verdict == "kept"


def said_besides(**words: Any) -> Result:
    return with_ledger(by_coins(), by_coins().ledger, **words)


def test_how_many_processes_there_were_tells_of_no_coins() -> None:
    run = said_besides(processes={"count": 2, "signals_across": 7})
    assert certify(run).verdict == "kept"
    assert set(run.info) <= WORDS[""]


STATED: dict[str, Callable[[], Result]] = {
    "a list of processes": lambda: said_besides(processes=[11, 9]),
    "a number of processes": lambda: said_besides(processes=2),
    "a third number": lambda: said_besides(processes={"count": 2, "signals_across": 7, "joined": 11}),
    "a list for a number": lambda: said_besides(processes={"count": 2, "signals_across": [11, 9]}),
    "a fraction for a number": lambda: said_besides(processes={"count": 2, "signals_across": 0.25}),
    "a number below 0": lambda: said_besides(processes={"count": -2, "signals_across": 7}),
    "a word for a number": lambda: said_besides(processes={"count": "11", "signals_across": 7}),
    "sizes among versions": lambda: said_besides(versions=by_coins().info["versions"] | {"joined": 11}),
    "seconds as a list": lambda: said_besides(seconds=[1.0, 1.0, 2.0, 11.0]),
    "sizes as words of the metrics": lambda: replace(by_coins(), metrics=by_coins().metrics.assign_attrs(joined=11)),
    "sizes in the name of the method": lambda: replace(
        by_coins(), metrics=by_coins().metrics.assign_attrs(algorithm="joined 11")
    ),
    "words beside a metric": lambda: replace(
        by_coins(),
        metrics=by_coins().metrics.assign(loudest=by_coins().metrics["loudest"].assign_attrs(joined=11)),
    ),
}


@pytest.mark.parametrize("place", STATED)
def test_what_may_tell_of_coins_is_refused(place: str) -> None:
    assert certify(by_coins()).verdict == "kept"
    assert "may tell of coins" in caught(STATED[place]())


def besides(**tables: float) -> Edit:
    """Tables more, the same number at every node."""
    return lambda ledger: ledger.assign({name: ledger["power"] * 0 + value for name, value in tables.items()})


UNHELD: dict[tuple[str, str], Edit] = {
    ("power-controlled", "a promise besides"): besides(promised_mu_against_eavesdropper=0.01),
    ("power-controlled", "a promise against nobody known"): besides(promised_mu_against_nobody=0.01),
    ("power-controlled", "an epsilon of coins that there are not"): besides(promised_epsilon=0.01),
    ("power-controlled", "a best guess of coins that there are not"): besides(promised_best_guess=0.5),
    ("power-controlled", "why nothing is promised"): with_attributes(why_nothing="gradients are not clipped"),
    ("decor", "a third adversary"): besides(promised_mu_against_trusted_server=0.01),
    ("central-dp", "a promise against less than a server"): besides(promised_mu_against_eavesdropper=0.01),
    ("noiseless", "a promise where nothing is"): besides(promised_mu_against_eavesdropper=0.01),
    ("noiseless", "an epsilon where nothing is"): besides(promised_epsilon=0.01),
}


@pytest.mark.parametrize(("method", "what"), UNHELD)
def test_a_promise_that_nothing_is_held_against_is_refused(method: str, what: str) -> None:
    run = run_of(method)
    assert certify(run).verdict in ("kept", "nothing is promised")
    assert "promise" in caught(with_ledger(run, UNHELD[method, what](run.ledger)))


BESIDE_NOTHING: dict[str, Edit] = {
    "noise of a release that was not made": besides(centring_noise=1.0),
    "rows of a release that was not made": with_attributes(first_rows="signed"),
    "the seed of a release that was not made": with_attributes(first_seed=3),
    "records that nothing is counted of": besides(records_per_node=30.0),
    "room for nobody": with_attributes(room=40),
    "the sampler of noise on no grid": with_attributes(sampler_error=2.0**-60),
    "parameters on no grid": with_attributes(dim=2),
}


@pytest.mark.parametrize("what", BESIDE_NOTHING)
def test_what_belongs_to_something_that_is_not_there_is_refused(what: str) -> None:
    run = run_of("power-controlled")
    assert "means nothing here" in caught(with_ledger(run, BESIDE_NOTHING[what](run.ledger)))


def test_noise_of_a_second_release_is_refused_where_there_was_one() -> None:
    budget = mc.Budget(epsilon=1.5, unit="record", centring=0.02)
    data = mc.datasets.logistic(examples=120, features=3, classes=2, seed=1).partition("quantity", nodes=4, seed=2)
    problem = mc.SoftmaxRegression(data=mc.preprocess(data, budget), clip=0.5)
    plan = mc.plan(asymmetric_network(3, 4), problem, budget, ALIKE, z="perron")
    run = mc.run(mc.power_controlled(plan), problem)
    assert certify(run).verdict == "kept"
    assert "has whitening_noise, which means nothing here" in caught(
        with_ledger(run, besides(whitening_noise=9.0)(run.ledger))
    )


def test_releases_before_training_are_not_counted_beside_laplace_noise() -> None:
    run = run_of("row-stochastic-laplace")
    before = besides(centring_noise=1.0, records_per_node=30.0)(run.ledger)
    before = before.assign(examples_per_node=before["records_per_node"])
    words = with_attributes(first_releases="centring", first_rows="signed", first_seed=7)
    assert "laplace noise hides training" in caught(with_ledger(run, words(before)))


def test_what_an_account_knows_nothing_of_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of an account, as of more nodes than it has a formula for, is one of the run."""
    run = run_of("decor")
    monkeypatch.setattr(cancelling, "DENSE_UP_TO", 3)
    assert "noise shared by 4 nodes needs dense matrices" in caught(run)
    assert "dense matrices" in shown(run).info["privacy"]["basis"]


QUOTED: dict[tuple[str, str], dict[str, Any]] = {
    ("central-dp", "a certificate"): {"basis": "certificate, unit node, against everybody"},
    ("central-dp", "no caveat"): {"caveat": ""},
    ("central-dp", "everybody"): {"against": "everybody"},
    ("local-only", "a certificate"): {"basis": "certificate, unit node, against everybody", "caveat": ""},
    ("power-controlled", "another unit"): {"basis": "certificate, unit record, against everybody"},
    ("noiseless", "a promise besides"): {"weaker": [{"against": "eavesdropper", "epsilon": 0.1}]},
    ("noiseless", "against somebody"): {"against": "everybody"},
    ("noiseless", "another caveat"): {"caveat": "trusted server"},
    ("noiseless", "a certificate"): {"basis": "certificate, unit node, against everybody"},
}


@pytest.mark.parametrize(("method", "what"), QUOTED)
def test_what_people_read_beside_the_number_is_that_of_what_was_sent(method: str, what: str) -> None:
    run = run_of(method)
    assert certify(run).verdict in ("kept", "nothing is promised")
    forged = with_ledger(run, run.ledger, privacy=run.info["privacy"] | QUOTED[method, what])
    assert "run.json" in caught(forged)
    privacy = shown(forged).info["privacy"]
    assert (privacy["epsilon"], privacy["weaker"]) == (None, [])


def test_of_a_run_that_does_not_hold_no_promise_is_shown() -> None:
    """Neither mu, nor what coins make of it, nor what is promised against weaker adversaries."""
    for run in (by_coins(), run_of("decor")):
        assert shown(run) is run
        struck_out = shown(with_ledger(run, scaled("model_sending_amplitude", 2.0)(run.ledger)))
        assert [str(name) for name in struck_out.ledger if str(name).startswith("promised_")] == ["promised_mu"]
        assert np.isinf(reported.promised_epsilon(struck_out)).all()
        assert (reported.best_guess_of(struck_out.ledger, struck_out.ledger.attrs) == 1).all()
        assert shown(struck_out).info["privacy"]["epsilon"] is None


def test_at_a_delta_that_room_uses_up_the_reason_is_room() -> None:
    run = by_coins()
    with pytest.raises(mc.Error, match="more join than there is room for") as raised:
        certify(run, delta=1e-18)
    assert "secure" not in str(raised.value)
    assert "larger delta" in raised.value.hint
    assert not isinstance(raised.value, Altered)


def test_of_secure_noise_the_reason_is_its_bound() -> None:
    problem = quadratic()
    run = mc.run(mc.power_controlled(make_plan(problem, source="secure")), problem, precision="float64")
    assert certify(run).verdict == "kept"
    with pytest.raises(mc.Error, match="the bound of secure noise says nothing about so large a cost"):
        certify(run, delta=1e-12)
