"""A method of a user's own promises what its nodes released before training too, wherever it is asked."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm, counting_first_releases
from murmurcast.algorithms.early_end import with_ends
from murmurcast.algorithms.method import Method
from murmurcast.algorithms.promise import why_not_certified
from murmurcast.audits.audit import promises_to
from murmurcast.privacy.conversion import epsilon_of, mu_of
from murmurcast.privacy.releases import LAPLACE
from murmurcast.runs import record
from tests.conftest import asymmetric_network, changed

PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"
SHARES = {"centring": 0.02, "whitening": 0.10}
MU = 0.26805112321129454  # of epsilon 1 at delta 1e-5


@cache
def gossip() -> Method:
    """The documented method, as it stands on its page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if 'name="gossip"' in block)
    names: dict[str, Any] = {"__name__": "skeleton"}
    exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - a page of our own
    method: Method = names["METHOD"]
    return method


def budget(**options: Any) -> mc.Budget:
    return mc.Budget(**{"epsilon": 1.0, "unit": "record", **SHARES, **options})


@cache
def problem(unit: str = "record", **options: Any) -> mc.SoftmaxRegression:
    data = mc.datasets.logistic(examples=200, features=4, classes=3, seed=1)
    shared = data.partition(mc.datasets.QuantitySkew(concentration=4.0, minimum=30), nodes=4, seed=2)
    return mc.SoftmaxRegression(data=mc.preprocess(shared, budget(unit=unit)), clip=0.5, **options)


def schedule() -> mc.Schedule:
    return mc.Schedule(epochs=4, step=0.2, noise_timing="aligned", decay="constant")


def setup(unit: str = "record", **options: Any) -> mc.Setup:
    network = asymmetric_network(3, 4)
    return mc.Setup(network=network, problem=problem(unit, **options), budget=budget(unit=unit), schedule=schedule())


def plan(**options: Any) -> mc.Plan:
    return mc.plan(asymmetric_network(3, 4), problem(**options), budget(), schedule(), z="perron")


def mine(algorithm: Algorithm) -> Algorithm:
    """An algorithm of the house under another name, that answers for itself with releases of training alone."""
    releases = tuple(part._replace(before=0.0) for part in algorithm.releases)
    return algorithm._replace(name="mine", releases=releases)


@pytest.mark.parametrize("unit", ["record", "node"])
def test_the_documented_method_keeps_its_promise_on_centred_and_whitened_data(unit: str) -> None:
    run = mc.run(gossip().make(setup(unit)), problem(unit))
    outcome = mc.certify(run, methods=[gossip()])
    assert outcome.verdict == "kept"
    assert run.info["privacy"]["epsilon"] == pytest.approx(1.0, rel=1e-9)
    for mu in (run.ledger["promised_mu"], outcome.mu, outcome.promised_mu):
        np.testing.assert_allclose(mu, MU, rtol=1e-9)
    assert any("before training every node released once" in line for line in outcome.assumptions)


def test_of_training_alone_it_would_be_too_small() -> None:
    """What the method itself says, and what stands in its place wherever it is run."""
    built = gossip().make(setup())
    (part,) = built.releases
    np.testing.assert_allclose(mu_of(part), MU * np.sqrt(1 - 0.12), rtol=1e-9)
    assert epsilon_of(part, 1e-5).max() == pytest.approx(0.9322537, rel=1e-6)
    for counted in (counting_first_releases(built).releases, with_ends(built).releases):
        np.testing.assert_allclose(mu_of(counted[0]), MU, rtol=1e-9)


@pytest.mark.parametrize("ends", [{"stop_after": 3}, {"stop_after": 3, "drops": {1: 2}}, {}])
def test_ends_leave_what_was_released_before_in_the_promise(ends: dict[str, Any]) -> None:
    (part,) = with_ends(gossip().make(setup()), **ends).releases
    np.testing.assert_allclose(mu_of(part) ** 2, np.sum(part.ratio**2, axis=0) + 0.12 * MU**2, rtol=1e-9)
    if not ends.get("drops"):
        run = mc.run(gossip().make(setup()), problem(), **ends)
        assert mc.certify(run, methods=[gossip()]).verdict == "kept"


