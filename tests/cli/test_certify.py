"""`murmurcast certify` through its entry point."""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.cli import main
from murmurcast.privacy.rounding import at_most
from murmurcast.runs.result import Result, require_unused
from tests.certificates.ledger_edits import EDITS, hashed_anew, make_plan, quadratic, regression, with_ledger
from tests.cli.test_plan import run as command
from tests.conftest import asymmetric_network

NOTE = "simulation: the seed is known, no privacy is claimed for this transcript"


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Call:
    """The command in this process: quicker than a new one for every call."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, name: str = "certify"
    ) -> None:
        self.monkeypatch, self.capsys, self.name = monkeypatch, capsys, name
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> Done:
        self.monkeypatch.setattr(sys, "argv", ["murmurcast", self.name, *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        shown = self.capsys.readouterr()
        assert "Traceback" not in shown.err
        assert isinstance(left.value.code, int)
        return Done(left.value.code, shown.out, shown.err)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of several kinds, all of the same nodes."""
    folder = tmp_path_factory.mktemp("saved")
    problem, records = quadratic(), regression()
    for name, algorithm in (
        ("ours", mc.power_controlled(make_plan(problem))),
        ("central", mc.central_dp(make_plan(problem))),
        ("noiseless", mc.noiseless(make_plan(problem))),
    ):
        mc.run(algorithm, problem, seeds=(3, 8), options=mc.RunOptions(name=name, folder=folder / name))
    mc.run(
        mc.power_controlled(make_plan(records, "record")),
        records,
        options=mc.RunOptions(name="records", folder=folder / "records"),
    )
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))


@pytest.fixture
def certify(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys, folder)


def complaint(done: Done, code: int) -> str:
    """The message, after checking its form."""
    assert done.code == code, done
    lines = [line for line in done.err.strip().split("\n") if not line.startswith("withdrawn: ")]
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    return lines[0]


def saved_as(folder: Path, run: Result) -> None:
    """Written with fresh hashes, as a forger would."""
    run.save(folder)


def test_a_promise_that_is_kept(certify: Call, folder: Path) -> None:
    done = certify("ours")
    assert done.code == 0
    run = mc.load_run("ours")  # with a certificate beside it
    mu = mc.certify(run).mu
    for words in ("kept", at_most(mu[2]), "against everybody", "Unit     node", "Assumed", NOTE, "of the 2 seeds"):
        assert words in done.out
    outcome = json.loads((folder / "ours" / "certificate.json").read_text())
    assert outcome["mu"] == mu.tolist()
    assert outcome["epsilon"] == mc.gaussian.epsilon(mu, 1e-5).tolist()
    assert (outcome["tier"], outcome["unit"], outcome["verdict"], outcome["delta"]) == ("tier 1", "node", "kept", 1e-5)
    assert outcome["note"] == NOTE
    assert outcome["assumptions"]
    hashes = json.loads((folder / "ours" / "run.json").read_text())["sha256"]
    (listed,) = outcome["runs"]
    assert listed["sha256"] == {name: hashes[name] for name in ("experiment.toml", "ledger.nc", "published.npz")}
    for name, kept in listed["sha256"].items():
        assert hashlib.sha256((folder / "ours" / name).read_bytes()).hexdigest() == kept
    assert outcome["versions"]["murmurcast"] == listed["versions"]["murmurcast"]


@pytest.mark.slow
def test_another_delta_never_takes_the_place_of_the_runs_own(certify: Call, folder: Path) -> None:
    path, beside = folder / "ours" / "certificate.json", folder / "ours" / "certificate-delta-1e-07.json"
    first = certify("ours").out
    before = path.read_bytes()
    done = certify("ours", "--delta", "1e-7", "--json")
    outcome = json.loads(done.out)
    assert outcome["delta"] == 1e-7
    assert json.loads(beside.read_text()) == outcome
    assert path.read_bytes() == before
    message = complaint(certify("ours", "--delta", "1e-7", "--out", "ours/../ours/certificate.json"), 2)
    assert "is for the certificate of the run's own delta" in message
    assert path.read_bytes() == before
    assert certify("ours", "--delta", "1e-5").out == first  # the run's own, by name
    assert certify("ours").out == first
    assert path.read_bytes() == before
    assert not list((folder / "ours").glob(".*"))
    run = mc.load_run("ours")
    saved_as(folder / "ours", with_ledger(run, EDITS["noise halved"](run.ledger)))
    complaint(certify("ours"), 1)
    assert not path.exists()
    assert not beside.exists()


