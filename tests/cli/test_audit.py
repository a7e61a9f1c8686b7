"""`murmurcast audit` through its entry point."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from murmurcast.audits import audit as auditing
from murmurcast.audits.verdict import Audit
from tests.cli.test_certify import Call
from tests.cli.test_plan import run as command

EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.3, 0], [0.5, 0, 0.7, 0.2], [0.8, 0.4, 0, 0.6], [0, 0.35, 0.45, 0]]
power = [1.0, 2.0, 1.5, 0.7]

[privacy]
epsilon = 2.0
unit = "record"

[schedule]
epochs = 6
noise_to_step = "auto"
noise_timing = "aligned"

[data]
name = "logistic"
examples = 200
features = 7
classes = 4
"""


CHECKS = (
    "the size of the noise",
    "the independence of the noise",
    "the blindness of the noise",
    "where gradients are taken",
    "signals without noise",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my.toml").write_text(EXPERIMENT)
    return tmp_path


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Call:
    return Call(monkeypatch, capsys, folder, "audit")


def test_table_verdict_and_power_in_a_process_of_its_own(folder: Path) -> None:
    done = command("audit", "my.toml", "--runs", "60", cwd=folder)
    assert done.returncode == 0, done.stderr
    for words in (
        "eavesdropper",
        "all other receivers",
        "published alone",
        "published, with the air",
        "certified, at most",
        "Verdict  not falsified",
        "of all nodes than",
        "Power    ",
        "at any one node",
        "would have been caught",
        "Noise    as claimed in ",
        "99.99% confidence",
        "can refute a promise, not prove it",
    ):
        assert words in done.stdout
    assert "certificate" not in done.stdout
    assert done.stderr == ""  # the bar shows on a terminal only


def test_json_has_all_of_it_and_nothing_else_is_printed(call: Call) -> None:
    done = call("my.toml", "--runs", "60", "--json", "--coalition", "0,2", "--target", "1")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["targets"], result["runs"], result["canaries"], result["verdict"]) == ([1], 60, 32, "not falsified")
    assert result["unseen"] == ["attacks on the 3 other nodes, which --target left out"]
    assert {check["name"]: check["refutes"] for check in result["checks"]} == dict.fromkeys(CHECKS, False)
    assert result["confidence"] == 0.9999
    names = [attack["adversary"] for attack in result["attacks"]]
    assert "receivers 0, 2" in names
    assert result["epsilon_promised"] == pytest.approx(2.0, rel=1e-6)
    for attack in result["attacks"]:
        assert attack["mu"] <= attack["mu_promised"] <= result["mu_promised"]
        assert attack["epsilon"] == max(attack["epsilon_by_counts"], attack["epsilon_one_run"])
        assert set(attack["true_positives"]) == {"0.1", "0.01", "0.001"}


def test_a_broken_promise_exits_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = auditing.audit

    def broken(*arguments: object, **options: object) -> Audit:
        result = honest(*arguments, **options)  # type: ignore[arg-type]
        return replace(result, attacks=tuple(attack._replace(mu_promised=0.01) for attack in result.attacks))

    monkeypatch.setattr(auditing, "audit", broken)
    done = call("my.toml", "--runs", "60")
    assert done.code == 1
    assert "Verdict  FALSIFIED by" in done.out
    assert "error: the promise is FALSIFIED by" in done.err
    assert "hint:" in done.err


