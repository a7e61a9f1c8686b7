"""Metrics that a method leaves for people reach metrics, table, page and terminal by themselves."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.base import Algorithm, Updated, proved
from murmurcast.cli import _run_text
from murmurcast.reports.runs import page_of
from tests.algorithms.networks import NODES, two_way
from tests.conftest import changed
from tests.reports.examples import sampled


def talkative(problem: mc.Quadratic) -> Algorithm:
    """Algorithm 1 that also says how long its own model is."""
    algorithm = mc.power_controlled(
        mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=6, step=0.1))
    )
    inner = algorithm.rounds[0].update

    def update(*given: Any) -> Updated:
        following = inner(*given)
        return Updated(following, {"length": jnp.linalg.norm(following.own)})

    return proved(changed(algorithm, update=update))  # what it sends is the same


@pytest.fixture(scope="module")
def result() -> mc.Result:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    return mc.run(talkative(problem), problem, seeds=[0, 1], options=mc.RunOptions(evaluate_every=2))


def test_what_is_left_has_a_value_for_every_seed_epoch_and_node(result: mc.Result) -> None:
    solution = result.metrics["model_length"]
    assert solution.dims == ("seed", "epoch", "node")
    assert solution.shape == (2, 3, NODES)
    assert (np.asarray(solution) > 0).all()
    assert (np.asarray(solution) <= 2 * (1 + 1e-6)).all()  # Omega is a ball of that radius
    assert result.left_by_method == ("model_length",)


def test_it_changes_nothing_else(result: mc.Result) -> None:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    plan = mc.plan(two_way(), problem, mc.Budget(epsilon=5.0), mc.Schedule(epochs=6, step=0.1))
    plain = mc.run(mc.power_controlled(plan), problem, seeds=[0, 1], options=mc.RunOptions(evaluate_every=2))
    np.testing.assert_allclose(result.published, plain.published, rtol=1e-6)
    assert plain.left_by_method == ()


def test_it_reaches_table_page_and_terminal(
    result: mc.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result.save(tmp_path / "run")
    loaded = mc.load_run(tmp_path / "run")
    np.testing.assert_array_equal(loaded.metrics["model_length"], result.metrics["model_length"])
    header, *lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert "model_length" in header.split(",")
    assert len(lines) == 2 * 3 * NODES
    assert "chart-model-length" in page_of([loaded])
    _run_text.show_end(loaded.outcome(), tmp_path)
    assert "model_length" in capsys.readouterr().out


def test_it_survives_a_node_that_drops_out() -> None:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)
    solution = mc.run(talkative(problem), problem, drops={4: 3}, options=mc.RunOptions(evaluate_every=1))
    assert np.isfinite(solution.metrics["model_length"]).all()
    assert mc.certify(solution).verdict == "kept"


def test_resumed_runs_keep_it(tmp_path: Path) -> None:
    problem = mc.Quadratic.random(NODES, 3, ball=2.0)

    def stop(done: int, of: int, metrics: dict[str, float]) -> None:  # noqa: ARG001
        if done >= 2:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    options = mc.RunOptions(evaluate_every=2, folder=tmp_path, on_progress=stop)
    with pytest.raises(KeyboardInterrupt):
        mc.run(talkative(problem), problem, seeds=[0, 1], options=options)
    again = mc.RunOptions(evaluate_every=2, folder=tmp_path, resume=True)
    resumed = mc.run(talkative(problem), problem, seeds=[0, 1], options=again)
    whole = mc.run(talkative(problem), problem, seeds=[0, 1], options=mc.RunOptions(evaluate_every=2))
    np.testing.assert_array_equal(resumed.metrics["model_length"], whole.metrics["model_length"])


def test_a_sample_of_nodes_is_said_at_the_end(result: mc.Result, capsys: pytest.CaptureFixture[str]) -> None:
    _run_text.show_end(sampled(result, 0, 2).outcome(), Path("here"))
    assert f"metrics are of a public sample of 2 of {NODES} nodes" in capsys.readouterr().out
    _run_text.show_end(result.outcome(), Path("here"))
    assert "sample" not in capsys.readouterr().out
