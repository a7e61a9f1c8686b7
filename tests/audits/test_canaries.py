"""Canaries do what they say: one unit's change of the target's gradient, and nothing anywhere else."""

import numpy as np
import pytest

from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits import canaries
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.clipping import largest_change
from murmurcast.audits.eavesdropper import overhear
from murmurcast.audits.guessing import guess
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.data.datasets import least_squares, logistic
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression
from tests.conftest import asymmetric_network

NODES, TARGET, EPOCHS, SEEDS = 4, 2, 3, (5, 9)


def softmax(**options: object) -> SoftmaxRegression:
    data = logistic(examples=80, features=3, classes=3, seed=1).partition("sorted", NODES)
    return SoftmaxRegression(data=data, **({"clip": 0.4, "l2": 0.02} | options))  # type: ignore[arg-type]


def planned(problem: SoftmaxRegression | Quadratic, unit: str) -> Plan:
    schedule = Schedule(epochs=EPOCHS, step=0.3, noise_timing="aligned", noise_to_step="auto")
    return plan(asymmetric_network(4, NODES), problem, Budget(epsilon=3.0, unit=unit), schedule)  # type: ignore[arg-type]


def sent(made: Plan, problem: SoftmaxRegression | Quadratic, planted: Canaries) -> Transcript:
    algorithm = canaries.planted(power_controlled(made))
    return transcripts(algorithm, problem, SEEDS, "float64", prepare=canaries.plant(planted))


def heard(made: Plan, problem: SoftmaxRegression, planted: Canaries) -> Transcript:
    """A run for every row of signs, in float32."""
    algorithm = canaries.planted(power_controlled(made))
    return transcripts(algorithm, problem, range(len(planted.signs)), prepare=canaries.plant(planted))


def test_a_record_is_beside_the_others_and_changes_by_the_sensitivity() -> None:
    problem = softmax()
    made = planned(problem, "record")
    planted = canaries.draw(made, TARGET, problem.dim, len(SEEDS), 1.0, seed=2)
    assert not planted.alone
    assert planted.change == made.sensitivity[TARGET]
    assert set(np.unique(planted.signs)) == {-1.0, 1.0}
    half = canaries.half_way(planted, len(SEEDS))
    plain = transcripts(power_controlled(made), problem, SEEDS, "float64")
    np.testing.assert_array_equal(sent(made, problem, half).sent, plain.sent)
    # Only the target's second signal differs in epoch 2, by the step, for every run by its own signs.
    difference = (sent(made, problem, planted).sent - plain.sent)[:, :2] / np.sqrt(made.alpha * made.network.power)[
        :, None
    ]
    step = made.schedule.steps[0] / made.z[0, TARGET]
    assert np.abs(difference[:, 0]).max() == 0
    np.testing.assert_allclose(difference[:, 1, TARGET], -step * planted.change / 2 * planted.signs, rtol=1e-9)
    assert np.abs(np.delete(difference[:, 1], TARGET, axis=1)).max() == 0


def test_at_node_level_canaries_are_all_the_target_has() -> None:
    problem = Quadratic.random(NODES, 6, seed=3, clip=0.5)
    made = planned(problem, "node")
    planted = canaries.draw(made, TARGET, problem.dim, len(SEEDS), 0.25, seed=2)
    assert planted.alone
    assert planted.change == 0.25 * 2 * 0.5
    kept = sent(made, problem, planted)
    said = kept.sent / np.sqrt(made.alpha * made.network.power)[:, None]
    mixed = made.mixing.weights.toarray() @ said[:, -1]
    step = made.schedule.steps[-1] / made.z[-1, TARGET]
    np.testing.assert_allclose(
        kept.own[:, TARGET], mixed[:, TARGET] - step * planted.change / 2 * planted.signs, rtol=1e-9
    )


