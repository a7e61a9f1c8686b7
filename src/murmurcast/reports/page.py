"""A page in one file: text, verdicts, tables, charts, pictures, settings. It opens without a network.

Sections are built from the blocks below and rendered in one go. Whatever stands in a block is text: it is escaped here,
once, so that the name of a run can never become a part of the page.
"""

import base64
import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from murmurcast.errors import Error
from murmurcast.privacy.rounding import at_most

GENERATOR = '<meta name="generator" content="murmurcast">'
Outcome = Literal["held", "did not hold", "not falsified", "warning", "for information"]
_KIND = {"held": "held", "did not hold": "broken"}  # all others tell something, and judge nothing
_HEIGHT = 420  # pixels, of a chart that says nothing else


class Cell(NamedTuple):
    """What a table shows of a number, and the number in full, which programs find as `data-value`."""

    text: str
    value: float | None = None


Row = tuple[str | Cell, ...]


class Text(NamedTuple):
    """Plain paragraphs."""

    paragraphs: tuple[str, ...]


class Verdict(NamedTuple):
    """A sentence, marked by word and colour: did it hold?"""

    sentence: str
    outcome: Outcome = "for information"


class Table(NamedTuple):
    """Rows under headings.

    Attributes:
        title: Above the table.
        headings: One per column.
        rows: Texts, or cells where a number stands behind the text. Columns of numbers go to the right.
        note: Below the table.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""


class Chart(NamedTuple):
    """A figure of plotly.

    Attributes:
        figure: Colours may be written as `var(--series-1)` and so on; they then follow light and dark. What the figure
            leaves open (fonts, grid, background) is filled in by the page.
        caption: Below the chart.
        id: Its name in the page, of letters, digits and hyphens; no two charts share one.
    """

    figure: Any
    caption: str
    id: str


class Picture(NamedTuple):
    """A PNG, kept inside the page; `alt` says in words what it shows, `width` how many pixels wide it is meant."""

    png: bytes
    caption: str
    alt: str
    width: int | None = None


class Code(NamedTuple):
    """Text as it is, such as settings; folded away until it is asked for."""

    title: str
    text: str


class Facts(NamedTuple):
    """Names and what belongs to them, each in a line or several; numbers and hashes are easier to read in `mono`."""

    rows: tuple[tuple[str, tuple[str, ...]], ...]
    mono: bool = False


class Checklist(NamedTuple):
    """Lines with a box each, to be ticked on paper."""

    items: tuple[str, ...]


class Embedded(NamedTuple):
    """Text for programs, which find it by `id`; folded away, and not printed."""

    title: str
    text: str
    id: str


Block = Text | Verdict | Table | Chart | Picture | Code | Facts | Checklist | Embedded


class Section(NamedTuple):
    """Blocks under a title; `anchor` is the name that links lead to, made from the title where it is empty."""

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""


def number(value: float | None, form: str = ".4g", missing: str = "") -> Cell:
    """A cell of a number: short to read, in full for programs; `missing` where there is none."""
    return Cell(missing) if value is None else Cell(format(value, form), float(value))


def promised(value: float, digits: int = 4) -> Cell:
    """A cell of an epsilon or mu that is promised: rounded up to read, in full for programs."""
    return Cell(at_most(value, digits), float(value))


def render(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """The whole page.

    Args:
        title: The heading, and what the browser's tab is called.
        lead: Lines under the heading.
        sections: In order; each gets a link in the navigation.
    """
    anchors = _anchors(sections)
    links = "".join(
        f'<li><a href="#{anchor}">{_safe(section.title)}</a></li>'
        for anchor, section in zip(anchors, sections, strict=True)
    )
    scheme = '<meta name="color-scheme" content="light dark">\n'
    return (
        f"{_head(title, scheme, _style())}<body>\n{_header(title, lead)}"
        '<nav aria-label="Sections"><button type="button" id="theme" hidden>Dark</button>'
        f"<ul>{links}</ul></nav>\n<main>\n{_bodies(anchors, sections)}</main>\n"
        f"{_scripts(sections)}</body>\n</html>\n"
    )


def sheet(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """A page to print: without navigation, without script, black on white; charts need script and have no place here.

    Args:
        title: The heading, and what the browser's tab is called.
        lead: Lines under the heading; the first is the largest.
        sections: In order.
    """
    # A browser that obeys the policy runs nothing, whatever a name may smuggle in.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return (
        f"{_head(title, meta, _shipped('page.css') + _shipped('sheet.css'))}"
        f'<body class="sheet">\n{_header(title, lead)}<main>\n{_bodies(_anchors(sections), sections)}</main>\n'
        "</body>\n</html>\n"
    )


def fragment(title: str, blocks: Sequence[Block]) -> str:
    """A part of somebody else's page, such as the output of a notebook's cell: no script, and no colours of its own.

    Args:
        title: A line above it.
        blocks: In order; charts need script and have no place here.
    """
    return fragment_of(f'<p class="title">{_safe(title)}</p>{"".join(map(_block, blocks))}')


def fragment_of(content: str) -> str:
    """The same around what is HTML already; whoever made it has escaped what it holds."""
    return f'<div class="murmurcast"><style>{_shipped("fragment.css")}</style>{content}</div>'


def _head(title: str, meta: str, style: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{GENERATOR}\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{meta}<link rel="icon" href="data:,">\n'
        f"<title>{_safe(title)}</title>\n<style>{style}</style>\n</head>\n"
    )


def _header(title: str, lead: Sequence[str]) -> str:
    return f"<header><h1>{_safe(title)}</h1>{''.join(f'<p>{_safe(line)}</p>' for line in lead)}</header>\n"


def _anchors(sections: Sequence[Section]) -> list[str]:
    """What links lead to, each once."""
    anchors = [section.anchor or _slug(section.title) for section in sections]
    named = [block.id for section in sections for block in section.blocks if isinstance(block, Chart | Embedded)]
    _require_names([*anchors, *named])
    return anchors


def _bodies(anchors: Sequence[str], sections: Sequence[Section]) -> str:
    return "".join(
        f'<section id="{anchor}"><h2>{_safe(section.title)}</h2>{"".join(map(_block, section.blocks))}</section>\n'
        for anchor, section in zip(anchors, sections, strict=True)
    )


def _scripts(sections: Sequence[Section]) -> str:
    """The page's own script, and plotly's where there is something to draw."""
    drawn = any(isinstance(block, Chart) for section in sections for block in section.blocks)
    library = f"<script>{_plotly()}</script>\n" if drawn else ""
    return f"{library}<script>{_shipped('page.js')}</script>\n"


def _block(block: Block) -> str:
    match block:
        case Text(paragraphs):
            return "".join(f"<p>{_safe(paragraph)}</p>" for paragraph in paragraphs)
        case Verdict(sentence, outcome):
            kind = _KIND.get(outcome, "told")
            return f'<p class="verdict {kind}"><strong>{outcome}</strong> <span>{_safe(sentence)}</span></p>'
        case Table():
            return _table(block)
        case Chart():
            return _chart(block)
        case Picture(png, caption, alt, width):
            source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
            size = "" if width is None else f' width="{width}"'
            image = f'<img src="{source}" alt="{_safe(alt)}"{size}>'
            return f"<figure>{image}<figcaption>{_safe(caption)}</figcaption></figure>"
        case Code(title, text):
            return f"<details><summary>{_safe(title)}</summary><pre><code>{_safe(text)}</code></pre></details>"
        case Facts(rows, mono):
            lines = "".join(
                f"<dt>{_safe(name)}</dt>{''.join(f'<dd>{_safe(one)}</dd>' for one in of)}" for name, of in rows
            )
            return f"<dl{' class=mono' if mono else ''}>{lines}</dl>"
        case Checklist(items):
            return f'<ul class="checklist">{"".join(f"<li>{_safe(item)}</li>" for item in items)}</ul>'
        case Embedded(title, text, name):
            return f'<details><summary>{_safe(title)}</summary><pre id="{name}">{_safe(text)}</pre></details>'


def _table(table: Table) -> str:
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in table.rows]
    right = [_is_numeric(column) for column in zip(*cells, strict=True)] if cells else [False] * len(table.headings)
    sides = [' class="number"' if numeric else "" for numeric in right]
    heads = "".join(f'<th scope="col"{s}>{_safe(h)}</th>' for s, h in zip(sides, table.headings, strict=True))
    rows = "".join("<tr>" + "".join(map(_cell, row, sides)) + "</tr>" for row in cells)
    note = f'<p class="note">{_safe(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{_safe(table.title)}"><table>'
        f"<caption>{_safe(table.title)}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _cell(cell: Cell, side: str) -> str:
    value = "" if cell.value is None else f' data-value="{_in_full(cell.value)}"'
    return f"<td{side}{value}>{_safe(cell.text)}</td>"


def _in_full(value: float) -> str:
    """All digits; infinities as programs in a browser read them."""
    return (
        repr(float(value))
        if math.isfinite(value)
        else str(float(value)).replace("inf", "Infinity").replace("nan", "NaN")
    )


def _is_numeric(column: Iterable[Cell]) -> bool:
    """Numbers stand in the column: behind its texts, or as its texts; "-" and "never" stand where there is none."""
    shown = [cell for cell in column if cell.text not in ("", "-", "never")]
    if any(cell.value is not None for cell in shown):
        return True
    return bool(shown) and all(re.fullmatch(r"[-+]?\d*\.?\d+(e[-+]?\d+)?%?", cell.text) for cell in shown)


def _chart(chart: Chart) -> str:
    spec = json.loads(chart.figure.to_json())
    layout = spec["layout"] | {"template": _look(), "autosize": True, "uirevision": "kept"}
    height = int(layout.setdefault("height", _HEIGHT))
    layout.pop("width", None)  # the page decides
    text = json.dumps({"data": spec["data"], "layout": layout}, allow_nan=False, separators=(",", ":"))
    return (
        f'<figure class="chart"><div id="{chart.id}" class="plot" style="height:{height}px"></div>'
        f'<script type="application/json">{_inert(text)}</script>'
        f"<figcaption>{_safe(chart.caption)}</figcaption></figure>"
    )


def _look() -> dict[str, Any]:
    """What every chart has in common; a figure's own settings come before it."""
    axis = {
        "gridcolor": "var(--rule)",
        "linecolor": "var(--line)",
        "zeroline": False,
        "automargin": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "var(--line)",
    }
    text = {"family": "system-ui, sans-serif", "size": 13, "color": "var(--ink)"}
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"}
    layout = {
        "font": text,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 24, "t": 12, "b": 12},
        "legend": legend,
        "hoverlabel": {"bgcolor": "var(--panel)", "bordercolor": "var(--line)", "font": text},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "var(--line)", "activecolor": "var(--ink)"},
        "coloraxis": {"colorbar": {"outlinewidth": 0, "thickness": 12}},
        "xaxis": axis,
        "yaxis": axis,
    }
    return {"layout": layout}


