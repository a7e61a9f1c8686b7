"""`murmurcast run` and `murmurcast compare` through their real entry point."""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from murmurcast.runs.folder_lock import locked
from murmurcast.runs.result import load_run
from tests.commands import COMMAND, refused, run

NETWORK = "[network]\ngains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]\npower = [1.0, 2.0, 0.5]\n"
DIGITS = (
    NETWORK
    + """
[data]
name = "digits"
partition = "iid"
[problem]
radius = 20.0
[privacy]
epsilon = 10.0
unit = "record"
[schedule]
epochs = 6
"""
)
TINY = (
    NETWORK
    + """z = "perron"
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 150000
[run]
seeds = [4, 9]
checkpoint_every = 2000
"""
)
OF_A_FILE = """
[network]
file = "net.csv"
z = "perron"
[data]
name = "my.csv"
classes = 2
[privacy]
epsilon = 10.0
[problem]
radius = 2.0
[schedule]
epochs = 2000000
[run]
checkpoint_every = 500
"""
NET = "sender,receiver,gain\n0,1,0.9\n1,0,0.5\n1,2,0.7\n2,1,0.8\n"


def table(rows: int = 40, shift: float = 0.0) -> str:
    rng = np.random.default_rng(0)
    lines = [f"{a + shift:.4f},{b:.4f},{int(a + b > 0)}" for a, b in rng.standard_normal((rows, 2))]
    return "\n".join(["one,two,label", *lines]) + "\n"


def begin(*arguments: object, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(COMMAND), "run", *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment and two finished runs of it."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "digits.toml").write_text(DIGITS)
    ours = begin("digits.toml", "--seeds", "2", "--figure", "labels.png", cwd=folder)
    rival = begin("digits.toml", "--set", "algorithm.name=mped2fl", "--out", "rival", "--json", cwd=folder)
    for process, name in ((ours, "ours.txt"), (rival, "rival.json")):
        shown, complaint = process.communicate()
        assert process.returncode == 0, complaint
        assert complaint == ""  # the bar shows on a terminal only
        (folder / name).write_text(shown)
    return folder


def test_a_run_leaves_its_files_in_its_usual_place(digits: Path) -> None:
    names = ["data.key", "experiment.toml", "ledger.nc", "metrics.csv", "metrics.nc", "published.npz", "run.json"]
    for folder in (digits / "runs" / "digits", digits / "rival"):
        assert sorted(entry.name for entry in folder.iterdir()) == names
    assert (digits / "labels.png").read_bytes().startswith(b"\x89PNG")  # as it was asked for
    result = load_run(digits / "runs" / "digits")
    assert result.metrics["seed"].values.tolist() == [0, 1]
    assert result.metrics["epoch"].values.tolist() == [1, 2, 3, 4, 5, 6]
    assert result.published.shape == (2, 3, 10, 65)
    assert result.info["privacy"]["epsilon"] == pytest.approx(10.0)
    shown = (digits / "ours.txt").read_text()
    for words in ("1438 training", "power-controlled after 6 epochs, 2 seeds", "accuracy", "epsilon 10", "certificate"):
        assert words in shown


def test_json_is_one_object_and_nothing_else(digits: Path) -> None:
    solution = json.loads((digits / "rival.json").read_text())
    result = load_run(digits / "rival")
    assert solution["algorithm"] == result.info["algorithm"] == "mped2fl"
    assert solution["channel_uses"] == 3 * 6
    assert solution["privacy"]["epsilon"] is None
    assert solution["final"]["own_accuracy"]["mean"] == pytest.approx(float(result.final("own_accuracy").mean()))
    assert str(digits) not in (digits / "rival" / "run.json").read_text()


def test_a_second_run_into_the_same_folder_is_refused(digits: Path) -> None:
    before = (digits / "rival" / "run.json").read_bytes()
    for extra in ([], ["--resume"]):
        assert "already holds a finished run" in refused(
            run("run", "digits.toml", "--out", "rival", *extra, cwd=digits)
        )
    assert (digits / "rival" / "run.json").read_bytes() == before


def test_compare(digits: Path) -> None:
    done = run("compare", "runs/digits", "rival", cwd=digits)
    assert done.returncode == 0, done.stderr
    for words in ("digits", "rival", "own_accuracy", "power-controlled", "mped2fl", "no noise covers own models"):
        assert words in done.stdout
    done = run(
        "compare", "runs/digits", "rival", "--json", "--figure", "c.png", "--metric", "published_loss", cwd=digits
    )
    solution = json.loads(done.stdout)
    assert solution["metric"] == "published_loss"
    assert [row["name"] for row in solution["runs"]] == ["digits", "rival"]
    assert [row["spread"] is None for row in solution["runs"]] == [False, True]
    assert (digits / "c.png").read_bytes().startswith(b"\x89PNG")


def test_compare_times_a_target(digits: Path) -> None:
    """--mark is what the option was called."""
    at_once, never, formerly = (
        json.loads(run("compare", "rival", option, value, "--json", cwd=digits).stdout)
        for option, value in (("--target", "0.0"), ("--target", "1.5"), ("--mark", "0.0"))
    )
    assert (at_once["target"], at_once["runs"][0]["epochs"], at_once["runs"][0]["channel_uses"]) == (0.0, 1, 3)
    assert (never["target"], never["runs"][0]["epochs"], never["runs"][0]["channel_uses"]) == (1.5, None, None)
    assert formerly == at_once
    help_of = run("compare", "--help", cwd=digits).stdout
    assert "--target" in help_of
    assert "--mark" not in help_of


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "is not a folder"),
        (["."], "holds no finished run"),
        (["rival", "--metric", "acuracy"], "is not a metric"),
        (["rival", "--figure", "c.jpeg"], "jpeg"),
        (["rival", "--target", "nan", "--json"], "target"),
        (["rival", "--mark", "nan", "--json"], "target"),
    ],
)
def test_wrong_comparisons_are_refused(digits: Path, arguments: list[str], words: str) -> None:
    assert words in refused(run("compare", *arguments, cwd=digits))


