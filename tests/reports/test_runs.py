"""The page of runs: every number is the run's own, and no word says more than the run does."""

import html
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.privacy import best_guess, gaussian
from murmurcast.privacy.rounding import at_most, percent_at_most
from murmurcast.reports.runs import page_of
from tests.reports.examples import NODES, example, sampled
from tests.reports.test_charts import large

EVERY = ("power_controlled", "mped2fl", "noiseless", "central_dp", "local_only")


def body(*runs: mc.Result) -> str:
    """The page without plotly."""
    return re.sub(r"<script>.*?</script>", "", page_of(runs), flags=re.DOTALL)


def table(text: str, title: str) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Headings, and rows of (what is shown, data-value) of the first table of that title."""
    result = re.search(rf"<caption>{title}</caption>(.*?)</table>", text, re.DOTALL)
    assert result
    headings = re.findall(r"<th[^>]*>(.*?)</th>", result[1])
    lines = re.findall(r"<tr>(.*?)</tr>", result[1].split("<tbody>")[1], re.DOTALL)
    cell = re.compile(r'<td(?: class="number")?(?: data-value="([^"]*)")?>(.*?)</td>')
    return headings, [[(shown, value) for value, shown in cell.findall(line)] for line in lines]


def words(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)))


def test_the_comparison_is_that_of_compare() -> None:
    runs = [example(name) for name in EVERY]
    headings, rows = table(body(*runs), "At the end, published distance")
    result = mc.compare(*runs, metric="published_distance")
    assert headings[2] == "published distance"
    assert headings[4] == "against first"
    assert headings[8:] == [f"epsilon, {who}" for who in result.adversaries]
    assert result.adversaries == ("everybody", "trusted server")
    for shown, row, texts in zip(rows, result.rows, result.cells, strict=True):
        assert [text for text, _ in shown] == list(texts)
        assert float(shown[2][1]) == row.final
        assert shown[4][1] == ("" if row.difference is None else repr(row.difference))
        assert float(shown[5][1]) == row.worst
        for at, who in enumerate(result.adversaries, start=8):
            promised = row.epsilon_against(who)
            assert shown[at][1] == ("" if promised is None else repr(promised))


@pytest.mark.parametrize("name", EVERY)
def test_every_node_is_in_the_table_in_full(name: str) -> None:
    run = example(name)
    headings, rows = table(body(run), "Nodes")
    assert [row[0][0] for row in rows] == list(map(str, range(NODES)))
    columns = {heading: [row[at] for row in rows] for at, heading in enumerate(headings)}
    mu = np.asarray(run.ledger["promised_mu"])
    expected = {
        "mu promised": mu,
        "epsilon at delta 1e-05": gaussian.epsilon(mu, 1e-5),
        "published distance": run.final("published_distance").mean(axis=0),
        "sent power over budget": run.final("sent_power").mean(axis=0),
    }
    for heading, values in expected.items():
        np.testing.assert_array_equal([float(value) for _, value in columns[heading]], values)
    promised = "not promised" not in {shown for shown, _ in columns["mu promised"]}
    assert promised == bool(np.isfinite(mu).all())
    assert ("alpha" in columns) == (name in ("power_controlled", "noiseless"))


@pytest.mark.parametrize("name", EVERY)
def test_no_epsilon_stands_beside_own_models(name: str) -> None:
    run = example(name)
    text = body(run)
    headings, rows = table(text, "Own models")
    assert headings[1:] == ["own distance", "own loss"]
    np.testing.assert_array_equal([float(row[2][1]) for row in rows], run.final("own_loss").mean(axis=0))
    tables = re.findall(r"<caption>(.*?)</caption>(.*?)</table>", text, re.DOTALL)
    for caption, inside in tables:
        promised = any(word in inside for word in ("epsilon", "mu promised"))
        assert not (promised and "own " in caption + inside), caption
    assert any("At the end, own distance" in caption for caption, _ in tables)


def test_an_epsilon_is_rounded_up_and_says_what_it_means() -> None:
    run = example("power_controlled")
    said = words(body(run))
    mu = float(run.ledger["promised_mu"].max())
    assert f"promises epsilon {at_most(run.info['privacy']['epsilon'])} at delta 1e-05" in said
    assert f"is right at most {percent_at_most(float(best_guess.of_mu(mu)))} of the time" in said


@pytest.mark.parametrize("name", EVERY)
def test_only_a_certificate_is_called_one(name: str) -> None:
    run = example(name)
    said = words(body(run)).lower()
    assert ("certif" in said) == ("certificate" in run.info["privacy"]["basis"])
    assert run.info["privacy"]["basis"].lower() in said
    assert run.info["privacy"]["note"].lower() in said


def test_what_does_not_exist_is_said_in_words() -> None:
    said = words(body(example("central_dp")))
    assert "there is no network to draw" in said
    assert "This run is not of that kind" in said
    assert "trusted server" in said
    assert "costs no privacy" in words(body(example("local_only")))


def test_origin_and_citation() -> None:
    run = example("power_controlled")
    said = words(body(run))
    for text in (run.info["versions"]["numpy"], run.info["versions"]["python"], run.info["machine"]["system"]):
        assert text in said
    assert "Ziaeddini" in said
    assert "Differentially-Private Decentralized Learning in Heterogeneous Multicast Networks" in said
    _, rows = table(body(run), "Seconds")
    assert [float(value) for _, value in rows[0][1:]] == [
        run.info["seconds"][part] for part in ("compiling", "training", "all")
    ]


def test_the_citation_is_that_of_the_project() -> None:
    source = (Path(__file__).parents[2] / "CITATION.cff").read_text()
    said = words(body(example("power_controlled")))
    for key in ("title", "family-names", "given-names", "license", "version"):
        for value in re.findall(rf"{key}: (.+)", source):
            if value != "1.2.0":  # of the format of that file
                assert value in said


def test_names_and_settings_are_text() -> None:
    evil = "<script>alert(1)</script>"
    run = example("power_controlled", 1, evil)
    settled = mc.Result(
        metrics=run.metrics, ledger=run.ledger, published=run.published, info=run.info, experiment=f"a = '{evil}'"
    )
    text = page_of([settled, example("mped2fl", 1, "</script><img src=x onerror=alert(2)>")])
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "</script><img" not in text
    assert f"a = '{evil}'" in words(text)


def test_equal_names_are_told_apart() -> None:
    _, rows = table(body(example("noiseless"), example("noiseless")), "At the end, own distance")
    assert [row[0][0] for row in rows] == ["noiseless", "noiseless (2)"]


def test_of_a_large_network_the_worst_nodes_are_listed() -> None:
    text = body(large(2000))
    _, rows = table(text, "Nodes")
    assert len(rows) == 50
    assert "The 50 nodes of 2000" in text
    assert len(text) < 2_000_000


def test_a_sample_of_nodes_is_said_wherever_it_is_shown() -> None:
    run = example("power_controlled")
    text, sentence = body(sampled(run, 1, 4)), f"Metrics are of a public sample of 2 of {NODES} nodes."
    for title in ("Nodes", "Own models", "At the end, published distance"):
        assert [row[0] for row in table(text, title)[1]]
        assert sentence in text.split(f"<caption>{title}</caption>")[1].split("<caption>")[0], title
    assert [row[0][0] for row in table(text, "Nodes")[1]] == ["1", "4"]
    assert sentence in words(text).split("Choose in the legend")[1].split("against epochs")[0]
    assert "public sample" not in body(run)


def test_the_same_runs_make_the_same_page() -> None:
    assert page_of([example("mped2fl")]) == page_of([example("mped2fl")])


def test_a_page_is_written_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    mc.report([example("noiseless")], path)
    mc.report([example("mped2fl")], str(path))
    assert path.read_text(encoding="utf-8") == page_of([example("mped2fl")])
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("page.htm", None, "end it in .html"),
        ("mine.html", "<p>my own</p>", "another name"),
        ("no/a.html", None, "make"),
    ],
)
def test_wrong_places_are_refused(tmp_path: Path, name: str, content: str | None, expected: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(mc.Error) as raised:
        mc.report([example("noiseless")], path)
    assert expected in raised.value.hint
    assert content is None or path.read_text() == content


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mc.Error, match="no run"):
        mc.report([], tmp_path / "a.html")


def test_the_function_stays_a_function_whatever_is_imported_first() -> None:
    code = "import murmurcast.reports.page, murmurcast.reports.runs, murmurcast as mc; assert callable(mc.report)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_page_needs_no_engine() -> None:
    """Reading runs and showing them must not take the time to load what trains them."""
    code = "import sys, murmurcast.reports.runs; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
