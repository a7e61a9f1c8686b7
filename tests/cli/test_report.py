"""`murmurcast report` through its real entry point."""

from pathlib import Path

import pytest

from murmurcast.runs.result import load_run
from tests.cli.test_plan import refused, run
from tests.cli.test_run import DIGITS


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs, and a file of somebody's own."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "digits.toml").write_text(DIGITS)
    (folder / "mine.html").write_text("<p>my own</p>")
    for name in ("power-controlled", "mped2fl"):
        done = run("run", "digits.toml", "--set", f"algorithm.name={name}", "--out", name, "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_a_page_by_its_usual_name(runs: Path) -> None:
    done = run("report", "power-controlled", "mped2fl", cwd=runs)
    assert done.returncode == 0, done.stderr
    page = (runs / "report.html").read_text(encoding="utf-8")
    assert done.stdout == f"report.html, {(runs / 'report.html').stat().st_size / 2**20:.1f} MiB\n"
    final = float(load_run(runs / "power-controlled").final("published_accuracy").mean())
    assert f'data-value="{final!r}">{final:.4f}</td>' in page
    for words in ("Run power-controlled", "Run mped2fl", "[network]", "How to cite", "certificate, unit record"):
        assert words in page
    assert str(runs) not in page


def test_an_earlier_page_is_overwritten_and_nothing_else(runs: Path) -> None:
    assert run("report", "mped2fl", "-o", "again.html", cwd=runs).returncode == 0
    first = (runs / "again.html").read_bytes()
    assert run("report", "power-controlled", "-o", "again.html", cwd=runs).returncode == 0
    assert (runs / "again.html").read_bytes() != first
    assert "mine.html" in refused(run("report", "mped2fl", "-o", "mine.html", cwd=runs))
    assert (runs / "mine.html").read_text() == "<p>my own</p>"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "is not a folder"),
        (["."], "holds no finished run"),
        (["mped2fl", "-o", "page.pdf"], "page.pdf"),
        (["mped2fl", "-o", "no/page.html"], "does not exist"),
        ([], "RUN..."),
    ],
)
def test_wrong_reports_are_refused(runs: Path, arguments: list[str], words: str) -> None:
    before = sorted(runs.iterdir())
    assert words in refused(run("report", *arguments, cwd=runs))
    assert sorted(runs.iterdir()) == before


def test_help_has_examples() -> None:
    done = run("report", "--help")
    assert done.returncode == 0
    assert "murmurcast report runs/ours runs/rival -o rivals.html" in done.stdout
