"""A page is one file, shows text as text, and holds its numbers in full."""

import json
import re
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest

from murmurcast.errors import Error
from murmurcast.reports.page import (
    GENERATOR,
    Block,
    Cell,
    Chart,
    Code,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
    number,
    render,
)

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "img", "br"}


class Tree(HTMLParser):
    """Checks that tags are closed in order, and notes them with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)


def page(*blocks: Block) -> str:
    return render("Title", ["lead"], [Section("Part", blocks)])


def chart(name: str = "one", **look: object) -> Chart:
    return Chart(go.Figure(go.Scatter(y=[1, 2], name=EVIL, **look)), "caption", name)


def test_a_page_without_charts_is_small_and_asks_for_nothing() -> None:
    text = page(Text(("words",)))
    assert len(text) < 20_000
    assert GENERATOR in text[:1000]
    assert "://" not in text
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)


def test_plotly_is_inside_once() -> None:
    text = page(chart("one"), chart("two"))
    assert text.count("plotly.js v") == 1
    assert not any("src" in attributes for tag, attributes in Tree(text).tags if tag == "script")


@pytest.mark.parametrize(
    "block",
    [
        Text((EVIL,)),
        Verdict(EVIL),
        Table(EVIL, (EVIL,), ((EVIL,), (Cell(EVIL, 1.0),)), EVIL),
        chart(),
        Picture(b"png", EVIL, EVIL + '"'),
        Code(EVIL, EVIL),
    ],
)
def test_text_never_becomes_a_part_of_the_page(block: Block) -> None:
    text = render(EVIL, [EVIL], [Section(EVIL, (block,))])
    tree = Tree(text)
    assert "<script>alert" not in text
    assert "</script>alert" not in text
    assert EVIL in tree.words
    assert sum(tag == "script" for tag, _ in tree.tags) == (3 if isinstance(block, Chart) else 1)


def test_a_chart_keeps_its_data_and_takes_the_look_of_the_page() -> None:
    text = page(chart(line={"color": "var(--series-2)"}))
    spec = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', text)[0])
    assert spec["data"][0]["name"] == EVIL
    assert spec["data"][0]["y"] == [1, 2]
    assert spec["data"][0]["line"]["color"] == "var(--series-2)"
    assert spec["layout"]["template"]["layout"]["font"]["color"] == "var(--ink)"
    assert "width" not in spec["layout"]


def test_numbers_are_short_to_read_and_in_full_for_programs() -> None:
    third = 1 / 3
    text = page(Table("t", ("name", "x", "y"), (("a", number(third, ".2f"), Cell("not promised", float("inf"))),)))
    assert f'<td class="number" data-value="{third!r}">0.33</td>' in text
    assert '<td class="number" data-value="Infinity">not promised</td>' in text
    assert "<td>a</td>" in text
    assert "<caption>t</caption><thead><tr>" in text


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    rows = (("0", "0.5.1", "1e-05", number(None, missing="none")), ("1", "0.6", "2", Cell("3", 3.0)))
    sides = [
        attributes.get("class") for tag, attributes in Tree(page(Table("t", tuple("abcd"), rows))).tags if tag == "th"
    ]
    assert sides == ["number", None, "number", "number"]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        ("held", "held"),
        ("did not hold", "broken"),
        ("not falsified", "told"),
        ("warning", "told"),
        ("for information", "told"),
    ],
)
def test_a_verdict_says_so_in_a_word(outcome: str, kind: str) -> None:
    text = page(Verdict("It rains.", outcome))  # type: ignore[arg-type]
    assert f'<p class="verdict {kind}"><strong>{outcome}</strong> <span>It rains.</span></p>' in text


def test_a_picture_is_inside_and_settings_are_folded() -> None:
    text = page(Picture(b"\x89PNG", "c", "in words"), Code("Settings", "a = 1\nb < 2"))
    assert '<img src="data:image/png;base64,iVBORw==" alt="in words">' in text
    assert "<details><summary>Settings</summary><pre><code>a = 1\nb &lt; 2</code></pre></details>" in text


def test_every_section_is_in_the_navigation() -> None:
    sections = [Section("First part", ()), Section("2nd: <b>", (), "two"), Section("3", ())]
    tree = Tree(render("t", [], sections))
    targets = [attributes["href"] for tag, attributes in tree.tags if tag == "a"]
    assert targets == ["#first-part", "#two", "#section-3"]
    assert [attributes["id"] for tag, attributes in tree.tags if tag == "section"] == ["first-part", "two", "section-3"]


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ([Section("a", ()), Section("a", ())], "taken"),
        ([Section("a", (chart("a"),))], "taken"),
        ([Section("a", (chart("theme"),))], "taken"),
        ([Section("a", (chart('x" onload="'),))], "cannot be a name"),
    ],
)
def test_names_are_plain_and_there_once(sections: list[Section], words: str) -> None:
    with pytest.raises(Error, match=words):
        render("t", [], sections)
