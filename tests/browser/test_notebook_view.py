"""What notebooks show, inside a page with looks of its own: readable in light and dark, and nothing of it leaks out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import murmurcast as mc
from murmurcast.experiments import display
from tests.browser.watching import Watched, keep, watch
from tests.conftest import asymmetric_network
from tests.reports.test_audits import FOUND

pytestmark = pytest.mark.browser

THEMES = {"light": ("#ffffff", "#1f1f1f"), "dark": ("#111111", "#d8d8d8"), "beige": ("#fdf6e3", "#586e75")}
# As notebooks style all tables in their outputs.
HOST = """
body { margin: 24px; background: GROUND; color: INK; font: 14px/1.5 sans-serif; }
.host table { margin: 0 auto; table-layout: fixed; font-size: 12px; border: none; }
.host td, .host th, .host tr { text-align: right; vertical-align: middle; padding: .5em; border: none; }
.host tbody tr:nth-child(odd) { background: #ff00ff; }
.host dt { font-weight: bold; }
#own { color: INK; }
"""
# A colour with part of what lies behind it, as a screen mixes them: WCAG's ratio of the two.
CONTRAST = """([selector, ground]) => Math.min(...[...document.querySelectorAll(selector)].map(element => {
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", { willReadFrequently: true });
    const layers = [];
    for (let part = element; part !== document.body; part = part.parentElement)
        layers.unshift(getComputedStyle(part).backgroundColor);
    const drawn = colours => {
        for (const colour of [ground, ...colours]) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
        const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(part => part / 255);
        const linear = parts.map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const [low, high] = [drawn(layers), drawn([...layers, getComputedStyle(element).color])].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}))"""


@pytest.fixture(params=THEMES)
def page(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Watched, str]]:
    ground, ink = THEMES[request.param]
    network = asymmetric_network(7, nodes=5)
    plan = mc.plan(network, mc.ClippedGradients(), mc.Budget(epsilon=8.0), mc.Schedule(epochs=12, step=0.1))
    views = "".join(f'<div class="host">{display.html(one)}</div>' for one in (network, plan, plan.certificate, FOUND))
    style = HOST.replace("GROUND", ground).replace("INK", ink)
    own = '<p id="own">of the notebook itself</p><table id="theirs"><tr><td>1</td></tr></table>'
    text = f"<!DOCTYPE html><meta charset=utf-8><title>n</title><style>{style}</style><body>{own}{views}"
    (tmp_path / "notebook.html").write_text(text)
    watched = watch(browser, tmp_path / "notebook.html")
    yield watched, ground
    keep(watched.page, f"notebook-{request.param}")
    watched.page.context.close()
    assert watched.complaints == []


def test_everything_can_be_read_on_any_ground(page: tuple[Watched, str]) -> None:
    watched, ground = page
    for selector in (".title", ".murmurcast td", ".murmurcast th", ".verdict span"):
        assert watched.page.evaluate(CONTRAST, [selector, ground]) >= 4.4, selector
    for selector in (".note", ".verdict strong", "dt", "figcaption"):  # smaller, and softer on purpose
        assert watched.page.evaluate(CONTRAST, [selector, ground]) >= 2.9, selector


def test_the_notebooks_own_looks_neither_come_in_nor_change(page: tuple[Watched, str]) -> None:
    watched, _ = page
    looks = watched.page.evaluate(
        """() => {
            const of = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
            return [of(".murmurcast tbody tr", "backgroundColor"), of(".murmurcast td:not(.number)", "textAlign"),
                    of(".murmurcast td.number", "textAlign"), of("dt", "fontWeight"), of("#theirs td", "textAlign"),
                    of("#theirs td", "borderBottomWidth"), of("#own", "maxWidth")];
        }"""
    )
    assert looks == ["rgba(0, 0, 0, 0)", "left", "right", "400", "start", "0px", "none"]


def test_nothing_is_wider_than_the_page(page: tuple[Watched, str]) -> None:
    watched, _ = page
    for width in (1280, 480):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = watched.page.evaluate("[...document.images].map(one => [one.naturalWidth, one.width])")
    assert all(natural > shown > 0 for natural, shown in sizes)
