"""The page and the plots of a ranking: what stands where, and names that stay text."""

import re
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.reports import plots, ranking_plots
from murmurcast.reports import ranking as pages
from murmurcast.reports.page import Cell
from murmurcast.runs.ranking import NOBODY, TRUSTED, LeftOut, Ranking, Score, Trial


def score(method: str, mean: float, against: str = "everybody", epsilon: float | None = 1.0, uses: int = 40) -> Score:
    return Score(
        method=method,
        against=against,
        epsilon=epsilon,
        certified=epsilon,
        uses=uses,
        uses_per_epoch=2,
        epochs=uses // 2,
        step=0.1,
        decay="constant",
        options={"shared_to_own": 10.0} if method == "decor" else {},
        at_edge=method == "mped2fl",
        by_seed=(mean - 0.01, mean + 0.01),
        by_node=(mean - 0.1, mean, mean + 0.1),
        trials=(Trial(0.1, "constant", {}, mean),),
    )


def ranking(metric: str = "accuracy") -> Ranking:
    scores = [
        one
        for epsilon in (1.0, 3.0)
        for uses in (40, 200)
        for one in (
            score("power-controlled", 0.30, epsilon=epsilon, uses=uses),
            score("private-exact-diffusion", 0.45, epsilon=epsilon, uses=uses),
            score("mped2fl", 0.09, epsilon=epsilon, uses=uses),
            score("decor", 0.28, epsilon=epsilon, uses=uses),
            score("decor", 0.60, "eavesdropper", epsilon, uses),
            score("central-dp", 0.80, TRUSTED, epsilon, uses),
        )
    ]
    scores += [score("dsgd", 0.7, NOBODY, None, uses) for uses in (40, 200)]
    return Ranking(
        name="sparse",
        metric=metric,
        unit="record",
        records_per_person=1,
        delta=1e-5,
        nodes=3,
        seeds=2,
        epsilons=(1.0, 3.0),
        uses=(40, 200),
        scores=tuple(scores),
        left_out=(LeftOut("dwfl", "needs a complete network"),),
    )


def words(row: tuple[str | Cell, ...]) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


def test_the_page_has_every_adversary_the_terms_and_the_warning() -> None:
    page = pages.page_of(ranking())
    assert "Settings chosen on this data, not paid: a comparison, not a release." in page
    for title in ("Against everybody", "Against eavesdropper", "No privacy", "Terms"):
        assert f"<h2>{title}</h2>" in page
    assert "Against eavesdropper and one node" not in page  # nobody was made for that one
    assert "epsilon 3 (delta 1e-05, unit record) against everybody, 200 uses" in page
    assert "needs a complete network" in page
    assert page.count('class="plot"') == 2 + 2  # a chart per epsilon, one per adversary


def test_names_of_methods_stay_text() -> None:
    named = ranking()
    evil = named._replace(scores=tuple(one._replace(method="<b>$x$") for one in named.scores if one.method == "decor"))
    page = pages.page_of(evil)
    assert "<b>$x$" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    ranking_plots.uses_figure(evil).canvas.draw()
    ranking_plots.adversaries_figure(evil).canvas.draw()


def test_rows_have_a_place_epochs_and_what_was_chosen() -> None:
    result = ranking()
    rows = [words(row) for row in pages.cells(result, result.table("everybody", 1.0, 40))]
    assert [row[:2] for row in rows] == [
        ["1", "private-exact-diffusion"],
        ["2", "power-controlled"],
        ["3", "decor"],
        ["4", "mped2fl"],
    ]
    assert rows[2][-2:] == ["20 x 2", "constant 0.1, shared_to_own 10"]
    assert rows[3][-1] == "constant 0.1, end of the grid"
    assert rows[0][2:7] == ["0.450", "0.014", "0.350", "1", "everybody"]
    assert len(rows[0]) == len(pages.headings(result))
    (ceiling,) = pages.cells(result, result.ceiling(1.0, 40), ranked=False)
    assert words(ceiling)[0] == ""
    (free,) = pages.cells(result, result.unprotected(40), ranked=False)
    assert words(free)[5:7] == ["none", "nobody"]


