"""Canaries do what they say: one unit's change of the target's gradient, and nothing anywhere else."""

import jax.numpy as jnp
import numpy as np
import pytest

from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits import canaries
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.eavesdropper import overheard
from murmurcast.audits.following import Following, Observed, claims_of, follow
from murmurcast.audits.guessing import guess
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.data.datasets import logistic
from murmurcast.engine import noise
from murmurcast.planning.plan import Plan
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.quadratic import Quadratic
from murmurcast.problems.softmax import SoftmaxRegression
from tests.conftest import asymmetric_network

NODES, TARGET, EPOCHS, SEEDS = 4, 2, 3, (5, 9)


def softmax(**options: object) -> SoftmaxRegression:
    data = logistic(examples=80, features=3, classes=3, seed=1).partition("sorted", NODES)
    return SoftmaxRegression(data=data, **({"clip": 0.4, "l2": 0.02} | options))  # type: ignore[arg-type]


def planned(problem: SoftmaxRegression | Quadratic, unit: str) -> Plan:
    schedule = Schedule(epochs=EPOCHS, step=0.3, noise_timing="aligned", noise_to_step="auto")
    return plan(asymmetric_network(4, NODES), problem, Budget(epsilon=3.0, unit=unit), schedule)  # type: ignore[arg-type]


def sent(built: Plan, problem: SoftmaxRegression | Quadratic, planted: Canaries) -> Transcript:
    algorithm = power_controlled(built)
    return transcripts(
        canaries.planted(algorithm), problem, SEEDS, "float64", prepare=canaries.plant(planted, algorithm)
    )


def heard(built: Plan, problem: SoftmaxRegression, planted: Canaries) -> Transcript:
    """A run for every row of signs, in float32."""
    algorithm = power_controlled(built)
    return transcripts(
        canaries.planted(algorithm), problem, range(planted.signs.shape[1]), prepare=canaries.plant(planted, algorithm)
    )


def followed(built: Plan, problem: SoftmaxRegression, planted: Canaries, kept: Transcript) -> Following:
    seeds = tuple(range(len(kept.sent)))
    algorithm, nodes = power_controlled(built), np.arange(NODES)
    return follow(
        Observed(algorithm, algorithm, problem, planted, nodes, kept, seeds, claims_of(algorithm, planted, nodes))
    )


def test_a_record_is_beside_the_others_and_changes_by_the_sensitivity() -> None:
    problem = softmax()
    built = planned(problem, "record")
    planted = canaries.draw(power_controlled(built), (TARGET,), problem.dim, len(SEEDS), 1.0, seed=2)
    assert not planted.alone
    assert planted.change == [built.sensitivity[TARGET]]
    assert set(np.unique(planted.signs)) == {-1.0, 1.0}
    half = canaries.half_way(planted, len(SEEDS))
    plain = transcripts(power_controlled(built), problem, SEEDS, "float64")
    np.testing.assert_array_equal(sent(built, problem, half).sent, plain.sent)
    # Only the target's second signal differs in epoch 2, by the step, for every run by its own signs.
    difference = (sent(built, problem, planted).sent - plain.sent)[:, :2] / np.sqrt(built.alpha * built.network.power)[
        :, None
    ]
    step = built.schedule.steps[0] / built.z[0, TARGET]
    assert np.abs(difference[:, 0]).max() == 0
    np.testing.assert_allclose(difference[:, 1, TARGET], -step * planted.change / 2 * planted.signs[0], rtol=1e-9)
    assert np.abs(np.delete(difference[:, 1], TARGET, axis=1)).max() == 0


