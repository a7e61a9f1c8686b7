"""Forged folders, each refused, and honest ones of every kind, each accepted; all through the command itself."""

import contextlib
import io
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.cli import main
from murmurcast.engine.observe import MOST_EVALUATED, SAMPLE
from murmurcast.runs.result import Result
from tests.certificates import forgeries as forge
from tests.certificates.forged_folders import FORGED, LOUDER, OF_OTHERS
from tests.certificates.forgeries import in_experiment, in_ledger, times


class Said(NamedTuple):
    code: int
    out: str
    err: str


def command(*words: str) -> Said:
    """The command in this process: quicker than a new one for every call."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["murmurcast", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
            main()
    finally:
        sys.argv = before
    assert isinstance(left.value.code, int)
    return Said(left.value.code, out.getvalue(), err.getvalue())


ONE_WAY = [[0.0, 0.9, 0.0, 0.0], [0.0, 0.0, 1.1, 0.5], [0.8, 0.0, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]]
QUADRATIC: dict[str, Any] = {
    "data": None,
    "problem__kind": "quadratic",
    "privacy__unit": "node",
    "problem__radius": 3.0,
}
HONEST: dict[str, dict[str, Any]] = {
    "ours": {},
    "again": {"run__seeds": [7]},
    "other": {"privacy__epsilon": 1.0, "run__seeds": [9]},
    "loose": {"schedule__noise_to_step": 400.0, "privacy__epsilon": 9.0, "run__seeds": [11]},
    "seeds": {"run__seeds": 3},
    "perron": {"network__z": "perron", "schedule__noise_timing": "aligned"},
    "average": {"algorithm__publish": "average", "schedule__decay": "constant"},
    "drops": {"run__drops": {"3": 3}},
    "stopped": {"run__stop_after": 4},
    "secure": {"privacy__noise_source": "secure", "run__precision": "float64"},
    "batch": {"problem__batch": 4},
    "node": QUADRATIC,
    "own point": QUADRATIC | {"algorithm__gradient_at": "own"},
    "per epoch": {"privacy__target": "per-epoch", "privacy__epsilon": 1.0, "privacy__unit": "node"},
    "orthogonal": {"algorithm__name": "orthogonal"},
    "decor": {"algorithm__name": "decor"},
    "central": {"algorithm__name": "central-dp"},
    "alone": {"algorithm__name": "local-only"},
    "one way": QUADRATIC | {"algorithm__name": "frost", "network__gains": ONE_WAY, "problem__radius": None},
    "noiseless": {"algorithm__name": "noiseless"},
    "seldom": {"run__evaluate_every": 4},
    "own network": {"network__gains": None, "network__file": "gains.csv"},
    "own data": {"data__name": "mine.npz", "data__examples": None, "data__features": None},
    "drawn": {
        "network__gains": None,
        "network__power": None,
        "network__topology": "erdos-renyi",
        "network__nodes": 6,
        "network__probability": 0.7,
    },
    "large": QUADRATIC
    | {
        "network__gains": None,
        "network__power": None,
        "network__topology": "ring",
        "network__nodes": MOST_EVALUATED + 1,
        "schedule__noise_timing": "aligned",
    },
}
SHARED_OUT = {"data__partition": "iid", "run__seeds": [21]}  # the same records at other nodes


class Runs:
    """Runs as the command makes them, each when it is first asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        rng = np.random.default_rng(5)
        np.savez(place / "mine.npz", x=rng.normal(size=(90, 5)), y=rng.normal(size=90))
        (place / "gains.csv").write_text("sender,receiver,gain\n0,1,0.9\n1,0,0.7\n1,2,1.1\n2,1,0.6\n2,3,0.4\n3,2,0.8\n")

    def __getitem__(self, name: str) -> Path:
        if not (self.place / name).exists():
            file = self.place / f"{name}.toml"
            file.write_text(forge.experiment(**(HONEST | {"shared out": SHARED_OUT})[name]))
            done = command("run", str(file), "--out", str(self.place / name))
            assert done.code == 0, done.err
        return self.place / name


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Made once for all tests."""
    return Runs(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def folder(honest: Runs, tmp_path: Path) -> Path:
    """A copy of the first run that a test may spoil, with others beside it."""
    for name in ("ours", "other", "loose", "secure"):
        shutil.copytree(honest[name], tmp_path / name)
    return tmp_path


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_run_is_accepted(honest: Runs, name: str) -> None:
    done = command("certify", str(honest[name]))
    assert done.code == 0, done.err
    assert "error" not in done.err
    verdict = "nothing is promised" if name in ("one way", "noiseless") else "kept"
    assert f"Verdict  {verdict}" in done.out
    assert "not at hand" not in done.out
    assert mc.certify(mc.load_run(honest[name])).verdict == verdict


def refused(folder: Path) -> str:
    """What the command says, after checking that it gives no certificate and leaves none behind."""
    done = command("certify", str(folder))
    assert done.code in (1, 2), done.out
    lines = [line for line in done.err.strip().split("\n") if not line.startswith("withdrawn: ")]
    assert lines[0].startswith("error: "), done.err
    assert lines[1].startswith("hint: "), done.err
    assert "Traceback" not in done.err
    assert not (folder / "certificate.json").exists()
    return lines[0]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_folder_is_refused(folder: Path, name: str) -> None:
    FORGED[name](folder / "ours")
    refused(folder / "ours")


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("of", "name"), OF_OTHERS)
def test_a_forged_folder_of_another_kind_is_refused(honest: Runs, tmp_path: Path, of: str, name: str) -> None:
    shutil.copytree(honest[of], tmp_path / of)
    OF_OTHERS[of, name](tmp_path / of)
    refused(tmp_path / of)


@pytest.mark.slow
def test_of_a_large_network_the_public_sample_of_nodes_is_compared(honest: Runs, tmp_path: Path) -> None:
    """A forger may not choose the nodes that do well, nor say that they are others."""
    shutil.copytree(honest["large"], tmp_path / "large")
    run = mc.load_run(tmp_path / "large")
    assert run.metrics.sizes["node"] == SAMPLE
    assert "Verdict  kept" in command("certify", str(tmp_path / "large")).out
    replace(run, metrics=run.metrics.assign_coords(node=np.arange(SAMPLE))).save(tmp_path / "large")
    assert "other nodes than those that are evaluated" in refused(tmp_path / "large")


def test_nothing_outside_is_looked_at_and_no_code_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that the experiment names is not imported, and its file of data is not looked for elsewhere."""
    (folder / "hostile.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(folder)
    for words in ('name = "hostile:method"', 'name = "hostile:method"\npublish = "last"'):
        run = folder / f"run{len(words)}"
        shutil.copytree(folder / "ours", run)
        in_experiment('name = "power-controlled"', words)(run)
        assert "experiment.toml" in refused(run)
    in_experiment('name = "least-squares"\n', 'name = "../../outside.npz"\n')(folder / "loose")
    in_experiment("examples = 120\nfeatures = 12\n", "")(folder / "loose")
    assert "is not there" in " ".join(mc.certify(mc.load_run(folder / "loose")).not_compared)


@pytest.mark.slow
def test_data_that_is_not_at_hand_is_an_assumption(honest: Runs, tmp_path: Path) -> None:
    """All the rest is compared; where the data lies, one may say."""
    shutil.copytree(honest["own data"], tmp_path / "away" / "far" / "own")
    run = mc.load_run(tmp_path / "away" / "far" / "own")
    assert mc.certify(run).verdict == "kept"
    assert "mine.npz is not there" in " ".join(mc.certify(run).not_compared)
    done = command("certify", str(run.folder), "--data", str(honest.place))
    assert done.code == 0
    assert "not at hand" not in done.out
    with np.load(honest.place / "mine.npz") as kept:
        np.savez(tmp_path / "mine.npz", x=kept["x"][:80], y=kept["y"][:80])
    assert "sensitivity" in refuse_with(run, tmp_path)
    in_ledger(times(**LOUDER))(run.folder or Path())
    assert "model_sending_noise" in refused(run.folder or Path())


def refuse_with(run: Result, data: Path) -> str:
    with pytest.raises(mc.Error) as caught:
        mc.certify(run, data=data)
    return str(caught.value)


@pytest.mark.slow
def test_records_in_two_runs_pay_for_both(honest: Runs) -> None:
    """The same records at other nodes: the largest costs of each run, squared, add up; of nodes nothing follows."""
    runs = [mc.load_run(honest[name]) for name in ("loose", "shared out")]
    parts, both = [mc.certify(run) for run in runs], mc.certify(runs)
    assert len(set(parts[0].mu.round(9))) > 1
    np.testing.assert_allclose(both.mu, np.hypot(*(part.mu.max() for part in parts)), rtol=1e-12)
    assert (both.verdict, both.tier) == ("kept", "tier 1")
    assert (both.mu >= np.hypot(*(part.mu for part in parts)) * (1 - 1e-12)).all()
    assert any("it pays for all of them" in line for line in both.assumptions)
    assert not any("same nodes" in line for line in both.assumptions)
    done = command("certify", str(honest["node"]), str(honest["per epoch"]))
    assert done.code == 2
    assert "do not add up" in done.err


def test_no_epsilon_is_shown_without_its_account(folder: Path) -> None:
    """Neither side by side nor on a page; the runs beside it keep theirs."""
    in_ledger(times(**LOUDER))(folder / "ours")
    lower = mc.load_run(folder / "ours").info["privacy"]["epsilon"]
    names = [str(folder / name) for name in ("ours", "other")]
    done = command("compare", *names, "--metric", "published_loss")
    assert done.code == 0
    assert done.out.count("not certified") == 2  # the run's cell, and what it means
    assert "1 (record)" in done.out
    rows = json.loads(command("compare", *names, "--metric", "published_loss", "--json").out)["runs"]
    assert [row["epsilon"] is None for row in rows] == [True, False]
    assert rows[0]["caveat"] == "not certified"
    page = folder / "page.html"
    assert command("report", *names, "-o", str(page)).code == 0
    text = page.read_text()
    assert "is not certified" in text
    assert f"epsilon {lower:.4g}" not in text
    assert mc.compare(mc.load_run(folder / "ours")).rows[0].epsilon is None
