"""Large networks in place, block by block: the same as the compiled loop, whatever the blocks and threads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast import _threads
from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm
from murmurcast.engine import buffers, check, large, numbering, observe, train
from murmurcast.problems.base import Problem
from murmurcast.problems.examples import Holdings
from murmurcast.runs.result import Result
from tests.conftest import asymmetric_network, changed

NODES, EPOCHS = 9, 7


def quadratic() -> mc.Quadratic:
    return mc.Quadratic.random(NODES, 4, clip=1.0, seed=3)


def digits(**options: Any) -> mc.SoftmaxRegression:
    """Nodes with 21 to 400 examples."""
    data = mc.datasets.digits().partition(mc.datasets.QuantitySkew(minimum=20), nodes=NODES)
    return mc.SoftmaxRegression(data=data, clip=1.0, l2=1e-2, **options)


def algorithm(problem: Problem, name: str = "power_controlled", **options: Any) -> Algorithm:
    unit = options.pop("unit", "record" if isinstance(problem, mc.SoftmaxRegression) else "node")
    schedule = mc.Schedule(epochs=EPOCHS, step=0.05, rounds=options.pop("rounds", 1))
    network = asymmetric_network(4, NODES)
    plan = mc.plan(network, problem, mc.Budget(epsilon=20.0, unit=unit), schedule, z="perron")
    built: Algorithm = getattr(mc, name)(plan, **options)
    return built


def in_blocks(monkeypatch: pytest.MonkeyPatch, block_bytes: int = 200) -> None:
    """Small networks go as large ones do, in several blocks, the last of them not full."""
    monkeypatch.setattr(large, "FEWEST_NODES", 1)
    monkeypatch.setattr(large, "_MAX_SHARE_OF_PAIRS", 2.0)
    monkeypatch.setattr(large, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(large, "_SPACIOUS_BYTES", 0)


def same_run(one: Result, other: Result, tolerance: float) -> None:
    scale = np.abs(other.published).max()
    np.testing.assert_allclose(one.published, other.published, rtol=0, atol=tolerance * scale)
    for name in other.metrics:
        if name != "seconds":
            np.testing.assert_allclose(one.metrics[name], other.metrics[name], rtol=20 * tolerance, atol=20 * tolerance)
    assert one.ledger.identical(other.ledger)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("power_controlled", {}),
        pytest.param("power_controlled", {"publish": "average"}, marks=pytest.mark.slow),
        pytest.param("power_controlled", {"gradient_at": "own"}, marks=pytest.mark.slow),
        ("power_controlled", {"rounds": 3}),
        ("orthogonal", {}),
        pytest.param("private_frost", {}, marks=pytest.mark.slow),
        ("decor", {}),
        pytest.param("private_exact_diffusion", {}, marks=pytest.mark.slow),
    ],
)
def test_it_is_what_the_compiled_loop_does(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = quadratic()
    built = algorithm(problem, name, **options)
    expected = mc.run(built, problem, seeds=(0, 5), precision="float64")
    in_blocks(monkeypatch)
    assert large.suits(built, problem)
    same_run(mc.run(built, problem, seeds=(0, 5), precision="float64"), expected, 1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"batch": 16}, marks=pytest.mark.slow),
        pytest.param({"batch": 16, "sampling": "poisson"}, marks=pytest.mark.slow),
        pytest.param({"clipping": "node"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_examples_come_from_one_pool(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(**options)
    built = algorithm(problem, unit="node" if "clipping" in options else "record")
    expected = mc.run(built, problem, precision="float64")
    in_blocks(monkeypatch, 12_000)
    monkeypatch.setattr(type(problem), "local_data", lambda _: pytest.fail("every node's data was laid out"))
    same_run(mc.run(built, problem, precision="float64"), expected, 1e-12)


def test_a_process_has_the_examples_of_its_own_nodes_only() -> None:
    problem = digits()
    nodes = np.array([7, 2, 5])
    pool, kept = problem.pool(nodes)
    assert len(pool.features) == problem.data.sizes[nodes].sum() < len(problem.data.dataset.features)
    data = problem.data.dataset
    for node in nodes:
        rows, size = problem.data.rows[node], kept.size[node]
        mine = problem.of_pool(pool, Holdings(kept.rows[node], size))
        np.testing.assert_array_equal(mine.features[:size], data.features[rows])
        np.testing.assert_array_equal(mine.targets[:size], data.targets[rows])
        assert mine.present.sum() == size == len(rows)
        first = kept.rows[node, 0]
        np.testing.assert_array_equal(kept.rows[node, :size], np.arange(first, first + size))  # side by side
    copies = mc.datasets.digits().partition(mc.datasets.Drawn(per_node=1000), nodes=NODES)
    assert mc.SoftmaxRegression(data=copies).pool(np.arange(NODES))[0].features is copies.dataset.features


@pytest.mark.slow
def test_drawn_examples_are_held_as_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mc.datasets.digits().partition(mc.datasets.Drawn(per_node=300), nodes=NODES)
    assert sum(map(len, data.rows)) > len(np.unique(np.concatenate(data.rows)))
    assert all(len(np.unique(rows)) == 300 for rows in data.rows)
    problem = mc.SoftmaxRegression(data=data, clip=1.0)
    built = algorithm(problem)
    expected = mc.run(built, problem)
    assert any("one node's copy" in line for line in expected.info["privacy"]["assumptions"])
    in_blocks(monkeypatch, 12_000)
    same_run(mc.run(built, problem), expected, 1e-5)


def published(built: Algorithm, problem: Problem) -> FloatArray:
    return np.asarray(mc.run(built, problem, seeds=(1, 2)).published)


@pytest.mark.slow
@pytest.mark.parametrize("spacious_bytes", [0, 2**20])
def test_neither_blocks_nor_threads_change_a_bit(spacious_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(batch=8)
    built = algorithm(problem)
    in_blocks(monkeypatch, 12_000)
    monkeypatch.setattr(large, "_SPACIOUS_BYTES", spacious_bytes)
    expected = published(built, problem)
    monkeypatch.setattr(_threads, "cores", lambda: 1)
    for block_bytes in (25_000, 10**9):
        monkeypatch.setattr(large, "_BLOCK_BYTES", block_bytes)
        assert published(built, problem).tobytes() == expected.tobytes()


def test_with_room_to_spare_nodes_hear_while_they_update(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(batch=8)
    built = algorithm(problem)
    in_blocks(monkeypatch, 12_000)
    expected = mc.run(built, problem, seeds=(0, 5), precision="float64")
    monkeypatch.setattr(large, "_SPACIOUS_BYTES", 2**20)
    assert large.copies_of_models(built, problem, np.float64) == 5
    same_run(mc.run(built, problem, seeds=(0, 5), precision="float64"), expected, 1e-13)


def test_algorithm_1_needs_two_models_of_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent takes the place of own models, what is heard that of published ones; unless these are needed."""
    monkeypatch.setattr(large, "_SPACIOUS_BYTES", 0)
    problem = quadratic()
    assert large.copies_of_models(algorithm(problem), problem, np.float32) == 2
    assert large.copies_of_models(algorithm(problem, publish="average"), problem, np.float32) == 3
    assert large.copies_of_models(algorithm(problem, gradient_at="own"), problem, np.float32) == 3
    assert large.copies_of_models(algorithm(problem, rounds=2), problem, np.float32) == 4
    assert large.copies_of_models(algorithm(problem, "orthogonal"), problem, np.float32) == 3


