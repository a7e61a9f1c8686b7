"""Runs as a whole: where they converge, what cannot change them, and what they send."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.tables import same_always
from murmurcast.channels import air
from murmurcast.engine import train
from murmurcast.network.gains import Uniform
from murmurcast.network.topologies import ring
from murmurcast.runs import memory, record
from murmurcast.runs import run as runner
from murmurcast.runs.result import CHECKPOINT, Result
from tests.conftest import asymmetric_network, changed
from tests.engine.transcription import showing_own

NODES = 5  # odd: the nodes do not divide among two cores


def digits(**options: object) -> mc.SoftmaxRegression:
    data = mc.datasets.digits().partition("quantity", NODES, seed=1)
    return mc.SoftmaxRegression(data=data, ball=5.0, **options)  # type: ignore[arg-type]


def algorithm(problem: mc.SoftmaxRegression, epochs: int = 12) -> Algorithm:
    budget = mc.Budget(epsilon=30.0, unit="record")
    return mc.power_controlled(mc.plan(asymmetric_network(2, NODES), problem, budget, mc.Schedule(epochs=epochs)))


def still(dim: int) -> mc.Quadratic:
    """A problem whose models cannot move: what is sent is noise alone."""
    return mc.Quadratic(curvature=np.tile(np.eye(dim), (NODES, 1, 1)), centre=np.zeros((NODES, dim)), ball=1e-20)


def same(one: Result, other: Result) -> bool:
    """Bit for bit, at the epochs both have."""
    epochs = sorted(set(one.metrics.epoch.values) & set(other.metrics.epoch.values))
    figures = tuple(str(n) for n, v in one.metrics.items() if "seed" in v.dims)

    def values(run: Result, name: str) -> FloatArray:
        figure = run.metrics[name]
        return np.asarray(figure.sel(epoch=epochs) if "epoch" in figure.dims else figure)

    equal = [np.array_equal(values(one, name), values(other, name)) for name in figures]
    return bool(epochs and all(equal) and np.array_equal(one.published, other.published))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("batch", [None, 16])
def test_evaluation_and_chunks_change_no_bit(batch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(batch=batch)
    built = algorithm(problem)
    often = mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=1))
    seldom = mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=5))
    assert same(often, seldom)
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)  # one epoch at a time
    assert same(often, mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=12)))
    assert not np.array_equal(often.published[0], often.published[1])


def test_resumed_runs_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(batch=16)
    built = algorithm(problem)
    whole = mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=4))
    for stop in (1, 4, 7):
        folder = tmp_path / str(stop)
        monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            mc.run(
                built,
                problem,
                seeds=[3, 4],
                options=mc.RunOptions(evaluate_every=4, folder=folder, on_progress=_stop_at(stop)),
            )
        assert (folder / CHECKPOINT).exists()
        seen: list[int] = []
        resumed = mc.run(
            built,
            problem,
            seeds=[3, 4],
            options=mc.RunOptions(
                evaluate_every=4,
                folder=folder,
                resume=True,
                on_progress=lambda *progress, seen=seen: seen.append(progress[0]),
            ),
        )
        assert seen[0] == stop + 1
        assert same(whole, resumed)
        assert not (folder / CHECKPOINT).exists()
        assert same(whole, mc.load_run(folder))


def _stop_at(epoch: int) -> runner.Progress:
    """Ctrl-C once an epoch is done."""
    import os
    import signal

    def progress(done: int, of: int, figures: dict[str, float]) -> None:  # noqa: ARG001
        if done == epoch:
            os.kill(os.getpid(), signal.SIGINT)

    return progress


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    problem = digits(batch=16)
    with pytest.raises(KeyboardInterrupt):
        mc.run(algorithm(problem), problem, options=mc.RunOptions(folder=tmp_path, on_progress=_stop_at(1)))
    moved = mc.datasets.digits().normalised(0.1, 1.0).partition("quantity", NODES, seed=1)
    other = mc.SoftmaxRegression(data=moved, ball=5.0, batch=16)
    penalised = digits(batch=16, l2=0.1)
    longer = algorithm(problem, epochs=13)
    louder = mc.power_controlled(
        mc.plan(longer.plan.network, problem, mc.Budget(epsilon=1.0, unit="record"), mc.Schedule(epochs=12))
    )
    for built, on in (
        (algorithm(other), other),
        (algorithm(penalised), penalised),
        (longer, problem),
        (louder, problem),
    ):
        with pytest.raises(mc.Error, match="other data"):
            mc.run(built, on, options=mc.RunOptions(folder=tmp_path, resume=True))


@pytest.mark.slow
def test_groups_of_seeds_change_little_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short, seeds go one after the other; a run can stop in any of them."""
    problem = digits(batch=16)
    built = algorithm(problem)
    together = mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=6))
    monkeypatch.setattr(memory, "MODEL_COPIES", 10**12)
    apart = mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=6))
    for name in ("own_loss", "published_loss", "mean_loss", "consensus_error", "sent_power", "loudest"):
        np.testing.assert_allclose(together.metrics[name], apart.metrics[name], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        mc.run(
            built,
            problem,
            seeds=[3, 4],
            options=mc.RunOptions(evaluate_every=6, folder=tmp_path, on_progress=_stop_at(12 + 8)),
        )
    monkeypatch.setattr(memory, "MODEL_COPIES", 1)  # memory is free again: the groups stay as they were
    assert same(
        apart,
        mc.run(built, problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=6, folder=tmp_path, resume=True)),
    )


