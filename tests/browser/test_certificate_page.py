"""The certificate's page in a real browser, on the screen and on paper."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import murmurcast as mc
from murmurcast.certificates.document import Certifiable, contents
from murmurcast.reports import certificates, printing
from murmurcast.runs.result import file_hashes
from tests.browser.watching import Watched, contrast, keep, watch
from tests.certificates.test_records_per_person import planned, regression

pytestmark = pytest.mark.browser
NAME = "<script>alert(1)</script> & <b>ours</b>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, problem = tmp_path_factory.mktemp("certificate"), regression()
    plan = planned((3.0, 4.0, 5.0, 6.0), records_per_person=3)
    mc.run(
        mc.power_controlled(plan),
        problem,
        seeds=(4, 5, 6),
        stop_after=7,
        drops={2: 5},
        options=mc.RunOptions(folder=folder / "ours", name=NAME),
    )
    run = mc.load_run(folder / "ours")
    values = contents(mc.certify(run), [Certifiable(NAME, run, file_hashes(folder / "ours"))])
    certificates.write(values, folder / "page.html")
    return folder / "page.html"


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    watched = watch(browser, path, color_scheme=request.param)
    yield watched
    watched.page.context.close()
    assert watched.complaints == []


def test_it_reads_well_and_names_are_text(page: Watched) -> None:
    assert page.page.locator("h1").inner_text() == f"Privacy certificate of {NAME}"
    assert "the records of one person with up to 3 records" in page.page.locator("header p").first.inner_text()
    assert page.page.locator("script, b, img").count() == 0
    boxes = page.page.locator(".checklist li")
    assert boxes.count() >= 9
    drawn = boxes.first.evaluate("item => getComputedStyle(item, '::before').borderTopWidth")
    assert float(drawn.removesuffix("px")) >= 1
    assert contrast(page.page, "dd") > 4.5
    assert contrast(page.page, "dt") > 4.5
    keep(page.page, "certificate")


def test_no_hash_is_broken_on_a_screen_or_on_paper(page: Watched) -> None:
    lines = "rows => rows.map(row => row.getClientRects().length && row.getBoundingClientRect().height)"
    hashes = page.page.locator("#which-files dd")
    for media, width in (("screen", 1280), ("print", 680)):  # 680 pixels: A4 between its margins
        page.page.emulate_media(media=media)  # type: ignore[arg-type]
        page.page.set_viewport_size({"width": width, "height": 900})
        heights = hashes.evaluate_all(lines)
        assert len(heights) == 5
        assert max(heights) < 30, media  # pixels: one line
    assert not page.page.locator("details").is_visible()


def test_it_fits_a_phone(browser: Browser, path: Path) -> None:
    watched = watch(browser, path, viewport={"width": 375, "height": 800})
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 375
    keep(watched.page, "certificate-phone")
    watched.page.context.close()
    assert watched.complaints == []


def test_it_prints_on_two_pages_at_most(path: Path) -> None:
    built = printing.as_pdf(path.read_bytes())
    assert built.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", built)) <= 2