@pytest.mark.parametrize("batch", [None, 4])
def test_the_eavesdropper_is_left_with_noise_and_the_shift(batch: int | None) -> None:
    """Readings minus half the shift times the sign are the standard normal draws of the target, to rounding."""
    problem = softmax(batch=batch, ball=2.0 if batch is None else None)
    made = planned(problem, "record")
    algorithm = power_controlled(made)
    planted = canaries.draw(made, TARGET, problem.dim, 400, 1.0, seed=2)
    kept = heard(made, problem, planted)
    found = overhear(algorithm, problem, planted, kept, tuple(range(400)))
    assert found.air.mu == pytest.approx(made.certificate.mu[TARGET], rel=1e-9)
    noise = found.air.readings[:EPOCHS] - found.air.shift[:EPOCHS, None, None] / 2 * planted.signs
    others = found.air.readings[EPOCHS:]
    expected = found.air.readings[:EPOCHS, :, 1:].sum(axis=2) / np.sqrt(problem.dim - 1)
    np.testing.assert_allclose(others[:, :, 0], expected, rtol=1e-6, atol=1e-9)
    assert noise.var() == pytest.approx(1.0, rel=0.05)
    if batch is not None:  # without a ball the account is exact: nothing is left of data, batches or canaries
        correlation = np.corrcoef(noise.reshape(EPOCHS, -1))
        assert np.abs(correlation - np.eye(EPOCHS)).max() < 0.05
        assert np.abs((noise * planted.signs).mean(axis=(1, 2))).max() < 4.5 / np.sqrt(planted.signs.size)
    assert np.abs(found.published.readings[-1]).max() <= 1.0
    assert found.published.shift[-1] == 0.0


def test_a_wrong_epoch_would_be_noticed() -> None:
    """Signals moved by one epoch leave what was expected unexplained."""
    problem = softmax()
    made = planned(problem, "record")
    planted = canaries.draw(made, TARGET, problem.dim, 50, 1.0, seed=2)
    kept = heard(made, problem, planted)
    moved = kept._replace(heard=np.roll(kept.heard, 1, axis=1))
    found = overhear(power_controlled(made), problem, planted, moved, tuple(range(50)))
    assert found.air.readings[:EPOCHS].var() > 1.3


def test_what_is_learned_from_is_not_counted() -> None:
    problem = softmax()
    made = planned(problem, "record")
    planted = canaries.draw(made, TARGET, problem.dim, 100, 1.0, seed=2)
    kept = heard(made, problem, planted)
    evidence = overhear(power_controlled(made), problem, planted, kept, tuple(range(100))).air
    split = guess(evidence, planted.signs, seed=0).split
    everything = np.concatenate(split)
    np.testing.assert_array_equal(np.sort(everything), np.arange(planted.signs.size))
    # Signs told wrongly where nothing is counted: the learned filter turns around, the matched one does not care.
    lied = planted.signs.ravel().copy()
    lied[split.learning] *= -1
    honest, misled = (guess(evidence, signs.reshape(planted.signs.shape), 0) for signs in (planted.signs, lied))
    np.testing.assert_array_equal(honest.matched, misled.matched)
    counted = split.counting
    assert np.corrcoef(honest.learned[counted], misled.learned[counted])[0, 1] < -0.9


@pytest.mark.parametrize("unit", ["record", "node"])
def test_hostile_data_reaches_the_sensitivity_and_not_more(unit: str) -> None:
    clipping = "example" if unit == "record" else "node"
    data = least_squares(examples=60, features=3, seed=2).partition("sorted", NODES)
    for problem in (softmax(clipping=clipping), RidgeRegression(data=data, clip=0.7, clipping=clipping)):  # type: ignore[arg-type]
        for point in ("mixed", "own"):
            share = largest_change(problem, unit, TARGET, point)  # type: ignore[arg-type]
            assert share == pytest.approx(1.0, abs=0.02)


def test_hostile_data_finds_a_missing_clip() -> None:
    assert (largest_change(softmax(clipping="none"), "record", TARGET) or 0) > 100
    bowl = Quadratic.random(NODES, 6, seed=3, clip=0.5)
    assert largest_change(bowl, "node", TARGET) == pytest.approx(1.0, abs=1e-4)