def test_a_run_that_diverges_can_still_be_told_as_json(tmp_path: Path) -> None:
    """Unclipped, with steps far too long: figures are not finite, which JSON does not know."""
    (tmp_path / "wild.toml").write_text(TINY.replace("radius = 2.0", 'clipping = "none"'))
    sets = ["schedule.epochs=30", "schedule.step=1e9", "schedule.decay=constant", "algorithm.name=noiseless"]
    arguments = [part for item in sets for part in ("--set", item)]
    done = run("run", "wild.toml", "--json", *arguments, "--out", "wild", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
    json.loads(done.stdout)
    done = run("compare", "wild", "--json", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    json.loads(done.stdout)


def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "file").write_text("")
    begun = time.monotonic()
    assert "file" in refused(run("run", "tiny.toml", "--out", "file", cwd=tmp_path))
    assert time.monotonic() - begun < 20
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "not writable" in refused(run("run", "tiny.toml", "--out", "closed", cwd=tmp_path))


def test_a_users_files_are_not_overwritten(tmp_path: Path) -> None:
    """--out names a folder that holds an experiment of that name already, such as the user's own."""
    text = "# my own words\n" + TINY.replace("150000", "5")
    (tmp_path / "experiment.toml").write_text(text)
    run("run", "experiment.toml", "--out", ".", "--json", cwd=tmp_path)
    assert (tmp_path / "experiment.toml").read_text() == text


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """An experiment on a file, and files that are not as they should be."""
    (tmp_path / "my.toml").write_text(OF_A_FILE.replace("2000000", "3"))
    (tmp_path / "net.csv").write_text(NET)
    (tmp_path / "my.csv").write_text(table())
    (tmp_path / "nan.csv").write_text(table().replace("\n", "\nnan,1.0,0\n", 1))
    np.savez(tmp_path / "shapes.npz", x=np.zeros((5, 2)), y=np.array([0, 1, 0]))
    np.savez(tmp_path / "flat.npz", x=np.zeros(5), y=np.array([0, 1, 0, 1, 0]))
    return tmp_path


REFUSALS = {
    "data.name=nan.csv": "not a finite number",
    "data.name=shapes.npz": "rows",
    "data.name=flat.npz": "expected two dimensions",
    "data.partition=srted": "data.partition",
    "data.name=digts": "is not a data set",
    "problem.batch=100000": "batch is 100000",
    "problem.kind=quadratic": "[data] has no meaning",
    "run.seeds=0": "run.seeds is 0",
    "run.seeds=[1, 1]": "twice",
}


def test_bad_input_is_refused(files: Path) -> None:
    def outcome(number: int, setting: str) -> "subprocess.CompletedProcess[str]":
        return run("run", "my.toml", "--json", "--set", setting, "--out", f"runs/{number}", cwd=files)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(outcome, range(len(REFUSALS)), REFUSALS))
    for solution, (setting, words) in zip(done, REFUSALS.items(), strict=True):
        assert words in refused(solution), setting


