"""Scores that are kept: named by all that determines them, and never trusted blindly. Nothing is trained here."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from murmurcast._json import json_text
from murmurcast.experiments import rank as ranks
from murmurcast.experiments.fair_terms import around, lengths_in_steps
from murmurcast.experiments.load import parse
from murmurcast.runs.ranking import NOBODY, Score, Trial
from tests.experiments.test_rank import TEXT
from tests.runs.rankings import score

KEY = "k" * 64


def key(text: str = TEXT, method: str = "power-controlled", which: int = 0, **changed: Any) -> str:
    """Of the first score of a method's."""
    given: dict[str, Any] = {"epsilons": (2.0,), "uses": (6,), "seeds": 2, "methods": (method,), "unprotected": True}
    job = ranks._job(parse(text.encode(), "tiny.toml"), mc.RankOptions(**(given | changed)), Path())
    places, left_out = ranks._places(job)
    assert not left_out
    return ranks._key(job, places[which])


@pytest.fixture(scope="module")
def plain() -> str:
    return key()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.5, 0.9", "0.5, 0.91"),
        ("[data]", "power = 2.0\n[data]"),
        ("[data]", 'normaliser = "max-degree"\nz = "perron"\n[data]'),
        ("[data]", "[power]\nobjective = 'max-min'\n[data]"),
        ("examples = 90", "examples = 91"),
        ('partition = "sorted"', 'partition = "iid"'),
        ('name = "logistic"', 'name = "logistic"\nseed = 1'),
        ('kind = "softmax"', 'kind = "softmax"\nl2 = 0.1'),
        ('kind = "softmax"', 'kind = "softmax"\nradius = 3.0'),
        ('unit = "record"', 'unit = "node"'),
        ('unit = "record"', 'unit = "record"\ndelta = 1e-6'),
        ('unit = "record"', 'unit = "record"\nrecords_per_person = 2'),
    ],
)
def test_keys_change_with_what_determines_a_score(plain: str, old: str, new: str) -> None:
    assert old in TEXT
    assert key(TEXT.replace(old, new, 1)) != plain


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[network]", "# a comment\n[network]"),
        ("epsilon = 1.0", "epsilon = 7.0"),
        ('unit = "record"', 'unit = "record"\nnoise_source = "secure"'),
        ("[privacy]", "[schedule]\nepochs = 77\nstep = 9.0\n[privacy]"),
        ("[privacy]", "[run]\nseeds = 4\nevaluate_every = 3\n[privacy]"),
        ('name = "power-controlled"', 'name = "muffliato"\ngossip = 9'),
        ("test_fraction = 0.2", "test_fraction = 0.20"),
    ],
)
def test_keys_do_not_change_with_anything_else(plain: str, old: str, new: str) -> None:
    assert old in TEXT
    assert key(TEXT.replace(old, new, 1)) == plain


def test_keys_change_with_method_budget_uses_seeds_and_adversary(plain: str) -> None:
    others = [
        key(method="orthogonal"),
        key(epsilons=(2.1,)),
        key(uses=(8,)),
        key(seeds=3),
        *(key(method="decor", which=which) for which in range(3)),
        key(TEXT.replace('name = "power-controlled"', 'name = "muffliato"\ngossip = 3'), method="muffliato"),
        key(method="muffliato"),
    ]
    assert len({plain, *others}) == 1 + len(others)