def test_leaders_say_whether_they_are_clearly_ahead() -> None:
    result = ranking()
    rows = [words(row) for row in pages.leaders(result)]
    assert len(rows) == 2 * 2 * 2
    assert rows[0] == [
        *("everybody", "1", "40", "private-exact-diffusion", "0.450"),
        *("power-controlled", "0.300", "yes"),
    ]
    assert rows[4][0] == "eavesdropper"
    assert rows[4][3] == "decor"
    close = score("a", 0.4), score("b", 0.401)
    assert not pages.clearly_ahead(*close)
    alone = close[0]._replace(by_seed=(0.9,))
    assert not pages.clearly_ahead(alone, close[1])  # one seed shows nothing
    assert pages.clearly_ahead(close[0], close[1]._replace(by_seed=(np.nan, 0.4)))


def test_one_method_alone_leads_and_nobody_is_next() -> None:
    result = ranking()
    only = result._replace(scores=(score("decor", 0.2),), epsilons=(1.0,), uses=(40,))
    assert [words(row)[3:] for row in pages.leaders(only)] == [["decor", "0.200", "-", "-", "-"]]


def test_a_panel_per_epsilon_with_every_line_named() -> None:
    figure = ranking_plots.uses_figure(ranking())
    assert [axes.get_title() for axes in figure.axes] == [
        "epsilon 1, delta 1e-05, unit record",
        "epsilon 3, delta 1e-05, unit record",
    ]
    for axes in figure.axes:
        named = {text.get_text() for text in axes.texts}
        assert {"power-controlled", "decor", "decor (eavesdropper)", "central-dp (server)"} <= named
        places = sorted(text.get_position()[1] for text in axes.texts)
        assert np.diff(places).min() > 0.01  # none over another


def test_bars_are_sorted_and_named_in_every_panel() -> None:
    figure = ranking_plots.adversaries_figure(ranking())
    assert len(figure.axes) == 2 * 4
    first = figure.axes[0]
    assert [text.get_text() for text in first.get_yticklabels()] == [
        *("private-exact-diffusion", "power-controlled", "decor", "mped2fl")
    ]
    widths = [bar.get_extents().width for bar in first.patches]
    assert widths == sorted(widths, reverse=True)
    assert "against everybody" in first.get_title(loc="left")
    assert "trusted server" in {text.get_text() for text in first.texts}


def test_what_diverged_is_not_drawn() -> None:
    result = ranking()
    lost = result._replace(
        scores=tuple(
            one._replace(by_seed=(np.nan, 0.1)) if one.method == "power-controlled" else one for one in result.scores
        )
    )
    ticks = ranking_plots.adversaries_figure(lost).axes[0].get_yticklabels()
    assert "power-controlled" not in {text.get_text() for text in ticks}
    assert "power-controlled" not in {text.get_text() for text in ranking_plots.uses_figure(lost).axes[0].texts}
    assert pages.page_of(lost)


@pytest.mark.parametrize("gap", [0.01, 0.1, 0.5])
def test_labels_keep_their_order_and_their_distance(gap: float) -> None:
    wanted = np.array([0.1, 0.11, 0.11, 0.3, 0.9, 0.9])
    places = ranking_plots._apart(wanted, gap, (0.0, 10.0))
    assert (np.diff(places) >= gap * (1 - 1e-9)).all()
    assert places.min() >= -1e-12
    if gap == 0.01:
        assert np.abs(places - wanted).max() <= 2 * gap


def test_nothing_that_promises_leaves_nothing_to_draw(tmp_path: Path) -> None:
    result = ranking()
    free = result._replace(scores=tuple(one for one in result.scores if one.against == NOBODY))
    with pytest.raises(mc.Error, match="nothing to draw"):
        ranking_plots.uses_figure(free)
    assert {path.name for path in pages.write(free, tmp_path)} == {"ranking.html", "ranking.json"}


@pytest.mark.slow
def test_all_files_are_written_and_a_stranger_is_not_overwritten(tmp_path: Path) -> None:
    written = pages.write(ranking("loss"), tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    assert {path.suffix for path in written} == {".html", ".json", ".png", ".pdf"}
    pages.write(ranking("loss"), tmp_path)
    (tmp_path / "ranking.html").write_text("somebody else's")
    with pytest.raises(mc.Error, match="not a murmurcast report"):
        pages.write(ranking("loss"), tmp_path)
    plots.require_format(Path("uses.pdf"))
