"""The page of an audit says what was found, and no more than that."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from murmurcast.audits.audit import CURVE, Attack, Audit
from murmurcast.reports import audits


def attack(name: str, slope: float) -> Attack:
    curve = tuple(min(1.0, slope * rate) for rate in CURVE)
    return Attack(name, 0.1, "matched", 100, 50, 0.0, 0.0, 0.0, (0.1, 0.01, 0.001), 0.5, curve)


FOUND = Audit(
    algorithm="any",
    unit="node",
    target=0,
    runs=1,
    canaries=100,
    share=1.0,
    delta=1e-5,
    confidence=0.95,
    mu_promised=0.5,
    epsilon_promised=2.0,
    epsilon_whole=2.0,
    attacks=(attack("receiver 3", 1), attack("all", 2), attack("eavesdropper", 2), attack("published", 2)),
    clip=None,
)


def page(found: Audit, folder: Path, warnings: tuple[str, ...] = ()) -> str:
    audits.write(found, "a = 1", "my.toml", folder / "audit.html", warnings=warnings)
    return (folder / "audit.html").read_text()


@pytest.mark.parametrize(
    ("mu", "badge"), [(0.5, 'told"><strong>not falsified<'), (-1.0, 'broken"><strong>did not hold<')]
)
def test_the_badge_claims_no_more_than_the_verdict(tmp_path: Path, mu: float, badge: str) -> None:
    shown = page(replace(FOUND, mu_promised=mu), tmp_path)
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


def test_warnings_are_on_the_page(tmp_path: Path) -> None:
    shown = page(replace(FOUND, warnings=("one thing was not done",)), tmp_path, ("another may mislead",))
    for line in ("One thing was not done.", "Another may mislead."):
        assert f'<p class="verdict told"><strong>warning</strong> <span>{line}</span></p>' in shown
