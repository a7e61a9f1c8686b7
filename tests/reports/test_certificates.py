"""The page of a certificate: everything the certificate says is on it, escaped, and it can be read back."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from murmurcast.certificates.document import as_text
from murmurcast.certificates.verify import read_archived
from murmurcast.reports import certificates, printing

MARKUP = '</title><script>alert("1")</script><img src=x onerror=alert(2)>&amp;'


def example(**changed: Any) -> dict[str, Any]:
    """What a certificate says, with unequal nodes."""
    run = {
        "name": "ours",
        "algorithm": "power-controlled",
        "nodes": 3,
        "epochs": 9,
        "seeds": [4],
        "settings_chosen": "not stated",
        "versions": {"murmurcast": "0.1.0", "jax": "1"},
        "sha256": {"experiment.toml": "1" * 64, "ledger.nc": "2" * 64, "published.npz": "3" * 64},
        "data_commitment": "4" * 64,
    }
    return {
        "made_by": "murmurcast certify",
        "format": 2,
        "sentence": "Somebody who guesses is right at most 69.2 % of the time.",
        "headline": {"epsilon": 4.378, "delta": 1e-05, "best_guess": 0.69146, "node": 1, "hidden": "record"},
        "tier": "tier 1",
        "unit": "record",
        "adversary": "everybody else together",
        "mu": [0.5, 1.0, 0.25],
        "epsilon": [1.99, 4.3771, 0.93],
        "delta": 1e-05,
        "basis": "certificate, against everybody",
        "assumptions": ["the ledger is complete", "gradients are clipped"],
        "not_compared": ["numbers of examples are those of the data"],
        "note": "simulation: the seed is known",
        "weaker": [],
        "settings_chosen": "on public data",
        "runs": [run],
        "commands": [{"checks": "every number", "command": "murmurcast certify CERTIFICATE ours"}],
        "date": "2031-02-03",
        "versions": {"murmurcast": "0.1.0"},
    } | changed


def test_all_of_it_is_on_the_page() -> None:
    values = example()
    page = certificates.page_of(values).decode()
    for words in (
        values["sentence"],
        "Privacy certificate of ours",
        ">4.378<",
        ">1e-05<",
        ">record<",
        ">69.2 %<",
        "everybody else together",
        "node 1 pays most; the 3 nodes pay epsilon 0.93 to 4.378",
        "<li>The ledger is complete</li><li>Gradients are clipped</li>",
        "on public data",
        "Simulation: the seed is known.",
        *("1" * 64, "2" * 64, "3" * 64, "4" * 64),
        hashlib.sha256(as_text(values).encode()).hexdigest(),
        "2031-02-03",
        "murmurcast 0.1.0, jax 1",
        "murmurcast certify CERTIFICATE ours",
    ):
        assert words in page, words
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    values = example(sentence=MARKUP)
    certificates.write(values, tmp_path / "page.html")
    archived = read_archived(tmp_path / "page.html")
    assert archived.values == json.loads(as_text(values))
    assert archived.page == (tmp_path / "page.html").read_bytes() == certificates.page_of(archived.values)


def test_nothing_in_it_becomes_a_part_of_the_page() -> None:
    run = example()["runs"][0] | {"name": MARKUP, "algorithm": MARKUP}
    values = example(runs=[run], sentence=MARKUP, assumptions=[MARKUP], settings_chosen=MARKUP, note=MARKUP)
    page = certificates.page_of(values).decode()
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("</title>") == 1
    lone = example(runs=[run | {"name": "\ud800"}])
    assert b"\\ud800" in certificates.page_of(lone)


def test_weaker_promises_many_seeds_and_several_runs() -> None:
    run = example()["runs"][0]
    values = example(
        weaker=[{"against": "eavesdropper", "epsilon": [0.1, 0.31234, 0.2]}],
        runs=[run | {"seeds": list(range(40))}, run | {"name": "again", "data_commitment": None}],
        note="secure noise: only the certificate is claimed",
    )
    page = certificates.page_of(values).decode()
    assert "epsilon 0.3124 against an eavesdropper only" in page
    assert "10, 11 and 28 more" in page
    assert "again/ledger.nc" in page
    assert "not committed to" in page
    assert "2 runs ours, again" in page
    assert "<dd>secure noise: only the certificate is claimed</dd>" in page


def test_a_page_takes_nobodys_place(tmp_path: Path) -> None:
    for name in ("page.txt", "page", "page.HTML", "page.json"):
        with pytest.raises(mc.Error, match="is not the name of a page"):
            certificates.require_page(tmp_path / name)
    with pytest.raises(mc.Error, match="does not exist"):
        certificates.require_page(tmp_path / "no" / "page.html")
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    with pytest.raises(mc.Error, match="is not the page of a certificate"):
        certificates.write(example(), tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text() == "<p>mine</p>"
    certificates.write(example(), tmp_path / "page.html")
    certificates.write(example(date="2031-02-04"), tmp_path / "page.html")
    assert read_archived(tmp_path / "page.html").values["date"] == "2031-02-04"


def browser_of(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """A browser that is none, and the only one on the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / "chromium").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin" if script else str(folder))


def test_a_pdf_needs_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mc.Error, match="a PDF needs a browser") as refused:
        certificates.require_page(tmp_path / "page.pdf")
    assert ".html" in refused.value.hint
    browser_of(monkeypatch, tmp_path / "bin", "exit 3")
    with pytest.raises(mc.Error, match="wrote no PDF: it ended with 3"):
        certificates.write(example(), tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()
    copy = 'for word in "$@"; do case "$word" in --print-to-pdf=*) printf "%%PDF-1.4 " > "${word#*=}";; esac; done'
    browser_of(monkeypatch, tmp_path / "bin", copy)
    certificates.write(example(), tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes() == b"%PDF-1.4 "
    with pytest.raises(mc.Error, match="never overwritten"):
        certificates.require_page(tmp_path / "page.pdf")
    assert printing.browser() == str(tmp_path / "bin" / "chromium")
