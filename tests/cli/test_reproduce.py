"""`murmurcast reproduce` through its real entry point, on a machine where MNIST cannot be got."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from murmurcast.reproduction.settings import PROMISED, settings
from murmurcast.runs.result import load_run
from tests.cli.test_plan import COMMAND, refused, run

# No mirror, no registry, no cache: every source of MNIST fails at once.
NOWHERE = "http://127.0.0.1:9"
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "npm_config_offline": "true",
    "npm_config_registry": NOWHERE,
    **{f"{scheme}_proxy": NOWHERE for scheme in ("http", "https")},
    **{f"{scheme}_PROXY": NOWHERE for scheme in ("HTTP", "HTTPS")},
}


def reproduced(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **OFFLINE, "MURMURCAST_CACHE": str(folder / "cache")}
    environment.pop("MURMURCAST_DATA", None)
    command = [str(COMMAND), "reproduce", "--seeds", "2", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("offline")
    finished = reproduced(folder)
    assert finished.returncode == 0, finished.stderr
    return folder / "reproduction", finished


Done = tuple[Path, subprocess.CompletedProcess[str]]


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_without_mnist_the_first_line_says_that_digits_stand_in(done: Done) -> None:
    folder, finished = done
    assert finished.stdout.startswith("This is not the paper's data: digits stand in for MNIST")
    first = json.loads((folder / "reproduction.json").read_text())["first_lines"][0]
    assert first.startswith("This is not the paper's data")
    assert first in (folder / "summary.md").read_text()
    assert "This is not the paper&#x27;s data" in (folder / "report.html").read_text()
    assert "Only 2 seeds" in finished.stdout


@pytest.mark.slow
def test_the_table_holds_what_the_runs_hold(done: Done) -> None:
    folder, _ = done
    rows = table(folder, "accuracy")
    assert len(rows) == len(list((folder / "runs").iterdir())) == len(settings("digits", 2))
    ours, certified = load_run(folder / "runs" / "published-power-controlled-1"), "certified-power-controlled-3"
    assert rows[0]["run"] == "Algorithm 1, epsilon 1"
    assert rows[0]["accuracy"] == f"{ours.final('own_accuracy').mean():.4f}"
    [outcome] = [row for row in rows if row["setting"] == "Certified" and row["run"] == "Algorithm 1, epsilon 3"]
    assert outcome["accuracy"] == f"{load_run(folder / 'runs' / certified).final('published_accuracy').mean():.4f}"
    assert outcome["promised in all"] == "epsilon 3, against everybody"
    [server] = [row for row in rows if row["run"] == "trusted server, epsilon 3"]
    assert server["promised in all"] == "epsilon 3, trusted server"


@pytest.mark.slow
def test_the_certified_runs_promise_their_budget_and_the_others_nothing(done: Done) -> None:
    folder, _ = done
    for path in (folder / "runs").iterdir():
        privacy = load_run(path).info["privacy"]
        if path.name.startswith(PROMISED) and "noiseless" not in path.name:
            assert privacy["epsilon"] == pytest.approx(float(path.name.rsplit("-", 1)[1]), rel=1e-9)
            assert privacy["unit"] == "record"
        else:
            assert privacy["epsilon"] is None


@pytest.mark.slow
def test_both_networks_are_planned_with_their_own_bound(done: Done) -> None:
    folder, _ = done
    budgets = {row["budget"]: row for row in table(folder, "cost") if row["by"] == "the paper's Corollary"}
    assert float(budgets["1"]["epsilon"]) == pytest.approx(100, rel=1e-3)
    assert float(budgets["2"]["epsilon"]) == pytest.approx(200, rel=1e-3)


@pytest.mark.slow
def test_matched_steps_are_as_long_as_algorithm_1_s(done: Done) -> None:
    folder, _ = done
    ours, published, matched = (
        load_run(folder / "runs" / name).ledger
        for name in ("published-power-controlled-1", "published-mped2fl-1", "matched-mped2fl-1")
    )
    steps = np.asarray(matched["model_receiving_step"])
    np.testing.assert_allclose(steps, 4 * np.asarray(published["model_receiving_step"]))
    # Algorithm 1 divides by z, which ends near 1/4.
    limit = np.asarray(ours["model_receiving_z"])[-1]
    np.testing.assert_allclose(steps[-1], np.asarray(ours["model_receiving_step"])[-1] / limit.mean(), rtol=0.01)


@pytest.mark.slow
def test_figures_are_one_column_wide_and_curves_can_be_plotted(done: Done) -> None:
    folder, _ = done
    for name in ("figure-1", "figure-2", "figure-3", "certified", "regret", "growth", "rate", "counterexample"):
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        with Image.open(folder / "figures" / f"{name}.png") as image:
            assert image.width == 700  # 3.5 inches at 200 dots
            grey = np.asarray(image.convert("L"))
        assert (grey < 128).mean() > 0.005, f"{name} is empty"
    columns = np.loadtxt(folder / "curves" / "published-mped2fl-2.dat", skiprows=1)
    run = load_run(folder / "runs" / "published-mped2fl-2")
    np.testing.assert_allclose(columns[:, 1], 4 * columns[:, 0])
    np.testing.assert_allclose(columns[:, 2], run.metrics["own_accuracy"].mean(("seed", "node")), rtol=1e-6)


@pytest.mark.slow
def test_time_is_told_by_part(done: Done) -> None:
    _, finished = done
    for part in ("getting the data", "As published", "Matched steps", "Certified", "theory", "counterexample"):
        assert part in finished.stdout
        assert part in finished.stderr  # as it goes
    assert "Time: " in finished.stdout
    assert "Traceback" not in finished.stderr


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert "something else" in refused(run("reproduce", "--out", tmp_path, cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--seeds", "0"], "seeds"), (["--data", "cifar"], "cifar"), (["--out", "file"], "file")],
)
def test_bad_input_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "file").write_text("")
    assert words in refused(run("reproduce", *arguments, cwd=tmp_path))


def test_mnist_that_was_asked_for_by_name_is_not_replaced(tmp_path: Path) -> None:
    done = reproduced(tmp_path, "--data", "mnist")
    assert done.returncode == 2
    assert done.stderr.startswith("error: MNIST could not be obtained. Tried:")
    assert "\nhint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.glob("*reproduction*"))


@pytest.mark.slow
def test_two_runs_give_the_same_tables(done: Done, tmp_path: Path) -> None:
    folder, _ = done
    again = reproduced(tmp_path, "--data", "digits")
    assert again.returncode == 0, again.stderr
    for path in (folder / "tables").iterdir():
        assert path.read_bytes() == (tmp_path / "reproduction" / "tables" / path.name).read_bytes(), path.name
    for path in (folder / "curves").iterdir():
        assert path.read_bytes() == (tmp_path / "reproduction" / "curves" / path.name).read_bytes(), path.name


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The whole of it, as `make reproduce` makes it."""
    folder = tmp_path_factory.mktemp("mnist")
    command = [str(COMMAND), "reproduce", "--data", "mnist", "--json"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return folder / "reproduction", json.loads(finished.stdout)


@pytest.mark.slow
def test_on_mnist_the_paper_s_main_claim_holds_as_published(mnist: tuple[Path, dict[str, Any]]) -> None:
    folder, stated = mnist
    assert stated["first_lines"] == [
        "The paper's main claim held as published: from epoch 20 on Algorithm 1 lies above mPED2FL with both budgets."
    ]
    for budget in (1, 2):
        ours, rival = (
            np.loadtxt(folder / "curves" / f"published-{name}-{budget}.dat", skiprows=1)
            for name in ("power-controlled", "mped2fl")
        )
        late = ours[:, 0] >= 20
        assert (ours[late, 2] > rival[late, 2]).all()


@pytest.mark.slow
def test_on_mnist_the_certified_setting_learns(mnist: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = mnist

    def reached(name: str) -> float:
        return float(load_run(folder / "runs" / f"certified-{name}").final("published_accuracy").mean())

    assert reached("power-controlled-1") >= 0.87
    assert reached("power-controlled-1") >= reached("noiseless-1") - 0.02
    assert reached("power-controlled-0.3") >= 0.83


@pytest.mark.slow
def test_the_documentation_shows_what_comes_out_on_mnist(mnist: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = mnist
    page = (Path(__file__).parents[2] / "docs" / "reproduced.md").read_text()
    for row in table(folder, "accuracy"):
        cells = list(row.values())
        [line] = [line for line in page.splitlines() if line.startswith(f"| {cells[0]} | {cells[1]} |")]
        shown = [cell.strip() for cell in line.strip("|").split("|")]
        assert float(shown[2]) == pytest.approx(float(cells[2]), abs=0.01), cells[1]
        assert shown[5] == cells[5]
    for row in table(folder, "cost"):
        assert f"| {' | '.join(row.values())} |" in page
