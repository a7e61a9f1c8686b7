"""Whatever is done to a run, with all hashes made anew: it is refused, or certified for what it cost."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import murmurcast as mc
from murmurcast.certificates.certify import Certified, certify
from murmurcast.errors import Altered
from murmurcast.runs import result as results
from murmurcast.runs.result import Result
from tests.certificates.ledger_edits import (
    EDITS,
    NEEDED,
    Edit,
    caught,
    entry,
    hashed_anew,
    make_plan,
    quadratic,
    with_ledger,
)


@pytest.fixture(scope="module")
def ours() -> Result:
    problem = quadratic()
    return mc.run(
        mc.power_controlled(make_plan(problem)),
        problem,
        seeds=(3, 8),
        options=mc.RunOptions(evaluate_every=4, name="ours"),
    )


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_edits_are_caught(ours: Result, edit: Edit) -> None:
    assert caught(with_ledger(ours, edit(ours.ledger))).startswith('run "ours": ')


@pytest.mark.parametrize(
    "rounds", [[], ["model", "gradient"], ["model", "model"], ["gradient"], ["model gradient"]], ids=str
)
def test_rounds_edited_in_run_json_too_are_caught(ours: Result, rounds: list[str]) -> None:
    """Ledger and run.json agree on them, and not with the method."""
    ledger = ours.ledger.assign_attrs(rounds=" ".join(rounds))
    assert "rounds" in caught(with_ledger(ours, ledger, rounds=rounds))


def test_tables_moved_to_another_round_are_caught(ours: Result) -> None:
    names = {str(name): str(name).replace("model_", "gradient_") for name in ours.ledger.variables}
    moved = ours.ledger.rename(names).assign_attrs(
        rounds="gradient", **{f"gradient_{name}": ours.ledger.attrs[f"model_{name}"] for name in ("channel", "draws")}
    )
    assert "rounds" in caught(with_ledger(ours, moved, rounds=["gradient"]))
    extra = ours.ledger.assign({new: ours.ledger[name] for name, new in names.items() if "sending" in name})
    assert "does not use" in caught(with_ledger(ours, extra))


@pytest.mark.parametrize("name", NEEDED)
def test_a_ledger_that_lacks_something_is_refused(ours: Result, name: str) -> None:
    assert f"has no {name}" in caught(with_ledger(ours, ours.ledger.drop_vars(name)))


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e160], ids=str)
def test_numbers_out_of_range_are_refused(ours: Result, name: str, value: float) -> None:
    caught(with_ledger(ours, entry(name, value)(ours.ledger)))


@pytest.mark.parametrize(
    "name",
    [
        *("algorithm", "epochs", "delta", "unit", "clip", "clipping", "normaliser"),
        *("format", "rounds", "model_channel", "model_draws", "start_gradients"),
    ],
)
@pytest.mark.parametrize("wrong", [None, "x", -3, [1, 2], np.array([1, 2]), np.array([0, 0]), b"node", True], ids=str)
def test_attributes_of_a_wrong_kind_are_refused(ours: Result, name: str, wrong: object) -> None:
    ledger = ours.ledger.copy()
    ledger.attrs = {key: value for key, value in ledger.attrs.items() if key != name or wrong is not None}
    if wrong is not None:
        ledger.attrs[name] = wrong
    caught(with_ledger(ours, ledger))


@pytest.mark.parametrize("key", ["name", "algorithm", "settings", "rounds", "problem", "epochs", "seeds", "privacy"])
@pytest.mark.parametrize("wrong", [None, "x", 3, [], {}, [[1]], True], ids=str)
def test_a_run_json_of_wrong_kinds_is_refused_or_kept(ours: Result, key: str, wrong: object) -> None:
    run = with_ledger(ours, ours.ledger, **{key: wrong})
    if key == "name" or (key, wrong) == ("settings", {}):  # a name may be anything, and the ledger has the settings
        assert certify(run).verdict == "kept"
    else:
        caught(run)
    del run.info[key]
    caught(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("epsilon", 0.01), ("epsilon", None), ("delta", 1e-3), ("unit", "record"), ("epsilon", "1")),
        *(("against", "eavesdropper"), ("against", 3), ("weaker", [{"against": "eavesdropper", "epsilon": 0.01}])),
        *(("weaker", [{}]), ("weaker", 3)),
    ],
)
def test_a_promise_edited_in_run_json_is_caught(ours: Result, key: str, value: object) -> None:
    assert key in caught(with_ledger(ours, ours.ledger, privacy=ours.info["privacy"] | {key: value}))


@pytest.mark.parametrize(
    "words", ['[algorithm]\nname = "noiseless"', "[privacy]\nclip = 9.0", '[problem]\nclipping = "none"']
)
def test_an_experiment_that_says_otherwise_is_caught(ours: Result, words: str) -> None:
    run = Result(metrics=ours.metrics, ledger=ours.ledger, published=ours.published, info=ours.info, experiment=words)
    assert "experiment.toml" in caught(run)
    for harmless in ("", "my own words", "algorithm = 3", '[algorithm]\nname = "power-controlled"'):
        free = Result(
            metrics=ours.metrics, ledger=ours.ledger, published=ours.published, info=ours.info, experiment=harmless
        )
        assert certify(free).verdict == "kept"


EXPERIMENT = """
[schedule]
epochs = 9
step = 0.3
[run]
seeds = [3, 8]
[privacy]
epsilon = 90.0
target = "certificate"
[data]
name = "one"
"""


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("epochs = 9", "epochs = 10"),
        ("step = 0.3", "step = 0.6"),
        ("seeds = [3, 8]", "seeds = [3, 9]"),
        ("seeds = [3, 8]", "seeds = 2"),
        ("step = 0.3", f"step = {10**400}"),
        ("step = 0.3", 'step = "x"'),
        ("epsilon = 90.0", "epsilon = 1.5"),
        ("epsilon = 90.0", "epsilon = nan"),
        ("epsilon = 90.0", ""),
        ("[run]", "[run]\nstop_after = 8"),
        ("[run]", "[run]\ndrops = {2 = 5}"),
    ],
)
def test_what_was_fixed_beforehand_is_what_was_done(ours: Result, there: str, instead: str) -> None:
    assert certify(replace(ours, experiment=EXPERIMENT)).verdict == "kept"
    assert "experiment.toml" in caught(replace(ours, experiment=EXPERIMENT.replace(there, instead)))


def test_a_factor_that_the_method_does_not_have_hides_no_step(ours: Result) -> None:
    wrong = EXPERIMENT.replace("step = 0.3", "step = 0.15")
    ledger = ours.ledger.assign_attrs(step_factor=2.0)
    run = with_ledger(replace(ours, experiment=wrong), ledger, settings=ours.info["settings"] | {"step_factor": 2.0})
    assert "step is 0.15 in experiment.toml" in caught(run)


def test_drops_are_compared_by_node_and_epoch() -> None:
    problem = quadratic()
    run = mc.run(mc.power_controlled(make_plan(problem)), problem, seeds=(3, 8), drops={2: 5, 0: 7})
    named = EXPERIMENT.replace("[run]", "[run]\ndrops = {2 = 5, 0 = 7}")
    assert certify(replace(run, experiment=named)).verdict == "kept"
    same = EXPERIMENT.replace("[run]", "[run]\ndrops = {02 = 5, 0 = 7}")
    assert certify(replace(run, experiment=same)).verdict == "kept"
    for other in ("{2 = 5}", "{2 = 5, 0 = 6}", "{1 = 5, 0 = 7}", "{x = 5}", "[2, 5]", f"{{{'9' * 5000} = 5}}", "{}"):
        text = EXPERIMENT.replace("[run]", f"[run]\ndrops = {other}")
        assert "drops" in caught(replace(run, experiment=text))


def test_different_data_does_not_add_up(ours: Result) -> None:
    problem = quadratic()
    second = mc.run(mc.power_controlled(make_plan(problem)), problem, seeds=(4,))
    text = EXPERIMENT.replace("seeds = [3, 8]", "seeds = [4]")
    first = replace(ours, experiment=EXPERIMENT)
    scaled = text.replace('"one"', '"one"\nmean = 0.3')
    assert certify([first, replace(second, experiment=scaled)]).verdict == "kept"
    assert certify([first, second]).verdict == "kept"  # it does not say
    for other in ('"two"', '"one"\npartition = "iid"'):
        with pytest.raises(mc.Error, match="different data"):
            certify([first, replace(second, experiment=text.replace('"one"', other))])


# Whatever is done to the bytes, with all hashes made anew: no traceback, and "kept" only for the true cost.


@pytest.fixture(scope="module")
def folder(ours: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "ours"
    ours.save(place)
    return place


def true_or_caught(load: Callable[[], Result], true: Certified) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            outcome = certify(load())
        except mc.Error as problem:
            assert problem.hint  # noqa: PT017 - either way is fine, a traceback is not
            return
    if outcome.verdict == "kept":
        np.testing.assert_allclose(outcome.mu, true.mu, rtol=3e-9)
        assert (outcome.unit, outcome.delta, outcome.tier) == (true.unit, true.delta, true.tier)


FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(data=st.data())
@settings(FUZZ, max_examples=20)
def test_any_change_of_a_ledgers_bytes(ours: Result, folder: Path, data: st.DataObject) -> None:
    whole, stated = (folder / results.LEDGER).read_bytes(), (folder / results.RUN).read_bytes()
    content = bytearray(whole)
    try:
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        if data.draw(st.booleans()):
            content = content[: data.draw(st.integers(0, len(content)))]
        (folder / results.LEDGER).write_bytes(content)
        hashed_anew(folder)
        true_or_caught(lambda: mc.load_run(folder), certify(ours))
    finally:
        (folder / results.LEDGER).write_bytes(whole)
        (folder / results.RUN).write_bytes(stated)


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-3, 20) | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@given(
    path=st.sampled_from(["name", "algorithm", "epochs", "rounds", "seeds", "settings", "privacy", "problem"]),
    inner=st.sampled_from(["", "epsilon", "delta", "unit", "against", "weaker", "nodes", "publish", "gradient_at"]),
    value=VALUES,
    drop=st.booleans(),
)
@FUZZ
def test_any_change_of_run_json(ours: Result, path: str, value: Any, inner: str, drop: bool) -> None:
    info = json.loads(json.dumps(ours.info))
    place, key = (info[path], inner) if inner and isinstance(info[path], dict) else (info, path)
    if drop:
        place.pop(key, None)
    else:
        place[key] = value
    run = Result(metrics=ours.metrics, ledger=ours.ledger, published=ours.published, info=info)
    true_or_caught(lambda: run, certify(ours))


@given(
    name=st.sampled_from(NEEDED),
    place=st.integers(0, 10**6),
    value=st.floats() | st.floats(1e-6, 100.0),
)
@FUZZ
def test_any_number_of_a_ledger(ours: Result, name: str, place: int, value: float) -> None:
    values = np.array(ours.ledger[name], np.float64)
    values.flat[place % values.size] = value
    try:
        outcome = certify(with_ledger(ours, ours.ledger.assign({name: (ours.ledger[name].dims, values)})))
    except Altered:
        return
    if outcome.verdict == "kept":
        np.testing.assert_allclose(outcome.mu, certify(ours).mu, rtol=3e-9)
