"""The page of an audit says what was found, and no more than that."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from murmurcast.audits.attack import CURVE, Attack, Promise
from murmurcast.audits.clipping import Clipped
from murmurcast.audits.noise_checks import Check
from murmurcast.audits.verdict import Audit
from murmurcast.reports import audits


def attack(name: str, slope: float) -> Attack:
    curve = tuple(min(1.0, slope * rate) for rate in CURVE)
    return Attack(name, 0, 0.1, "matched", 100, 50, 0.0, 0.0, 0.0, (0.1, 0.01, 0.001), 0.5, 0.5, 2.0, curve)


CHECK = Check("the size of the noise", 10, 1.0, "node 1 has 30% of the std", refutes=False)
FOUND = Audit(
    algorithm="any",
    unit="node",
    nodes=5,
    runs=1,
    canaries=100,
    delta=1e-5,
    confidence=0.9999,
    promises=(Promise(0, 1.0, 0.5, 2.0, 2.0, 1e-5),),
    attacks=(attack("receiver 3", 1), attack("all", 2), attack("eavesdropper", 2), attack("published", 2)),
    checks=(CHECK,),
    cut_caught=0.0,
    hostile=Clipped(None, "no data could be made hostile"),
    unseen=("the clip: no data could be made hostile",),
)


def page(result: Audit, folder: Path, warnings: tuple[str, ...] = ()) -> str:
    audits.write(result, "a = 1", "my.toml", folder / "audit.html", warnings=warnings)
    return (folder / "audit.html").read_text()


@pytest.mark.parametrize(
    ("refutes", "badge"), [(False, 'told"><strong>not falsified<'), (True, 'broken"><strong>did not hold<')]
)
def test_the_badge_claims_no_more_than_the_verdict(tmp_path: Path, refutes: bool, badge: str) -> None:
    shown = page(replace(FOUND, checks=(CHECK._replace(refutes=refutes),)), tmp_path)
    assert f'<p class="verdict {badge}/strong> <span>Verdict: ' in shown
    assert 'class="verdict held"' not in shown


def test_curves_that_are_the_same_can_be_told(tmp_path: Path) -> None:
    shown = page(FOUND, tmp_path)
    traces = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', shown)[0])["data"][:4]
    single, *same = [trace["line"]["width"] for trace in traces]
    assert single == same[-1]
    assert sorted(set(same), reverse=True) == same  # the widest is drawn first, under all others
    assert len({trace["line"]["dash"] for trace in traces}) == 4
    assert "&quot;all&quot;, &quot;eavesdropper&quot; and &quot;published&quot; have the same curve." in shown


def test_what_was_not_looked_at_is_on_the_page(tmp_path: Path) -> None:
    shown = page(FOUND, tmp_path)
    assert "NOT LOOKED AT: the clip: no data could be made hostile" in shown
    assert "Clip: NOT LOOKED AT" in shown


def test_warnings_are_on_the_page(tmp_path: Path) -> None:
    shown = page(replace(FOUND, warnings=("one thing was not done",)), tmp_path, ("another may mislead",))
    for line in ("One thing was not done.", "Another may mislead."):
        assert f'<p class="verdict told"><strong>warning</strong> <span>{line}</span></p>' in shown
