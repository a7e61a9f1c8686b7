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
    result = [json.loads(text) for text in CHART.findall(page)]
    return [one for one in result if "data" in one and "layout" in one]


@pytest.fixture(scope="module")
def page() -> str:
    return pages.page_of(full())


def test_a_row_has_a_cell_under_every_heading() -> None:
    one = score("any", 0.5, options={"shared_to_own": 3.0}, at_edge=True)
    result = ranking(one)
    (row,) = pages.cells(result, (one,))
    assert len(row) == len(pages.headings(result)) == len(pages.HEADINGS)
    shown = dict(zip(pages.headings(result), texts(row), strict=True))
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
    result = full()
    rows = [texts(row) for row in pages.leaders(result)]
    assert [tuple(row[:3]) for row in rows] == [
        (against, f"{epsilon:g}", str(uses)) for against in result.adversaries for epsilon in EPSILONS for uses in USES
    ]
    assert all(len(row) == len(pages.LEADING) for row in rows)
    assert rows[3][3:] == ["power-controlled", "0.650", "slow", "0.450", "yes"]
    assert rows[-1][3:] == ["paired", "0.850", "power-controlled", "0.650", "yes"]
    heads = pages.headings(result, pages.LEADING)
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
    result = re.search(r'id="ranking"[^>]*>(.*?)</(?:script|pre|textarea)>', page, re.DOTALL)
    assert result is not None
    values = json.loads(html.unescape(result[1]))
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
    for result, gained in ((first, 0.0), (second, 0.1)):
        lines = {line["name"]: line for line in result["data"]}
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
        assert result["layout"]["xaxis"]["title"]["text"] == "channel uses"
        assert result["layout"]["yaxis"]["title"]["text"] == "published accuracy"


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
    result = ranking(score("power-controlled", 0.5), score("weak", 0.9, against=EAVESDROPPER))
    written = pages.write(result, tmp_path)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / pages.VALUES).read_text()) == json.loads(json_text(result.as_dict()))
    assert (tmp_path / pages.PAGE).read_text() == pages.page_of(result)
    assert (tmp_path / "uses.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "adversaries.pdf").read_bytes()[:4] == b"%PDF"


def test_without_a_promise_there_is_a_page_and_no_plot(tmp_path: Path) -> None:
    result: Ranking = ranking(left_out=full().left_out)
    assert pages.write(result, tmp_path) == (tmp_path / pages.PAGE, tmp_path / pages.VALUES)
    assert {path.name for path in tmp_path.iterdir()} == {pages.PAGE, pages.VALUES}


def test_a_page_of_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / pages.PAGE).write_text("mine")
    with pytest.raises(Error):
        pages.write(ranking(score("any", 0.5)), tmp_path)
    assert (tmp_path / pages.PAGE).read_text() == "mine"