def test_keys_change_with_the_release_and_the_grid(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(ranks, "version", lambda _: "0.0.0")
        assert key() != plain
    with monkeypatch.context() as changed:
        changed.setattr(ranks, "TUNING_SEEDS", (1, 2))
        assert key() != plain
    with monkeypatch.context() as changed:
        changed.setattr(ranks, "lengths_in_steps", lambda nodes: (1.0 / nodes, 2.0 / nodes))
        assert key() != plain
    assert key() == plain


def test_other_budgets_and_methods_beside_it_do_not_change_a_key(plain: str) -> None:
    assert key(epsilons=(2.0, 5.0), uses=(6, 9)) == plain
    options = mc.RankOptions(epsilons=(2.0,), uses=(6,), seeds=2, methods=("dp-dsgd", "power-controlled"))
    job = ranks._job(parse(TEXT.encode(), "tiny.toml"), options, Path())
    assert ranks._key(job, ranks._places(job)[0][1]) == plain


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[1, 2]",
        b"\xff\xfe\x00",
        b'{"score": {}}',
        b'{"key": "KEY", "score": null}',
        b'{"key": "KEY", "score": "words"}',
        b'{"key": "KEY", "score": {"method": "any"}}',
        b'{"key": "KEY", "score": {"by_seed": [1' + b"0" * 400 + b'], "by_node": [], "trials": []}}',
        b'{"key": "KEY", "score": {"by_seed": [[]], "by_node": [], "trials": []}}',
        b'{"key": "KEY", "score": {"by_seed": [], "by_node": [], "trials": [3]}}',
        b"[" * 100_000,
    ],
)
def test_broken_files_are_no_scores(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "score.json"
    path.write_bytes(content.replace(b"KEY", KEY.encode()))
    assert ranks._read(path, KEY) is None


def test_a_score_is_read_under_its_own_key_alone(tmp_path: Path) -> None:
    kept = score("any", 0.5, trials=(Trial(0.1, "sqrt", {}, 0.5),))
    path = tmp_path / "score.json"
    path.write_text(json_text({"key": KEY, "score": kept.as_dict()}))
    assert ranks._read(path, KEY) == kept
    assert ranks._read(path, KEY[:-1] + "x") is None
    assert ranks._read(tmp_path / "none.json", KEY) is None
    assert ranks._read(tmp_path, KEY) is None
    values = json.loads(path.read_text())
    del values["score"]["epochs"]
    path.write_text(json.dumps(values))
    assert ranks._read(path, KEY) is None


def test_a_foreign_file_is_written_over_and_an_own_one_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result: list[Score] = []

    def work(*_: object) -> Score:
        result.append(score("power-controlled", 0.1 * len(result), trials=()))
        return result[-1]

    monkeypatch.setattr(ranks, "_score", work)
    given = mc.RankOptions(epsilons=(2.0,), uses=(6,), methods=("power-controlled",), folder=tmp_path)
    experiment = parse(TEXT.encode(), "tiny.toml")
    assert mc.rank(experiment, given).scores == (result[0],)
    assert mc.rank(experiment, given).scores == (result[0],)
    (path,) = (tmp_path / "scores").glob("*.json")
    assert path.name.startswith("power-controlled-epsilon-2-against-everybody-6-uses-")
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"key": "of somebody else"}))
    assert mc.rank(experiment, given).scores == (result[1],)
    assert json.loads(path.read_text())["key"] == values["key"]


def test_a_score_that_cannot_be_found_is_left_out_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: object, place: ranks._Place) -> Score:  # noqa: ARG001
        if place.epsilon == 2.0:
            raise mc.Error("it diverges", hint="lower the clip")
        return score("power-controlled", 0.5)

    stated: list[tuple[int, int, str]] = []
    monkeypatch.setattr(ranks, "_score", fail)
    given = mc.RankOptions(
        epsilons=(1.0, 2.0), uses=(6,), methods=("power-controlled",), on_score=lambda *words: stated.append(words)
    )
    result = mc.rank(parse(TEXT.encode(), "tiny.toml"), given)
    assert len(result.scores) == 1
    assert result.left_out == (("power-controlled, epsilon 2 against everybody, 6 uses", "it diverges"),)
    assert [(done, of) for done, of, _ in stated] == [(0, 2), (1, 2), (2, 2)]
    assert "epsilon 1 against everybody" in stated[0][2]


def test_reasons_why_methods_are_left_out() -> None:
    text = TEXT.replace("[[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]", "[[0, 1, 0], [0, 0, 1], [1, 0, 0]]")
    names = ("local-only", "dsgd", "power-controlled", "private-frost", "locally-balanced")
    given = mc.RankOptions(epsilons=(2.0,), uses=(6,), methods=names)
    places, left_out = ranks._places(ranks._job(parse(text.encode(), "tiny.toml"), given, Path()))
    reasons = {one.method: one.reason for one in left_out}
    assert reasons["local-only"] == "nothing is sent, and nothing published"
    assert reasons["dsgd"].startswith("nothing is promised: ")
    assert reasons["locally-balanced"].startswith("nothing is promised: ")
    assert "power-controlled" in reasons
    assert [place.contender.method.name for place in places] == ["private-frost"]


