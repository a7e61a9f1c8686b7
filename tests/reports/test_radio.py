"""Pages and plots of runs over a radio: against seconds and joules, and what the radio was."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import murmurcast as mc
from murmurcast.reports import charts, cost_axes, ledger, plots, radio
from murmurcast.reports.page import Cell, Table
from murmurcast.reports.runs import page_of
from tests.runs.over_radio import DIM, EPOCHS, aligned, own_slot, plain

RUNS = (plain, own_slot, aligned)


def runs() -> list[mc.Result]:
    return [make() for make in RUNS]


def axes_titles(figure: Figure) -> list[str]:
    return [axes.get_xlabel() for axes in figure.axes]


@pytest.mark.slow
def test_axes_are_those_that_runs_have() -> None:
    assert cost_axes.shown([plain()]) == ("epoch", "channel_uses")
    assert cost_axes.shown(runs()) == ("epoch", "channel_uses", "air_seconds", "joules")
    assert cost_axes.along(plain(), "air_seconds") is None
    assert cost_axes.along(plain(), "joules") is None
    result = cost_axes.along(own_slot(), "joules")
    assert result is not None
    np.testing.assert_allclose(result, 1e3 * own_slot().metrics["joules"].mean("node"))


@pytest.mark.slow
def test_titles_have_units_and_say_what_is_counted() -> None:
    assert cost_axes.title([own_slot()], "air_seconds") == "time on the air, s"
    assert cost_axes.title([aligned()], "air_seconds") == "time, s (on the air and computing)"
    assert cost_axes.title([own_slot()], "joules") == "energy of a node, mJ (radiated only)"
    assert cost_axes.title([aligned()], "joules").endswith("(radiated, and circuits and gradients as given)")
    assert cost_axes.title(runs(), "joules") == "energy of a node, mJ"
    assert cost_axes.title(runs(), "channel_uses") == "channel uses"


@pytest.mark.slow
def test_far_apart_is_drawn_on_a_logarithmic_scale() -> None:
    assert not cost_axes.is_logarithmic([own_slot()], "air_seconds")
    assert cost_axes.is_logarithmic(runs(), "air_seconds")  # computing takes a thousand times as long
    assert not cost_axes.is_logarithmic(runs(), "channel_uses")
    assert charts.curves(runs(), "own_loss", "air_seconds").layout.xaxis.type == "log"
    assert charts.curves([own_slot()], "own_loss", "air_seconds").layout.xaxis.type is None


@pytest.mark.parametrize("against", ["air_seconds", "joules"])
def test_a_chart_leaves_runs_without_a_radio_out(against: Any) -> None:
    figure = charts.curves(runs(), "own_loss", against)
    names = {trace.name for trace in figure.data}
    assert names == {"own-slot", "own-slot, nodes", "aligned", "aligned, nodes"}
    line = next(trace for trace in figure.data if trace.name == "own-slot" and trace.showlegend is None)
    used = cost_axes.along(own_slot(), against)
    assert used is not None
    np.testing.assert_allclose(line.x, used)
    np.testing.assert_allclose(line.y, own_slot().metrics["own_loss"].mean(("seed", "node")), rtol=1e-6)
    assert figure.layout.xaxis.title.text == cost_axes.title(runs(), against)


def test_a_plot_for_everything_that_runs_take(tmp_path: Path) -> None:
    figure = plots.curves_figure(runs(), "own_loss")
    titles = ["epochs", "channel uses", "time, s (on the air and computing)", "energy of a node, mJ"]
    assert axes_titles(figure) == titles
    assert [len(axes.get_lines()) for axes in figure.axes] == [3, 3, 2, 2]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["plain", "own-slot", "aligned"]
    plots.save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert axes_titles(plots.curves_figure([plain()], "own_loss")) == titles[:2]


def test_one_plot_by_choice_names_the_runs_that_are_in_it() -> None:
    figure = plots.curves_figure(runs(), "own_loss", against=["joules"])
    assert axes_titles(figure) == ["energy of a node, mJ"]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["own-slot", "aligned"]


def test_power_is_that_of_a_symbol() -> None:
    assert ledger.power_share(plain()) == 1
    assert ledger.power_share(own_slot()) == 2 / DIM
    figure = charts.sent_power([own_slot()])
    line = next(trace for trace in figure.data if trace.name == "own-slot" and trace.showlegend is None)
    np.testing.assert_allclose(line.y, 2 / DIM * own_slot().metrics["sent_power"].mean(("seed", "node")), rtol=1e-6)
    assert figure.layout.yaxis.title.text == "mean power of a symbol over budget"
    assert charts.sent_power([plain()]).layout.yaxis.title.text == "energy of a message over budget"
    assert charts.sent_power(runs()).layout.yaxis.title.text == "power over budget"


def test_the_table_says_what_the_radio_was() -> None:
    assert radio.blocks(plain()) == []
    used = aligned().radio
    table, text = radio.blocks(aligned())
    assert isinstance(table, Table)
    assert used is not None
    rows: dict[Any, tuple[Any, ...]] = {row[0]: row[1:] for row in table.rows}
    assert rows["access"][0] == "aligned"
    assert rows["duplex"] == ("full", "a node hears while it sends")
    assert rows["power"][0] == "10 to 20 dBm"
    assert rows["bandwidth"] == ("1 MHz", "at 2.4 GHz")
    assert rows["fading"] == ("iid", "gains are new in every epoch")
    assert rows["slots of a round"][1] == "each as long as one message, in 2 rounds of an epoch"
    assert isinstance(rows["time of the run"][0], Cell)
    assert rows["time of the run"][0].value == pytest.approx(EPOCHS * used.seconds)
    assert rows["energy of the run"][0].value == pytest.approx(EPOCHS * used.joules.mean())
    assert "computing" in rows["time of an epoch"][1]
    assert "does not depend on the radio" in str(text)


def test_the_page_has_it_all() -> None:
    page = page_of(runs())
    for name in ("chart-channel-uses", "chart-air-seconds", "chart-joules"):
        assert f'id="{name}"' in page
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]+>", " ", body))
    assert words.count("What the run promises does not depend on the radio") == 2
    assert "its theorem is about an ideal channel" in words
    assert "against energy. A run without a radio is left out." in words
    assert "Over a radio: mean power of a symbol over the power budget p" in words
    assert "chart-joules" not in page_of([plain()])
    table = re.search(r"<caption>At the end, published distance</caption>(.*?)</table>", body, re.DOTALL)
    assert table is not None
    assert re.findall(r"<th[^>]*>(s|mJ)</th>", table[1]) == ["s", "mJ"]