@pytest.mark.parametrize("setting", ["data.name=digts", "run.seeds=[1, 1]"])
def test_a_refused_run_leaves_nothing_behind(files: Path, setting: str) -> None:
    before = sorted(files.rglob("*"))
    refused(run("run", "my.toml", "--json", "--set", setting, cwd=files))
    assert sorted(files.rglob("*")) == before


@pytest.mark.parametrize(("figure", "words"), [("a.jpeg", "jpeg"), ("no/such.png", "no"), ("a.png", "no labels")])
def test_a_refused_figure_leaves_nothing_behind(tmp_path: Path, figure: str, words: str) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert words in refused(run("run", "tiny.toml", "--figure", figure, cwd=tmp_path))
    assert [entry.name for entry in tmp_path.rglob("*")] == ["tiny.toml"]


def test_a_refusal_is_not_preceded_by_tables(files: Path) -> None:
    """Nothing on stdout, with or without --json: settings are checked before the data is shown."""
    refused(run("run", "my.toml", "--set", "run.checkpoint_every=0", cwd=files))


def test_no_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(NETWORK + "[privacy]\nepsilon = 1.0\n")
    assert "there is no [data]" in refused(run("run", "my.toml", cwd=tmp_path))


@pytest.mark.slow
def test_a_stop_and_drops_fixed_beforehand(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(DIGITS + "[run]\nstop_after = 5\n[run.drops]\n1 = 3\n")
    done = run("run", "my.toml", "--set", "problem.batch=16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "after 5 epochs" in done.stdout
    assert done.stdout.count("no amplification by sampling") == 1
    done = run("certify", "runs/my", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("kept", "stops after epoch 5", "node 1 after epoch 3", "no amplification by sampling"):
        assert done.stdout.count(words) >= 1, words
    assert run("report", "runs/my", cwd=tmp_path).returncode == 0
    page = (tmp_path / "report.html").read_text()
    for words in ("It stops after epoch 5 of 6", "node 1 after epoch 3", "no amplification by sampling"):
        assert page.count(words) == 1 + (words == "node 1 after epoch 3"), words  # drops are among the settings, too
    assert "weights change" in page


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("run.stop_after=9", "6 epochs"),
        ("run.drops={x=3}", 'node "x"'),
        ("run.drops={7=3}", "node 7"),
        ("run.drops={0=2, 1=2}", "would hear nobody"),
        ("run.drops={0=1, 1=1, 2=1}", "all 3 nodes drop out"),
    ],
)
def test_impossible_ends_leave_nothing_behind(tmp_path: Path, value: str, named: str) -> None:
    (tmp_path / "my.toml").write_text(DIGITS)
    assert named in refused(run("run", "my.toml", "--set", value, cwd=tmp_path))
    assert not (tmp_path / "runs" / "my").exists()


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.replace("150000", "5"))
    (tmp_path / "mine").mkdir()
    with locked(tmp_path / "mine"):
        assert "another process is writing" in refused(run("run", "tiny.toml", "--out", "mine", cwd=tmp_path))
    assert run("run", "tiny.toml", "--out", "mine", "--json", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "mine" / ".lock").exists()


@pytest.mark.parametrize(("step", "words"), [("1e20", "diverged by epoch 1"), ("4000.0", "far worse than they began")])
@pytest.mark.slow
def test_steps_that_are_too_long_are_not_passed_over(tmp_path: Path, step: str, words: str) -> None:
    (tmp_path / "my.toml").write_text(DIGITS)
    done = run("run", "my.toml", "--set", f"schedule.step={step}", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(words in line for line in json.loads(done.stdout)["warnings"]), done.stdout
    done = run("run", "my.toml", "--out", "runs/usual", "--json", cwd=tmp_path)
    assert not any("diverged" in line or "worse" in line for line in json.loads(done.stdout)["warnings"])
