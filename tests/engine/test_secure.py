"""Secure noise: where its bits come from, that runs use it as planned, and that nothing of it can be had twice."""

import builtins
import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from randomgen import AESCounter

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import State
from murmurcast.algorithms.grid_noise import finite, integer_std, send_on_grid, within
from murmurcast.audits.transcript import transcripts
from murmurcast.engine import secure, train
from murmurcast.planning.plan import Plan
from murmurcast.privacy import discrete
from murmurcast.runs.result import CHECKPOINT
from tests.conftest import asymmetric_network
from tests.engine.transcription import algorithm_1, showing_own

EPOCHS, NODES, DIM = 30, 6, 5
CLIP, RADIUS = 2.0, 0.6


def quadratic(**options: Any) -> mc.Quadratic:
    return mc.Quadratic.random(NODES, DIM, seed=3, clip=CLIP, **({"ball": RADIUS} | options))


def planned(problem: Any, epsilon: float = 20.0, **options: Any) -> Plan:
    budget = mc.Budget(epsilon=epsilon, noise_source="secure", **options)
    alpha = np.linspace(0.35, 0.8, NODES)
    schedule = mc.Schedule(epochs=EPOCHS, step=0.1)
    return mc.plan(asymmetric_network(5, NODES), problem, budget, schedule, power=mc.PowerRule(alpha=alpha))


def spacing_of(algorithm: mc.Algorithm) -> FloatArray:
    """[epochs, nodes], the last row of the table for all later epochs."""
    table = algorithm.rounds[0].sending.spacing
    return np.asarray(table[np.minimum(np.arange(EPOCHS), len(table) - 1)])


def number(word: str) -> int:
    return int.from_bytes(bytes.fromhex(word), "little")


def test_the_cipher_gives_the_standards_values_and_counts_on() -> None:
    """FIPS 197, appendix C.1; then block after block of the counter, none twice."""
    key, block = number("000102030405060708090a0b0c0d0e0f"), number("00112233445566778899aabbccddeeff")
    first = AESCounter(key=key, counter=block).random_raw(40)
    assert first[:2].tobytes().hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    for ahead in (1, 7, 19):
        assert np.array_equal(
            AESCounter(key=key, counter=block + ahead).random_raw(2), first[2 * ahead : 2 * ahead + 2]
        )


def test_every_source_has_its_own_key_of_all_128_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def randbits(bits: int) -> int:
        asked.append(bits)
        return 2**127 + len(asked)

    monkeypatch.setattr("secrets.randbits", randbits)
    one, other = secure.source()(50), secure.source()(50)
    assert asked == [128, 128]
    assert np.array_equal(one, AESCounter(key=2**127 + 1).random_raw(50))
    assert not np.isin(one, other).any()


def test_two_sources_never_give_the_same_words() -> None:
    words = np.concatenate([source(1000) for source in (*secure.sources(), *secure.sources())])
    assert len(np.unique(words)) == len(words)


def test_without_the_package_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def lacking(name: str, *rest: Any, **more: Any) -> Any:
        if name == "randomgen":
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(mc.Error, match="randomgen") as refused:
        secure.source()
    assert "murmurcast[secure]" in refused.value.hint


@pytest.mark.parametrize(("rows", "size"), [(1, 3), (3, 20_000), (1, 200_000), (5000, 30)])
def test_all_places_are_filled_whatever_the_shape(rows: int, size: int) -> None:
    std = np.geomspace(2.0**26, 2.0**27 * 0.99, rows)
    drawn = secure.draw(std, size, secure.sources())
    assert drawn.shape == (rows, size)
    assert np.array_equal(drawn, np.round(drawn))
    assert len(np.unique(drawn)) > 0.99 * drawn.size
    if drawn.size > 1000:
        assert abs((drawn / std[:, None]).std() - 1) < 6 / np.sqrt(2 * drawn.size)