def test_a_file_of_somebody_else_is_not_overwritten(certify: Call, folder: Path) -> None:
    path = folder / "ours" / "certificate.json"
    for content in ('{"mine": 1}', "[]", "words", ""):
        path.write_text(content)
        assert "was not written by" in complaint(certify("ours"), 2)
        assert "was not written by" in complaint(certify("ours", "--out", "ours/run.json"), 2)
        assert path.read_text() == content
    mc.load_run(folder / "ours")


def test_a_certificate_is_in_nobodys_way(certify: Call, folder: Path) -> None:
    """The run loads and compares as before, and its folder is refused to another run for the run's sake alone."""
    assert certify("ours").code == 0
    run, problem = mc.load_run(folder / "ours"), quadratic()
    mc.compare(run)
    with pytest.raises(mc.Error, match="already holds a finished run"):
        mc.run(
            mc.power_controlled(make_plan(problem)), problem, options=mc.RunOptions(folder=folder / "ours", resume=True)
        )
    shutil.copy(folder / "ours" / "certificate.json", folder / "certificate.json")
    require_unused(folder, resume=False)


def test_a_trusted_server_and_nothing_promised(certify: Call, folder: Path) -> None:
    done = certify("central")
    assert done.code == 0
    assert "if the server is trusted" in done.out
    assert "certif" not in done.out
    done = certify("noiseless")
    assert done.code == 0
    assert "nothing is promised: no noise is sent" in done.out
    assert NOTE in done.out
    assert "certif" not in done.out
    assert not list(folder.glob("*/certificate.json"))
    assert certify("noiseless", "--out", "said.json").code == 0
    outcome = json.loads((folder / "said.json").read_text())
    assert (outcome["verdict"], outcome["tier"], outcome["mu"]) == ("nothing is promised", "none", [None] * 4)


@pytest.mark.slow
def test_runs_compose(certify: Call, folder: Path) -> None:
    problem = quadratic()
    mc.run(
        mc.power_controlled(make_plan(problem)), problem, seeds=(1, 2), options=mc.RunOptions(folder=folder / "again")
    )
    done = certify("ours", "again", "--json")
    outcome = json.loads(done.out)
    np.testing.assert_allclose(outcome["mu"], np.sqrt(2) * mc.certify(mc.load_run("ours")).mu, rtol=1e-12)
    assert len(outcome["runs"]) == 2
    assert not list(folder.glob("*/certificate.json"))
    done = certify("ours", "again", "--out", "both.json")
    assert "same data by the same nodes" in done.out
    assert json.loads((folder / "both.json").read_text()) == outcome
    assert certify("ours", "noiseless").out.startswith("Verdict  nothing is promised")
    assert "different units" in complaint(certify("ours", "records"), 2)
    assert "twice" in complaint(certify("ours", "../copy/ours"), 2)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name",
    [
        "noise halved",
        "steps lengthened",
        "z lowered",
        "z raised",
        "clip lowered",
        "promise lowered",
        "an epoch dropped",
        "promise a nan",
        "own noise dropped",
        "not clipped",
        "a round dropped",
        "a round more, without tables",
        "a draw made again",
        "a gradient at the start",
    ],
)
def test_edits_with_fresh_hashes(certify: Call, folder: Path, name: str) -> None:
    run = mc.load_run("ours")
    (folder / "ours" / "certificate.json").write_text('{"made_by": "murmurcast certify"}')
    saved_as(folder / "ours", with_ledger(run, EDITS[name](run.ledger)))
    done = certify("ours", "--json")
    assert 'run "ours": ' in complaint(done, 1)
    assert "withdrawn: ours/certificate.json" in done.err
    assert not (folder / "ours" / "certificate.json").exists()


