"""A page under watch: whatever it complains about or asks the network for is written down."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request


class Watched(NamedTuple):
    """A page, and all that must not happen on it."""

    page: Page
    complaints: list[str]


def watch(browser: Browser, path: Path, **look: Any) -> Watched:
    """Opens the page without a network and notes every complaint and every request that leaves the file."""
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | look))
    context.set_offline(True)
    context.set_default_timeout(30_000)
    page, complaints = context.new_page(), list[str]()

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.type}: {message.text}")

    def see(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            complaints.append(f"asked for {request.url}")

    def stop(dialog: Dialog) -> None:
        complaints.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    page.on("console", hear)
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("request", see)
    page.on("dialog", stop)
    page.goto(path.as_uri())
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every(plot => plot.querySelector('.main-svg') && plot._fullLayout)"
    )
    return Watched(page, complaints)


def keep(page: Page, name: str) -> None:
    """A picture for people, where they ask for one."""
    folder = os.environ.get("MURMURCAST_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def contrast(page: Page, selector: str) -> float:
    """WCAG's ratio of a text to what lies behind it."""
    colours = page.eval_on_selector(
        selector,
        """element => {
            const ground = (part) => getComputedStyle(part).backgroundColor;
            let behind = element;
            while (behind !== document.body && /, 0\\)$/.test(ground(behind))) behind = behind.parentElement;
            return [getComputedStyle(element).color, ground(behind)];
        }""",
    )

    def luminance(colour: str) -> float:
        parts = np.array([float(part) for part in re.findall(r"[\d.]+", colour)[:3]]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def cells(page: Page, title: str, section: str = "body") -> list[list[list[Any]]]:
    """What a table shows, and the numbers behind it."""
    rows: list[list[list[Any]]] = page.evaluate(
        """([title, section]) => {
            const table = [...document.querySelectorAll(`${section} table`)].find(t => t.caption.textContent === title);
            return [...table.tBodies[0].rows].map(row => [...row.cells].map(
                cell => [cell.textContent, cell.dataset.value === undefined ? null : Number(cell.dataset.value)]));
        }""",
        [title, section],
    )
    return rows