def test_a_seed_draws_the_same_noise_in_any_company() -> None:
    """With a model that never moves, what is sent is the noise: equal to the bit."""
    problem = still(7)
    budget = mc.Budget(epsilon=10.0)
    built = mc.power_controlled(mc.plan(asymmetric_network(2, NODES), problem, budget, mc.Schedule(epochs=6)))
    alone = mc.run(built, problem, seeds=[5], options=mc.RunOptions(evaluate_every=1))
    company = mc.run(built, problem, seeds=[2, 5, 9], options=mc.RunOptions(evaluate_every=1))
    assert np.array_equal(alone.metrics["sent_power"].sel(seed=5), company.metrics["sent_power"].sel(seed=5))
    expected = np.asarray(built.plan.beta * built.plan.noise_std**2 * problem.dim)
    assert 0.5 < float((alone.metrics["sent_power"][0] / expected).mean()) < 1.6


SINGLE = """
import jax, sys
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import numpy as np
from tests.runs.test_run import algorithm, digits
import murmurcast as mc
problem = digits(batch=16)
result = mc.run(algorithm(problem), problem, seeds=[3, 4], options=mc.RunOptions(evaluate_every=6))
np.save(sys.argv[2], result.published)
"""


@pytest.mark.slow
def test_the_number_of_devices_does_not_matter(tmp_path: Path) -> None:
    outcome = []
    for devices in (1, 2, 3):
        path = tmp_path / f"{devices}.npy"
        subprocess.run(
            [sys.executable, "-c", SINGLE, str(devices), str(path)], check=True, cwd=Path(__file__).parents[2]
        )
        outcome.append(np.load(path))
    np.testing.assert_allclose(outcome[0], outcome[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(outcome[0], outcome[2], rtol=0, atol=1e-5)


def test_dense_and_sparse_mixing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    network = ring(12, gain=Uniform(), seed=3)
    problem = mc.Quadratic.random(12, 4, clip=1.0)
    plan = mc.plan(network, problem, mc.Budget(epsilon=50.0), mc.Schedule(epochs=10))
    for make in (mc.power_controlled, mc.noiseless):
        monkeypatch.setattr(air, "_DENSE_FROM", 0.0)
        dense = mc.run(make(plan), problem, precision="float64")
        monkeypatch.setattr(air, "_DENSE_FROM", 2.0)
        sparse = mc.run(make(plan), problem, precision="float64")
        np.testing.assert_allclose(dense.published, sparse.published, rtol=0, atol=1e-12)


def test_blocks_of_nodes_agree_with_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from murmurcast.engine import loop

    problem = digits()
    built = algorithm(problem)
    whole = mc.run(built, problem, precision="float64", options=mc.RunOptions(evaluate_every=6))
    monkeypatch.setattr(loop, "_BLOCK_BYTES", 1_000_000)
    blocks = mc.run(built, problem, precision="float64", options=mc.RunOptions(evaluate_every=6))
    np.testing.assert_allclose(whole.published, blocks.published, rtol=0, atol=1e-12)


def weighted_optimum(problem: mc.Quadratic, weights: FloatArray) -> FloatArray:
    hessian = np.einsum("k,kij->ij", weights, problem.curvature)
    return np.asarray(np.linalg.solve(hessian, np.einsum("k,kij,kj->i", weights, problem.curvature, problem.centre)))


def test_reaches_the_plain_optimum_where_descent_without_z_reaches_the_weighted_one() -> None:
    """On an unbalanced digraph; without noise, with vanishing steps."""
    problem = mc.Quadratic.random(NODES, 4, seed=1, clip=1.0, clipping="none")
    network = asymmetric_network(2, NODES)
    schedule = mc.Schedule(epochs=20_000, step=0.2, decay="linear")
    plan = mc.plan(
        network, problem, mc.Budget(epsilon=50.0), schedule, power=mc.PowerRule(alpha=np.linspace(0.2, 0.8, NODES))
    )
    plain, weighted = problem.optimum(), weighted_optimum(problem, plan.perron)
    assert np.linalg.norm(plain - weighted) > 0.1
    corrected = mc.noiseless(plan)
    alike = same_always(np.full(NODES, 1 / NODES))  # the same steps, but for all alike
    plain_steps = changed(corrected, receiving=corrected.rounds[0].receiving._replace(z=alike))
    outcome = {
        name: mc.run(built, problem, precision="float64").published[0].mean(axis=0)
        for name, built in (("corrected", corrected), ("plain", plain_steps))
    }
    far = {name: (np.linalg.norm(x - plain), np.linalg.norm(x - weighted)) for name, x in outcome.items()}
    assert far["corrected"][0] < 0.01 < 0.1 < far["corrected"][1], far
    assert far["plain"][1] < 0.01 < 0.1 < far["plain"][0], far


def test_sent_power_and_its_scale() -> None:
    """What leaves the antennas has the planned energy; a noise 5 % off would be noticed."""
    problem = still(300)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=8))
    sent = np.asarray(
        mc.run(mc.power_controlled(plan), problem, options=mc.RunOptions(evaluate_every=1)).metrics["sent_power"][0]
    )
    energy = sent / (plan.beta * plan.noise_std**2)  # chi-square with dim degrees of freedom
    low, high = (float(stats.chi2.ppf(level, energy.size * problem.dim)) for level in (1e-5, 1 - 1e-5))
    assert low < energy.sum() < high
    assert not low < 1.05**2 * energy.sum() < high
    assert not low < 0.95**2 * energy.sum() < high


