"""Tables on consoles of every width: whatever stands in them can be read."""

from io import StringIO

import pytest
from rich.console import Console

from murmurcast.reports import text_tables

HEADINGS = ("adversary", "linear mu", "right", "mu >=", "epsilon >=", "TPR at 0.1", "TPR at 0.001", "catches")
ROWS = (
    ("receiver 8", "0.653", "63.1%", "0.57", "0.979", "0.295", "0.00846", "29%"),
    ("published, with the air", "2", "84.4%", "1.91", "3.5", "0.769", "0.222", "91%"),
    ("certified, at most", "", "", "2", "10", "0.764", "0.138", ""),
)
WIDE = 104  # all of it side by side


def shown(width: int, rows: "tuple[tuple[str, ...], ...]" = ROWS, headings: tuple[str, ...] = HEADINGS) -> list[str]:
    kept = StringIO()
    text_tables.show_table(Console(file=kept, width=width), "Title", rows, headings, "note")
    return kept.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 60, 80, 90, WIDE, 200])
def test_numbers_are_whole_at_any_width(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert "…" not in " ".join(lines)
    for row in ROWS:
        assert set(" ".join(row[1:]).split()) <= set(words)


def test_a_wide_table_goes_on_below_behind_its_first_column() -> None:
    lines = shown(70)
    heads = [line.split()[1:3] for line in lines if line.strip().startswith("adversary")]
    assert heads == [["linear", "mu"], ["TPR", "at"]]
    assert sum("published, with the air" in line for line in lines) == 2


def test_headings_wrap_before_names() -> None:
    lines = shown(WIDE - 5)
    assert any("published, with the air" in line for line in lines)
    assert sum("receiver 8" in line for line in lines) == 1
    assert not any("TPR at 0.001" in line for line in lines)


def test_what_fits_is_left_as_it_is() -> None:
    assert any(all(heading in line for heading in HEADINGS) for line in shown(WIDE))
    assert shown(WIDE)[2:] == [line[:WIDE] for line in shown(200)[2:]]


def test_long_names_and_markup_are_kept() -> None:
    name = "/runs/" + "a" * 90 + "[b]"
    lines = shown(40, ((name, "12.34567"),), ("run", "loss"))
    assert "".join(line.split()[0] for line in lines if line.strip().startswith(("/", "a", "["))) == name
    assert any("12.34567" in line for line in lines)
