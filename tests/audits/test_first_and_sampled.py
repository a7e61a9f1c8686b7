"""Audits where something was released before training, or records join by coins: honest ones, and controls."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import murmurcast as mc
from murmurcast.audits import canaries, replay
from murmurcast.audits.attack import Promise, _for_part
from murmurcast.audits.audit import audit, promises_to
from murmurcast.audits.first_releases import check_first_releases
from murmurcast.data import preprocessing
from murmurcast.data.partition import Partition
from murmurcast.privacy import gaussian, sampling
from murmurcast.privacy.conversion import curve_of, mu_of
from murmurcast.privacy.releases import Law, Releases
from murmurcast.privacy.sampling import Part
from tests.conftest import asymmetric_network


def budget(epsilon: float = 1.0, **options: Any) -> mc.Budget:
    return mc.Budget(**{"epsilon": epsilon, "unit": "record", "centring": 0.02, "whitening": 0.1, **options})


def shared(of: mc.Budget, seed: int = 0) -> Partition:
    data = mc.datasets.logistic(examples=200, features=5, classes=4, seed=seed).partition("iid", nodes=3, seed=seed)
    return mc.preprocess(data, of, seed=seed) if of.first_releases else data


def system(seed: int = 0, epsilon: float = 1.0, rate: float = 0.2, **options: Any) -> tuple[Any, Any]:
    of = budget(epsilon, **options)
    data = shared(of, seed)
    batch = max(1, int(rate * data.sizes.min()))
    problem = mc.SoftmaxRegression(data=data, clip=0.5, l2=0.05, batch=batch, sampling="poisson")
    schedule = mc.Schedule(epochs=6, step=0.3, noise_timing="aligned", decay="constant")
    return mc.plan(asymmetric_network(seed, 3), problem, of, schedule, z="perron"), problem


def never(mu: float) -> float:
    raise AssertionError(f"asked for a part of what coins hide, by mu {mu}")


def test_one_epoch_under_coins_is_held_against_what_holds_for_all() -> None:
    """Coins hide many small releases better than one of as much mu: a share of mu says nothing of one epoch."""
    many, alone = (sampling.epsilon((part,), 1e-5) for part in (Part(0.1, 0.5, 100), Part(0.1, 5.0, 1)))
    assert alone > 1.5 * many
    promise = Promise(0, 1.0, 5.0, many, many, 1e-5)
    assert _for_part(promise, 0.1, lambda mu: 7 * mu)[2:4] == (0.5, 3.5)
    assert _for_part(promise, 1.0, never) == promise
    assert _for_part(promise._replace(coins=True), 0.1, never)[2:4] == (0.5, many)


@pytest.mark.parametrize(("rate", "ratio", "times"), [(0.05, 0.5, 1), (0.3, 1.0, 1), (0.9, 2.0, 1), (0.1, 0.5, 40)])
def test_guesses_under_coins_are_held_against_no_less_than_the_best_one(rate: float, ratio: float, times: int) -> None:
    chance, mu = sampling.best_guess((Part(rate, ratio, times),)), ratio * np.sqrt(times)
    limit = _for_part(Promise(0, 1.0, mu, 9.0, 9.0, 1e-5, coins=True, guess=chance), 1.0, never)
    assert limit.mu < mu
    if times == 1:  # by its sign, which is the best test
        exact = (1 + rate * (2 * norm.cdf(ratio / 2) - 1)) / 2
        assert exact * (1 - 1e-9) <= chance < exact + 1e-4
    rng = np.random.default_rng(1)
    joined = rng.binomial(times, rate, 100_000)  # the sum is the best test of one release, and a test of several
    right = np.mean(ratio / 2 * joined + np.sqrt(times) * rng.standard_normal(100_000) > 0)
    assert norm.cdf(limit.mu / 2) - 0.02 < right <= norm.cdf(limit.mu / 2) + 0.008  # 5 deviations


def test_the_best_guess_counts_overflow_and_what_is_not_hidden() -> None:
    parts = (Part(0.2, 1.0, 3), Part(1.0, 0.4, 1))
    assert sampling.best_guess(parts, 0.01) == pytest.approx(sampling.best_guess(parts) + 0.01)
    assert sampling.best_guess((Part(1.0, 1.2, 1),)) == pytest.approx(norm.cdf(0.6), abs=1e-4)
    assert sampling.best_guess((Part(0.2, 0.0, 3),)) == 0.5
    assert sampling.best_guess((Part(0.2, np.inf, 3),)) == 1.0
    assert sampling.best_guess((Part(1.0, 1.2, 1),), 0.5) == 1.0


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_smaller_canaries_under_coins_are_promised_their_share_of_the_steps(share: float) -> None:
    """What was released before training is not made smaller with them: of each node by its own coins."""
    ratio = np.outer([1.0, 0.8, 0.9, 1.0], [0.9, 1.4, 1.1])
    claim = Releases(Law("sampled gaussian", rates=(0.1, 0.2, 0.4), overflow=1e-18), ratio, "everybody", before=0.3)
    algorithm: Any = SimpleNamespace(releases=(claim,), setup=SimpleNamespace(budget=mc.Budget(epsilon=9.0)))
    mu, curve = mu_of(claim), curve_of(claim)
    assert curve.spent == 0.3
    for node in range(3):
        (promise,) = promises_to(algorithm, (claim,), node, share)
        steps = share * np.sqrt(mu[node] ** 2 - curve.spent**2)
        assert promise.mu == pytest.approx(np.hypot(steps, curve.spent))
        parts = (*sampling.scaled(curve.sampled[node], steps), Part(1.0, curve.spent, 1))
        assert promise.epsilon == pytest.approx(sampling.epsilon(parts, 1e-5, curve.overflow), rel=1e-6)
        assert promise.coins
        assert promise.guess == pytest.approx(sampling.best_guess(parts, curve.overflow), rel=1e-6)
        assert 0.5 < promise.guess < norm.cdf(promise.mu / 2)
        assert promise.epsilon <= promise.epsilon_whole * (0.9 if share < 1 else 1 + 1e-6)


@pytest.mark.slow
def test_coins_that_everybody_sees_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that take part in every epoch, under a promise that counts on coins: guesses alone show it."""
    plan, problem = system(epsilon=1.0, rate=0.1, centring=0.0, whitening=0.0)
    algorithm = mc.power_controlled(plan)
    assert audit(algorithm, problem, runs=500).verdict == "not falsified"
    for module in (canaries, replay):
        monkeypatch.setattr(module, "threshold", lambda rate: np.full(np.shape(rate), 2**32 - 1, np.uint32))
    result = audit(algorithm, problem, runs=500)
    assert result.verdict == "FALSIFIED"
    assert not any(check.refutes for check in result.checks)
    assert max(attack.epsilon for attack in result.attacks) > 1.2
    assert plan.certificate.mu.max() > 1.5 * gaussian.mu(1.0, 1e-5)  # what coins bring


