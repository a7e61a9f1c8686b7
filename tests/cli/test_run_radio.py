"""`murmurcast run`, `compare` and `report` over a radio, through their real entry point."""

import json
from pathlib import Path

import numpy as np
import pytest

from murmurcast.engine.observe import SAMPLE
from murmurcast.runs.result import load_run
from tests.cli.test_plan import refused, run

GAINS = "[[0, 1.1e-4, 0.6e-4, 0, 0.9e-4], [0.8e-4, 0, 1.3e-4, 0.7e-4, 0], [1.0e-4, 0.5e-4, 0, 1.2e-4, 0], " + (
    "[0, 0.9e-4, 0.8e-4, 0, 1.1e-4], [0.7e-4, 0, 0, 1.0e-4, 0]]"
)
PROBLEM = """
[privacy]
epsilon = 8.0
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 12
step = 0.1
noise_timing = "aligned"
"""
RADIO = f'[network]\ngains = {GAINS}\n[radio]\nfading = "iid"\n{PROBLEM}'
PLAIN = f"[network]\ngains = {GAINS}\n{PROBLEM}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("radio")
    (built / "radio.toml").write_text(RADIO)
    (built / "plain.toml").write_text(PLAIN)
    for name in ("radio", "plain"):
        done = run("run", f"{name}.toml", cwd=built)
        assert done.returncode == 0, done.stderr
        (built / f"{name}.txt").write_text(done.stdout)
    return built


def line(text: str, heading: str) -> str:
    (outcome,) = [one for one in text.splitlines() if one.startswith(heading)]
    return outcome.removeprefix(heading).strip()


@pytest.mark.slow
def test_a_line_says_what_the_radio_took(folder: Path) -> None:
    """5 slots of (2 + 64)/0.8 symbols at 1 MHz, 12 epochs; 66 symbols a node and epoch at 0.1 W."""
    shown = (folder / "radio.txt").read_text()
    expected = "own-slot, half duplex: 5 slots an epoch, 0.00495 s and 0.0792 mJ a node on the air (radiated only)"
    assert line(shown, "Radio") == expected
    assert line(shown, "Channel") == "60 uses, and about 20 before training"
    kept = load_run(folder / "runs" / "radio")
    loudest = float(kept.metrics["loudest"].max()) * 2 / 3
    assert line(shown, "Power").startswith("mean power of a symbol over p: ")
    assert f"at most {loudest:.3g} in any" in line(shown, "Power")


@pytest.mark.slow
def test_without_a_radio_nothing_is_said_of_one(folder: Path) -> None:
    shown = (folder / "plain.txt").read_text()
    assert "Radio" not in shown
    assert line(shown, "Power").startswith("energy of a whole message over p: ")