def test_link_noise_of_the_rival_is_independent_and_of_the_right_size() -> None:
    """Receivers' published points carry the sum of their links' noise; two receivers share none of it."""
    problem = still(300)
    network = asymmetric_network(2, NODES)
    plan = mc.plan(network, problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=2))
    heard = mc.run(mc.mped2fl(plan), problem, seeds=range(20)).published  # [seed, node, dim], in units of x
    gains, normaliser = network.gains.toarray(), plan.mixing.normaliser
    for receiver in range(NODES):
        senders = np.flatnonzero(gains[:, receiver])
        arriving = gains[senders, receiver] * np.sqrt(network.power[senders])
        share = (arriving.min() / arriving) ** 2
        variance = np.sum((1 / share - 1) * plan.noise_std[-1, senders] ** 2) / normaliser**2
        energy = float((heard[:, receiver] ** 2).sum()) / variance
        assert stats.chi2.ppf(1e-6, 6000) < energy < stats.chi2.isf(1e-6, 6000)
    flat = heard.transpose(1, 0, 2).reshape(NODES, -1)
    correlation = np.corrcoef(flat)[np.triu_indices(NODES, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(6000)


def test_mean_models_and_consensus_error() -> None:
    problem = mc.Quadratic.random(NODES, 3, clip=1.0)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    result = mc.run(showing_own(mc.local_only(plan)), problem, precision="float64")
    own = result.published[0]
    mean = own.mean(axis=0)
    assert float(result.final("consensus_error")[0]) == pytest.approx(np.sqrt(((own - mean) ** 2).sum(axis=1).mean()))
    assert float(result.final("mean_distance")[0]) == pytest.approx(np.linalg.norm(mean - problem.optimum()))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": []}, "no seed"),
        ({"seeds": [1, 1]}, "twice"),
        ({"seeds": [-1]}, "seed is -1"),
        ({"options": mc.RunOptions(evaluate_every=0)}, "evaluate_every"),
        ({"options": mc.RunOptions(checkpoint_every=0)}, "checkpoint_every"),
        ({"precision": "float16"}, "float16"),
    ],
)
def test_bad_options_are_errors(options: dict[str, object], words: str) -> None:
    problem = mc.Quadratic.random(NODES, 3, clip=1.0)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    with pytest.raises(mc.Error, match=words):
        mc.run(mc.power_controlled(plan), problem, **options)  # type: ignore[arg-type]