def _require_names(names: Sequence[str]) -> None:
    """Names in the page are plain and each is there once."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name):
            raise Error(f'"{name}" cannot be a name in a page', hint="use letters, digits and hyphens, a letter first")
        if names.count(name) > 1 or name == "theme":
            raise Error(f'the name "{name}" is taken', hint="give every section and chart a name of its own")


def _slug(title: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return plain if plain[:1].isalpha() else f"section-{plain}"


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _inert(text: str) -> str:
    """JSON that no reader of HTML takes for a tag, and no script for the end of a line."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _style() -> str:
    """The look in light, and in dark where the reader's system or the reader wants it."""
    dark = _shipped("dark.css")
    return (
        f"{_shipped('page.css')}@media (prefers-color-scheme: dark) {{:root:not([data-theme=light]) {{{dark}}}}}\n"
        f":root[data-theme=dark] {{{dark}}}\n"
    )


@cache
def _plotly() -> str:
    """The library as shipped with plotly; it closes no script by itself."""
    from plotly.offline import get_plotlyjs  # tables in a notebook or a terminal need not wait for it

    return str(get_plotlyjs()).replace("</script", "<\\/script")


@cache
def _shipped(name: str) -> str:
    return (files("murmurcast.reports") / name).read_text(encoding="utf-8")
