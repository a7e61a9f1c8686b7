"""`murmurcast export-iq` through its real entry point, read by the format's reference reader."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sigmf as reference

from murmurcast.audits.transcript import transcripts
from murmurcast.experiments import load as experiment_files
from tests.cli.test_plan import refused, run
from tests.cli.test_run import NETWORK

TINY = (
    NETWORK
    + """
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 8
[run]
seeds = [4, 9]
drops = {"1" = 5}
"""
)
OVER_RADIO = """
[network]
gains = [[0, 1e-4, 4e-5], [5e-5, 0, 7e-5], [6e-5, 8e-5, 0]]
[privacy]
epsilon = 10.0
[problem]
kind = "quadratic"
dim = 3
radius = 2.0
[schedule]
epochs = 4
[radio]
power_dbm = [10.0, 20.0, 17.0]
bandwidth_hz = 5e6
carrier_hz = 5.8e9
pilots = 16
"""
OF_A_FILE = (
    NETWORK
    + """
[data]
name = "my.csv"
classes = 2
[privacy]
epsilon = 10.0
[problem]
batch = 2
[schedule]
epochs = 3
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with noise from a seed, with secure noise, without noise, and on a file of data."""
    built = tmp_path_factory.mktemp("runs")
    (built / "tiny.toml").write_text(TINY)
    (built / "mine.toml").write_text(OF_A_FILE)
    (built / "radio.toml").write_text(OVER_RADIO)
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    lines = "\n".join(f"{a},{b},{int(a > 0)}" for a, b in rows)
    (built / "my.csv").write_text(f"a,b,label\n{lines}\n")
    secure = ("privacy.noise_source=secure", "run.precision=float64", "run.seeds=1", "run.drops={}")
    for file, name, sets in (
        ("tiny.toml", "tiny", ()),
        ("tiny.toml", "secure", secure),
        ("tiny.toml", "dsgd", ("algorithm.name=dsgd", "run.drops={}")),
        ("tiny.toml", "alone", ("algorithm.name=local-only", "run.drops={}")),
        ("mine.toml", "mine", ()),
        ("radio.toml", "radio", ()),
    ):
        words = [word for one in sets for word in ("--set", one)]
        done = run("run", file, *words, "--out", name, "--json", cwd=built)
        assert done.returncode == 0, done.stderr
    return built


def export(folder: Path, *arguments: object) -> dict[str, Any]:
    done = run("export-iq", *arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
def test_the_recording_is_what_the_run_sent(folder: Path) -> None:
    stated = export(folder, "tiny", "--node", 2, "--epochs", "2-4", "--seed", 9, "--out", "kept/here")
    assert stated["data"] == "kept/here/tiny-node-2-epochs-2-4.sigmf-data"
    recording = reference.fromfile(str(folder / stated["meta"]))
    recording.validate()
    samples = recording.read_samples().reshape(3, 64 + 2)
    problem, algorithm = experiment_files.load(folder / "tiny" / "experiment.toml").build(folder / "tiny")
    sent = transcripts(algorithm, problem, (4, 9)).sent[1, 1:4, 2]
    np.testing.assert_allclose(samples[:, 64].real, sent[:, 0], rtol=1e-5)
    np.testing.assert_allclose(samples[:, 64].imag, sent[:, 1], rtol=1e-5)
    np.testing.assert_allclose(samples[:, 65], sent[:, 2], rtol=1e-5)
    np.testing.assert_allclose(samples[:, :64], np.sqrt(0.5), rtol=1e-6)  # data-free: the root of its power
    assert stated["samples"] == samples.size
    assert (stated["sample_rate"], stated["carrier_hz"]) == (1e6, 2.4e9)
    comments = [(one["core:label"], one["core:comment"]) for one in recording.get_annotations()]
    expected = [(label, f"epoch {epoch}, round model") for epoch in (2, 3, 4) for label in ("pilot", "data")]
    assert comments == expected
    first = export(folder, "tiny", "--node", 2, "--epochs", "2-4", "--out", "first")
    assert first["seed"] == 4
    assert not np.allclose(reference.fromfile(str(folder / first["meta"])).read_samples(), samples.ravel())


def test_neither_model_nor_seed_leaves_with_it(folder: Path) -> None:
    stated = export(folder, "tiny", "--node", 0, "--seed", 9, "--out", "meta")
    text = (folder / stated["meta"]).read_text() + stated["meta"]
    assert "seed" not in text
    assert set(json.loads(text.split("meta/")[0])) == {"global", "captures", "annotations"}
    assert sorted(path.name for path in (folder / "meta").iterdir()) == [
        "tiny-node-0-epoch-1.sigmf-data",
        "tiny-node-0-epoch-1.sigmf-meta",
    ]


def test_what_is_shown(folder: Path) -> None:
    done = run("export-iq", "tiny", "--node", "0", "--bandwidth", "2e7", "--carrier", "3.5e9", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Samples  tiny-node-0-epoch-1.sigmf-data, 66 of them, 0.5 KiB" in done.stdout
    assert "a message of 2 symbols" in done.stdout
    assert "2e+07 samples per second at 3.5e+09 Hz, as chosen: the run has no radio" in done.stdout
    assert "warning: this is what every eavesdropper hears; it tells no more of the data than the run" in done.stdout
    assert "warning: simulation: the seed is known" in done.stdout
    warned = export(folder, "dsgd", "--node", 0)["warnings"]
    assert "nothing is promised about what it tells of the data" in warned[0]


@pytest.mark.slow
def test_the_data_of_a_run_is_looked_for_beside_it_and_here(folder: Path, tmp_path: Path) -> None:
    assert export(folder, "mine", "--node", 1, "--epochs", "3")["samples"] == 64 + 3
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder / "mine", moved / "mine")
    assert "my.csv" in refused(run("export-iq", "mine", "--node", "1", cwd=moved))
    other = (folder / "my.csv").read_text().replace(",1\n", ",0\n", 9)
    (moved / "mine" / "my.csv").write_text(other)
    assert "are not its signals" in refused(run("export-iq", "mine", "--node", "1", "--epochs", "1-3", cwd=moved))
    assert not list(moved.glob("*.sigmf*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["secure", "--node", "0"], "its keys are gone"),
        (["alone", "--node", "0"], "on the air"),
        (["none", "--node", "0"], "is not a folder"),
        (["tiny"], "--node"),
        (["tiny", "--node", "3"], "nodes are 0 to 2"),
        (["tiny", "--node", "0", "--epochs", "7-9"], "the run has 1 to 8"),
        (["tiny", "--node", "0", "--epochs", "0-3"], "not in order"),
        (["tiny", "--node", "0", "--epochs", "5-3"], "not in order"),
        (["tiny", "--node", "0", "--epochs", "all"], "not a number of epochs"),
        (["tiny", "--node", "1", "--epochs", "4-6"], "drops out after epoch 5"),
        (["tiny", "--node", "0", "--seed", "5"], "no seed 5"),
        (["tiny", "--node", "0", "--bandwidth", "nan"], "bandwidth is nan"),
        (["tiny", "--node", "0", "--carrier", "0"], "carrier is 0"),
        (["tiny", "--node", "0", "--out", "my.csv"], "my.csv is not a folder"),
    ],
)
def test_what_cannot_be_exported(folder: Path, arguments: list[str], words: str) -> None:
    before = sorted(folder.iterdir())
    assert words in refused(run("export-iq", *arguments, cwd=folder))
    assert sorted(folder.iterdir()) == before


def test_files_of_others_are_left_alone(folder: Path) -> None:
    place = folder / "others"
    place.mkdir()
    strange = place / "tiny-node-0-epoch-1.sigmf-data"
    strange.write_bytes(b"mine")
    assert "was not written by" in refused(run("export-iq", "tiny", "--node", "0", "--out", place, cwd=folder))
    assert strange.read_bytes() == b"mine"
    assert len(list(place.iterdir())) == 1


@pytest.mark.slow
def test_the_band_of_a_radio_is_not_chosen_again(folder: Path) -> None:
    stated = export(folder, "radio", "--node", 1, "--epochs", "2-4")
    assert (stated["sample_rate"], stated["carrier_hz"]) == (5e6, 5.8e9)
    samples = reference.fromfile(str(folder / stated["meta"])).read_samples().reshape(3, 16 + 2)
    assert len(np.unique(samples[:, :16])) <= 3  # one for every epoch
    pilots = np.abs(samples[:, 0]) ** 2
    assert (pilots <= 0.1 * (1 + 1e-6)).all()  # watts, of 20 dBm
    assert (pilots > 1e-4).all()
    shown = run("export-iq", "radio", "--node", "1", cwd=folder).stdout
    assert "5e+06 samples per second at 5.8e+09 Hz\n" in shown
    said = refused(run("export-iq", "radio", "--node", "1", "--carrier", "1e9", cwd=folder))
    assert "the run has a radio: 5e+06 Hz at 5.8e+09 Hz" in said


def test_help_has_examples() -> None:
    done = run("export-iq", "--help")
    assert done.returncode == 0
    assert "murmurcast export-iq runs/ours --node 3 --epochs 1-5 --out recordings" in done.stdout