class Drawn(list[FloatArray]):
    """Keeps what is drawn, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        usual = secure.draw

        def draw(*arguments: Any) -> FloatArray:
            self.append(usual(*arguments))
            return self[-1].copy()

        monkeypatch.setattr(secure, "draw", draw)

    def by_epoch(self, seeds: int = 1) -> FloatArray:
        return np.concatenate(self).reshape(-1, NODES, seeds, DIM)


@pytest.mark.parametrize("gradient_at", ["mixed", "own"])
@pytest.mark.parametrize("drawn_ahead", [1, 2**20])
def test_follows_the_transcription(gradient_at: Any, drawn_ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same Algorithm 1 as with seeded noise, on a grid that is 2^26 times finer than the noise."""
    problem = quadratic()
    plan = planned(problem)

    def gradient(node: int, point: FloatArray) -> FloatArray:
        slope = problem.curvature[node] @ (point - problem.centre[node])
        return np.asarray(slope * min(1.0, CLIP / float(np.linalg.norm(slope))))

    def project(point: FloatArray) -> FloatArray:
        return np.asarray(point * min(1.0, RADIUS / float(np.linalg.norm(point))))

    monkeypatch.setattr(secure, "_MAX_INTEGERS_AHEAD", drawn_ahead)
    drawn = Drawn(monkeypatch)
    algorithm = mc.power_controlled(plan, gradient_at=gradient_at)
    outcome = mc.run(
        showing_own(algorithm), problem, precision="float64", options=mc.RunOptions(evaluate_every=7)
    ).published[0]
    integers = drawn.by_epoch()[:, :, 0]
    assert integers.shape == (EPOCHS, NODES, DIM)
    assert len(np.unique(integers)) > 0.99 * integers.size
    standard = integers / integer_std(algorithm.rounds[0].sending)[:, :, None]
    x, _ = algorithm_1(plan, standard, gradient, project, gradient_at)
    np.testing.assert_allclose(outcome, x, atol=1e-6)
    np.testing.assert_allclose(integer_std(algorithm.rounds[0].sending) * spacing_of(algorithm), plan.effective_noise)


def test_all_that_is_sent_is_on_the_grid_and_the_noise_is_the_planned_one() -> None:
    problem = quadratic(ball=None, box=0.5)
    plan = planned(problem)
    algorithm = mc.power_controlled(plan)
    sent = transcripts(algorithm, problem, range(400), "float64").sent  # [seed, epoch, node, dim]
    steps = sent / algorithm.rounds[0].sending.amplitude[0, :, None] / spacing_of(algorithm)[:, :, None]
    # Up to the rounding of the product with the amplitude, which is a function of what is on the grid.
    np.testing.assert_allclose(steps, np.round(steps), rtol=4e-16)
    first = np.round(steps[:, 0]) / integer_std(algorithm.rounds[0].sending)[0, :, None]  # x_1 is 0
    assert np.abs(first.std(axis=(0, 2)) - 1).max() < 5 / np.sqrt(2 * 400 * DIM)
    assert np.abs(first.std(axis=(0, 2)) * 1.3 - 1).min() > 5 / np.sqrt(2 * 400 * DIM)


def test_what_is_sent_is_exact_in_integers() -> None:
    """Up to the largest numbers that are let through, value and noise add up without rounding."""
    with jax.enable_x64(True):
        for spacing in (2.0**-40, 1.0, 2.0**20):
            here = mc.power_controlled(planned(quadratic())).rounds[0].sending._replace(amplitude=1.0, spacing=spacing)
            own = np.array([0.3, -7.6, 1e300, -1e300, np.nan, 2.0**45 + 0.5, 2.5, 3.5]) * spacing
            noise = np.array([1.0, -(2.0**31), 2.0**31 - 1, 5.0, -3.0, 2.0**31 - 1, 0.0, 0.0])
            state = State(jax.numpy.asarray(own), jax.numpy.asarray(own))
            said = np.asarray(send_on_grid(here, state, {"noise": jax.numpy.asarray(noise)})) / spacing
            rounded = [0, -8, 2**46, -(2**46), 0, 2**45, 2, 4]
            assert [int(value) for value in said] == [a + int(b) for a, b in zip(rounded, noise, strict=True)]


