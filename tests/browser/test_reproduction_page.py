"""The page of the reproduction in a real browser, made by the command itself."""

import csv
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from murmurcast.runs.result import load_run
from tests.browser.watching import Watched, cells, contrast, keep, watch
from tests.cli.test_plan import COMMAND

pytestmark = pytest.mark.browser
CERTIFIED = ("power-controlled", "central-dp", "noiseless")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduced")
    command = [str(COMMAND), "reproduce", "--data", "digits", "--seeds", "2", "--out", "reproduction"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "reproduction"


@pytest.fixture
def page(browser: Browser, built: Path) -> Iterator[Watched]:
    watched = watch(browser, built / "report.html", color_scheme="light")
    yield watched
    watched.page.context.close()
    assert watched.complaints == []


def test_it_opens_with_what_must_be_said_first(page: Watched) -> None:
    first = page.page.locator("header p").first.inner_text()
    assert first == "This is not the paper's data: digits stand in for MNIST, as asked."
    keep(page.page, "reproduction")


def test_every_table_is_the_file_s(page: Watched, built: Path) -> None:
    titles = page.page.eval_on_selector_all("caption", "all => all.map(c => c.textContent)")
    shown = {tuple(tuple(text for text, _ in row) for row in cells(page.page, title)) for title in titles}
    files = list((built / "tables").glob("*.csv"))
    assert len(files) == 16
    for path in files:
        with path.open(newline="") as file:
            _, *rows = csv.reader(file)
        assert tuple(map(tuple, rows)) in shown, path.name


@pytest.mark.parametrize(
    ("chart", "metric", "names"),
    [
        ("epoch-published", "own_accuracy", ("published-power-controlled-1", "published-mped2fl-1")),
        ("epoch-matched", "own_accuracy", ("published-power-controlled-1", "published-power-controlled-2")),
        ("certified-0-3", "published_accuracy", tuple(f"certified-{name}-0.3" for name in CERTIFIED)),
    ],
)
def test_drawn_curves_are_the_runs_own(
    page: Watched, built: Path, chart: str, metric: str, names: tuple[str, ...]
) -> None:
    drawn = page.page.evaluate(
        "id => document.getElementById(id)._fullData"
        ".filter(trace => trace.visible === true && trace.fill === 'none').map(trace => Array.from(trace.y))",
        chart,
    )
    for line, name in zip(drawn, names, strict=False):
        expected = load_run(built / "runs" / name).metrics[metric].mean(("seed", "node"))
        np.testing.assert_allclose(line, expected, rtol=1e-6)


def test_networks_and_heat_maps_of_both_budgets_are_drawn(page: Watched) -> None:
    for budget in ("1", "2"):
        assert page.page.locator(f"#network-{budget} .scatterlayer .trace").count() == 4
        assert page.page.locator(f"#epsilon-{budget} .heatmaplayer image").count() == 1


def test_pictures_are_in_the_page_and_say_what_they_show(page: Watched) -> None:
    pictures = page.page.eval_on_selector_all(
        "img", "all => all.map(i => [i.naturalWidth, i.alt.length, i.src.slice(0, 5)])"
    )
    assert len(pictures) == 11
    assert all(width == 700 and words > 20 and source == "data:" for width, words, source in pictures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read(browser: Browser, built: Path, scheme: str) -> None:
    opened = watch(browser, built / "report.html", color_scheme=scheme)
    for selector in ("header p", "main p", ".verdict.held span", ".verdict.broken span", "td", "figcaption"):
        assert contrast(opened.page, selector) >= 4.5, selector
    keep(opened.page, f"reproduction-{scheme}")
    opened.page.context.close()
    assert opened.complaints == []


def test_on_a_phone_nothing_sticks_out(browser: Browser, built: Path) -> None:
    opened = watch(browser, built / "report.html", viewport={"width": 375, "height": 812})
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    keep(opened.page, "reproduction-phone")
    opened.page.context.close()
    assert opened.complaints == []
