"""`murmurcast tune` through its real entry point."""

import json
import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests import commands

TINY = """# A clinic's file.
[network]
gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]
z = "perron"

[data]
name = "private.npz"        # is not here yet
classes = 10
partition = "sorted"
test_fraction = 0.2

[privacy]
epsilon = 20.0              # in all
unit = "record"

[schedule]
epochs = 10                 # as many as the channel is free for
step = 0.3
noise_timing = "aligned"
"""
FEW = ("--try", "clip=0.5,1", "--try", "step=0.3,1", "--seeds", "2")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("tune")
    (folder / "tiny.toml").write_text(TINY)
    done = commands.run("tune", "tiny.toml", "--public", "digits", *FEW, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_the_table_says_what_was_tried_on_what_and_what_it_cost(tuned: tuple[Path, str]) -> None:
    _, shown = tuned
    assert "Tried on digits" in shown
    assert "trained on 1438 examples of digits, judged on its test part, 359 others: both are public" in shown
    assert "no record of the private set was read" in shown
    assert "mean over nodes and 2 seeds" in shown
    assert shown.count(" sqrt ") == 4 + 1
    assert "the best lies at the edge" in shown
    assert shown.rstrip().endswith("tiny-tuned.toml")


def test_the_choice_stands_in_a_copy_with_its_origin_and_all_comments(tuned: tuple[Path, str]) -> None:
    folder, shown = tuned
    text = (folder / "tiny-tuned.toml").read_text()
    assert (folder / "tiny.toml").read_text() == TINY
    for comment in ("# A clinic's file.", "# is not here yet", "# in all", "# as many as the channel is free for"):
        assert comment in text
    values = tomllib.loads(text)
    said = f"Chosen: clip {values['privacy']['clip']:g}, sqrt step {values['schedule']['step']:g}, 10 epochs"
    assert said in shown
    chosen = values["privacy"]["settings_chosen"]
    assert chosen.startswith("on public data: digits, sha256 ")
    assert chosen.endswith(", 4 settings tried")
    assert values["data"] == tomllib.loads(TINY)["data"]


@pytest.mark.slow
def test_a_run_of_the_copy_is_certified_with_the_origin(tuned: tuple[Path, str]) -> None:
    folder, _ = tuned
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 10
    np.savez(folder / "private.npz", x=rng.random((200, 64)) + np.eye(10)[labels].repeat(7, axis=1)[:, :64], y=labels)
    done = commands.run("run", "tiny-tuned.toml", "--seeds", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    certified = commands.run("certify", "runs/tiny-tuned", cwd=folder)
    assert certified.returncode == 0, certified.stderr
    together = " ".join(certified.stdout.split())
    assert "settings: on public data: digits, sha256" in together
    assert "4 settings tried" in together
    assert "does not state" not in certified.stdout


def test_the_same_command_repeats_nothing_and_says_the_same(tuned: tuple[Path, str]) -> None:
    folder, shown = tuned
    kept = {path: path.stat().st_mtime_ns for path in (folder / "tuning" / "tiny" / "tries").glob("*.json")}
    assert len(kept) == 4
    before = (folder / "tiny-tuned.toml").read_bytes()
    again = commands.run("tune", "tiny.toml", "--public", "digits", *FEW, cwd=folder)
    assert (again.returncode, again.stdout) == (0, shown)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert (folder / "tiny-tuned.toml").read_bytes() == before
    as_json = commands.run("tune", "tiny.toml", "--public", "digits", *FEW, "--json", cwd=folder)
    values = json.loads(as_json.stdout)
    assert len(values["tries"]) == 4
    assert values["chosen"] == max(values["tries"], key=lambda one: one["value"])
    assert values["file"] == "tiny-tuned.toml"
    assert values["comments_kept"] is True
    assert values["settings_chosen"].startswith("on public data: digits")
    assert values["as_in_file"]["step"] == 0.3


@pytest.mark.slow
def test_what_is_set_goes_into_the_copy_and_paths_follow_it(tuned: tuple[Path, str]) -> None:
    folder, _ = tuned
    (folder / "elsewhere").mkdir()
    words = ("--set", "privacy.epsilon=30.0", "--out", "elsewhere/other.toml", "--try", "clip=1", "--try", "step=1")
    done = commands.run("tune", "tiny.toml", "--public", "digits", *words, "--seeds", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    values = tomllib.loads((folder / "elsewhere" / "other.toml").read_text())
    assert values["privacy"]["epsilon"] == 30.0
    assert values["data"]["name"] == os.path.join("..", "private.npz")
    assert "mean over nodes and 1 seed;" in done.stdout


@pytest.mark.slow
def test_uses_and_travel_become_what_was_chosen(tmp_path: Path) -> None:
    """A file that leaves epochs and step to be settled is written with them, and with the rounds that were chosen."""
    ring = TINY.replace("gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]", 'topology = "ring"\nnodes = 9')
    given = ring.replace("epochs = 10 ", "uses = 40 ").replace("step = 0.3", "travel = 3.0")
    (tmp_path / "ring.toml").write_text(given)
    words = ("--try", "clip=1", "--try", "step=1", "--try", "epochs=10", "--seeds", "1")
    done = commands.run("tune", "ring.toml", "--public", "digits", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    schedule = tomllib.loads((tmp_path / "ring-tuned.toml").read_text())["schedule"]
    expected = {"epochs": 10, "rounds": 4, "accelerated": True, "step": 1.0, "decay": "sqrt", "noise_timing": "aligned"}
    assert schedule == expected
    other = ("--set", "schedule.epochs=6", "--out", "other.toml", "--try", "clip=1", "--try", "step=1", "--seeds", "1")
    done = commands.run("tune", "ring.toml", "--public", "digits", *other, "--try", "epochs=6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    schedule = tomllib.loads((tmp_path / "other.toml").read_text())["schedule"]
    assert (schedule["epochs"], "uses" in schedule, "rounds" in schedule) == (6, False, False)


def test_another_file_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    one = ("--public", "digits", "--try", "clip=1", "--try", "step=0.3", "--seeds", "1")
    (tmp_path / "tiny-tuned.toml").write_text("[privacy]\nepsilon = 1.0\n")
    said = commands.refused(commands.run("tune", "tiny.toml", *one, cwd=tmp_path))
    assert "tiny-tuned.toml exists" in said
    assert "--overwrite" in said
    assert not (tmp_path / "tuning").exists()  # said before the work
    assert commands.run("tune", "tiny.toml", *one, "--overwrite", cwd=tmp_path).returncode == 0
    assert commands.run("tune", "tiny.toml", *one, cwd=tmp_path).returncode == 0  # its own
    mine = (tmp_path / "tiny-tuned.toml").read_text() + "# edited by hand\n"
    (tmp_path / "tiny-tuned.toml").write_text(mine)
    assert "exists" in commands.refused(commands.run("tune", "tiny.toml", *one, cwd=tmp_path))
    assert (tmp_path / "tiny-tuned.toml").read_text() == mine
    assert "exists" in commands.refused(commands.run("tune", "tiny.toml", *one, "--out", "tiny.toml", cwd=tmp_path))


def test_lost_comments_are_told(tmp_path: Path) -> None:
    text = TINY.replace("[schedule]\nepochs = 10 ", "[schedule]\n'epochs' = 10 ")
    (tmp_path / "tiny.toml").write_text(text)
    one = ("--try", "clip=1", "--try", "step=0.3", "--seeds", "1")
    done = commands.run("tune", "tiny.toml", "--public", "digits", *one, cwd=tmp_path)
    assert "comments of the file are lost" in done.stdout
    assert tomllib.loads((tmp_path / "tiny-tuned.toml").read_text())["schedule"]["epochs"] == 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--public", "digit"), 'no public set "digit"'),
        (("--public", "none.csv"), "none.csv does not exist"),
        (("--public", "private.npz"), "private.npz"),
        ((), "--public"),
        (("--public", "digits", "--try", "clip"), "expected KEY=VALUE"),
        (("--public", "digits", "--try", "clips=1"), 'did you mean "clip"'),
        (("--public", "digits", "--try", "clip=much"), "not a number"),
        (("--public", "digits", "--try", "epochs=2.5"), "not a whole number"),
        (("--public", "digits", "--try", "epochs=1"), "epochs is 1"),
        (("--public", "digits", "--try", "clip=0"), "clip is 0"),
        (("--public", "digits", "--try", "clip=1", "--try", "clip=2"), "given twice"),
        (("--public", "digits", "--try", "decay=slow"), 'decay is "slow"'),
        (("--public", "digits", "--seeds", "0"), "seeds is 0"),
        (("--public", "digits", "--out", "nowhere/x.toml"), "does not exist"),
        (("--public", "digits", "--set", "privacy.epsilon=-1"), "epsilon is -1"),
        (("--public", "logistic", "--set", 'data.features=["hog"]'), "cannot take the private one's place"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    assert said in commands.refused(commands.run("tune", "tiny.toml", *words, cwd=tmp_path))
    assert not (tmp_path / "tiny-tuned.toml").exists()


def test_the_private_file_itself_is_refused_by_any_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    np.savez(tmp_path / "private.npz", x=np.eye(20), y=np.arange(20) % 10)
    (tmp_path / "other.npz").symlink_to("private.npz")
    for name in ("private.npz", "other.npz"):
        said = commands.refused(commands.run("tune", "tiny.toml", "--public", name, cwd=tmp_path))
        assert "is the set that the experiment protects" in said


@pytest.mark.slow
def test_a_stop_loses_nothing_that_is_done(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    steps = ",".join(f"{0.01 * step:.2f}" for step in range(1, 61))  # far more than are done when it is stopped
    tried = ("--try", "clip=1", "--try", f"step={steps}", "--seeds", "1")
    words = [str(commands.COMMAND), "tune", "tiny.toml", "--public", "logistic", *tried]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tries = tmp_path / "tuning" / "tiny" / "tries"
    while process.poll() is None and len(list(tries.glob("*.json"))) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stated = process.communicate()
    assert process.returncode == 130, stated
    assert "what was tried is kept in tuning/tiny" in stated
    assert not (tmp_path / "tiny-tuned.toml").exists()
    kept = {path: path.stat().st_mtime_ns for path in tries.glob("*.json")}
    assert 2 <= len(kept) < 60
    assert commands.run(*words[1:], cwd=tmp_path).returncode == 0
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert len(list(tries.glob("*.json"))) == 60
