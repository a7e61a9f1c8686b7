"""Choosing settings on public data: the private set is never read, tries are kept, the choice carries its origin."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock, Timeout

import murmurcast as mc
from murmurcast.data import datasets
from murmurcast.experiments import tune as tune_file
from murmurcast.experiments.load import parse
from murmurcast.experiments.tune_search import Setting
from murmurcast.problems.base import Problem
from murmurcast.runs.variants import Train, trainer

TEXT = """
[network]
gains = [[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]]
z = "perron"
[data]
name = "private.csv"
classes = 3
partition = "sorted"
test_fraction = 0.2
[problem]
kind = "softmax"
[privacy]
epsilon = 4.0
unit = "record"
[schedule]
epochs = 8
step = 0.3
noise_timing = "aligned"
[algorithm]
name = "power-controlled"
gradient_at = "mixed"
"""
PLACE = "cannot take the private one's place"
FEW: dict[str, Any] = {"clips": (0.5, 1.0), "steps": (0.1, 1.0), "seeds": 2}


def experiment(text: str = TEXT) -> mc.Experiment:
    return parse(text.encode(), "tiny.toml")


def tuned(text: str = TEXT, public: str | Path = "logistic", **options: Any) -> mc.Tuning:
    return mc.tune(experiment(text), public=public, options=mc.TuneOptions(**(FEW | options)), place="/nowhere")


@pytest.fixture(scope="module")
def outcome() -> mc.Tuning:
    return tuned()


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every setting that is really trained, with the name of the set."""
    seen: list[str] = []

    def counting(problem: Problem, seeds: tuple[int, ...]) -> Train:
        inner = trainer(problem, seeds)

        def train(algorithm: Any) -> Any:
            seen.append(problem.data.dataset.name)  # type: ignore[attr-defined]
            return inner(algorithm)

        return train

    monkeypatch.setattr(tune_file, "trainer", counting)
    return seen


def test_the_private_set_is_not_there_and_nothing_misses_it(trained: list[str]) -> None:
    outcome = tuned()
    assert trained == ["logistic"] * 4
    assert outcome.public == "logistic"
    assert "trained on 800 examples of logistic, judged on its test part, 200 others" in outcome.part


def test_a_private_set_by_name_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def private(**_: object) -> mc.datasets.Dataset:
        raise AssertionError("the private set was loaded")

    monkeypatch.setitem(datasets._FETCHED, "mnist", private)
    monkeypatch.setattr(datasets, "mnist", private)
    text = TEXT.replace('"private.csv"\nclasses = 3', '"mnist"')
    with pytest.raises(AssertionError, match="was loaded"):  # this is what a run would do
        experiment(text).build_problem(3)
    assert tuned(text, "digits").chosen.value > 0


def test_the_best_is_chosen_and_written_with_its_origin(outcome: mc.Tuning) -> None:
    values = {one.setting: one.value for one in outcome.tries}
    assert outcome.chosen.value == max(values.values())
    assert set(values) == {Setting(clip, step, 8, "sqrt") for clip in (0.5, 1.0) for step in (0.1, 1.0)}
    new, setting = outcome.experiment, outcome.chosen.setting
    assert (new.privacy.clip, new.schedule.step, new.schedule.epochs) == (setting.clip, setting.step, 8)
    assert new.privacy.settings_chosen == outcome.statement
    assert outcome.statement == f"on public data: logistic, sha256 {outcome.sha256}, 4 settings tried"
    assert new.data == experiment().data
    assert (new.network, new.algorithm, new.problem) == (
        experiment().network,
        experiment().algorithm,
        experiment().problem,
    )


