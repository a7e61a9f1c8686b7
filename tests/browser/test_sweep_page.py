"""The page of a sweep in a real browser: no two lines look the same, and what is wider than the page says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import murmurcast as mc
from murmurcast.reports import sweep as pages
from tests.browser.watching import Watched, cells, keep, watch
from tests.reports.sweeps import sweep

pytestmark = pytest.mark.browser

COLOURS = """id => [...document.querySelectorAll(`#${id} .scatterlayer .trace .js-line`)]
    .map(line => `${getComputedStyle(line).stroke} ${getComputedStyle(line).strokeDasharray}`)
    .filter(look => !look.startsWith("none"))"""


@pytest.fixture(scope="module")
def result() -> mc.Sweep:
    return sweep(steps=(0.05, 0.1), epsilons=(1.0, 2.0, 8.0))


@pytest.fixture(scope="module")
def path(result: mc.Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "sweep.html"
    pages.report(result, path)
    return path


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    watched = watch(browser, path, color_scheme=request.param)
    yield watched
    watched.page.context.close()
    assert watched.complaints == []


def test_all_points_stand_in_one_table(page: Watched, result: mc.Sweep) -> None:
    rows = cells(page.page, "At the end, published loss")
    assert len(rows) == len(result.points) == 12
    run = result["epsilon-1_power-controlled_step-0.05"]
    assert rows[0][3][1] == pytest.approx(float(run.final("published_loss").mean()))
    assert len(cells(page.page, "What is promised")) == 12
    keep(page.page, "sweep")


def test_no_two_curves_look_the_same_in_either_theme(page: Watched) -> None:
    for chart, lines in (("chart-published-loss", 12), ("chart-axis-0-0", 4)):
        looks = page.page.evaluate(COLOURS, chart)
        looks = [look for look in looks if "rgba" not in look]  # bands have no line of their own
        assert len(set(looks)) >= lines
    before = page.page.evaluate(COLOURS, "chart-published-loss")
    page.page.locator("#theme").click()
    assert page.page.evaluate(COLOURS, "chart-published-loss") != before


def test_a_table_that_is_wider_than_the_page_says_so(browser: Browser, path: Path) -> None:
    phone, complaints = watch(browser, path, viewport={"width": 400, "height": 800})
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = phone.locator(".table").first
    assert "scroll it sideways" in phone.locator(".more").first.inner_text()
    assert wide.get_attribute("data-more") == "right"
    first = "table => table.querySelector('tbody td').getBoundingClientRect().left"
    before = wide.evaluate(first)
    wide.evaluate("table => { table.scrollLeft = table.scrollWidth; }")
    phone.wait_for_function("document.querySelector('.table').dataset.more === ''")
    assert wide.evaluate(first) == pytest.approx(before, abs=1)
    keep(phone, "sweep-phone")
    phone.set_viewport_size({"width": 1600, "height": 900})
    phone.wait_for_function("!document.querySelector('.table').hasAttribute('data-wide')")
    assert phone.locator("#points .more").count() == 0
    phone.context.close()
    assert complaints == []
