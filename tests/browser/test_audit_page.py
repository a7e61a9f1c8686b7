"""The audit's page in a real browser: its numbers are the audit's, its charts and pictures are there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import murmurcast as mc
from murmurcast.audits.inversion import run_inversion
from murmurcast.reports import audits
from tests.browser.watching import Watched, cells, contrast, keep, watch
from tests.conftest import asymmetric_network

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def result() -> mc.Audit:
    problem = mc.Quadratic.random(4, dim=20, seed=1)
    schedule = mc.Schedule(epochs=5, step=0.3, noise_timing="aligned", noise_to_step="auto")
    plan = mc.plan(asymmetric_network(5, nodes=4), problem, mc.Budget(epsilon=3.0), schedule)
    return mc.audit(mc.power_controlled(plan), problem, runs=60)


@pytest.fixture(scope="module")
def path(result: mc.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "audit.html"
    pictures = run_inversion(mc.datasets.digits(), epochs=5, runs=2)
    audits.write(result, "[network]\n", "<script>alert(1)</script>.toml", path, pictures)
    return path


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    watched = watch(browser, path, color_scheme=request.param)
    yield watched
    watched.page.context.close()
    assert watched.complaints == []


def test_numbers_are_those_of_the_audit(page: Watched, result: mc.Audit) -> None:
    rows = cells(page.page, "What adversaries learn")
    assert [row[0][0] for row in rows] == [*(attack.adversary for attack in result.strongest), "certified, at most"]
    for row, attack in zip(rows, result.strongest, strict=False):
        assert row[4][1] == pytest.approx(attack.mu)
        assert row[5][1] == pytest.approx(attack.epsilon)
    assert page.page.locator("h1").inner_text() == "Audit of <script>alert(1)</script>.toml"


def test_curves_and_pictures_are_there_and_readable(page: Watched, result: mc.Audit) -> None:
    silent = sum(not any(attack.curve[:-1]) for attack in result.strongest)
    drawn = page.page.locator("#chart-alarms .scatterlayer .trace").count()
    assert len(result.strongest) + 1 - silent <= drawn <= len(result.strongest) + 1
    wide = page.page.locator("figure img, img").first
    assert wide.evaluate("image => image.complete && image.naturalWidth") > 1000
    assert contrast(page.page, "p") > 4.5
    keep(page.page, "audit")


def test_it_fits_a_phone(browser: Browser, path: Path) -> None:
    watched = watch(browser, path, viewport={"width": 375, "height": 800})
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 375
    keep(watched.page, "audit-phone")
    watched.page.context.close()
    assert watched.complaints == []


def test_the_tools_of_a_chart_cover_nothing(browser: Browser, path: Path) -> None:
    for width in (1200, 375):
        watched = watch(browser, path, viewport={"width": width, "height": 900})
        chart = watched.page.locator("#true-and-false-positive-rates")
        chart.locator(".plot").hover()
        title, tools, legend = (chart.locator(part).bounding_box() for part in ("h2", ".modebar", ".legend"))
        assert title
        assert tools
        assert legend
        assert title["y"] + title["height"] <= tools["y"]
        assert tools["y"] + tools["height"] <= legend["y"]
        watched.page.context.close()
        assert watched.complaints == []