@pytest.mark.slow
def test_hubs_go_in_blocks_of_their_own_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = quadratic()
    built = algorithm(problem)
    in_blocks(monkeypatch)
    expected = published(built, problem)
    monkeypatch.setattr(numbering, "_FEWEST_OF_HUB", 1)
    monkeypatch.setattr(numbering, "_TIMES_THE_MEAN", 1)
    heard = np.bincount(built.setup.network.gains.indices)
    outcome = numbering.numbering(built.setup.network.gains, numbering.shared_out(built.setup.network.gains, 1), 0)
    assert sorted(outcome.own[-outcome.hubs :]) == np.flatnonzero(heard > heard.mean()).tolist()
    assert published(built, problem).tobytes() == expected.tobytes()


def test_a_hub_costs_only_itself() -> None:
    nodes = 3000
    problem = mc.Quadratic.random(nodes, 2, clip=1.0)
    star = mc.topologies.star(nodes, seed=1)
    plan = mc.plan(star, problem, mc.Budget(epsilon=20.0), mc.Schedule(epochs=2, step=0.001), z="perron")
    run = large._run(mc.power_controlled(plan), problem, (0,), np.dtype(np.float32))
    listed = sum(leaf.size for piece in run.pieces for leaf in jax.tree.leaves(piece.receiving[0].lists))
    assert listed < 30 * star.gains.nnz  # as long for all as for the hub, they would have 3,000 times as many


def test_a_view_sees_what_is_written() -> None:
    built = buffers.buffer((3, 5), np.float32)
    assert built.view.unsafe_buffer_pointer() == built.array.ctypes.data  # the same memory
    built.array[1] = 7
    np.testing.assert_array_equal(np.asarray(built.view), built.array)


@pytest.mark.slow
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits(batch=8)
    built = algorithm(problem)
    in_blocks(monkeypatch, 12_000)
    monkeypatch.setattr(train, "_CHUNK_SECONDS", 0.0)
    whole = mc.run(built, problem, seeds=(0, 3), options=mc.RunOptions(evaluate_every=2))

    def stop(done: int, of: int, metrics: dict[str, float]) -> None:  # noqa: ARG001
        if done == 4:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"evaluate_every": 2, "folder": tmp_path, "checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt):
        mc.run(built, problem, seeds=(0, 3), options=mc.RunOptions(**options, on_progress=stop))
    resumed = mc.run(built, problem, seeds=(0, 3), options=mc.RunOptions(**options, resume=True))
    assert resumed.published.tobytes() == whole.published.tobytes()
    np.testing.assert_array_equal(resumed.metrics["own_loss"], whole.metrics["own_loss"])


