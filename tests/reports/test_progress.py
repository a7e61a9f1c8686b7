"""`mc.progress`: in a terminal a line of rich's, in a notebook a line of the cell's output, elsewhere nothing."""

import re
from typing import Any

import pytest

import murmurcast as mc
from murmurcast.reports import progress as progress_module
from tests.reports.examples import algorithm, problem


class Handle:
    """Stands for a cell's output: keeps all that was shown in it."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, page: Any) -> None:
        self.shown.append(page.data)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A notebook's cell: rich takes this for a notebook, and every display is kept."""
    display = pytest.importorskip("IPython.display", reason="IPython is not installed")
    shown: list[str] = []

    def keep(page: Any, display_id: bool = False) -> Handle:
        assert display_id
        shown.append(page.data)
        return Handle(shown)

    monkeypatch.setattr(display, "display", keep)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN", 0.0)
    return shown


def words(text: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL).split())


def test_a_run_in_a_notebook_counts_its_epochs_and_keeps_the_last_line(cell: list[str]) -> None:
    with mc.progress("training <here>") as bar:
        mc.run(algorithm("power_controlled"), problem(), options=mc.RunOptions(on_progress=bar, evaluate_every=4))
    assert words(cell[0]) == "training &lt;here&gt; · 0:00:00"
    counted = [re.findall(r'value="(\d+)" max="12"', text) for text in cell[1:]]
    done = [int(only) for (only,) in counted]
    assert done == sorted(done)
    assert {4, 8, 12} <= set(done)  # and between evaluations too, where they take long
    assert re.search(r"12/12 · \d:\d\d:\d\d · training &lt;here&gt;, published distance \d", words(cell[-1]))
    assert "own" not in words(cell[-1])  # what no noise covers is not shown around


def test_lines_that_follow_each_other_quickly_are_left_out(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_SECONDS_BETWEEN", 3600.0)
    with mc.progress() as bar:
        for done in range(1, 100):
            bar(done, 200)
        bar.stage("checking")
        bar(1, 3, "node 0")
    assert len(cell) == 3
    assert words(cell[1]).startswith("checking · ")
    assert words(cell[2]).endswith(" · checking, node 0")
    assert 'value="1" max="3"' in cell[-1]


def test_what_was_stopped_says_so(cell: list[str]) -> None:

    def work() -> None:
        with mc.progress() as bar:
            bar(3, 9)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert "3/9" in cell[-1]
    assert words(cell[-1]).endswith("stopped: training")


def test_in_a_pipe_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with mc.progress() as bar:
        bar.stage("reading")
        bar(1, 2, {"published_accuracy": 0.5})
        bar(2, 2, "words")
    assert capsys.readouterr() == ("", "")


def test_in_a_terminal_rich_draws_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    with mc.progress("reading") as bar:
        bar(1, 2, {"published_accuracy": 0.5, "own_accuracy": 0.75})
    shown = capsys.readouterr().err
    assert "reading, published accuracy 0.5" in shown
    assert "1/2" in shown
    assert "0.75" not in shown
