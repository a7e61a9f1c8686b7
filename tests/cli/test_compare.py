"""`murmurcast compare` with intervals, differences and other formats, through its real entry point."""

import csv
import io
import json
from pathlib import Path

import pytest

import murmurcast as mc
from tests.commands import refused, run
from tests.reports.examples import example


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with the same seeds, and one with a single seed."""
    built = tmp_path_factory.mktemp("runs")
    example("power_controlled", 3).save(built / "ours")
    example("mped2fl", 3).save(built / "rival")
    example("noiseless", 1, "alone_&_quick").save(built / "alone")
    return built


@pytest.mark.slow
def test_the_table_has_intervals_and_differences(folder: Path) -> None:
    done = run("compare", "ours", "rival", "--metric", "published_distance", cwd=folder)
    assert done.returncode == 0, done.stderr
    ours, rival = (mc.load_run(folder / name) for name in ("ours", "rival"))
    cells = mc.compare(ours, rival, metric="published_distance").cells
    for cell in (cells[0][2], cells[1][2], cells[1][4]):
        assert "±" in cell
        assert cell in done.stdout
    for words in ("95 % interval (Student's t over seeds)", "against first: minus the first run, seed by seed"):
        assert words in done.stdout
    assert "against" not in run("compare", "ours", cwd=folder).stdout


def test_one_seed_is_said_to_have_no_interval(folder: Path) -> None:
    assert "one seed, so no interval" in run("compare", "alone", cwd=folder).stdout
    shown = run("compare", "ours", "alone", cwd=folder).stdout
    assert "none with one seed" in shown
    assert "*: the seeds are others, so not seed by seed" in shown


def test_json_has_them_in_full(folder: Path) -> None:
    result = json.loads(run("compare", "ours", "rival", "alone", "--json", cwd=folder).stdout)
    first, second, third = result["runs"]
    assert first["seeds"] == [0, 1, 2]
    assert first["interval"][0] < first["final"] < first["interval"][1]
    assert (first["difference"], first["paired"]) == (None, None)
    low, high = second["difference_interval"]
    assert low < second["difference"] < high
    assert second["difference"] == pytest.approx(second["final"] - first["final"], rel=1e-5)
    assert (second["paired"], third["paired"]) == (True, False)
    assert (third["interval"], third["difference_interval"]) == (None, None)
    assert "epsilon" not in first


def test_csv_is_the_frame(folder: Path) -> None:
    metric = ("--metric", "published_distance")
    done = run("compare", "ours", "rival", *metric, "--format", "csv", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    stated = json.loads(run("compare", "ours", "rival", *metric, "--json", cwd=folder).stdout)["runs"]
    assert [row["name"] for row in rows] == ["power-controlled", "mped2fl"]
    for row, one in zip(rows, stated, strict=True):
        assert float(row["final"]) == one["final"]
        assert [float(row["low"]), float(row["high"])] == pytest.approx(one["interval"])
    assert float(rows[1]["difference"]) == stated[1]["difference"]
    assert float(rows[0]["epsilon"]) == stated[0]["epsilon"]
    assert rows[1]["epsilon"] == ""


def test_latex_and_markdown_have_the_same_cells(folder: Path) -> None:
    latex = run("compare", "ours", "alone", "--metric", "published_distance", "--format", "latex", cwd=folder).stdout
    assert latex.count(r"\\") == 3
    assert r"alone\_\&\_quick & noiseless" in latex
    assert r"$\pm$" in latex
    assert latex.startswith("% At the end, published_distance\n")
    shown = run("compare", "ours", "alone", "--format", "md", cwd=folder).stdout
    assert r"| alone\_&\_quick | noiseless |" in shown
    assert "No noise covers own models" in shown


def test_two_formats_at_once_are_refused(folder: Path) -> None:
    assert "two formats" in refused(run("compare", "ours", "--json", "--format", "md", cwd=folder))
    done = run("compare", "ours", "--format", "html", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