def test_a_value_is_that_of_a_run_on_the_public_set(outcome: mc.Tuning) -> None:
    last = outcome.tries[-1]  # trained by a program that was compiled for another
    assert last.setting.clip == outcome.tries[-2].setting.clip
    text = TEXT.replace('"private.csv"\nclasses = 3', '"logistic"').replace("step = 0.3", f"step = {last.setting.step}")
    text = text.replace('unit = "record"', f'unit = "record"\nclip = {last.setting.clip}')
    problem, algorithm = experiment(text).build()
    result = mc.run(algorithm, problem, seeds=range(2), options=mc.RunOptions(evaluate_every=8))
    by_seed = np.asarray(result.final("published_accuracy")).mean(axis=1)
    assert last.value == pytest.approx(by_seed.mean(), abs=1e-6)
    assert last.spread == pytest.approx(by_seed.std(ddof=1), abs=1e-6)


def test_what_was_tried_is_kept_and_never_trained_again(tmp_path: Path, trained: list[str]) -> None:
    first = tuned(folder=tmp_path)
    assert len(trained) == 4
    again = tuned(folder=tmp_path)
    assert len(trained) == 4
    assert again.tries == first.tries
    more = tuned(folder=tmp_path, steps=(0.1, 1.0, 2.0))
    assert len(trained) == 6
    assert len(more.tries) == 6
    assert len(list((tmp_path / "tries").glob("*.json"))) == 6


def test_a_search_that_was_stopped_goes_on(tmp_path: Path, trained: list[str], outcome: mc.Tuning) -> None:
    def stop(done: int, *_: object) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(folder=tmp_path, on_try=stop)
    assert len(trained) == 3
    assert not (tmp_path / "tries" / ".lock").exists()
    again = tuned(folder=tmp_path)
    assert len(trained) == 4
    assert again.tries == outcome.tries


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "change",
    [
        {"text": TEXT.replace("epsilon = 4.0", "epsilon = 3.0")},
        {"text": TEXT.replace("0.8, 0, 0.4", "0.8, 0, 0.5")},
        {"text": TEXT.replace('"sorted"', '"iid"')},
        {"text": TEXT.replace('gradient_at = "mixed"', 'gradient_at = "mixed"\npublish = "average"')},
        {"text": TEXT.replace('kind = "softmax"', 'kind = "softmax"\nl2 = 0.1')},
        {"public": "digits"},
        {"seeds": 3},
    ],
)
def test_a_try_is_found_again_only_where_nothing_has_changed(
    tmp_path: Path, trained: list[str], change: dict[str, Any]
) -> None:
    one: dict[str, Any] = {"clips": (1.0,), "steps": (0.3,), "folder": tmp_path}
    tuned(**one)
    tuned(**one)
    assert len(trained) == 1
    tuned(**(one | change))
    assert len(trained) == 2


def test_the_data_themselves_are_part_of_the_key(tmp_path: Path, trained: list[str]) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "public.csv"
    for seed in range(2):
        rows = rng.normal(size=(60, 3))
        path.write_text("a,b,c,label\n" + "\n".join(f"{a},{b},{c},{n % 3}" for n, (a, b, c) in enumerate(rows)))
        tuned(public=path, clips=(1.0,), steps=(0.3,), folder=tmp_path / "kept")
        assert len(trained) == seed + 1


def test_a_try_that_was_damaged_or_forged_for_another_is_made_anew(tmp_path: Path, trained: list[str]) -> None:
    first = tuned(folder=tmp_path)
    one, other, *_ = sorted((tmp_path / "tries").glob("*.json"))
    other.write_bytes(one.read_bytes())
    one.write_text("{")
    assert tuned(folder=tmp_path).tries == first.tries
    assert len(trained) == 6


def test_two_searches_do_not_share_a_folder(tmp_path: Path) -> None:
    asked = []

    def ask_as_another_process(*_: object) -> None:
        with pytest.raises(Timeout):
            FileLock(tmp_path / "tries" / ".lock", timeout=0).acquire()
        asked.append(True)

    tuned(folder=tmp_path, clips=(1.0,), steps=(0.3,), on_try=ask_as_another_process)
    assert asked
    kept = FileLock(tmp_path / "tries" / ".lock", timeout=0)
    with kept, pytest.raises(mc.Error, match="another process"):
        tuned(folder=tmp_path)


