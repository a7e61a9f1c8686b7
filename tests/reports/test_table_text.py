"""Tables for LaTeX and Markdown: what names hold becomes neither a command nor a column."""

import pytest

from murmurcast.reports.table_text import latex, markdown

HEADINGS = ("run", "own_accuracy", "against first", "epochs to 0.5")
ROWS = (
    ("ours", "0.7500 ± 0.0100", "-", "30"),
    ("a_b & 100 % | {x} ^ ~ \\ $5 #1 <i>", "0.5000", "-0.2500 ± 0.1000 *", "never"),
)


def test_latex_is_a_table_of_booktabs() -> None:
    lines = latex("At the end, own_accuracy", HEADINGS, ROWS, ("uses: of the channel",)).split("\n")
    assert lines[0] == "% At the end, own_accuracy"
    assert lines[1] == r"\begin{tabular}{lrrr}"
    assert lines[2] == r"\toprule"
    assert lines[3] == r"run & own\_accuracy & against first & epochs to 0.5 \\"
    assert lines[4] == r"\midrule"
    assert lines[5] == r"ours & 0.7500 $\pm$ 0.0100 & - & 30 \\"
    assert lines[7:9] == [r"\bottomrule", r"\end{tabular}"]
    assert lines[9] == "% uses: of the channel"


def test_latex_escapes_every_character_that_means_something() -> None:
    line = latex("t", HEADINGS, ROWS).split("\n")[6]
    name, _, difference, _ = line.split(" & ", 3) if line.count(" & ") == 3 else ("", "", "", "")
    assert name == (
        r"a\_b \& 100 \% | \{x\} \textasciicircum{} \textasciitilde{} \textbackslash{} \$5 \#1 "
        r"\textless{}i\textgreater{}"
    )
    assert difference == r"$-0.2500$ $\pm$ 0.1000 *"


def test_markdown_keeps_its_columns() -> None:
    text = markdown("At the end, own_accuracy", HEADINGS, ROWS, ("uses: of the channel",))
    title, table, note = text.split("\n\n")
    assert title == r"**At the end, own\_accuracy**"
    assert note == "Uses: of the channel."
    head, rule, first, second = table.split("\n")
    assert head == r"| run | own\_accuracy | against first | epochs to 0.5 |"
    assert rule == "|---|---:|---:|---:|"
    assert first == "| ours | 0.7500 ± 0.0100 | - | 30 |"
    assert second.replace(r"\|", "").count("|") == 5
    assert r"\<i\>" in second


@pytest.mark.parametrize("written", [latex, markdown])
def test_a_name_cannot_add_a_line(written: object) -> None:
    assert callable(written)
    honest, forged = (written("t", ("run",), ((name,),)) for name in ("ours", "ours\n\\\\ other & 1\r\x1b[31m| x |"))
    assert forged.count("\n") == honest.count("\n")
    assert "\x1b" not in forged


def test_an_empty_table_has_no_numbers() -> None:
    assert r"\begin{tabular}{ll}" in latex("t", ("a", "b"), ())
