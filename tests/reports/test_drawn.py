"""Plots show in a notebook by themselves."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

import murmurcast as mc
from murmurcast.reports.drawn import Drawn
from tests.conftest import asymmetric_network
from tests.reports.examples import example, plan
from tests.reports.sweeps import sweep

PNG = b"\x89PNG\r\n\x1a\n"


def figures() -> list[Figure]:
    network = asymmetric_network(7, nodes=5)
    data = mc.datasets.digits().partition("sorted", nodes=3)
    return [
        mc.figures.network_figure(network),
        mc.figures.plan_figure(plan()),
        mc.figures.partition_figure(data),
        mc.figures.curves_figure([example("power_controlled")], "own_loss"),
        mc.figures.sweep_figure(sweep()),
    ]


@pytest.mark.slow
def test_every_plot_shows_itself_at_the_size_it_is_meant() -> None:
    for figure in figures():
        assert isinstance(figure, Drawn)
        picture, meant = figure._repr_png_()
        assert picture.startswith(PNG)
        width, height = figure.get_size_inches()
        assert meant == {"width": round(96 * width), "height": round(96 * height)}


@pytest.mark.slow
def test_the_picture_is_sharp_and_not_empty(tmp_path: Path) -> None:
    picture, meant = mc.figures.network_figure(asymmetric_network(7, nodes=5))._repr_png_()  # type: ignore[attr-defined]
    (tmp_path / "n.png").write_bytes(picture)
    pixels = imread(tmp_path / "n.png")
    assert pixels.shape[1] == pytest.approx(2 * meant["width"], abs=2)
    assert np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0).shape[0] > 50


@pytest.mark.slow
def test_no_backend_is_chosen_and_no_window_opened() -> None:
    """pyplot chooses a backend when it is imported: nothing here imports it."""
    code = (
        "import sys, murmurcast as mc\n"
        "figure = mc.figures.network_figure(mc.topologies.ring(5, seed=1))\n"
        "assert figure._repr_png_()[0].startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ipython_shows_it_without_magic() -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    built, meant = formatters.DisplayFormatter().format(mc.figures.network_figure(asymmetric_network(7, nodes=5)))
    assert built["image/png"].startswith(PNG)
    assert meant["image/png"]["width"] == 538