METHODS = ("power-controlled", "dp-dsgd", "decor", "mped2fl", "central-dp", "noiseless", "local-only", "muffliato")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", METHODS)
def test_methods_of_every_kind_can_be_tuned(name: str) -> None:
    text = TEXT.replace('name = "power-controlled"\ngradient_at = "mixed"', f'name = "{name}"')
    outcome = tuned(text.replace('unit = "record"', 'unit = "node"'), clips=(1.0,))
    assert all(math.isfinite(one.value) for one in outcome.tries), outcome.tries
    assert outcome.experiment.algorithm.name == name


@pytest.mark.slow
def test_a_model_and_what_it_releases_first() -> None:
    text = TEXT.replace('kind = "softmax"', 'kind = "model"\nmodule = "mlp"\nloss = "cross-entropy"\ndim = 77')
    text = text.replace('unit = "record"', 'unit = "record"\ncentring = 0.02\nwhitening = 0.1')
    text = text.replace("test_fraction = 0.2", 'test_fraction = 0.2\nfeatures = ["unit-norm"]')
    outcome = tuned(text, clips=(0.5,))
    assert all(math.isfinite(one.value) and not one.refused for one in outcome.tries)
    assert any("problem.dim is 77" in line for line in outcome.warnings)


def test_centring_is_released_anew_on_the_public_data(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def looking(problem: Problem, seeds: tuple[int, ...]) -> Train:
        seen.append(problem.data)  # type: ignore[attr-defined]
        return trainer(problem, seeds)

    monkeypatch.setattr(tune_file, "trainer", looking)
    text = TEXT.replace('unit = "record"', 'unit = "record"\ncentring = 0.02\nwhitening = 0.1')
    tuned(text, clips=(1.0,), steps=(0.3,))
    (data,) = seen
    budget = mc.Budget(epsilon=4.0, unit="record", centring=0.02, whitening=0.1)
    raw = mc.datasets.logistic().split(0.2, 0).partition("sorted", 3)
    expected = mc.preprocess(raw, budget, rows="signed", seed=0)
    np.testing.assert_array_equal(data.dataset.features, expected.dataset.features)
    assert set(data.first.noise) == {"centring", "whitening"}


@pytest.mark.slow
def test_coins_and_regression() -> None:
    coins = TEXT.replace('kind = "softmax"', 'kind = "softmax"\nbatch = 20\nsampling = "poisson"')
    assert tuned(coins, clips=(1.0,), steps=(0.3,)).chosen.value > 0
    ridge = TEXT.replace('kind = "softmax"', 'kind = "ridge"').replace("classes = 3\n", "")
    outcome = tuned(ridge, "least-squares")
    assert outcome.metric == "loss"
    assert outcome.chosen.value == min(one.value for one in outcome.tries)


@pytest.mark.slow
def test_a_radio_goes_along() -> None:
    text = TEXT.replace("[schedule]", "[radio]\n[schedule]", 1).replace('z = "perron"\n', "")
    text = text.replace('kind = "softmax"', 'kind = "softmax"\nradius = 5.0')
    assert math.isfinite(tuned(text, clips=(1.0,), steps=(0.3,)).chosen.value)


@pytest.mark.slow
def test_the_whole_search_on_a_small_set() -> None:
    outcome = tuned(clips=(), steps=(), seeds=1)
    assert 12 <= len(outcome.tries) <= 32
    assert outcome.as_in_file is not None
    assert outcome.as_in_file.setting == Setting(1.0, 0.3, 8, "sqrt")
    assert outcome.chosen.value >= outcome.as_in_file.value
    assert {one.setting.epochs for one in outcome.tries} == {8, 4, 2}
    assert {one.setting.decay for one in outcome.tries} == {"sqrt", "constant"}
    assert all(math.isnan(one.spread) for one in outcome.tries)


def test_the_table_has_every_try_the_best_first(outcome: mc.Tuning) -> None:
    lines = str(outcome).splitlines()
    assert lines[0].split() == ["clip", "step", "decay", "epochs", "accuracy", "spread"]
    assert len(lines) == 1 + len(outcome.tries)
    assert lines[1].endswith("chosen")
    values = [float(cells[4]) for cells in outcome.cells]
    assert values == sorted(values, reverse=True)
    plain = json.loads(json.dumps(outcome.as_dict()))
    assert plain["chosen"]["clip"] == outcome.chosen.setting.clip
    assert plain["settings_chosen"] == outcome.statement
    assert len(plain["tries"]) == 4


def test_a_setting_that_cannot_be_planned_is_shown_and_not_chosen() -> None:
    outcome = tuned(clips=(1e-30, 1.0), steps=(0.3,))
    refused = next(one for one in outcome.tries if one.setting.clip == 1e-30)
    assert "clip is 1e-30" in refused.refused
    assert outcome.chosen.setting.clip == 1.0
    assert any("clip is 1e-30" in line for line in str(outcome).splitlines()[-1:])
    with pytest.raises(mc.Error, match="none of 1 settings can be used: clip is 1e-30"):
        tuned(clips=(1e-30,), steps=(0.3,))


def test_what_no_setting_can_mend_is_said_before_the_first(trained: list[str]) -> None:
    with pytest.raises(mc.Error, match="gradient"):
        tuned(TEXT.replace('gradient_at = "mixed"', 'gradient_at = "own"'))
    assert trained == []


@pytest.mark.parametrize(
    ("text", "public", "said"),
    [
        (
            TEXT.replace("classes = 3", 'classes = 3\nfeatures = ["hog"]'),
            "logistic",
            PLACE,
        ),
        (
            TEXT.replace('"sorted"', '{kind = "column", column = "site"}'),
            "logistic",
            PLACE,
        ),
        (TEXT, "least-squares", "values, not labels"),
    ],
)
def test_a_public_set_that_does_not_fit_is_refused(text: str, public: str, said: str) -> None:
    with pytest.raises(mc.Error, match=said):
        tuned(text, public)


@pytest.mark.slow
def test_what_the_file_fixes_is_not_searched() -> None:
    free = TEXT.replace('kind = "softmax"', 'kind = "softmax"\nclipping = "none"')
    free = free.replace('unit = "record"', 'unit = "node"')
    assert {one.setting.clip for one in tuned(free, clips=()).tries} == {1.0}
    with pytest.raises(mc.Error, match="no clip to choose"):
        tuned(free)
    ended = TEXT + "[run]\nstop_after = 5\n"
    assert {one.setting.epochs for one in tuned(ended, clips=(1.0,), steps=()).tries} == {8}
    with pytest.raises(mc.Error, match="no number of epochs to choose"):
        tuned(ended, epochs=(6,))


def test_a_private_set_of_another_size_is_told() -> None:
    said = TEXT.replace('unit = "record"', 'unit = "record"\nexamples_per_node = 20000')
    assert any("examples_per_node is 20000" in line for line in tuned(said).warnings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"clips": (0.0,)},
        {"steps": (-1.0,)},
        {"epochs": (1,)},
        {"decays": ("slow",)},
        {"seeds": 0},
        {"seeds": 10**6},
        {"clips": (1.0, 1.0)},
        {"epochs": (10**9,)},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(mc.Error):
        mc.TuneOptions(**wrong)


@pytest.mark.slow
def test_a_module_that_was_edited_is_trained_anew(
    tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    code = (
        "import murmurcast as mc\ndef net(inputs, outputs):\n    return mc.modules.mlp(inputs, outputs, hidden=(4,))\n"
    )
    path = tmp_path / "tune_own_net.py"
    path.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    text = TEXT.replace('kind = "softmax"', 'kind = "model"\nmodule = "tune_own_net:net"\nloss = "cross-entropy"')
    one: dict[str, Any] = {"clips": (1.0,), "steps": (0.3,), "folder": tmp_path / "kept"}
    tuned(text, **one)
    tuned(text, **one)
    assert len(trained) == 1
    path.write_text(code.replace("(4,)", "(5,)"))
    sys.modules.pop("tune_own_net")
    importlib.invalidate_caches()
    tuned(text, **one)
    assert len(trained) == 2