def test_points_are_held_and_never_driven_apart() -> None:
    points = np.array([np.nan, np.inf, -np.inf, 3.0, -0.5])
    assert np.asarray(within(jax.numpy.asarray(points), 2.0)).tolist() == [0.0, 2.0, -2.0, 2.0, -0.5]


def test_a_gradient_that_is_no_number_counts_as_zero() -> None:
    for wrong in (np.nan, np.inf, -np.inf):
        assert not np.asarray(finite(jax.numpy.array([1e9, wrong, 3.0]))).any()
    assert np.asarray(finite(jax.numpy.array([1.0, -2.0]))).tolist() == [1.0, -2.0]

    class Broken(mc.Quadratic):
        def gradient_at_public(self, model: Any, mine: Any, key: Any) -> Any:
            return super().gradient_at_public(model, mine, key) * np.nan

    whole = quadratic()
    problem = Broken(curvature=whole.curvature, centre=whole.centre, clip=CLIP, ball=RADIUS)
    outcome = mc.run(mc.power_controlled(planned(problem)), problem, precision="float64")
    assert np.isfinite(outcome.published).all()


def test_runs_are_not_repeatable() -> None:
    problem = quadratic()
    plan = planned(problem)
    one, other = (mc.run(mc.power_controlled(plan), problem, seeds=(4,), precision="float64") for _ in range(2))
    assert not np.isclose(one.published, other.published).any()
    assert one.info["privacy"]["noise_source"] == "secure"
    assert "only the certificate is claimed" in one.info["privacy"]["note"]


def test_a_promise_by_the_discrete_bound_meets_the_budget() -> None:
    problem = quadratic()
    for plan in (planned(problem, 2.0), planned(problem, 0.5)):
        certified = plan.certificate
        np.testing.assert_allclose(certified.epsilon, plan.budget.epsilon, rtol=1e-9)
        exact = discrete.sensitivity(plan.sensitivity, CLIP, 0, DIM)
        pushed = exact * plan.schedule.steps[:-1, None] / (plan.z[:-1] * plan.effective_noise[1:])
        mu = np.sqrt((pushed**2).sum(axis=0)) + discrete.rounding(DIM, EPOCHS)
        np.testing.assert_allclose(certified.mu, mu, rtol=1e-12)
        np.testing.assert_allclose(certified.epsilon, discrete.epsilon(mu, 1e-5, DIM * EPOCHS), rtol=1e-12)


def test_given_noise_leaves_alpha_to_the_bound() -> None:
    problem, schedule = quadratic(), mc.Schedule(epochs=EPOCHS, step=0.1, noise_to_step=150.0)
    network, rule = asymmetric_network(5, NODES), mc.PowerRule(maximum=0.98)
    secured, usual = (
        mc.plan(network, problem, mc.Budget(epsilon=3.0, noise_source=source), schedule, power=rule)
        for source in ("secure", "seeded")
    )
    assert (secured.certificate.epsilon <= 3 * (1 + 1e-9)).all()
    np.testing.assert_allclose(secured.certificate.epsilon.max(), 3.0, rtol=1e-8)
    assert (secured.alpha < usual.alpha).all()
    with pytest.raises(mc.Infeasible) as refused:
        mc.plan(network, problem, mc.Budget(epsilon=1e-3, noise_source="secure"), schedule, power=rule)
    works = mc.Budget(epsilon=refused.value.smallest_epsilon * 1.001, noise_source="secure")
    assert (mc.plan(network, problem, works, schedule, power=rule).certificate.epsilon <= works.epsilon).all()


def test_no_checkpoint_no_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = quadratic()
    algorithm = mc.power_controlled(planned(problem))
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)

    def stop(done: int, of: int, figures: dict[str, float]) -> None:  # noqa: ARG001
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mc.run(algorithm, problem, precision="float64", options=mc.RunOptions(folder=tmp_path, on_progress=stop))
    assert not (tmp_path / CHECKPOINT).exists()
    with pytest.raises(mc.Error, match="cannot be resumed") as refused:
        mc.run(algorithm, problem, precision="float64", options=mc.RunOptions(folder=tmp_path, resume=True))
    assert "whole plan" in refused.value.hint
    with pytest.raises(mc.Error, match="no checkpoints"):
        mc.run(algorithm, problem, precision="float64", options=mc.RunOptions(folder=tmp_path, checkpoint_every=5))