def test_no_certificate_outlives_its_run(certify: Call, folder: Path) -> None:
    """Neither its own nor one kept elsewhere, alone or among others; those of other runs stay."""
    shutil.copytree(folder / "ours", folder / "other")
    for name in ("ours", "other"):
        assert certify(name).code == 0
        assert certify(name, "--delta", "1e-6").code == 0
    assert certify("ours", "--out", "kept.json").code == 0
    with (folder / "ours" / "ledger.nc").open("ab") as ledger:
        ledger.write(b"x")
    complaint(certify("ours", "other", "--out", "kept.json"), 1)
    left = sorted(str(path.relative_to(folder)) for path in (*folder.glob("*.json"), *folder.glob("*/certificate*")))
    assert left == ["other/certificate-delta-1e-06.json", "other/certificate.json"]


def test_a_broken_promise_shows_its_nodes(certify: Call, folder: Path) -> None:
    run = mc.load_run("ours")
    saved_as(folder / "ours", with_ledger(run, EDITS["noise halved"](run.ledger)))
    done = certify("ours", "--out", "broken.json")
    assert "was promised mu" in complaint(done, 1)
    assert done.out.count("costs more") == 4
    assert "Verdict  broken" in done.out
    assert "certif" not in done.out
    assert json.loads((folder / "broken.json").read_text())["verdict"] == "broken"
    both = certify("central", "ours")
    assert both.code == 1


def test_what_is_no_run_or_not_whole(certify: Call, folder: Path) -> None:
    assert "is not a folder" in complaint(certify("none"), 2)
    assert "holds no finished run" in complaint(certify("."), 2)
    assert "delta" in complaint(certify("ours", "--delta", "2"), 2)
    assert "does not exist" in complaint(certify("ours", "--out", "no/such.json"), 2)
    ledger = folder / "ours" / "ledger.nc"
    whole = ledger.read_bytes()
    for content in (whole[:-9], b"", b"words", whole[:9] + b"\7" + whole[10:]):
        ledger.write_bytes(content)
        assert "is not what the run wrote" in complaint(certify("ours"), 1)
        hashed_anew(folder / "ours")
        complaint(certify("ours"), 1)
        ledger.write_bytes(whole)
        hashed_anew(folder / "ours")
    assert certify("ours").code == 0
    info = json.loads((folder / "ours" / "run.json").read_text())
    info["privacy"]["epsilon"] = 0.1
    (folder / "ours" / "run.json").write_text(json.dumps(info))
    assert "was altered" in complaint(certify("ours"), 1)
    stated = {key: value for key, value in info.items() if key not in ("format", "sha256")}
    hashed_anew(folder / "ours", stated)
    assert "quotes epsilon 0.1" in complaint(certify("ours"), 1)
    ledger.unlink()
    assert "cannot be read" in complaint(certify("ours"), 1)


def test_many_nodes_are_shown_in_short(certify: Call, folder: Path) -> None:
    problem = mc.Quadratic.random(30, 1, seed=1)
    plan = mc.plan(asymmetric_network(5, 30), problem, mc.Budget(epsilon=9.0), mc.Schedule(epochs=3), z="perron")
    mc.run(mc.power_controlled(plan), problem, options=mc.RunOptions(folder=folder / "large"))
    done = certify("large")
    assert done.out.count(" kept") == 20 + 1
    assert "10 nodes that pay least" in done.out


def test_as_a_command_of_its_own(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "ours", tmp_path / "runs" / "ours")
    done = command("certify", "runs/ours", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    content = bytearray((tmp_path / "runs" / "ours" / "ledger.nc").read_bytes())
    for place in range(0, len(content), 97):
        content[place] ^= 4
    (tmp_path / "runs" / "ours" / "ledger.nc").write_bytes(content)
    hashed_anew(tmp_path / "runs" / "ours")
    done = command("certify", "runs/ours", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_has_examples(certify: Call) -> None:
    done: Any = certify("--help")
    assert done.code == 0
    assert "murmurcast certify runs/monday runs/tuesday --out both.json" in done.out
