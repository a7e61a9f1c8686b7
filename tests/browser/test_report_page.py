"""The page in a real browser: drawn, readable, quiet, and closed to the network."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import murmurcast as mc
from tests.browser.watching import Watched, cells, contrast, keep, watch
from tests.conftest import asymmetric_network

pytestmark = pytest.mark.browser

EVIL = "<script>alert(1)</script>"
NODES = 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[mc.Result]:
    """Runs of every medium, read back from their files; two of them with names meant to do harm."""
    folder = tmp_path_factory.mktemp("runs")
    network = asymmetric_network(5, nodes=NODES)
    data = mc.datasets.digits().partition("iid", nodes=NODES)
    problem = mc.SoftmaxRegression(data=data, clip=1.0, ball=20.0)
    budget = mc.Budget(epsilon=10.0, unit="record")
    plan = mc.plan(network, problem, budget, mc.Schedule(epochs=40, step=0.4, noise_timing="aligned"), z="perron")
    built = {
        "ours": mc.power_controlled(plan, publish="average"),
        EVIL: mc.mped2fl(plan, step_factor=NODES),
        "var(--ink)": mc.central_dp(plan),
        "alone": mc.local_only(plan, step_factor=NODES),
    }
    for place, (name, algorithm) in enumerate(built.items()):
        settings = f"# {name}\n[notes]\nnodes = {NODES}\n" + "# a long line " + "x" * 300 + "\n"
        mc.run(
            algorithm,
            problem,
            seeds=range(2),
            options=mc.RunOptions(name=name, experiment=settings, folder=folder / str(place)),
        )
    return [mc.load_run(folder / str(place)) for place in range(len(built))]


@pytest.fixture(scope="module")
def path(runs: list[mc.Result], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    mc.report(runs, path)
    return path


@pytest.fixture
def desktop(browser: Browser, path: Path) -> Iterator[Watched]:
    watched = watch(browser, path, color_scheme="light")
    yield watched
    watched.page.context.close()
    assert watched.complaints == []


def test_every_chart_is_drawn(desktop: Watched) -> None:
    sizes = desktop.page.eval_on_selector_all(
        ".plot .main-svg", "all => all.map(s => { const b = s.getBoundingClientRect(); return [b.width, b.height]; })"
    )
    assert all(width > 300 and height > 200 for width, height in sizes)

    def count(chart: str, what: str) -> int:
        return desktop.page.locator(f"#{chart} {what}").count()

    traces = ".scatterlayer .trace"
    for metric in ("own-accuracy", "published-accuracy", "own-loss", "published-loss"):
        assert count(f"chart-{metric}", traces) == 2 * 4  # a line and a band of every run; nodes wait in the legend
        assert count(f"chart-{metric}", ".legend .traces") == 2 * 4
    assert count("chart-channel-uses", traces) == 2 * 3  # one run never sends
    assert count("chart-sent-power", traces) == 2 * 3
    assert count("chart-network-1", traces) == 4  # two shares of power, what links tell, what nodes tell
    assert count("chart-epsilon-1", ".heatmaplayer image") == 1
    assert count("chart-network-2", traces) == 3
    assert desktop.page.locator("#chart-epsilon-2, #chart-network-3, #chart-network-4").count() == 0
    keep(desktop.page, "light")


def test_nodes_appear_when_asked_for(desktop: Watched) -> None:
    chart = desktop.page.locator("#chart-own-accuracy")
    before = chart.locator(".scatterlayer .trace").count()
    chart.locator(".legend .traces", has_text="ours, nodes").locator(".legendtoggle").click()
    desktop.page.wait_for_function(
        "n => document.querySelectorAll('#chart-own-accuracy .scatterlayer .trace').length > n", arg=before
    )
    lines = chart.locator(".scatterlayer .trace").evaluate_all(
        "all => all.map(trace => trace.querySelectorAll('path.js-line').length)"
    )
    assert max(lines) == NODES  # one course of every node


def test_numbers_are_those_of_the_files(desktop: Watched, runs: list[mc.Result]) -> None:
    for model in ("own", "published"):
        result = mc.compare(*runs, metric=f"{model}_accuracy")
        shown = cells(desktop.page, f"At the end, {model} accuracy")
        for row, expected, texts in zip(shown, result.rows, result.cells, strict=True):
            assert [text for text, _ in row] == list(texts)
            assert [value for _, value in row[2:]] == [
                *(expected.final, expected.spread, expected.difference, expected.worst),
                *(expected.epochs, expected.channel_uses),
                *map(expected.epsilon_against, result.adversaries),
            ]
    for place, run in enumerate(runs, 1):
        rows = cells(desktop.page, "Nodes", f"#run-{place}")
        power = run.final("sent_power").mean(axis=0)
        assert [row[-1] for row in rows] == [[f"{value:.4g}", float(value)] for value in power]


def test_drawn_numbers_are_those_of_the_files(desktop: Watched, runs: list[mc.Result]) -> None:
    drawn = desktop.page.evaluate(
        "document.getElementById('chart-own-accuracy')._fullData"
        ".filter(trace => trace.visible === true && trace.fill === 'none').map(trace => Array.from(trace.y))"
    )
    for line, run in zip(drawn, runs, strict=True):
        np.testing.assert_allclose(line, run.metrics["own_accuracy"].mean(("seed", "node")), rtol=1e-6)
    heat = desktop.page.evaluate(
        "document.getElementById('chart-epsilon-1').calcdata[0][0].z.map(row => Array.from(row, v => v ?? null))"
    )
    matrix = np.array([[np.nan if value is None else value for value in row] for row in heat], float)
    assert matrix.shape == (NODES, NODES)
    gains = np.zeros((NODES, NODES))
    ledger = runs[0].ledger
    gains[ledger["model_sender"], ledger["model_receiver"]] = ledger["model_gain"]
    assert (np.isfinite(matrix) == (gains.T > 0)).all()


def test_harmful_names_are_shown_as_they_are(desktop: Watched) -> None:
    page = desktop.page
    assert page.locator("#run-2 h2").inner_text() == f"Run {EVIL}"
    assert page.locator("nav li").nth(3).inner_text() == f"Run {EVIL}"
    legend = page.locator("#chart-own-accuracy .legendtext").evaluate_all("all => all.map(t => t.textContent)")
    assert [legend[0], legend[2], legend[4]] == ["ours", EVIL, "var(--ink)"]
    page.locator("#run-2 summary").click()
    assert EVIL in page.locator("#run-2 pre").inner_text()


def test_what_the_pointer_is_told(desktop: Watched, runs: list[mc.Result]) -> None:
    desktop.page.locator("#chart-network-1").scroll_into_view_if_needed()
    place = desktop.page.locator("#chart-network-1 .textpoint").first.bounding_box()
    assert place
    desktop.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    stated = desktop.page.locator("#chart-network-1 .hoverlayer .hovertext").first
    stated.wait_for()
    assert f"power {float(runs[0].ledger['power'][0]):.6g}" in (stated.text_content() or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(browser: Browser, path: Path, scheme: str) -> None:
    page, complaints = watch(browser, path, color_scheme=scheme)
    for selector in (
        "header p",
        "main p",
        "nav a",
        "h1",
        "h2",
        "caption",
        "th",
        "td",
        "figcaption",
        ".note",
        "summary",
    ):
        assert contrast(page, selector) >= 4.5, selector
    for kind in ("held", "broken", "told"):
        for part in ("strong", "span"):
            assert contrast(page, f".verdict.{kind} {part}") >= 4.5, (kind, part)
    # What charts write follows the page.
    ink = page.evaluate("getComputedStyle(document.body).color")
    written = page.locator("#chart-own-accuracy .xtick text").first.evaluate("t => getComputedStyle(t).fill")
    assert written == ink
    keep(page, f"{scheme}-scheme")
    page.context.close()
    assert complaints == []


def test_the_button_switches_and_is_remembered(desktop: Watched) -> None:
    page = desktop.page

    def look() -> tuple[str, str, str]:
        return (
            page.evaluate("getComputedStyle(document.body).backgroundColor"),
            page.locator("#chart-own-accuracy .xtick text").first.evaluate("t => getComputedStyle(t).fill"),
            page.locator("#theme").inner_text(),
        )

    light = look()
    page.locator("#theme").click()
    dark = look()
    assert all(before != after for before, after in zip(light, dark, strict=True))
    assert contrast(page, "main p") >= 4.5
    page.reload()
    page.wait_for_function("document.querySelector('#chart-own-accuracy .xtick text')")
    assert look() == dark
    page.locator("#theme").click()
    assert look() == light


def test_the_system_may_change_its_mind(desktop: Watched) -> None:
    before = desktop.page.evaluate("getComputedStyle(document.body).backgroundColor")
    desktop.page.emulate_media(color_scheme="dark")
    assert desktop.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert desktop.page.locator("#theme").inner_text() == "Light"


def test_on_a_phone_nothing_sticks_out(browser: Browser, path: Path) -> None:
    page, complaints = watch(browser, path, viewport={"width": 375, "height": 812}, device_scale_factor=2)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    widths = page.eval_on_selector_all(".plot .main-svg", "all => all.map(s => s.getBoundingClientRect().right)")
    assert max(widths) <= 375
    assert page.eval_on_selector_all(".table", "all => all.some(t => t.scrollWidth > t.clientWidth)")
    keep(page, "phone")
    page.context.close()
    assert complaints == []


def test_paper_is_light(browser: Browser, path: Path, tmp_path: Path) -> None:
    page, complaints = watch(browser, path, color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert contrast(page, "main p") >= 4.5
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')").strip() == "#fcfcfa"
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert len(page.pdf(path=tmp_path / "page.pdf")) > 10_000
    page.context.close()
    assert complaints == []
