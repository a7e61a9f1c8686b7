"""Secret coins, as the auditor looks at them: honest ones of every problem, and every way not to toss them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import murmurcast as mc
from murmurcast.audits import coins
from murmurcast.audits.audit import audit
from murmurcast.audits.coins import check_coins, counted_on, unseen
from murmurcast.audits.verdict import Audit
from murmurcast.data.partition import Partition
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases
from murmurcast.problems.per_example import Example
from murmurcast.problems.sampling import Sampling
from murmurcast.problems.softmax import SoftmaxRegression
from tests.audits import coin_faults as faults
from tests.conftest import asymmetric_network

BATCH, LEVEL = 12, 5e-7  # the level that an audit leaves to this check


def shared(values: bool = False) -> Partition:
    rule = mc.datasets.QuantitySkew(concentration=4.0, minimum=20)
    if values:
        return mc.datasets.least_squares(examples=250, features=5, seed=4).partition(rule, nodes=3, seed=2)
    return mc.datasets.logistic(examples=250, features=5, classes=3, seed=4).partition(rule, nodes=3, seed=2)


def problem(kind: type[SoftmaxRegression] = SoftmaxRegression, **options: Any) -> SoftmaxRegression:
    return kind(data=shared(), clip=0.3, **{"l2": 0.01, "batch": BATCH, "sampling": "poisson", **options})


def claimed(one: Any) -> Sampling:
    result = one.sampled
    assert isinstance(result, Sampling)
    return result


def own_loss(w: jax.Array, example: Example) -> jax.Array:
    return jnp.square(jnp.tanh(jnp.dot(w, example.features)) - example.target)


def honest(kind: str) -> Any:
    options: dict[str, Any] = {"clip": 0.3, "l2": 0.01, "batch": BATCH, "sampling": "poisson"}
    if kind == "ridge":
        return mc.RidgeRegression(data=shared(values=True), **options)
    if kind == "network":
        return mc.Model(data=shared(), module=mc.modules.mlp(5, 3, hidden=(4,)), loss="cross-entropy", **options)
    if kind == "own loss":
        return mc.Model(data=shared(), initialise=lambda _: jnp.ones(5), loss=own_loss, **options)
    return problem()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", ["softmax", "ridge", "network", "own loss"])
def test_honest_coins_are_accused_of_nothing(kind: str) -> None:
    one = honest(kind)
    (check,) = check_coins(one, claimed(one), LEVEL)
    assert not check.refutes
    assert check.tests == 10  # of two nodes: how many, how spread, and three places
    assert check.probability > 1e-3


@pytest.mark.slow
def test_honest_coins_are_accused_no_more_often_than_chance_does() -> None:
    one = problem()
    result = [check_coins(one, claimed(one), LEVEL, seed)[0] for seed in range(40)]
    probabilities = np.array([check.probability for check in result])
    assert min(probabilities) > 1e-4  # below it with a probability of 0.4 %
    assert np.sum(probabilities < 0.1) < binom.isf(1e-4, len(result), 0.1)
    assert np.sum(probabilities < 0.5) > 0  # nor is it always sure
    assert len({check.worst for check in result}) > 10


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("size", "batch"), [(2, 1), (3, 2), (20, 1), (20, 19), (83, 12), (1000, 1), (1000, 999), (6000, 500)]
)
def test_sizes_by_independent_coins_are_as_probable_as_is_said(size: int, batch: int) -> None:
    """Small nodes, rare coins and coins that nearly always fall: in each, chance is below a level no more often."""
    rng = np.random.default_rng([size, batch])
    node = coins._Node(size, batch / size, ((), ()), {})
    trials = 200
    sizes = np.asarray(rng.binomial(size, node.rate, (trials, 1000)), np.float64)
    of_trial = [coins._of_sizes(one, node, "")[0] for one in sizes]
    for level in (0.01, 0.1, 0.3):
        assert np.sum(np.array(of_trial) < level) <= binom.isf(1e-6, trials, level)
    assert min(of_trial) < 0.2  # it is a test, which chance does not always pass alike
    fixed, _ = coins._of_sizes(np.full(1000, float(batch)), node, "")
    assert fixed < LEVEL


def test_what_float32_could_not_count_is_not_looked_at() -> None:
    """Records whose gradients hardly differ, or not at all: the audit says so instead of accusing anybody."""

    def hardly(w: jax.Array, example: Example) -> jax.Array:
        return jnp.sum(w) + 1e-6 * own_loss(w, example)

    for loss in (hardly, lambda w, _: jnp.sum(w)):
        options: Any = {"clip": 9.0, "batch": BATCH, "sampling": "poisson"}
        one = mc.Model(data=shared(), initialise=lambda _: jnp.ones(5), loss=loss, **options)
        assert check_coins(one, claimed(one), LEVEL) == ()


def test_a_problem_whose_coins_cannot_be_left_out_is_not_looked_at() -> None:
    class Around:
        """Somebody's own, around one of ours."""

        def __init__(self, inside: Any) -> None:
            self.inside, self.shape, self.dim = inside, inside.shape, inside.dim

        def local_data(self) -> Any:
            return self.inside.local_data()

        def gradient_at_public(self, model: jax.Array, mine: Any, key: jax.Array) -> jax.Array:
            result: jax.Array = self.inside.gradient_at_public(model, mine, key)
            return result

    one: Any = Around(problem())
    assert check_coins(one, claimed(one.inside), LEVEL) == ()