def test_what_cannot_be_kept_is_refused() -> None:
    problem = quadratic()
    plan = planned(problem)
    with pytest.raises(mc.Error, match="float64"):
        mc.run(mc.power_controlled(plan), problem)
    for make in (mc.mped2fl, mc.noiseless, mc.local_only, mc.central_dp):
        with pytest.raises(mc.Error, match="power-controlled"):
            mc.run(make(plan), problem, precision="float64")
    with pytest.raises(mc.Error, match="number of parameters"):
        planned(mc.ClippedGradients(clip=CLIP))
    with pytest.raises(mc.Error, match="another number of parameters"):
        mc.run(mc.power_controlled(planned(mc.ClippedGradients(clip=CLIP, dim=4))), problem, precision="float64")
    free = quadratic(clipping="none")
    with pytest.raises(mc.Error, match="not clipped"):
        mc.run(mc.power_controlled(planned(free)), free, precision="float64")
    wide = quadratic(ball=1e12)
    with pytest.raises(mc.Error, match="radius"):
        mc.run(mc.power_controlled(planned(wide)), wide, precision="float64")
    boxed = quadratic(ball=None, box=1e12)
    mc.run(mc.power_controlled(planned(boxed)), boxed, precision="float64")
    with pytest.raises(mc.Error, match="noise_source"):
        mc.Budget(epsilon=1.0, noise_source="safe")  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["node", "record"])
@pytest.mark.parametrize("omega", [{}, {"ball": 0.3}, {"box": 0.1}], ids=["free", "ball", "box"])
def test_one_units_data_moves_the_integers_by_no_more_than_is_counted(
    unit: Any, omega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own signals of two worlds, with the same noise, against S' gamma / (z D) + 2 sqrt(m).

    The changed data turns its gradient round, the worst there is, so the bound without rounding is reached.
    """
    generator = np.random.default_rng(4)
    features = generator.standard_normal((60, 7)).astype(np.float32)
    targets = (3 * generator.standard_normal(60)).astype(np.float32)
    built = mc.datasets.least_squares(examples=75, features=7, seed=2)
    turned = targets.copy()
    rows = built.partition("iid", nodes=NODES).rows[2]
    turned[rows if unit == "node" else rows[:1]] *= -1
    monkeypatch.setattr(secure, "draw", lambda std, size, _: np.random.default_rng(1).integers(-9, 9, (len(std), size)))
    sent = []
    for values in (targets, turned):
        world = dataclasses.replace(built, features=features, targets=values).partition("iid", nodes=NODES)
        problem = mc.RidgeRegression(data=world, clip=0.5, clipping="node" if unit == "node" else "example", **omega)
        plan = planned(problem, unit=unit)
        algorithm = mc.power_controlled(plan)
        sent.append(transcripts(algorithm, problem, (0,), "float64").sent[0])
    amplitude = algorithm.rounds[0].sending.amplitude[0, :, None]
    steps = (sent[0] - sent[1]) / (amplitude * spacing_of(algorithm)[:, :, None])
    assert not steps[0].any()
    moved = np.linalg.norm(steps[1], axis=1)  # the second signal: from then on the worlds' public points differ
    assert np.flatnonzero(moved).tolist() == [2]
    stride = plan.schedule.steps[0] / plan.z[0] / spacing_of(algorithm)[1]
    counted = discrete.sensitivity(plan.sensitivity, 0.5, np.asarray(problem.examples_per_node), 7) * stride
    assert moved[2] <= counted[2] + 2 * np.sqrt(7)
    if not omega:
        assert moved[2] >= (plan.sensitivity * stride)[2] - 2 * np.sqrt(7)