def test_at_private_points_of_whole_nodes_canaries_are_all_the_target_has() -> None:
    problem = Quadratic.random(NODES, 6, seed=3, clip=0.5)
    built = planned(problem, "node")
    algorithm = power_controlled(built, gradient_at="own")
    planted = canaries.draw(algorithm, (TARGET, 0), problem.dim, len(SEEDS), (0.25, 1.0), seed=2)
    assert planted.alone
    assert not canaries.draw(power_controlled(built), (TARGET,), problem.dim, 1).alone
    assert tuple(planted.change) == (0.25 * 2 * 0.5, 2 * 0.5)
    kept = transcripts(
        canaries.planted(algorithm), problem, SEEDS, "float64", prepare=canaries.plant(planted, algorithm)
    )
    said = kept.sent / np.sqrt(built.alpha * built.network.power)[:, None]
    mixed = built.mixing.weights.toarray() @ said[:, -1]
    for place, node in enumerate((TARGET, 0)):
        step = built.schedule.steps[-1] / built.z[-1, node]
        pushed = step * planted.change[place] / 2 * planted.signs[place]
        np.testing.assert_allclose(kept.own[:, node], mixed[:, node] - pushed, rtol=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("batch", [None, 4])
def test_the_eavesdropper_is_left_with_noise_and_the_shift(batch: int | None) -> None:
    """Readings minus half the shift times the sign are the standard normal draws of the target, to rounding."""
    problem = softmax(batch=batch, ball=2.0 if batch is None else None)
    built = planned(problem, "record")
    planted = canaries.draw(power_controlled(built), tuple(range(NODES)), problem.dim, 400, 1.0, seed=2)
    kept = heard(built, problem, planted)
    result = followed(built, problem, planted, kept)
    evidence = dict(overheard(result, TARGET))
    air = evidence["eavesdropper"]
    assert air.mu == pytest.approx(built.certificate.mu[TARGET], rel=1e-9)
    signs = planted.signs[TARGET]
    left = air.readings[:EPOCHS] - air.shift[:EPOCHS, None, None] / 2 * signs
    others = air.readings[EPOCHS:]
    expected = air.readings[:EPOCHS, :, 1:].sum(axis=2) / np.sqrt(problem.dim - 1)
    np.testing.assert_allclose(others[:, :, 0], expected, rtol=1e-6, atol=1e-9)
    assert left.var() == pytest.approx(1.0, rel=0.05)
    if batch is not None:  # without a ball the account is exact: nothing is left of data, batches or canaries
        correlation = np.corrcoef(left.reshape(EPOCHS, -1))
        assert np.abs(correlation - np.eye(EPOCHS)).max() < 0.05
        assert np.abs((left * signs).mean(axis=(1, 2))).max() < 4.5 / np.sqrt(signs.size)
        np.testing.assert_allclose(left, result.noise[TARGET, :, 0], atol=1e-3)
    given = evidence["published, with the air"]
    assert np.abs(given.readings[-1]).max() <= 1.0
    assert given.shift[-1] == 0.0


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.slow
def test_what_is_left_to_the_auditor_is_the_noise_itself(batch: int | None) -> None:
    """With a ball that binds, too, where nothing is linear: the draws that the engine made, to rounding."""
    problem = softmax(batch=batch, ball=0.05)
    built = planned(problem, "record")
    planted = canaries.draw(power_controlled(built), tuple(range(NODES)), problem.dim, 3, 1.0, seed=2)
    result = followed(built, problem, planted, heard(built, problem, planted))
    for epoch in range(EPOCHS):
        keys = jnp.stack([noise.draw_key(root, epoch + 1, 0, 0) for root in noise.roots((0, 1, 2))])
        drawn = [noise.normal(noise.stream(keys, problem.dim), node, np.float32) for node in range(NODES)]
        np.testing.assert_allclose(result.noise[:, epoch, 0], np.reshape(drawn, (NODES, 3, problem.dim)), atol=2e-3)


def test_a_wrong_epoch_would_be_noticed() -> None:
    """Signals moved by one epoch leave what was expected unexplained."""
    problem = softmax()
    built = planned(problem, "record")
    planted = canaries.draw(power_controlled(built), (TARGET,), problem.dim, 50, 1.0, seed=2)
    kept = heard(built, problem, planted)
    result = followed(built, problem, planted, kept._replace(heard=np.roll(kept.heard, 1, axis=1)))
    assert result.surprises[TARGET].var() > 1.3


def test_what_is_learned_from_is_not_counted() -> None:
    problem = softmax()
    built = planned(problem, "record")
    planted = canaries.draw(power_controlled(built), (TARGET,), problem.dim, 100, 1.0, seed=2)
    kept = heard(built, problem, planted)
    evidence = dict(overheard(followed(built, problem, planted, kept), TARGET))["eavesdropper"]
    truth = planted.signs[0]
    split = guess(evidence, truth, seed=0).split
    everything = np.concatenate(split)
    np.testing.assert_array_equal(np.sort(everything), np.arange(truth.size))
    # Signs told wrongly where nothing is counted: the learned filter turns around, the matched one does not care.
    lied = truth.ravel().copy()
    lied[split.learning] *= -1
    honest, misled = (guess(evidence, signs.reshape(truth.shape), 0) for signs in (truth, lied))
    np.testing.assert_array_equal(honest.matched, misled.matched)
    counted = split.counting
    assert np.corrcoef(honest.learned[counted], misled.learned[counted])[0, 1] < -0.9