def test_it_goes_on_as_it_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks, though the network alone is too small for them."""
    problem = quadratic()
    built = algorithm(problem)
    options: dict[str, Any] = {"evaluate_every": 2, "folder": tmp_path, "checkpoint_every": 2}
    with monkeypatch.context() as change:
        in_blocks(change)
        whole = mc.run(built, problem, options=mc.RunOptions(evaluate_every=2))
        with pytest.raises(KeyboardInterrupt):
            mc.run(built, problem, options=mc.RunOptions(**options, on_evaluation=until(4)))
    assert not large.suits(built, problem)
    resumed = mc.run(built, problem, options=mc.RunOptions(**options, resume=True))
    assert resumed.published.tobytes() == whole.published.tobytes()


def until(epoch: int) -> Callable[[int, dict[str, float]], None]:
    """Ctrl-C once this epoch is evaluated."""

    def stop(done: int, metrics: dict[str, float], /) -> None:  # noqa: ARG001
        if done == epoch:
            raise KeyboardInterrupt

    return stop


class Counting(NamedTuple):
    """A state that also counts epochs, in whole numbers."""

    epochs: Any
    own: Any
    published: Any


def test_leaves_of_other_types_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = quadratic()
    plain = algorithm(problem)
    (only,) = plain.rounds

    def update(here: Any, state: Any, sent: Any, heard: Any, local: Any) -> Any:
        new = only.update(here, state, sent, heard, local)
        shift = jnp.asarray([0, 1, 0, 2, 0, 0, 1, 0])[state.epochs]  # which a number with a fraction cannot index
        return Counting(state.epochs + 1, new.own + shift, new.published)

    built = changed(plain, update=update)._replace(init=lambda start, _: Counting(jnp.int32(0), start, start))
    expected = mc.run(built, problem, precision="float64")
    in_blocks(monkeypatch)
    same_run(mc.run(built, problem, precision="float64"), expected, 1e-13)


def test_what_is_projected_is_not_handed_on() -> None:
    problem = quadratic()
    (only,) = algorithm(problem).rounds
    state = jax.eval_shape(lambda: Counting(jnp.int32(0), jnp.zeros(problem.shape), jnp.ones(problem.shape)))

    def update(here: Any, state: Any, sent: Any, heard: Any, local: Any) -> Any:  # noqa: ARG001
        return state._replace(own=local.project(state.own))

    use = buffers.use_of_update(
        only._replace(update=update), state, check.constants(only.receiving, "float32"), problem.shape, "float32"
    )
    assert use.kept == {0, 2}
    assert use.free == ()


@pytest.mark.slow
def test_of_many_nodes_a_sample_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = digits()
    built = algorithm(problem)
    in_blocks(monkeypatch, 12_000)
    every = mc.run(built, problem)
    monkeypatch.setattr(observe, "MOST_EVALUATED", 4)
    monkeypatch.setattr(observe, "SAMPLE", 3)
    mc.run(built, problem, options=mc.RunOptions(folder=tmp_path / "run"))
    run = mc.load_run(tmp_path / "run")
    nodes = run.metrics["node"].values
    np.testing.assert_array_equal(nodes, observe.evaluated_nodes(NODES))
    assert len(nodes) == 3
    np.testing.assert_array_equal(run.metrics["own_loss"], every.metrics["own_loss"][:, :, nodes])
    for name in ("sent_power", "loudest"):
        assert run.metrics[name].dims[-1] == "sender"
        np.testing.assert_array_equal(run.metrics[name], every.metrics[name])
    np.testing.assert_allclose(run.metrics["mean_loss"], every.metrics["mean_loss"], rtol=1e-6)
    assert run.published.shape[1] == NODES
    np.testing.assert_allclose(mc.certify(run).mu, run.ledger["promised_mu"], rtol=1e-9)
    assert "node" not in run.to_frame()
    assert len(run.to_frame()) == len(run.metrics["epoch"])
    mc.report([run], tmp_path / "page.html")
    assert "among the 3" not in (tmp_path / "page.html").read_text()  # few enough to show them all


def test_secure_noise_and_other_channels_stay_in_one_loop() -> None:
    problem = quadratic()
    assert "slots" in large.why_not(algorithm(problem, "mped2fl"))
    assert "server" in large.why_not(algorithm(problem, "central_dp"))
    budget = mc.Budget(epsilon=20.0, noise_source="secure")
    bounded = mc.Quadratic.random(NODES, 4, clip=1.0, seed=3, box=1.0)
    plan = mc.plan(asymmetric_network(4, NODES), bounded, budget, mc.Schedule(epochs=EPOCHS, step=0.05), z="perron")
    assert "secure noise" in large.why_not(mc.power_controlled(plan))
