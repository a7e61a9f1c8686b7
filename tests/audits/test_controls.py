"""Controls: systems that break their promise in one way each, audited at the default settings; each must be caught.

Quick: one audit of each. Slow: 30 of each; if all are caught, power is above 0.9 with 95 % confidence.
"""

import numpy as np
import pytest

from murmurcast.algorithms.base import Algorithm
from murmurcast.audits import adversaries
from murmurcast.audits.audit import audit
from murmurcast.audits.clipping import try_hostile_data
from murmurcast.audits.transcript import bytes_of_tape
from murmurcast.problems.softmax import SoftmaxRegression
from tests.audits import faults
from tests.audits.systems import (
    Fault,
    attacked,
    audits,
    bowls,
    checks,
    claimed,
    claimed_of_records,
    is_caught,
    softmax,
)

RUNS, RECORD_RUNS = 400, 500  # what an audit makes by default of 40 and of 32 parameters
ONE = 1
MANY = 30
COUNTS = [ONE, pytest.param(MANY, marks=pytest.mark.slow)]


def quiet(node: int) -> Fault:
    return lambda algorithm: faults.noise_at(algorithm, np.arange(algorithm.setup.network.nodes) != node)


def shared(algorithm: Algorithm) -> Algorithm:
    return faults.noise_shared(algorithm, 0, int(algorithm.setup.network.gains[[0]].indices[0]))


CONTROLS = {
    **{f"node {node} without noise": (quiet(node), "the size of the noise") for node in range(5)},
    "two nodes share noise": (shared, "the independence of the noise"),
    "noise by the sign of the gradient": (faults.noise_by_sign, "the blindness of the noise"),
    "sign in the last bit": (faults.sign_in_the_last_bit, "the blindness of the noise"),
    "last epoch at 30 %": (lambda algorithm: faults.last_epoch_at(algorithm, 0.3), "the size of the noise"),
    "noise halved": (lambda algorithm: faults.noise_at(algorithm, 0.5), "the size of the noise"),
    "noise reused": (faults.noise_reused, "the independence of the noise"),
    "first noise once more": (faults.first_noise_once_more, "the independence of the noise"),
    "one draw for all coordinates": (faults.one_draw_for_all_coordinates, "the independence of the noise"),
}
QUICK = {"node 3 without noise", "two nodes share noise", "noise by the sign of the gradient", "sign in the last bit"}
QUICK |= {"last epoch at 30 %", "first noise once more"}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, ONE) for name in sorted(QUICK)),
        *(pytest.param(name, MANY, marks=pytest.mark.slow) for name in CONTROLS),
    ],
)
@pytest.mark.slow
def test_noise_that_is_not_as_claimed_is_caught(name: str, count: int) -> None:
    fault, check = CONTROLS[name]
    gathered = attacked(claimed(), fault(claimed()), bowls(5), count * RUNS)
    for part in audits(gathered, RUNS):
        assert check in {result.name for result in checks(part) if result.refutes}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.slow
def test_gradients_at_the_own_point_sold_as_mixed_are_caught(count: int) -> None:
    algorithm, problem = claimed_of_records(), softmax()
    actual = faults.own_point_sold_as_mixed(algorithm)
    for number in range(count):
        result = checks(attacked(algorithm, actual, problem, RECORD_RUNS, seed=number * RECORD_RUNS))
        assert [check.name for check in result if check.refutes] == ["where gradients are taken"]


@pytest.mark.parametrize("name", ["noise by the sign of the gradient", "sign in the last bit"])
@pytest.mark.slow
def test_records_are_looked_at_as_closely(name: str) -> None:
    """The gradient's sign is that of all other records too: canaries alone seldom decide it."""
    algorithm = claimed_of_records()
    fault, check = CONTROLS[name]
    gathered = attacked(algorithm, fault(algorithm), softmax(), RECORD_RUNS)
    assert check in {result.name for result in checks(gathered) if result.refutes}


