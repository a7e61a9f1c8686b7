"""An archived certificate against the folder it is about: every word and number is compared."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

import murmurcast as mc
from murmurcast.certificates.certify import certify
from murmurcast.certificates.document import Certifiable, as_text, contents
from murmurcast.certificates.verify import differences, read_archived
from murmurcast.runs.result import file_hashes
from tests.certificates.ledger_edits import make_plan, quadratic, regression


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder, problem = tmp_path_factory.mktemp("archived") / "ours", regression()
    mc.run(mc.power_controlled(make_plan(problem, "record")), problem, options=mc.RunOptions(folder=folder))
    run = mc.load_run(folder)
    return contents(certify(run), [Certifiable("ours", run, file_hashes(folder))])


def read_back(values: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(as_text(values)))


def leaves(value: Any, *way: Any) -> list[tuple[Any, ...]]:
    """The ways to all that can be changed."""
    if isinstance(value, dict):
        return [outcome for key, inner in value.items() for outcome in leaves(inner, *way, key)]
    if isinstance(value, list) and value:
        return [outcome for place, inner in enumerate(value) for outcome in leaves(inner, *way, place)]
    return [way]


def test_what_it_says(values: dict[str, Any]) -> None:
    """The sentence and the headline are those of the node that pays most, rounded up."""
    run_mu, epsilon = values["mu"], values["epsilon"]
    worst = max(range(4), key=lambda node: run_mu[node])
    headline = values["headline"]
    assert headline["node"] == worst
    assert epsilon[worst] <= headline["epsilon"] <= epsilon[worst] * 1.001
    assert headline["best_guess"] == pytest.approx(norm.cdf(run_mu[worst] / 2), rel=1e-12)
    assert "guesses whether one record was used" in values["sentence"]
    assert values["settings_chosen"] == "not stated"
    assert values["runs"][0]["sha256"].keys() == {"experiment.toml", "ledger.nc", "published.npz"}
    assert len(values["runs"][0]["data_commitment"]) == 64
    assert any("murmurcast certify CERTIFICATE ours" in one["command"] for one in values["commands"])


def test_the_best_guess_of_the_node_that_pays_most_and_settings_as_stated(tmp_path: Path) -> None:
    problem = regression()
    plan = make_plan(problem, "record")
    plan = replace(plan, budget=replace(plan.budget, settings_chosen="on public data"))
    run = mc.run(mc.power_controlled(plan), problem)
    run.save(tmp_path)
    outcome = certify(run)
    said = contents(outcome, [Certifiable("ours", run, file_hashes(tmp_path))])
    assert said["headline"]["best_guess"] == pytest.approx(norm.cdf(outcome.mu.max() / 2), rel=1e-12)
    assert said["settings_chosen"] == said["runs"][0]["settings_chosen"] == "on public data"


def test_it_holds_when_nothing_was_changed(values: dict[str, Any]) -> None:
    assert differences(read_back(values), values) == []
    other_day = read_back(values) | {"date": "1999-01-01", "versions": {}}
    assert differences(other_day, values) == []
    last_digit = read_back(values)
    last_digit["mu"][0] *= 1 + 1e-13  # another processor
    assert differences(last_digit, values) == []


def test_whatever_is_changed_is_found(values: dict[str, Any]) -> None:
    archived = read_back(values)
    ways = [way for way in leaves(archived) if way[0] not in ("date", "versions", "not_compared")]
    assert len(ways) > 50
    for way in ways:
        changed = copy.deepcopy(archived)
        at = changed
        for key in way[:-1]:
            at = at[key]
        value = at[way[-1]]
        at[way[-1]] = value * (1 + 1e-6) if isinstance(value, float) else value + 1 if isinstance(value, int) else "x"
        outcome = differences(changed, values)
        assert outcome, way
        assert outcome[0].startswith(str(way[0]))


def test_whatever_is_left_out_or_added_is_found(values: dict[str, Any]) -> None:
    archived = read_back(values)
    for key in archived.keys() - {"date", "versions", "not_compared"}:
        left_out = {name: value for name, value in archived.items() if name != key}
        assert any(line.startswith(f"{key} is not in the certificate") for line in differences(left_out, values)), key
    assert "means nothing here" in differences(archived | {"epsilon_really": 0.1}, values)[0]
    fewer = archived | {"assumptions": archived["assumptions"][1:]}
    assert "is not in the certificate" in differences(fewer, values)[0]
    turned = archived | {"assumptions": archived["assumptions"][::-1]}
    assert "another order" in differences(turned, values)[0]
    assert "entries" in differences(archived | {"mu": archived["mu"][1:]}, values)[0]
    odds: tuple[Any, ...] = (None, "2", True, 10**400, [], {})
    for odd in odds:
        assert differences(archived | {"mu": odd}, values)
        assert differences(archived | {"delta": odd}, values)


@pytest.mark.slow
def test_other_tiers_say_what_they_are(tmp_path: Path) -> None:
    """Each with its words; none of them reads like a certificate."""
    problem, said = quadratic(), {}
    for name, make in (("central", mc.central_dp), ("noiseless", mc.noiseless), ("local", mc.local_only)):
        mc.run(make(make_plan(problem)), problem, options=mc.RunOptions(folder=tmp_path / name))
        run = mc.load_run(tmp_path / name)
        said[name] = contents(certify(run), [Certifiable(name, run, file_hashes(tmp_path / name))])
        assert "certif" not in said[name]["sentence"]
        assert differences(read_back(said[name]), said[name]) == []
    assert said["central"]["sentence"].startswith("Guesses by everybody but the server")
    assert said["noiseless"]["sentence"] == "Nothing is promised."
    assert read_back(said["noiseless"])["headline"]["epsilon"] is None
    assert "nobody can do better than toss a coin" in said["local"]["sentence"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "words",
        "[]",
        "{}",
        '{"made_by": "me"}',
        '{"made_by": "murmurcast certify"}',
        '{"made_by": "murmurcast certify", "format": 2, "delta": 2.0, "runs": [{"name": "a"}]}',
        '{"made_by": "murmurcast certify", "format": 2, "delta": 1e-5, "runs": []}',
        '{"made_by": "murmurcast certify", "format": 2, "delta": 1e-5, "runs": [{"name": 3}]}',
        '{"made_by": "murmurcast certify", "format": 2, "delta": true, "runs": [{"name": "a"}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_certificate(content: str, tmp_path: Path) -> None:
    for name in ("some.json", "some.html"):
        (tmp_path / name).write_text(content)
        with pytest.raises(mc.Error, match="holds no certificate"):
            read_archived(tmp_path / name)


def test_a_certificate_of_another_version_and_a_pdf(values: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(as_text(values | {"format": 1}))
    with pytest.raises(mc.Error, match="another version"):
        read_archived(tmp_path / "old.json")
    (tmp_path / "some.pdf").write_bytes(b"%PDF")
    with pytest.raises(mc.Error, match="no program can read"):
        read_archived(tmp_path / "some.pdf")
    with pytest.raises(mc.Error, match="does not exist"):
        read_archived(tmp_path / "none.json")
