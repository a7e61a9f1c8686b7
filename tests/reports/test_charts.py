"""Charts show what the runs hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.sparse import csr_array

import murmurcast as mc
from murmurcast.reports import charts, ledger
from tests.conftest import asymmetric_network
from tests.reports.examples import NODES, example, plan


def named(figure: Any, name: str) -> Any:
    result = [trace for trace in figure.data if trace.name == name and trace.showlegend is not False]
    assert len(result) == 1
    return result[0]


def network(run: mc.Result) -> Any:
    figure = charts.network(run)
    assert figure is not None
    return figure


def matrix(run: mc.Result) -> Any:
    figure = charts.epsilon_matrix(run)
    assert figure is not None
    return figure


def test_runs_of_one_name_are_told_apart() -> None:
    runs = [example("power_controlled", 2, name) for name in ("a", "a", "a (2)", "a", "b")]
    assert charts.labels(runs) == ("a", "a (3)", "a (2)", "a (4)", "b")


def test_a_course_is_the_mean_with_a_band_over_seeds() -> None:
    run = example("power_controlled")
    values = np.asarray(run.metrics["own_loss"], np.float64)
    figure = charts.curves([run], "own_loss")
    band, line, nodes = figure.data
    np.testing.assert_allclose(line.y, values.mean(axis=(0, 2)))
    np.testing.assert_array_equal(line.x, run.metrics["epoch"])
    spread = values.mean(axis=2).std(axis=0, ddof=1)
    np.testing.assert_allclose(np.asarray(band.y)[: len(spread)], values.mean(axis=(0, 2)) + spread)
    np.testing.assert_allclose(np.asarray(band.y)[: len(spread) - 1 : -1], values.mean(axis=(0, 2)) - spread)
    assert nodes.visible == "legendonly"
    np.testing.assert_allclose(np.asarray(nodes.y).reshape(NODES, -1)[:, :-1], values.mean(axis=0).T)
    assert nodes.text[0] == "node 0"
    assert nodes.text[-1] == f"node {NODES - 1}"


def test_one_seed_has_no_band() -> None:
    assert len(charts.curves([example("power_controlled", 1)], "own_loss").data) == 2


def test_runs_differ_in_colour_and_dashes() -> None:
    runs = [example(name) for name in ("power_controlled", "mped2fl", "noiseless")]
    lines = [named(charts.curves(runs, "own_loss"), run.name).line for run in runs]
    assert len({line.color for line in lines}) == len({line.dash for line in lines}) == 3


def test_against_channel_uses_a_silent_run_is_left_out() -> None:
    runs = [example(name) for name in ("local_only", "mped2fl")]
    figure = charts.curves(runs, "own_loss", "channel_uses")
    assert {trace.name for trace in figure.data} == {"mped2fl", "mped2fl, nodes"}
    assert named(figure, "mped2fl").x[-1] == 4 * 12  # slots, shared where receivers have no sender in common
    # The colour is the run's in all charts.
    assert named(figure, "mped2fl").line == named(charts.curves(runs, "own_loss"), "mped2fl").line


def test_names_are_shown_as_they_are() -> None:
    run = example("power_controlled", 1, "<b>&lt;")
    assert charts.curves([run], "own_loss").data[0].name == "&lt;b&gt;&amp;lt;"


def test_sent_power_is_on_a_logarithmic_scale_beside_the_budget() -> None:
    runs = [example(name) for name in ("local_only", "power_controlled")]
    figure = charts.sent_power(runs)
    line = named(figure, "power-controlled")
    np.testing.assert_allclose(line.y, runs[1].metrics["sent_power"].mean(("seed", "node")), rtol=1e-6)
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.shapes[0].y0 == 1
    assert not any("local-only" in trace.name for trace in figure.data)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", ["certificate", "per-epoch"])
def test_epsilon_from_the_ledger_is_the_plans(seed: int, target: Any, tmp_path: Path) -> None:
    net = asymmetric_network(seed)
    quadratic = mc.Quadratic.random(net.nodes, dim=2, seed=seed, ball=1.0)
    built = mc.plan(net, quadratic, mc.Budget(epsilon=30.0, target=target), mc.Schedule(epochs=4, step=0.1))
    mc.run(mc.power_controlled(built), quadratic).save(tmp_path / "run")
    run = mc.load_run(tmp_path / "run")
    result = ledger.epsilon_per_epoch(run)
    assert result is not None
    expected = built.epsilon_per_epoch.toarray()
    np.testing.assert_allclose(result.toarray(), expected, rtol=1e-8 if target == "per-epoch" else 1e-9)
    split = ledger.split_of_nodes(run)
    assert split is not None
    np.testing.assert_allclose(split.alpha, built.alpha, rtol=1e-12)
    np.testing.assert_allclose(split.beta, built.beta, rtol=1e-9)
    heat = matrix(run).data[0]
    # Rows receive, columns send.
    np.testing.assert_allclose(np.nan_to_num(np.asarray(heat.z, float)), result.toarray())
    assert (np.isnan(np.asarray(heat.z, float)) == (net.gains.T.toarray() == 0)).all()


def test_the_network_is_the_ledgers() -> None:
    run = example("power_controlled")
    figure = network(run)
    gains = plan().network.gains.tocoo()
    stated = set(next(trace for trace in figure.data if trace.name == "gains").hovertext)
    assert stated == {f"{i} to {j}<br>gain {g:.6g}" for i, j, g in zip(*gains.coords, gains.data, strict=True)}
    nodes = next(trace for trace in figure.data if trace.name == "nodes")
    for node, text in enumerate(nodes.hovertext):
        assert f"alpha {plan().alpha[node]:.6g}, beta {plan().beta[node]:.6g}" in text
    arrows = [mark for mark in figure.layout.annotations if mark.showarrow]
    assert len(arrows) == gains.nnz
    # An arrow ends near its receiver.
    for arrow, sender, receiver in zip(arrows, *gains.coords, strict=True):
        near = np.hypot(np.asarray(nodes.x) - arrow.x, np.asarray(nodes.y) - arrow.y).argmin()
        start = np.hypot(np.asarray(nodes.x) - arrow.ax, np.asarray(nodes.y) - arrow.ay).argmin()
        assert (start, near) == (sender, receiver)


def test_pies_have_the_area_of_the_split() -> None:
    run = example("power_controlled")
    pie = next(trace for trace in network(run).data if "alpha" in trace.name)
    x, y = (np.asarray(side, float).reshape(NODES, -1)[:, :-1] for side in (pie.x, pie.y))
    area = np.abs(np.sum(x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1), axis=1)) / 2
    np.testing.assert_allclose(area / (np.pi * 0.1**2), plan().alpha, rtol=0.01)


def test_a_split_per_link_is_told_on_the_links() -> None:
    """alpha_ij = (c_i / h_ji)^2 / p_j with c_i the weakest arrival."""
    run, net = example("mped2fl"), plan().network
    split = ledger.split_of_links(run)
    assert split is not None
    assert ledger.split_of_nodes(run) is None
    gains = net.gains.toarray()
    arriving = np.where(gains > 0, gains * np.sqrt(net.power)[:, None], np.inf)
    sender, receiver = net.gains.tocoo().coords
    expected = (arriving.min(axis=0)[receiver] / gains[sender, receiver]) ** 2 / net.power[sender]
    np.testing.assert_allclose(split.alpha, expected)
    stated = next(trace for trace in network(run).data if trace.name == "gains").hovertext
    assert all(f"alpha {alpha:.6g}" in text for alpha, text in zip(split.alpha, stated, strict=True))


@pytest.mark.parametrize("name", ["mped2fl", "noiseless", "central_dp", "local_only"])
def test_no_epsilon_where_the_theorem_is_silent(name: str) -> None:
    assert charts.epsilon_matrix(example(name)) is None


@pytest.mark.parametrize("name", ["central_dp", "local_only"])
def test_no_network_without_links(name: str) -> None:
    assert charts.network(example(name)) is None


def test_without_noise_nothing_is_spent_on_it() -> None:
    split = ledger.split_of_nodes(example("noiseless"))
    assert split is not None
    assert not split.beta.any()
    np.testing.assert_allclose(split.alpha, plan().alpha)


def large(nodes: int) -> mc.Result:
    """A run on a large network, its ledger made for it."""
    run = example("power_controlled", 1)
    gains: csr_array = mc.topologies.ring(nodes, seed=1).gains
    sender, receiver = gains.tocoo().coords
    ones = np.ones((1, nodes))
    generator = np.random.default_rng(0)
    kept = xr.Dataset(
        {
            "power": ("node", ones[0]),
            "sensitivity": ("node", ones[0]),
            "promised_mu": ("node", ones[0]),
            "model_sending_amplitude": (("always", "node"), np.sqrt(generator.uniform(0.2, 0.8, (1, nodes)))),
            "model_sending_noise": (("always", "node"), ones),
            "model_receiving_z": (("always", "node"), ones / nodes),
            "model_sender": ("model_link", sender),
            "model_receiver": ("model_link", receiver),
            "model_gain": ("model_link", gains.data),
        },
        attrs=run.ledger.attrs,
    )
    metrics = run.metrics.isel(node=np.arange(nodes) % NODES).assign_coords(node=np.arange(nodes))
    return mc.Result(metrics=metrics, ledger=kept, published=run.published, info=run.info)


@pytest.mark.parametrize("nodes", [40, 200, 2000])
def test_large_networks_stay_small_on_the_page(nodes: int) -> None:
    run = large(nodes)
    for figure in (network(run), matrix(run), charts.curves([run], "own_loss")):
        assert len(figure.to_json()) < 1_500_000
        assert len(figure.data) < 10
    kinds = [trace.type for trace in (*network(run).data, *matrix(run).data)]
    assert ("heatmap" in kinds) == (nodes <= 500)
    assert ("bar" in kinds) == (nodes > 500)


def test_a_run_that_diverged_is_drawn_without_complaint() -> None:
    wild = mc.plan(
        plan().network,
        mc.Quadratic.random(NODES, dim=3, seed=1, clipping="none"),
        mc.Budget(epsilon=8.0),
        mc.Schedule(epochs=30, step=1e30, decay="constant"),
    )
    run = mc.run(mc.noiseless(wild), wild.problem, seeds=range(2))  # type: ignore[arg-type]
    assert not np.isfinite(run.final("own_loss")).any()
    assert "NaN" not in charts.curves([run, example("power_controlled")], "own_loss").to_json()