@pytest.mark.parametrize("make", [mc.power_controlled, mc.orthogonal, mc.dp_dsgd, mc.decor, mc.central_dp])
def test_methods_of_the_house_are_not_counted_twice(make: Any) -> None:
    built = make(plan())
    assert counting_first_releases(built) is built
    assert with_ends(built).is_as_proved
    assert record.promised(built, problem()) == built.releases
    for one, same in zip(with_ends(built).releases, built.releases, strict=True):
        np.testing.assert_array_equal(mu_of(one), mu_of(same))
    altered = changed(built, send=lambda *given: built.rounds[0].send(*given))
    assert counting_first_releases(altered).has_lost_its_proof
    assert record.promised(with_ends(altered), problem()) == ()


def test_new_releases_of_a_method_of_the_house_count_it_too() -> None:
    """The proof is still in its place, and what it says is no longer about these releases."""
    built = mc.power_controlled(plan())
    own = mine(built)
    assert own.proof is not None
    assert why_not_certified(own) == why_not_certified(built) == ""
    expected = mu_of(built.releases[0])
    for parts in (record.promised(own, problem()), record.claimed(own, problem()), with_ends(own).releases):
        np.testing.assert_allclose(mu_of(parts[0]), expected, rtol=1e-12)
    assert record.info(own, problem(), "own", (0,), "float32")["privacy"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    once = counting_first_releases(own)
    np.testing.assert_array_equal(mu_of(counting_first_releases(once).releases[0]), mu_of(once.releases[0]))


@pytest.mark.slow
def test_coins_of_ones_own_are_counted_beside_what_was_released_before() -> None:
    options = {"batch": 10, "sampling": "poisson"}
    one, built = problem(**options), mc.power_controlled(plan(**options))
    of_the_house, own = (record.ledger(each, one, (0,), "float32").variables for each in (built, mine(built)))
    for name in ("promised_mu", "promised_epsilon", "promised_best_guess"):
        np.testing.assert_allclose(own[name].values, of_the_house[name].values, rtol=1e-9)


def test_an_audit_tries_to_refute_the_same_number() -> None:
    built = gossip().make(setup())
    for node in range(4):
        (promise,) = promises_to(built, record.claimed(built, problem()), node, 1.0)
        assert promise.mu == pytest.approx(MU, rel=1e-9)
        assert promise.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.slow
def test_an_audit_beside_coins_holds_it_against_the_same_epsilon() -> None:
    """Coins make a curve, which is of all that is released too."""
    options: dict[str, Any] = {"batch": 10, "sampling": "poisson"}
    own = mine(mc.power_controlled(plan(**options)))
    result = mc.audit(own, problem(**options), target=1, runs=60)
    assert result.promises[0].coins
    assert result.promises[0].epsilon_whole == pytest.approx(1.0, rel=1e-3)


def test_noise_that_does_not_add_up_with_it_is_refused_before_a_run() -> None:
    built = gossip().make(setup())
    own = built._replace(releases=tuple(part._replace(law=LAPLACE) for part in built.releases))
    for refused in (lambda: with_ends(own), lambda: mc.run(own, problem())):
        with pytest.raises(mc.Error, match="laplace noise hides training") as raised:
            refused()
        assert "privacy.centring" in raised.value.hint


def test_without_shares_nothing_is_added() -> None:
    network, one = asymmetric_network(3, 4), mc.Quadratic.random(4, 3, clip=1.0)
    built = gossip().make(mc.Setup(network=network, problem=one, budget=mc.Budget(epsilon=1.0), schedule=schedule()))
    assert counting_first_releases(built).releases == built.releases
    assert mc.certify(mc.run(built, one), methods=[gossip()]).verdict == "kept"