def test_a_plan_for_another_problem_is_refused() -> None:
    problem = digits()
    built = algorithm(problem)
    for other, words in (
        (digits(clip=2.0), "clip"),
        (digits(batch=4), "examples per node"),
        (digits(clipping="node"), "every example"),
        (mc.Quadratic.random(NODES + 1, 3, clip=1.0), "nodes"),
    ):
        with pytest.raises(mc.Error, match=words):
            mc.run(built, other)


def test_without_a_clip_nothing_is_promised_anywhere() -> None:
    problem = mc.Quadratic.random(NODES, 3, clip=1.0, clipping="none")
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    result = mc.run(mc.power_controlled(plan), problem)
    assert result.info["privacy"]["epsilon"] is None
    assert np.isinf(result.ledger["promised_mu"]).all()


def test_numpy_seeds_and_a_used_folder(tmp_path: Path) -> None:
    problem = mc.Quadratic.random(NODES, 3, clip=1.0)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    built = mc.mped2fl(plan, step_factor=np.int64(5))  # type: ignore[arg-type]
    mc.run(built, problem, seeds=np.arange(2), options=mc.RunOptions(folder=tmp_path))
    assert mc.load_run(tmp_path).info["seeds"] == [0, 1]
    with pytest.raises(mc.Error, match="finished run"):
        mc.run(built, problem, options=mc.RunOptions(folder=tmp_path))
    with pytest.raises(mc.Error, match="no folder"):
        mc.run(built, problem, options=mc.RunOptions(resume=True))


def test_a_run_that_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mc.Quadratic.random(NODES, 3, clip=1.0)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=10.0), mc.Schedule(epochs=5))
    monkeypatch.setattr(memory, "free_memory", lambda: 100)
    with pytest.raises(mc.Error, match="GiB"):
        mc.run(mc.power_controlled(plan), problem)


def test_a_run_that_diverged_has_no_accuracy() -> None:
    problem = digits(clipping="none", l2=30.0)
    free = mc.SoftmaxRegression(data=problem.data, clipping="none", l2=30.0)
    schedule = mc.Schedule(epochs=60, step=10.0, decay="constant")
    plan = mc.plan(asymmetric_network(2, NODES), free, mc.Budget(epsilon=30.0, unit="record"), schedule)
    result = mc.run(mc.noiseless(plan), free, options=mc.RunOptions(evaluate_every=30))
    assert np.isnan(result.final("own_accuracy")).all()


def test_every_evaluation_is_told_once_with_its_own_metrics() -> None:
    """Progress is told more often, with whatever is latest; loggers take evaluations."""
    stated: list[tuple[int, dict[str, float]]] = []
    options = mc.RunOptions(evaluate_every=5, on_evaluation=lambda epoch, metrics: stated.append((epoch, metrics)))
    problem = mc.Quadratic.random(4, dim=3, seed=1, ball=2.0)
    schedule = mc.Schedule(epochs=12, step=0.1)
    plan = mc.plan(asymmetric_network(5, 4), problem, mc.Budget(epsilon=8.0), schedule)
    run = mc.run(mc.power_controlled(plan), problem, seeds=[2, 9], options=options)
    assert [epoch for epoch, _ in stated] == [5, 10, 12]
    for place, (_, metrics) in enumerate(stated):
        expected = float(run.metrics["published_loss"].isel(epoch=place).mean())
        assert metrics["published_loss"] == pytest.approx(expected, rel=1e-6)


def test_the_seconds_of_all_count_what_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes forward by a thousand seconds while the run's words are put together."""
    late, info, clock = [0.0], record.info, time.perf_counter

    def slowly(*given: Any) -> dict[str, Any]:
        late[0] += 1000.0
        return info(*given)

    monkeypatch.setattr(record, "info", slowly)
    monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=lambda: clock() + late[0]))
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    plan = mc.plan(asymmetric_network(2, NODES), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=2))
    seconds = mc.run(mc.power_controlled(plan), problem).info["seconds"]
    assert seconds["all"] >= 1000
    assert seconds["compiling"] + seconds["training"] < 1000