def test_methods_without_promise_have_one_score_whatever_the_budgets() -> None:
    given = mc.RankOptions(epsilons=(1.0, 2.0), uses=(6, 9), methods=("dsgd", "dp-dsgd"), unprotected=True)
    places, left_out = ranks._places(ranks._job(parse(TEXT.encode(), "tiny.toml"), given, Path()))
    assert left_out == []
    result = [(one.contender.method.name, one.against, one.epsilon, one.uses) for one in places]
    assert result[:2] == [("dsgd", NOBODY, None, 6), ("dsgd", NOBODY, None, 9)]
    assert result[2:] == [("dp-dsgd", "everybody", epsilon, uses) for uses in (6, 9) for epsilon in (1.0, 2.0)]
    assert ranks._words(places[0]) == "dsgd, no privacy, 6 uses"


def test_without_names_methods_that_promise_nothing_are_passed_over_in_silence() -> None:
    given = mc.RankOptions(epsilons=(2.0,), uses=(6,))
    places, left_out = ranks._places(ranks._job(parse(TEXT.encode(), "tiny.toml"), given, Path()))
    assert {one.method for one in left_out} == {"local-only", "ped2fl", "dwfl"}
    assert "dsgd" not in {one.contender.method.name for one in places}
    assert {one.against for one in places if one.contender.method.name == "central-dp"} == {"trusted server"}


def test_the_best_trial_is_the_highest_accuracy_or_the_lowest_loss_that_is_finite() -> None:
    trials = tuple(Trial(step, "sqrt", {}, value) for step, value in enumerate((0.4, math.nan, 0.9, math.inf, 0.1)))
    best, least = ranks._best(trials, "accuracy"), ranks._best(trials, "loss")
    assert best is not None
    assert least is not None
    assert (best.value, least.value) == (0.9, 0.1)
    assert ranks._best(trials[1:2], "accuracy") is None
    assert ranks._best((), "loss") is None


def test_trials_are_the_grid_and_then_the_surroundings_of_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accuracy peaks at a step of 0.3 and shared_to_own 10: found without a look at anything but trials."""
    given = mc.RankOptions(epsilons=(2.0,), uses=(6,), methods=("decor",))
    job = ranks._job(parse(TEXT.encode(), "tiny.toml"), given, Path())
    place = ranks._places(job)[0][0]

    def trial(job: object, place: object, steps: Any, options: dict[str, float]) -> Trial:  # noqa: ARG001
        off = abs(math.log(steps.step / 0.3)) + abs(math.log(options["shared_to_own"] / 10))
        return Trial(steps.step, steps.decay, options, 1 - 0.1 * off)

    monkeypatch.setattr(ranks, "_trial", trial)
    result = list(ranks._trials(job, place, 6))
    steps = lengths_in_steps(3)
    assert len(result) == 3 * len(steps) + 2
    assert {one.options["shared_to_own"] for one in result} == {1.0, 10.0, 100.0}
    assert {one.step for one in result[:-2]} == set(steps)
    middle = min(steps, key=lambda step: abs(math.log(step / 0.3)))
    assert [one.step for one in result[-2:]] == pytest.approx(list(around(middle)))
    assert all(one.options == {"shared_to_own": 10.0} for one in result[-2:])


def test_keys_change_with_the_code_of_a_users_own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    home = tmp_path / "ranked_method.py"
    lines = "import murmurcast as mc\ndef mine(plan: mc.Plan) -> object:\n    return mc.noiseless(plan)\n"
    result = []
    for text in (lines, lines, lines + "# another\n"):
        home.write_text(text)
        result.append(key(method="ranked_method:mine"))
    assert result[0] == result[1] != result[2]
