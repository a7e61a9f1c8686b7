"""Runs side by side and on a page: no epsilon that `certify` refuses, and every one that it keeps."""

import json
from pathlib import Path

import pytest

import murmurcast as mc
from murmurcast.certificates import certify as tables_alone
from tests.certificates import forgeries
from tests.certificates.forged_folders import FORGED
from tests.certificates.test_forged_folders import QUADRATIC, command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run as the command makes it."""
    (tmp_path / "my.toml").write_text(forgeries.experiment(**QUADRATIC))
    done = command("run", str(tmp_path / "my.toml"), "--out", str(tmp_path / "my"))
    assert done.code == 0, done.err
    return tmp_path / "my"


def shown(folder: Path) -> tuple[float | None, str]:
    """The epsilon of a comparison, and the text of a page."""
    (row,) = json.loads(command("compare", str(folder), "--metric", "published_loss", "--json").out)["runs"]
    assert mc.compare(mc.load_run(folder), metric="published_loss").rows[0].epsilon == row["epsilon"]
    page = folder.parent / "page.html"
    assert command("report", str(folder), "-o", str(page)).code == 0
    by_command = page.read_text()
    mc.report([mc.load_run(folder)], page)
    assert page.read_text() == by_command
    return row["epsilon"], by_command


@pytest.mark.slow
def test_tables_that_only_the_plan_gives_away_have_no_epsilon(folder: Path) -> None:
    epsilon, page = shown(folder)
    assert epsilon == pytest.approx(3.0, rel=1e-6)
    assert "is not certified" not in page
    FORGED["noise and power sent quadrupled"](folder)
    run = mc.load_run(folder)
    assert tables_alone.certify(run).verdict == "kept"  # by the ledger's own tables
    assert command("certify", str(folder)).code == 1
    epsilon, page = shown(folder)
    assert epsilon is None
    assert "is not certified" in page
    assert f"epsilon {run.info['privacy']['epsilon']:.4g}" not in page
