"""The command through its real entry point."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, save_npz

from tests.commands import COMMAND as COMMAND
from tests.commands import refused as refused
from tests.commands import run as run
from tests.planning.test_reference import INSTANCES, experiment_text


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    done = run("plan", "--example", "paper-1")
    assert done.returncode == 0
    path = tmp_path / "paper-1.toml"
    path.write_text(done.stdout)
    return path


def test_tables(paper: Path) -> None:
    done = run("plan", paper, "--observer", "0", "--observer", "1,2")
    assert done.returncode == 0, done.stderr
    for words in (
        "4 nodes, 12 links",
        "epsilon nominal",
        "1.0000*",
        "paper claims",
        "observer 0 (not a guarantee)",
        "observers 1, 2 together",
        "Power    p is held against the energy of a whole message of 7850 numbers",
        "falls by 44.2 dB",
    ):
        assert words in done.stdout
    assert "warning: power" not in done.stdout


@pytest.mark.parametrize("instance", INSTANCES[:2], ids=lambda instance: f"instance-{instance['id']}")
def test_json_gives_the_reference(tmp_path: Path, instance: dict[str, Any]) -> None:
    (tmp_path / "my.toml").write_text(experiment_text(instance["inputs"]))
    done = run("plan", tmp_path / "my.toml", "--json", "--observer", "1")
    assert done.returncode == 0, done.stderr
    result, expected = json.loads(done.stdout), instance["expected"]
    pairs = {
        "alpha": "alpha",
        "objective_value": "lp_objective",
        "compensation": "c",
        "weights": "A",
        "epsilon_per_epoch": "eps_paper",
    }
    for name, reference in pairs.items():
        np.testing.assert_allclose(result[name], expected[reference], rtol=1e-7, err_msg=name)
    np.testing.assert_allclose(result["certificate"]["mu"], expected["mu_local"], rtol=1e-7)
    np.testing.assert_allclose(result["linear"]["mu_common"], expected["mu_same"][1], rtol=1e-7)
    bracket = np.array(expected["mu_worst"][1])
    np.testing.assert_allclose(result["linear"]["mu_worst_lower"], bracket[:, 0], rtol=1e-7)
    np.testing.assert_allclose(result["linear"]["mu_worst_upper"], bracket[:, 1], rtol=1e-7)
    np.testing.assert_allclose(np.add(result["alpha"], result["beta"]), 1)
    largest = np.max(result["epsilon_per_epoch"])
    epochs = instance["inputs"]["T"]
    assert result["paper_claim"]["epsilon"] == pytest.approx(epochs * largest)
    assert result["normaliser"] == instance["inputs"]["R"]
    assert result["theta"] == instance["inputs"]["theta"]
    assert sum(result["perron"]) == pytest.approx(1)
    assert isinstance(result["warnings"], list)


def test_json_says_what_power_is_held_against(paper: Path) -> None:
    result = json.loads(run("plan", paper, "--json", "--collusion", "none").stdout)
    sent = result["sent_power"]
    np.testing.assert_allclose(np.multiply(sent["largest_over_budget_per_symbol"], 3925), sent["largest_over_budget"])
    assert sent["snr_change_db"] == pytest.approx(20 * np.log10(sent["public_scale"]))
    assert "whole message" in result["power_note"]
    assert not any("power exceeded" in line for line in result["warnings"])


def test_override(paper: Path) -> None:
    done = run("plan", paper, "--json", "--set", "privacy.target=certificate", "--set", "schedule.noise_to_step=auto")
    np.testing.assert_allclose(json.loads(done.stdout)["nominal"]["epsilon"], 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["out.png", "out.pdf", "out.svg"])
def test_figure(paper: Path, name: str) -> None:
    assert run("plan", paper, "--figure", paper.parent / name).returncode == 0
    content = (paper.parent / name).read_bytes()
    assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[name[-3:]])
    assert sorted(entry.name for entry in paper.parent.iterdir()) == sorted([name, "paper-1.toml"])


def test_large_network_is_sparse_in_json(tmp_path: Path) -> None:
    text = '[network]\ntopology = "ring"\nnodes = 600\nz = "perron"\n[privacy]\nepsilon = 1\n[schedule]\nepochs = 5'
    (tmp_path / "ring.toml").write_text(text)
    result = json.loads(run("plan", tmp_path / "ring.toml", "--json").stdout)
    assert set(result["weights"]) == {"row", "column", "value"}
    assert len(result["weights"]["value"]) == 1800
    assert "20 nodes that pay most" in run("plan", tmp_path / "ring.toml").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "privacy.epsilom=1"],
        ["--set", "privacy.epsilon"],
        ["--set", "privacy.epsilon=0"],
        ["--set", "privacy.epsilon=0.0001"],
        ["--set", "network.gains=[[0, 1], [1]]"],
        ["--set", "network.gains=[[0, nan], [1, 0]]"],
        ["--set", "network.gains=[[0, -1], [1, 0]]"],
        ["--set", "network.gains=[[0, 1], [0, 0]]"],
        ["--set", "network.gains=[[1, 1], [1, 0]]"],
        ["--set", "network.gains=[[0, 0], [0, 0]]"],
        ["--set", "network.gains=[[0, 1, 1], [1, 0, 1]]"],
        ["--set", "network.gains=[[0, 1e300], [1e300, 0]]"],
        ["--set", "network.power=0"],
        ["--set", "network.power=1e308"],
        ["--set", "network.normaliser=" + "9" * 400],
        ["--set", "privacy.delta=1"],
        ["--set", "privacy.theta=1e308"],
        ["--set", "privacy.epsilon=1e308"],
        ["--set", "privacy.epsilon=" + "9" * 5000],
        ["--set", "privacy.epsilon=" + "[" * 20_000],
        ["--set", "privacy.epsilon=1\nfoo=2"],
        ["--set", "privacy.clip=1e-308"],
        ["--set", "schedule.step=1e-308"],
        ["--set", "schedule.epochs=1000000000"],
        ["--set", "problem.dim=" + "9" * 400],
        ["--set", "problem.radius=1e308"],
        ["--set", "network.normaliser=max-degree"],
        ["--figure", "a" * 300 + ".png"],
        ["--observer", "9"],
        ["--observer", "0,1,2,3"],
        ["--observer", "a"],
        ["--figure", "no/such/folder/out.png"],
        ["--figure", "out.jpeg"],
        ["--nonsense"],
        ["--example", "paper-1"],
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(paper: Path, arguments: list[str]) -> None:
    refused(run("plan", paper, *arguments, cwd=paper.parent))
    assert [entry.name for entry in paper.parent.iterdir()] == ["paper-1.toml"]


def test_infeasible_budget_names_link_and_way_out(paper: Path) -> None:
    text = refused(run("plan", paper, "--set", "privacy.epsilon=0.01"))
    assert "receiver" in text
    assert "link" in text
    smallest = text.split("at its minimum, is ")[1].split(";")[0]
    assert run("plan", paper, "--set", f"privacy.epsilon={smallest}").returncode == 0


@pytest.mark.parametrize(
    "network",
    [
        'topology = "ring"\nnodes = 5\nseed = -1',
        'topology = "ring"\nnodes = 1000000000',
        'topology = "ring"\nnodes = 5\ngain = {kind = "rician", k_factor_db = 1e9}',
        'topology = "ring"\nnodes = 5\ngain = {kind = "log-distance", exponent = 1e9}',
        'file = "complex.npy"',
        'file = "outside.npz"',
        'file = "huge.npz"',
        'file = "short.csv"',
        'file = "long.csv"\ngain = {kind = "uniform"}',
        'file = "nan.csv"\ngain = {kind = "uniform"}',
        'file = "comment.csv"',
    ],
)
def test_bad_networks_are_refused(tmp_path: Path, network: str) -> None:
    np.save(tmp_path / "complex.npy", np.array([[0, 3 + 4j], [3 + 4j, 0]]))
    broken = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    broken.indices[:] = [5, -7]
    save_npz(tmp_path / "outside.npz", broken)
    save_npz(tmp_path / "huge.npz", coo_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(10**9, 10**9)))
    (tmp_path / "short.csv").write_text("sender,receiver,gain\n0,1\n1,0\n")
    (tmp_path / "long.csv").write_text("sender,receiver\n0,1,0.5\n1,0,0.5\n")
    (tmp_path / "nan.csv").write_text("sender,receiver\nnan,1\n1e30,0\n")
    (tmp_path / "comment.csv").write_text("# nothing\n")
    (tmp_path / "my.toml").write_text(f"[network]\n{network}\n[privacy]\nepsilon = 1\n")
    refused(run("plan", tmp_path / "my.toml"))


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    assert "not a regular file" in refused(run("plan", tmp_path / "pipe.toml"))
    assert "not a regular file" in refused(run("plan", "/dev/zero"))
    assert "cannot be read" in refused(run("plan", "a" * 5000))


def test_full_disk_for_the_output(paper: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [str(COMMAND), "plan", str(paper)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the output cannot be written")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no experiment file"),
        (["none.toml"], "does not exist"),
        (["."], "is a folder"),
        (["--example", "papr-1"], 'did you mean "paper-1"'),
    ],
)
def test_missing_files(tmp_path: Path, arguments: list[str], words: str) -> None:
    assert words in refused(run("plan", *arguments, cwd=tmp_path))


def test_a_hundred_megabytes_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    path.write_bytes(b"x = 1\n" * (100_000_000 // 6))
    start = time.monotonic()
    assert "far too much" in refused(run("plan", path))
    assert time.monotonic() - start < 10


def test_help_has_examples_and_no_command_shows_help() -> None:
    assert "murmurcast plan my.toml --observer 0" in " ".join(run("plan", "--help").stdout.split())
    done = run()
    assert "Usage" in done.stdout + done.stderr
    assert "error:" not in done.stderr
    assert run("--version").stdout.startswith("murmurcast ")
    assert "Traceback" not in run("plna").stderr


def test_output_into_a_closed_pipe_is_quiet(paper: Path) -> None:
    with subprocess.Popen(
        [str(COMMAND), "plan", str(paper), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
    assert complaint == ""


def test_who_learns_what(paper: Path) -> None:
    done = run("plan", paper)
    assert done.returncode == 0, done.stderr
    assert "Who learns what" in done.stdout
    assert "not a guarantee" in done.stdout
    assert "(0, 2)" in done.stdout
    assert "--collusion all" not in done.stdout  # nothing is left out
    assert "Who learns what" not in run("plan", paper, "--collusion", "none").stdout
    result = json.loads(run("plan", paper, "--json").stdout)
    assert json.loads(run("plan", paper, "--json", "--collusion", "none").stdout).get("collusion") is None
    learnt = result["collusion"]
    assert learnt["receivers"] == [0, 1, 2, 3]
    assert learnt["pairs"] == learnt["pairs_tried"] == 6
    assert learnt["is_complete"]
    mu, certified = np.array(learnt["single_mu"]), np.array(result["nominal"]["mu"])
    assert (mu.diagonal() == 0).all()
    assert (mu <= certified * (1 + 1e-8)).all()
    assert (np.array(learnt["pair_mu"]) <= certified * (1 + 1e-8)).all()
    assert learnt["pair"][3] == [0, 1]
    assert "invalid value" in run("plan", paper, "--collusion", "some").stderr.lower()


@pytest.mark.slow
def test_who_learns_what_of_a_large_network_says_what_was_left_out(tmp_path: Path) -> None:
    text = '[network]\ntopology = "geometric"\nnodes = 40\nseed = 1\n[privacy]\nepsilon = 2.0\n'
    (tmp_path / "my.toml").write_text(text)
    done = run("plan", tmp_path / "my.toml")
    assert done.returncode == 0, done.stderr
    for words in ("worst one", "worst two", "of 780 pairs", "--collusion all"):
        assert words in " ".join(done.stdout.split())
    quick = json.loads(run("plan", tmp_path / "my.toml", "--json").stdout)["collusion"]
    assert not quick["is_complete"]
    assert 0 < quick["pairs_tried"] < quick["pairs"] == 780
    short = ("--set", "schedule.epochs=5")
    whole = json.loads(run("plan", tmp_path / "my.toml", *short, "--collusion", "all", "--json").stdout)["collusion"]
    assert whole["is_complete"]
    assert whole["pairs_tried"] == 780


def test_minibatches_and_ends_have_one_line_each(tmp_path: Path) -> None:
    text = '[network]\ntopology = "ring"\nnodes = 4\n[privacy]\nepsilon = 2.0\nunit = "record"\n[problem]\nbatch = 8\n'
    (tmp_path / "my.toml").write_text(text)
    done = run("plan", tmp_path / "my.toml", "--set", "run.stop_after=50")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("no amplification by sampling") == 1
    assert done.stdout.count("this is the whole plan") == 1