@pytest.mark.slow
def test_the_experiment_of_a_finished_run_is_audited(call: Call, folder: Path) -> None:
    """With what was set on the command line, and with data from a file, of which a run keeps the name."""
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.standard_normal((80, 3)), rng.standard_normal(80)])
    np.savetxt(folder / "mine.csv", table, delimiter=",", header="a,b,c,target", comments="")
    set_here = ("--set", "schedule.step=0.2", "--set", "privacy.epsilon=3")
    done = command("run", "my.toml", "--out", "kept", *set_here, cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = json.loads(call("kept", "--runs", "60", "--json").out)
    assert shown["epsilon_promised"] == pytest.approx(3.0, rel=1e-6)
    text = (folder / "kept" / "experiment.toml").read_text()
    ours = text.replace('name = "logistic"', 'name = "mine.csv"').replace('kind = "softmax"', 'kind = "ridge"')
    own = [line for line in ours.splitlines() if line.split(" ")[0] not in ("examples", "features", "classes")]
    (folder / "other").mkdir()
    (folder / "other" / "experiment.toml").write_text("\n".join(own))
    result = call("other", "--runs", "40", "--json")
    assert result.code == 0, result.err
    (folder / "mine.csv").unlink()
    missing = call("other", "--runs", "40")
    assert missing.code == 2
    assert "mine.csv, the data of other" in missing.err
    assert "--set data.name=FOLDER/mine.csv" in missing.err


def test_a_folder_that_is_no_run_is_an_error(call: Call, folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "python").mkdir()
    (folder / "python" / "experiment.toml").write_text("")
    for name, words in (("empty", "holds no experiment.toml"), ("python", "the run was made in Python")):
        done = call(name)
        assert done.code == 2
        assert words in done.err
        assert "mc.audit" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verdict"),
    [("decor", "not falsified"), ("private-push-pull", "not falsified"), ("frost", "nothing is promised")],
)
def test_other_methods_are_audited_too(call: Call, name: str, verdict: str) -> None:
    done = call("my.toml", "--json", "--runs", "20", "--set", f"algorithm.name={name}")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["algorithm"], report["verdict"]) == (name, verdict)
    others = ["eavesdropper and one node", "eavesdropper"] if name == "decor" else []
    assert [promise["against"] for promise in report["weaker"]] == others


@pytest.mark.slow
def test_nothing_promised_is_said(call: Call) -> None:
    done = call("my.toml", "--runs", "60", "--set", "algorithm.name=noiseless")
    assert done.code == 0, done.err
    assert "Verdict  nothing is promised, and " in done.out
    assert "promised: nothing" in done.out
    unclipped = call("my.toml", "--runs", "5", "--set", "problem.clipping=none")
    assert "nothing is promised" in unclipped.out
    assert "warning: gradients are not clipped" in unclipped.out


@pytest.mark.slow
def test_a_coalition_that_cannot_attack_is_a_warning(call: Call, folder: Path) -> None:
    arguments = ("my.toml", "--runs", "5", "--coalition", "0,2", "--target", "1", "--set", "algorithm.name=mped2fl")
    words = "receivers 0, 2 did not attack"
    shown = call(*arguments, "--out", "audit.html")
    assert "warning: coalition: " in shown.out
    assert words in shown.out
    assert words in (folder / "audit.html").read_text()
    (line,) = json.loads(call(*arguments, "--json").out)["warnings"]
    assert words in line


@pytest.mark.parametrize(
    ("setting", "warned"),
    [
        ("problem.clipping=none", "Gradients are not clipped"),
        pytest.param("problem.batch=5", "Minibatches: no amplification by sampling", marks=pytest.mark.slow),
    ],
)
def test_a_page_is_written_and_nobody_elses_file_is_lost(call: Call, folder: Path, setting: str, warned: str) -> None:
    done = call("my.toml", "--runs", "5", "--out", "audit.html", "--set", setting)
    assert done.code == 0, done.err
    page = (folder / "audit.html").read_text()
    for words in ("Audit of my.toml", "eavesdropper", "True- and false-positive rates", "epsilon = 2.0", warned):
        assert words in page
    (folder / "mine.html").write_text("my own")
    refused = call("my.toml", "--runs", "5", "--out", "mine.html")
    assert refused.code == 2
    assert "hint:" in refused.err
    assert (folder / "mine.html").read_text() == "my own"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.toml",), "missing.toml"),
        (("my.toml", "--target", "9"), "target is 9"),
        (("my.toml", "--coalition", "a"), "not a list of nodes"),
        (("my.toml", "--coalition", "0", "--target", "0"), "against itself"),
        (("my.toml", "--runs", "0"), "runs"),
        (("my.toml", "--seed", "-1"), "seed"),
        (("my.toml", "--set", "algorithm.name=central-dp"), "on the air"),
        (("my.toml", "--out", "audit.txt"), ".html"),
    ],
)
def test_bad_input_is_an_error_with_a_way_out(call: Call, arguments: tuple[str, ...], words: str) -> None:
    done = call(*arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("error:")
    assert "\nhint:" in done.err