@pytest.mark.parametrize(
    ("problem", "batch"),
    [
        (faults.MissesALabel, None),
        (faults.MissesLateRows, None),
        (faults.MissesLargeFeatures, None),
        (faults.DrawsWithReplacement, 5),
        (faults.DrawsWithReplacement, 20),
    ],
)
@pytest.mark.parametrize("count", COUNTS)
def test_a_clip_that_misses_is_caught(problem: type[SoftmaxRegression], batch: int | None, count: int) -> None:
    for seed in range(count):
        assert try_hostile_data(softmax(problem, batch), "record", seed=seed).refutes


@pytest.mark.parametrize("batch", [None, 5, 20])
@pytest.mark.parametrize("count", COUNTS)
def test_a_clip_that_holds_is_not_accused(batch: int | None, count: int) -> None:
    for seed in range(count):
        result = try_hostile_data(softmax(batch=batch), "record", seed=seed)
        assert result.share == pytest.approx(1.0, abs=1e-4)
        assert not result.refutes


@pytest.mark.slow
def test_a_verdict_names_the_fault_and_what_was_looked_at() -> None:
    """From end to end, with few runs: what is shared is plain to see."""
    result = audit(claimed(), bowls(5), actual=shared(claimed()), runs=50)
    assert result.verdict == "FALSIFIED"
    (line,) = [words for words in result.falsified_by if words.startswith("a check of the independence")]
    assert "node 0" in line
    honest = audit(claimed(), bowls(5), runs=50)
    assert (honest.verdict, honest.targets, honest.unseen) == ("not falsified", (0, 1, 2, 3, 4), ())
    assert "all nodes" in dict(honest.summary)["Verdict"]
    assert "at any one node, even in a single epoch" in dict(honest.summary)["Power"]


@pytest.mark.slow
def test_runs_in_several_groups_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory does not hold all runs at once, nothing else changes."""
    algorithm, problem = claimed_of_records(), softmax()
    at_once = attacked(algorithm, algorithm, problem, 130)
    monkeypatch.setattr(adversaries, "_MAX_TAPE_BYTES", 128 * bytes_of_tape(algorithm, problem))
    in_groups = attacked(algorithm, algorithm, problem, 130)
    assert at_once.following.elsewhere.shape[-2] == in_groups.following.elsewhere.shape[-2] == 125
    for one, other in zip(at_once.following, in_groups.following, strict=True):
        left, right = (np.asarray(side) for side in (one, other))
        if left.dtype.kind == "f":
            np.testing.assert_allclose(left.astype(np.float64), right.astype(np.float64), atol=1e-3)
    np.testing.assert_allclose(at_once.heard[0].readings, in_groups.heard[0].readings, atol=1e-3)
    assert not any(check.refutes for check in checks(in_groups))


@pytest.mark.slow
def test_honest_systems_are_accused_of_nothing() -> None:
    for algorithm, problem, runs in ((claimed(), bowls(5), 100), (claimed_of_records(), softmax(), 100)):
        gathered = attacked(algorithm, algorithm, problem, 100 * runs)
        assert not any(is_caught(part, algorithm) for part in audits(gathered, runs))


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.0])
def test_the_stated_power_of_the_size_check_is_that_of_repeated_audits(share: float) -> None:
    """Noise cut at one node in one epoch to what an audit says it would catch is caught in 9 of 10 audits."""
    from murmurcast.audits.noise_checks import smallest_cut_of_size

    honest = attacked(claimed(), claimed(), bowls(5), 50)
    stated = smallest_cut_of_size(honest.following, 1 - 5e-5)
    cut = stated if share else (3 + stated) / 4
    gathered = attacked(claimed(), faults.last_epoch_at(claimed(), cut), bowls(5), 60 * 50)
    caught = [any(check.refutes for check in checks(part)) for part in audits(gathered, 50)]
    assert (np.mean(caught) > 0.85) if share else (np.mean(caught) < 0.5)