@pytest.mark.slow
def test_json_and_what_was_given_for_computing(folder: Path) -> None:
    settings = ("radio.compute_seconds=0.5", "radio.circuit_watts=0.2", "radio.duplex=full", "radio.access=aligned")
    done = run(
        "run",
        "radio.toml",
        "--out",
        "slow",
        *(word for one in settings for word in ("--set", one)),
        "--json",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    stated = json.loads(done.stdout)["radio"]
    assert stated["settings"]["access"] == "aligned"
    assert stated["settings"]["power_dbm"] == [20.0] * 5
    assert stated["slots_per_epoch"] == 1
    assert stated["compute_seconds"] == pytest.approx(6.0)
    assert stated["air_seconds"] == pytest.approx(12 * 66 / 0.8 / 1e6)
    np.testing.assert_allclose(stated["joules"], 12 * (0.1 * 66 / 1e6 + 0.2 * 66 / 0.8 / 1e6))
    assert stated["energy"] == "radiated, and circuits as given"


@pytest.mark.slow
def test_compare_has_columns_for_time_and_energy(folder: Path) -> None:
    done = run("compare", "runs/plain", "runs/radio", "--target", "1e6", "--figure", "c.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    heading = next(one for one in done.stdout.splitlines() if one.strip().startswith("run "))
    assert heading.split()[-3:] == ["uses", "s", "mJ"]
    plain, radio = (one.split() for one in done.stdout.splitlines() if one.split()[:1] in (["plain"], ["radio"]))
    assert plain[-3:] == ["1", "-", "-"]
    assert radio[-3:] == ["5", "0.000412", "0.0066"]
    assert (folder / "c.png").stat().st_size > 10_000
    (first, second) = json.loads(run("compare", "runs/plain", "runs/radio", "--json", cwd=folder).stdout)["runs"]
    assert (first["radio"], first["air_seconds"], first["joules"]) == (None, None, None)
    assert second["radio"] == "own-slot, half duplex"
    (alone,) = json.loads(run("compare", "runs/plain", "--json", cwd=folder).stdout)["runs"]
    assert not {"radio", "air_seconds", "joules"} & set(alone)


@pytest.mark.slow
def test_a_page_is_made_and_the_run_is_certified(folder: Path) -> None:
    done = run("report", "runs/plain", "runs/radio", "-o", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "time on the air, s" in (folder / "page.html").read_text()
    assert json.loads(run("certify", "runs/radio", "--json", cwd=folder).stdout)["verdict"] == "kept"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["algorithm.name=dp-dsgd"], "the setup has a radio, and dp-dsgd does not send over it"),
        (["algorithm.name=orthogonal"], "the setup has a radio, and orthogonal does not send over it"),
        (["algorithm.name=mped2fl", "schedule.rounds=3"], "radio"),
    ],
)
def test_methods_that_are_not_made_for_it_are_refused(folder: Path, settings: list[str], words: str) -> None:
    changed = [word for one in settings for word in ("--set", one)]
    message = refused(run("run", "radio.toml", "--out", "refused", *changed, cwd=folder))
    assert words in message
    assert "power-controlled" in message
    assert not (folder / "refused").exists()


def test_rounds_that_a_method_has_not_are_refused(folder: Path) -> None:
    done = run(
        "run",
        "plain.toml",
        "--out",
        "refused",
        "--set",
        "schedule.rounds=2",
        "--set",
        "algorithm.name=dsgd",
        cwd=folder,
    )
    assert "schedule.rounds is 2, and dsgd has no further mixing rounds" in refused(done)


LARGE = """
[network]
topology = "geometric"
nodes = 10000
radius = 0.025
size_m = 1500.0
seed = 1
gain = {kind = "indoor"}
[privacy]
epsilon = 8.0
[problem]
kind = "quadratic"
dim = 4
radius = 2.0
[schedule]
epochs = 30
step = 0.1
noise_timing = "aligned"
[radio]
power_dbm = 10.0
fading = "jakes"
[run]
evaluate_every = 30
"""


@pytest.mark.slow
def test_ten_thousand_nodes_run_while_their_channels_fade(tmp_path: Path) -> None:
    """Nothing in it may be as large as nodes x nodes: 800 MB."""
    (tmp_path / "large.toml").write_text(LARGE)
    done = run("run", "large.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = load_run(tmp_path / "runs" / "large")
    assert (kept.metrics.sizes["sender"], kept.metrics.sizes["node"]) == (10_000, SAMPLE)
    assert np.isfinite(np.asarray(kept.metrics["own_loss"])).all()
    assert "own-slot, half duplex: " in line(done.stdout, "Radio")
    done = run("certify", "runs/large", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert line(done.stdout, "Verdict").startswith("kept: epsilon 8 ")


@pytest.mark.parametrize(("rule", "words"), [("recursive", "10000 x 10000 numbers"), ("predicted", "a dense solve")])
@pytest.mark.parametrize("fading", ["iid", "jakes"])
def test_a_divisor_too_large_to_follow_the_channel_is_refused_with_a_way_out(
    tmp_path: Path, rule: str, words: str, fading: str
) -> None:
    (tmp_path / "large.toml").write_text(LARGE)
    done = run("plan", "large.toml", "--set", f"network.z={rule}", "--set", f"radio.fading={fading}", cwd=tmp_path)
    said = refused(done)
    assert words in said
    assert 'use z = "mean"' in said
