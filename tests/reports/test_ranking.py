<<<<<<< HEAD
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
    found = ranking()
    rows = [words(row) for row in pages.cells(found.table("everybody", 1.0, 40))]
    assert [row[:2] for row in rows] == [
        ["1", "private-exact-diffusion"],
        ["2", "power-controlled"],
        ["3", "decor"],
        ["4", "mped2fl"],
    ]
    assert rows[2][-2:] == ["20 x 2", "constant 0.1, shared_to_own 10"]
    assert rows[3][-1] == "constant 0.1, end of the grid"
    assert rows[0][2:7] == ["0.450", "0.014", "0.350", "1", "everybody"]
    assert len(rows[0]) == len(pages.headings(found))
    (ceiling,) = pages.cells(found.ceiling(1.0, 40), ranked=False)
    assert words(ceiling)[0] == ""
    (free,) = pages.cells(found.unprotected(40), ranked=False)
    assert words(free)[5:7] == ["none", "nobody"]


def test_leaders_say_whether_they_are_clearly_ahead() -> None:
    found = ranking()
    rows = [words(row) for row in pages.leaders(found)]
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
    found = ranking()
    only = found._replace(scores=(score("decor", 0.2),), epsilons=(1.0,), uses=(40,))
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
    found = ranking()
    lost = found._replace(
        scores=tuple(
            one._replace(by_seed=(np.nan, 0.1)) if one.method == "power-controlled" else one for one in found.scores
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
    found = ranking()
    free = found._replace(scores=tuple(one for one in found.scores if one.against == NOBODY))
    with pytest.raises(mc.Error, match="nothing to draw"):
        ranking_plots.uses_figure(free)
    assert {path.name for path in pages.write(free, tmp_path)} == {"ranking.html", "ranking.json"}


def test_all_files_are_written_and_a_stranger_is_not_overwritten(tmp_path: Path) -> None:
    written = pages.write(ranking("loss"), tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    assert {path.suffix for path in written} == {".html", ".json", ".png", ".pdf"}
    pages.write(ranking("loss"), tmp_path)
    (tmp_path / "ranking.html").write_text("somebody else's")
    with pytest.raises(mc.Error, match="not a murmurcast report"):
        pages.write(ranking("loss"), tmp_path)
    plots.require_format(Path("uses.pdf"))
=======
"""The page of a ranking: rows, leaders, words, and numbers in full."""

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from murmurcast._json import json_text
from murmurcast.errors import Error
from murmurcast.reports import ranking as pages
from murmurcast.reports.page import Cell
from murmurcast.runs.ranking import NOT_PAID, LeftOut, Ranking
from tests.reports.test_page import EVIL, Tree
from tests.runs.rankings import EAVESDROPPER, EPSILONS, EVERYBODY, USES, full, ranking, score

CHART = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)


def texts(row: tuple[str | Cell, ...]) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


def charts(page: str) -> list[dict[str, Any]]:
    found = [json.loads(text) for text in CHART.findall(page)]
    return [one for one in found if "data" in one and "layout" in one]


@pytest.fixture(scope="module")
def page() -> str:
    return pages.page_of(full())


def test_a_row_has_a_cell_under_every_heading() -> None:
    one = score("any", 0.5, options={"shared_to_own": 3.0}, at_edge=True)
    found = ranking(one)
    (row,) = pages.cells(found, (one,))
    assert len(row) == len(pages.headings(found)) == len(pages.HEADINGS)
    shown = dict(zip(pages.headings(found), texts(row), strict=True))
    assert shown == {
        "": "1",
        "method": "any",
        "accuracy": "0.500",
        "spread": "0.014",
        "worst node": "0.300",
        "epsilon": "2",
        "against": EVERYBODY,
        "epochs x uses": "20 x 2",
        "step": "sqrt 0.125, shared_to_own 3, end of the grid",
    }
    assert [cell.value for cell in row if isinstance(cell, Cell)][:2] == [one.mean, one.spread]


def test_a_promised_epsilon_is_rounded_up_and_kept_in_full() -> None:
    one = score("any", 0.5, certified=1.00001)
    cell = pages.cells(ranking(one), (one,))[0][5]
    assert isinstance(cell, Cell)
    assert float(cell.text) > 1.00001
    assert cell.value == 1.00001


def test_the_worst_node_has_the_least_accuracy_or_the_most_loss() -> None:
    one = score("any", 0.5, by_node=(0.4, 0.1, 0.9))
    for metric, worst in (("accuracy", 0.1), ("loss", 0.9)):
        cell = pages.cells(ranking(one, metric=metric), (one,))[0][4]
        assert cell == Cell(f"{worst:.3f}", worst)


def test_rows_without_place_seeds_or_promise_say_so() -> None:
    one = score("any", 0.5, certified=None, epsilon=None, by_seed=(0.5,))
    row = texts(pages.cells(ranking(one), (one,), ranked=False)[0])
    assert (row[0], row[3], row[5]) == ("", "", "none")
    places = [row[0] for row in pages.cells(full(), full().table(EVERYBODY, 2.0, 40))]
    assert places == ["1", "2", "3"]


def test_who_leads_and_who_is_next_stands_for_every_budget() -> None:
    found = full()
    rows = [texts(row) for row in pages.leaders(found)]
    assert [tuple(row[:3]) for row in rows] == [
        (against, f"{epsilon:g}", str(uses)) for against in found.adversaries for epsilon in EPSILONS for uses in USES
    ]
    assert all(len(row) == len(pages.LEADING) for row in rows)
    assert rows[3][3:] == ["power-controlled", "0.650", "slow", "0.450", "yes"]
    assert rows[-1][3:] == ["paired", "0.850", "power-controlled", "0.650", "yes"]
    heads = pages.headings(found, pages.LEADING)
    assert heads[:2] == ("against", "epsilon (unit record)")
    assert heads[4] == heads[6] == "accuracy"


def test_nobody_is_next_to_a_method_that_is_alone_and_what_diverged_does_not_lead() -> None:
    lost = score("lost", 0.9, by_seed=(math.nan, 1.0))
    (row,) = pages.leaders(ranking(score("alone", 0.5), lost))
    assert texts(row)[3:] == ["alone", "0.500", "-", "-", "-"]
    assert pages.leaders(ranking(lost)) == []


def test_two_means_are_apart_by_two_standard_errors_of_their_difference() -> None:
    """Two seeds m - 0.01 and m + 0.01: a spread of 0.01 sqrt(2), an error of the difference of 0.01 sqrt(2)."""
    first = score("first", 0.5)
    bound = 2 * 0.01 * math.sqrt(2)
    assert pages.clearly_ahead(first, score("other", 0.5 - bound * 1.01))
    assert not pages.clearly_ahead(first, score("other", 0.5 - bound * 0.99))
    assert pages.clearly_ahead(first, score("other", 0.5 + bound * 1.01))
    assert not pages.clearly_ahead(score("one seed", 0.9, by_seed=(0.9,)), score("other", 0.1))
    assert not pages.clearly_ahead(first, score("one seed", 0.1, by_seed=(0.1,)))
    more = tuple(0.47 + 0.01 * sign for sign in (1, -1) * 50)
    assert pages.clearly_ahead(first._replace(by_seed=(0.49, 0.51) * 50), score("other", 0.0, by_seed=more))


def test_the_page_is_well_formed_and_asks_for_nothing(page: str) -> None:
    tree = Tree(page)
    assert not any("src" in attributes for tag, attributes in tree.tags if tag == "script")
    anchors = {attributes["id"] for tag, attributes in tree.tags if attributes.get("id")}
    for _, attributes in tree.tags:
        target = attributes.get("href")
        assert target is None or not target.startswith("#") or target[1:] in anchors
    assert {"summary", "everybody", "eavesdropper-and-one-node", "eavesdropper", "no-privacy", "terms"} <= anchors


def test_the_page_says_what_is_hidden_at_which_delta_and_that_choosing_is_not_paid(page: str) -> None:
    words = " ".join("".join(Tree(page).words).split())
    assert f"{NOT_PAID[0].upper()}{NOT_PAID[1:]}." in words
    assert "3 nodes, 2 seeds; total epsilon 0.5, 2 at delta 1e-05, unit record." in words
    for against in full().adversaries:
        for epsilon in EPSILONS:
            for uses in USES:
                assert f"epsilon {epsilon:g} (delta 1e-05, unit record) against {against}, {uses} uses" in words
    for said in ("Equal privacy:", "Tuned alike:", "What diverges loses.", "one-gain", "gains differ", "Not ranked"):
        assert said in words


def test_the_page_keeps_all_values_for_programs(page: str) -> None:
    found = re.search(r'id="ranking"[^>]*>(.*?)</(?:script|pre|textarea)>', page, re.DOTALL)
    assert found is not None
    values = json.loads(html.unescape(found[1]))
    assert values == json.loads(json_text(full().as_dict()))


def test_names_never_become_a_part_of_the_page() -> None:
    evil = score(EVIL, 0.5, options={EVIL: 1.0})
    text = pages.page_of(ranking(evil, score("other", 0.4), name=EVIL, left_out=(LeftOut(EVIL, EVIL),)))
    tree = Tree(text)
    assert "<script>alert" not in text
    assert EVIL in tree.words


def test_sections_that_have_nothing_to_show_are_left_out() -> None:
    text = pages.page_of(ranking(score("any", 0.5), seeds=1))
    assert "No privacy" not in text
    assert "Not ranked" not in text
    assert "1 seed;" in text
    bare = pages.page_of(ranking())
    assert charts(bare) == []
    assert "Settings chosen on this data, not paid" in bare


def test_lines_have_a_point_for_every_number_of_uses(page: str) -> None:
    first, second = charts(page)[: len(EPSILONS)]
    for found, gained in ((first, 0.0), (second, 0.1)):
        lines = {line["name"]: line for line in found["data"]}
        assert set(lines) == {
            *("power-controlled", "slow", "paired", "paired, eavesdropper and one node", "paired, eavesdropper"),
            "server, trusted server",
        }
        assert lines["slow"]["x"] == list(USES)
        assert lines["slow"]["y"] == pytest.approx([0.3 + gained, 0.35 + gained])
        assert lines["slow"]["error_y"]["array"] == pytest.approx([0.01 * math.sqrt(2)] * 2)
        colours = {name: line["line"]["color"] for name, line in lines.items()}
        assert colours["paired"] == colours["paired, eavesdropper"] != colours["slow"]
        dashes = {name: line["line"]["dash"] for name, line in lines.items()}
        assert (dashes["paired"], dashes["paired, eavesdropper"]) == ("solid", "dot")
        assert dashes["server, trusted server"] == "dashdot"
        assert found["layout"]["xaxis"]["title"]["text"] == "channel uses"
        assert found["layout"]["yaxis"]["title"]["text"] == "published accuracy"


def test_bars_go_from_the_best_on_top_by_either_metric(page: str) -> None:
    bars = charts(page)[len(EPSILONS)]
    assert [bar["name"] for bar in bars["data"]] == [f"epsilon {e:g}, {uses} uses" for e in EPSILONS for uses in USES]
    assert bars["data"][0]["y"] == ["paired", "slow", "power-controlled"]  # plotly draws the first at the bottom
    assert bars["data"][0]["x"] == pytest.approx([0.2, 0.3, 0.5])
    lost = score("lost", 0.0, by_seed=(math.nan, 0.0))
    by_loss = ranking(score("good", 0.1), lost, score("bad", 3.0), metric="loss")
    figure = pages._bars(by_loss, EVERYBODY)
    assert list(figure.data[0].y) == ["lost", "bad", "good"]
    assert list(figure.data[0].x) == [None, 3.0, 0.1]
    assert figure.layout.xaxis.title.text == "published loss"


def test_what_diverged_has_no_point_on_a_line() -> None:
    scores = (score("any", 0.5, uses=10), score("any", 0.0, uses=40, by_seed=(math.nan, 0.0)))
    figure = pages._lines(ranking(*scores, uses=USES), 2.0)
    assert [list(line.x) for line in figure.data] == [[10]]


def test_page_values_and_plots_are_written(tmp_path: Path) -> None:
    found = ranking(score("power-controlled", 0.5), score("weak", 0.9, against=EAVESDROPPER))
    written = pages.write(found, tmp_path)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / pages.VALUES).read_text()) == json.loads(json_text(found.as_dict()))
    assert (tmp_path / pages.PAGE).read_text() == pages.page_of(found)
    assert (tmp_path / "uses.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "adversaries.pdf").read_bytes()[:4] == b"%PDF"


def test_without_a_promise_there_is_a_page_and_no_plot(tmp_path: Path) -> None:
    found: Ranking = ranking(left_out=full().left_out)
    assert pages.write(found, tmp_path) == (tmp_path / pages.PAGE, tmp_path / pages.VALUES)
    assert {path.name for path in tmp_path.iterdir()} == {pages.PAGE, pages.VALUES}


def test_a_page_of_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / pages.PAGE).write_text("mine")
    with pytest.raises(Error):
        pages.write(ranking(score("any", 0.5)), tmp_path)
    assert (tmp_path / pages.PAGE).read_text() == "mine"
>>>>>>> cheap2