def with_noise_at(partition: Partition, part: float) -> Partition:
    """A control: the claim of noise stays, and the averages have a part of it, of the same seed."""
    first, before = partition.first, partition.origin
    assert first is not None
    assert before is not None
    cut = {name: part * values for name, values in first.noise.items()}
    bare = preprocessing.with_first_releases(before, cut, rows=first.rows, seed=first.seed)
    assert bare.first is not None
    return replace(bare, first=replace(bare.first, noise=first.noise))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("share", ["centring", "whitening"])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_releases_with_less_noise_are_caught(share: str, part: float) -> None:
    of = budget(**{"centring": 0.0, "whitening": 0.0, share: 0.05})
    honest = shared(of)
    (check,) = check_first_releases(honest, 1e-7)
    assert not check.refutes
    (check,) = check_first_releases(with_noise_at(honest, part), 1e-7)
    assert check.refutes
    assert share in check.worst or "rows are not" in check.worst  # what is released is what rows are made of
    problem = mc.SoftmaxRegression(data=with_noise_at(honest, part), clip=0.5)
    plan = mc.plan(asymmetric_network(1, 3), problem, of, mc.Schedule(epochs=4, noise_timing="aligned"))
    result = audit(mc.power_controlled(plan), problem, runs=40)
    assert result.verdict == "FALSIFIED"
    assert "noise of first releases" in str(result.falsified_by)


@pytest.mark.parametrize("share", ["centring", "whitening"])
def test_a_release_that_draws_half_of_what_it_is_asked_for_is_caught(
    share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed gives the same again, so its size alone shows it; with enough numbers half is plain to see."""
    of = budget(**{"centring": 0.0, "whitening": 0.0, share: 0.05})
    features = 60 if share == "centring" else 12
    data = mc.datasets.least_squares(examples=400, features=features, seed=2).partition("iid", nodes=3)
    (check,) = check_first_releases(mc.preprocess(data, of), 5e-7)
    assert not check.refutes
    plain = preprocessing.release
    monkeypatch.setattr(
        preprocessing, "release", lambda statistic, rows, std, *keys: plain(statistic, rows, std / 2, *keys)
    )
    (check,) = check_first_releases(mc.preprocess(data, of), 5e-7)
    assert check.refutes
    assert check.worst == f"what is released for {share} has less noise than is claimed"


def test_rows_that_are_not_what_was_released_are_caught() -> None:
    """The test part by its own mean: what the trap is about."""
    honest = shared(budget())
    own = honest.dataset.test_features - honest.dataset.test_features.mean(axis=0)
    (check,) = check_first_releases(replace(honest, dataset=replace(honest.dataset, test_features=own)), 1e-7)
    assert check.refutes
    assert "rows are not" in check.worst


def test_honest_releases_are_hardly_ever_accused() -> None:
    of = budget()
    data = shared(budget(centring=0.0, whitening=0.0))
    drawn = [mc.preprocess(data, of, seed=seed) for seed in range(60)]
    probabilities = [check_first_releases(one, 1e-3)[0].probability for one in drawn]
    assert min(probabilities) > 1e-3
    assert np.mean(probabilities) > 0.3
    assert check_first_releases(None, 1e-3) == ()
    assert check_first_releases(shared(budget(centring=0.0, whitening=0.0)), 1e-3) == ()
