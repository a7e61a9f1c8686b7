"""The page, the table and the plots of a sweep say what its runs say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.errors import Error
from murmurcast.reports import sweep as page
from murmurcast.reports import sweep_table
from murmurcast.reports.plots import save, sweep_figure
from murmurcast.reports.sweep_lines import default_axis, view
from tests.reports.examples import sampled
from tests.reports.sweeps import sweep, with_failure

METRIC = "published_loss"


@pytest.mark.slow
def test_lines_are_means_and_bands_over_seeds() -> None:
    result = sweep()
    shown = view(result, METRIC)
    assert shown.against == "privacy.epsilon"
    assert shown.values == [1.0, 2.0, 8.0]
    (panel,) = shown.panels
    assert [line.name for line in panel.lines] == ["power-controlled", "mped2fl"]
    line = panel.lines[1]
    assert line.x == [1.0, 2.0, 8.0]
    final = result["epsilon-2_mped2fl"].final(METRIC).mean(axis=1)
    assert line.mean[1] == pytest.approx(final.mean())
    assert line.spread[1] == pytest.approx(final.std(ddof=1))


@pytest.mark.slow
def test_against_another_key_budgets_have_shades_and_methods_hues() -> None:
    result = sweep(steps=(0.05, 0.1, 0.2))
    shown = view(result, METRIC, "schedule.step")
    (panel,) = shown.panels
    assert len(panel.lines) == 6
    assert len({line.style.light for line in panel.lines}) == 6
    assert {line.style.dash for line in panel.lines} == {"solid"}
    assert panel.lines[0].name == "power-controlled, epsilon 1"


def test_a_third_key_makes_dashes_and_a_fourth_panels() -> None:
    result = sweep(steps=(0.05, 0.1), network_seed=(1, 2, 3), epsilons=(1.0, 2.0), data_partition=("iid", "sorted"))
    shown = view(result, METRIC)
    assert [panel.title for panel in shown.panels] == [
        f"network seed {seed}, partition {rule}" for seed in (1, 2, 3) for rule in ("iid", "sorted")
    ]
    for panel in shown.panels:
        assert len({(line.style.light, line.style.dash) for line in panel.lines}) == 4
    every = [line.name for panel in shown.panels for line in panel.lines]
    assert set(every) == {f"{name}, step {step}" for name in ("power-controlled", "mped2fl") for step in (0.05, 0.1)}


def test_too_many_panels_are_refused_and_the_page_says_so() -> None:
    seeds = tuple(range(7))
    result = sweep(("mped2fl",), (1.0, 2.0), (0.05, 0.1), network_seed=seeds, data_seed=(1, 2))
    with pytest.raises(Error, match="14 panels"):
        view(result, METRIC)
    assert "Not drawn against" in page.page_of(result)


def test_points_that_were_drawn_are_not_joined() -> None:
    result = sweep(steps=(0.05, 0.07, 0.11), drawn=("schedule.step",), epsilons=(2.0,))
    shown = view(result, METRIC, "schedule.step")
    assert shown.is_drawn
    assert [line.name for line in shown.panels[0].lines] == ["power-controlled", "mped2fl"]
    axes = sweep_figure(result, METRIC, "schedule.step").axes[0]
    assert {line.get_linestyle() for line in axes.get_lines()} == {"None"}


def test_words_have_places_of_their_own() -> None:
    result = sweep()
    shown = view(result, METRIC, "algorithm.name")
    assert not shown.is_numeric
    axes = sweep_figure(result, METRIC, "algorithm.name").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["power-controlled", "mped2fl"]


def test_what_is_drawn_by_default() -> None:
    assert default_axis(sweep()) == "privacy.epsilon"
    assert default_axis(sweep(epsilons=(1.0,), steps=(0.05, 0.1))) == "schedule.step"
    assert default_axis(sweep(epsilons=(1.0,))) == "privacy.epsilon"


def test_figures_are_saved_and_names_are_only_names(tmp_path: Path) -> None:
    result = sweep(algorithms=("power-controlled", "mped2fl"), data_name=("_$x$.csv", "<b>.csv"))
    for name in ("a.png", "a.pdf", "a.svg"):
        save(sweep_figure(result), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    legend = sweep_figure(result).legends[0]
    assert [text.get_text() for text in legend.get_texts()][:2] == [
        "power-controlled, data _$x$.csv",
        "power-controlled, data <b>.csv",
    ]


def test_unknown_metrics_and_keys_are_refused() -> None:
    with pytest.raises(Error, match="published_los") as caught:
        sweep_figure(sweep(), "published_los")
    assert "published_loss" in caught.value.hint
    with pytest.raises(Error, match=r"schedule\.epochs"):
        sweep_figure(sweep(), METRIC, "schedule.epochs")


def test_the_table_has_a_row_for_every_point_in_order() -> None:
    result = sweep(epsilons=(8.0, 1.0, 2.0))
    rows = sweep_table.cells(result, METRIC)
    texts = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in rows]
    assert [row[:2] for row in texts] == [[e, n] for e in ("1", "2", "8") for n in ("power-controlled", "mped2fl")]
    assert sweep_table.headings(result, METRIC)[:3] == ("epsilon", "algorithm", METRIC)
    run = result["epsilon-2_mped2fl"]
    by_hand = run.final(METRIC)
    assert texts[3][2:5] == [
        f"{by_hand.mean():.4f}",
        f"{by_hand.mean(axis=1).std(ddof=1):.4f}",
        f"{by_hand.mean(axis=0).max():.4f}",
    ]
    assert texts[2][-1] == "2"
    assert "epsilon" not in sweep_table.headings(result, "own_loss")[2:]


def test_the_page_shows_points_promises_and_what_failed() -> None:
    result = with_failure(sweep(), "epsilon-1_mped2fl", "no split meets <the> budget")
    text = page.page_of(result)
    assert "Whoever chooses by this page: settings chosen on this data, not paid" in text
    assert "5 of 6 points, 3 seeds each" in text
    assert "no split meets &lt;the&gt; budget" in text
    assert text.count("<caption>What is promised</caption>") == 1
    # The warning, and that a point failed; no box for every run.
    assert text.count('class="verdict') == 2
    assert 'id="chart-axis-0-0"' in text


@pytest.mark.slow
def test_no_two_curves_of_a_page_look_the_same() -> None:
    text = page.page_of(sweep(steps=(0.05, 0.1), seeds=2))
    specs = re.findall(r'<script type="application/json">(.*?)</script>', text)
    assert len(specs) > 3
    for spec in map(json.loads, specs):
        lines = [one for one in spec["data"] if one.get("showlegend", True)]
        looks = [(one["line"]["color"], one["line"]["dash"], one.get("marker", {}).get("symbol")) for one in lines]
        assert len(set(looks)) == len(looks) > 1
        assert all(colour.startswith("var(--either-") for colour, *_ in looks)


def test_an_epsilon_stands_only_where_the_account_holds() -> None:
    result = sweep()
    run = result["epsilon-1_power-controlled"]
    forged = mc.Result(**vars(run) | {"ledger": run.ledger.assign(promised_mu=run.ledger["promised_mu"] / 3)})
    text = page.page_of(mc.Sweep(**vars(result) | {"runs": result.runs | {"epsilon-1_power-controlled": forged}}))
    assert "epsilon-1_power-controlled is not certified" in text


def test_nothing_done_is_nothing_to_show() -> None:
    result = sweep(epsilons=(1.0,), algorithms=("mped2fl",))
    empty = mc.Sweep(**vars(result) | {"runs": {}, "epsilons": {}})
    with pytest.raises(Error, match="is done"):
        page.page_of(empty)
    with pytest.raises(Error, match="nothing to draw"):
        view(empty, METRIC, "privacy.epsilon")


def test_the_data_set_is_a_grid_with_gaps() -> None:
    result = with_failure(sweep(), "epsilon-1_mped2fl", "no")
    assert result.data["final_published_loss"].dims == ("privacy.epsilon", "algorithm.name", "seed")
    gap = result.data.sel({"privacy.epsilon": 1.0, "algorithm.name": "mped2fl"})
    assert np.isnan(gap["published_loss"]).all()
    assert not np.isnan(result.data["published_loss"].sel({"privacy.epsilon": 2.0})).any()
    assert len(result.to_frame()) == 5 * 3


def test_a_sample_of_nodes_is_said_below_the_tables() -> None:
    small = sweep(epsilons=(2.0,))
    large = mc.Sweep(**vars(small) | {"runs": {name: sampled(run, 1, 3) for name, run in small.runs.items()}})
    line = "etrics are of a public sample of 2 of 4 nodes"
    assert sweep_table.note(large) == f"{sweep_table.NOTE}\nm{line}"
    assert all(f"M{line}." in shown.note for shown in page.tables(large))
    assert sweep_table.note(small) == sweep_table.NOTE
    assert not any("sample" in shown.note for shown in page.tables(small))
