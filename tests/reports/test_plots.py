"""Figures hold what they say."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from murmurcast.data import datasets
from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.solve import plan
from murmurcast.privacy.rounding import at_most_fixed
from murmurcast.reports import plots
from tests.conftest import asymmetric_network


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for axes in figure.axes for text in axes.texts}


def test_every_gain_and_epsilon_is_written() -> None:
    network = asymmetric_network(3, nodes=4)
    budget = Budget(epsilon=2.0, target="per-epoch")
    built = plan(network, ClippedGradients(clip=0.1), budget, Schedule(epochs=10))
    figure = plots.plan_figure(built)
    figure.canvas.draw()
    written = texts(figure)
    for gain in network.gains.data:
        assert (f"{gain:.2f}".lstrip("0") if gain < 1 else f"{gain:.2f}") in written
    for epsilon in built.epsilon_per_epoch.data:
        assert at_most_fixed(epsilon, 2) in written
    frames = [patch for patch in figure.axes[1].patches if patch.get_linewidth() == 2.5]
    assert len(frames) == (built.epsilon_per_epoch.data >= 2.0 * (1 - 1e-6)).sum() > 0


@pytest.mark.parametrize("nodes", [40, 600])
def test_large_networks_can_be_drawn(nodes: int, tmp_path: Path) -> None:
    network = topologies.ring(nodes)
    built = plan(network, ClippedGradients(), Budget(epsilon=1.0), Schedule(epochs=5), z="perron")
    plots.save(plots.plan_figure(built), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_network_without_positions_and_without_split(tmp_path: Path) -> None:
    plots.save(plots.network_figure(asymmetric_network(1)), tmp_path / "a.svg")
    first = (tmp_path / "a.svg").read_bytes()
    plots.save(plots.network_figure(asymmetric_network(1)), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == first


def test_every_count_of_a_small_partition_is_written() -> None:
    partition = datasets.digits().partition("sorted", nodes=4)
    figure = plots.partition_figure(partition)
    figure.canvas.draw()
    sizes, labels = figure.axes
    assert [text.get_text() for text in sizes.texts] == [str(size) for size in partition.sizes]
    # Column by column: node first, so that a transposed table cannot pass.
    placed = {(text.get_position()[0], text.get_position()[1]): text.get_text() for text in labels.texts}
    assert placed == {(node, label): str(n) for (node, label), n in np.ndenumerate(partition.table) if n}


@pytest.mark.parametrize(("name", "nodes"), [("digits", 60), ("digits", 1000), ("least-squares", 4)])
def test_larger_partitions_and_values_can_be_drawn(name: str, nodes: int, tmp_path: Path) -> None:
    figure = plots.partition_figure(datasets.load(name).partition("iid", nodes))
    plots.save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5_000
    assert len(figure.axes) == (3 if name == "digits" else 1)  # sizes, labels, colour bar


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Error, match="not a plot"):
        plots.save(plots.network_figure(asymmetric_network(1)), tmp_path / "a.bmp")