def test_large_models_are_looked_at_in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem()
    parts = coins._at_once(one, claimed(one), one.data)
    assert parts == 50
    monkeypatch.setattr(coins, "_MAX_BYTES", 30 * 4 * claimed(one).room * (one.dim + 5))
    assert coins._at_once(one, claimed(one), one.data) == 20
    monkeypatch.setattr(coins, "_MAX_BYTES", 1)
    assert coins._at_once(one, claimed(one), one.data) == 1
    assert all(coins._EPOCHS % count == 0 for count in coins._AT_ONCE)


def test_coins_of_probability_1_are_looked_at_too() -> None:
    data = shared()
    one = SoftmaxRegression(data=data, clip=0.3, batch=int(data.sizes.min()), sampling="poisson")
    (check,) = check_coins(one, claimed(one), LEVEL)
    assert check.tests == 9  # where all join, how many do does not vary
    assert not check.refutes


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (faults.JoinsMoreOften, "join an epoch on average"),
        (faults.FixedSize, "have within"),
        (faults.DividesByThoseWhoJoined, "have within"),
        (faults.FirstRecordsJoin, "record 0 of the node"),
        (faults.SameCoinsAlways, ""),
        (faults.LastRecordAlwaysJoins, "joins 1000 of 1000 epochs"),
    ],
)
def test_coins_that_are_not_as_claimed_are_caught(kind: type[SoftmaxRegression], words: str) -> None:
    one = problem(kind)
    (check,) = check_coins(one, claimed(one), LEVEL)
    assert check.refutes
    assert words in check.worst


def verdict_on(one: SoftmaxRegression) -> Audit:
    budget = mc.Budget(epsilon=1.0, unit="record")
    schedule = mc.Schedule(epochs=4, step=0.3, noise_timing="aligned", decay="constant")
    plan = mc.plan(asymmetric_network(3, 3), one, budget, schedule, z="perron")
    return audit(mc.power_controlled(plan), one, runs=50)


@pytest.mark.slow
def test_an_audit_finds_batches_of_a_fixed_size_under_a_promise_that_counts_on_coins() -> None:
    result = verdict_on(problem(faults.FixedSize))
    assert result.verdict == "FALSIFIED"
    (line,) = result.falsified_by
    assert line.startswith("a check of coins: ")


@pytest.mark.slow
def test_an_audit_looks_at_coins_where_the_promise_counts_on_them() -> None:
    result = verdict_on(problem())
    assert result.verdict == "not falsified"
    assert result.checks[-1].name == "coins"
    assert "coins" in dict(result.summary)["Noise"]
    plain = verdict_on(problem(sampling="fixed"))
    assert all(check.name != "coins" for check in plain.checks)


def test_where_no_promise_counts_on_coins_there_is_nothing_to_look_at() -> None:
    one, ratio = problem(), np.zeros((2, 3))
    claim = Releases(Law("sampled gaussian", rates=(0.1,) * 3), ratio, "everybody")
    assert counted_on((claim,), claimed(one)) == claimed(one)
    assert counted_on((claim._replace(law=GAUSSIAN),), claimed(one)) is None
    assert check_coins(one, None, LEVEL) == ()
    assert unseen(None, ()) == ()
    assert unseen(claimed(one), check_coins(one, claimed(one), LEVEL)) == ()
    assert "coins" in unseen(claimed(one), ())[0]
