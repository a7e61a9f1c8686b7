"""From a file of one's own to a certificate: nothing is promised on labels that were read from the records."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.assumptions import DataFacts
from tests.certificates.ledger_edits import caught, with_ledger, without_attribute
from tests.conftest import asymmetric_network
from tests.fuzz.corruptions import call

NODES, EPOCHS = 4, 3
EXPERIMENT = """
[network]
gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]
[privacy]
epsilon = 2.0
unit = "record"
[schedule]
epochs = 3
[problem]
radius = 2.0
[data]
name = "my.csv"
partition = "sorted"
labels = ["no", "yes", "perhaps"]
"""
DECLARED = 'labels = ["no", "yes", "perhaps"]\n'


def table(rows: int = 60, last: str = "yes") -> str:
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f},{'yes' if a + b > 0 else 'no'}" for a, b in rng.standard_normal((rows - 1, 2))]
    return "\n".join(["one,two,label", *lines, f"0.1,0.2,{last}"]) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my.csv").write_text(table())
    (tmp_path / "my.toml").write_text(EXPERIMENT)
    (tmp_path / "bare.toml").write_text(EXPERIMENT.replace(DECLARED, ""))
    return tmp_path


def problem_of(path: Path, rule: str = "iid", **options: Any) -> mc.SoftmaxRegression:
    declared = {key: options.pop(key) for key in ("labels", "classes") if key in options}
    data = mc.datasets.load(path, **declared).partition(rule, nodes=NODES)
    return mc.SoftmaxRegression(data=data, ball=2.0, **options)


def plan_of(problem: Any) -> mc.Plan:
    budget = mc.Budget(epsilon=2.0, unit="record")
    return mc.plan(asymmetric_network(3, NODES), problem, budget, mc.Schedule(epochs=EPOCHS))


def test_one_record_with_a_label_of_its_own_is_refused_before_anything_is_sent(folder: Path) -> None:
    """What happened before: the model of all nodes got another shape, and epsilon was still promised."""
    (folder / "odd.csv").write_text(table(last="very rare"))
    shapes = {problem_of(folder / name).shape for name in ("my.csv", "odd.csv")}
    assert len(shapes) == 2
    for name in ("my.csv", "odd.csv"):
        problem = problem_of(folder / name)
        with pytest.raises(mc.Error, match="read from its records") as refused:
            mc.run(mc.power_controlled(plan_of(problem)), problem)
        assert "data.labels" in refused.value.hint
        assert any("labels read from records" in line for line in plan_of(problem).warnings)
    declared = problem_of(folder / "my.csv", labels=["no", "yes"])
    assert not any("labels read from records" in line for line in plan_of(declared).warnings)
    with pytest.raises(mc.Error, match="example 60 is not one of the 2"):
        problem_of(folder / "odd.csv", labels=["no", "yes"])


@pytest.mark.slow
def test_what_is_promised_nothing_may_read_its_labels(folder: Path) -> None:
    problem = problem_of(folder / "my.csv")
    for algorithm in (mc.noiseless(plan_of(problem)), mc.local_only(plan_of(problem))):
        assert mc.run(algorithm, problem).info["privacy"]["assumptions"] == []
    unclipped = problem_of(folder / "my.csv", clipping="none")
    ran = mc.run(mc.power_controlled(plan_of(unclipped)), unclipped)
    assert mc.certify(ran).verdict == "nothing is promised"


def test_an_audit_of_a_promise_needs_them_too(folder: Path) -> None:
    problem = problem_of(folder / "my.csv")
    with pytest.raises(mc.Error, match="read from its records"):
        mc.audit(mc.power_controlled(plan_of(problem)), problem, runs=10)


@pytest.mark.slow
def test_assumptions_go_with_the_run_and_certify_lists_them(folder: Path) -> None:
    problem = problem_of(folder / "my.csv", "shards", labels=["no", "yes", "perhaps"])
    ran = mc.run(mc.power_controlled(plan_of(problem)), problem)
    said = ran.info["privacy"]["assumptions"]
    for words in ("the 3 labels were declared", '"shards" reads labels', "the number of records", "test part"):
        assert sum(words in line for line in said) == 1
    assert set(said) <= set(mc.certify(ran).assumptions)


@pytest.mark.slow
def test_a_model_of_ones_own_is_an_assumption(folder: Path) -> None:
    data = mc.datasets.load(folder / "my.csv", labels=["no", "yes"]).partition("iid", nodes=NODES)
    problem = mc.Model(
        data=data,
        initialise=lambda key: jnp.zeros(2),  # noqa: ARG005
        loss=lambda weights, example: (example.features @ weights - example.target) ** 2,
    )
    ran = mc.run(mc.power_controlled(plan_of(problem)), problem)
    assert any("shape, start and loss" in line for line in mc.certify(ran).assumptions)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"data_labels": "records"}, "read its labels from the records"),
        ({"data_labels": "rumour"}, 'has data_labels "rumour"'),
        ({"data_partition": "fair"}, 'has data_partition "fair"'),
        ({"data_classes": 0}, "contradicts itself about its data"),
        ({"data_classes": -3}, "does not say its data_classes"),
        ({"data_classes": "three"}, "does not say its data_classes"),
        ({"data_scaled": 2}, "contradicts itself about its data"),
    ],
)
def test_edited_facts_are_refused(folder: Path, edit: dict[str, Any], words: str) -> None:
    problem = problem_of(folder / "my.csv", labels=["no", "yes"])
    ran = mc.run(mc.power_controlled(plan_of(problem)), problem)
    assert words in caught(with_ledger(ran, ran.ledger.assign_attrs(edit)))


@pytest.mark.parametrize("name", DataFacts("none").as_attributes())
def test_a_ledger_that_leaves_a_fact_out_is_refused(folder: Path, name: str) -> None:
    """No ledger is older than these facts: one without them was edited."""
    problem = problem_of(folder / "my.csv", labels=["no", "yes"])
    ran = mc.run(mc.power_controlled(plan_of(problem)), problem)
    assert f"does not say its {name}" in caught(with_ledger(ran, without_attribute(ran.ledger, name)))


def test_a_problem_without_records_says_so() -> None:
    problem = mc.Quadratic.random(NODES, 3, seed=1)
    budget = mc.Budget(epsilon=9.0)
    ran = mc.run(
        mc.power_controlled(mc.plan(asymmetric_network(3, NODES), problem, budget, mc.Schedule(epochs=3))), problem
    )
    assert (ran.ledger.attrs["data_partition"], mc.certify(ran).verdict) == ("none", "kept")


@pytest.mark.slow
def test_from_the_command_line(folder: Path) -> None:
    for command in ("plan", "run"):
        refused = call(command, "bare.toml", folder=folder)
        assert refused.code == 2
        assert "are read from its records" in refused.err
        assert "hint: declare all labels" in refused.err
    done = call("run", "my.toml", "--out", "made", folder=folder)
    assert done.code == 0, done.err
    assert 'warning: the partition "sorted" reads labels: given the partition, the promise is about one' in done.out
    assert "Assumed  what records say may differ" in done.out
    planned = call("plan", "my.toml", "--json", folder=folder)
    listed = json.loads(planned.out)
    assert listed["assumptions"] == json.loads((folder / "made" / "run.json").read_text())["privacy"]["assumptions"]
    assert any("which is not covered" in line for line in listed["warnings"])
    assert "Assumed  what records say may differ" in call("plan", "my.toml", folder=folder).out
    certified = call("certify", "made", folder=folder)
    assert certified.code == 0
    for line in listed["assumptions"]:
        assert line in certified.out


def test_a_record_outside_the_list_ends_a_command_with_2(folder: Path) -> None:
    (folder / "my.csv").write_text(table(last="very rare"))
    for command in ("plan", "run"):
        refused = call(command, "my.toml", folder=folder)
        assert refused.code == 2
        assert "the label of example 60 is not one of the 3" in refused.err
        assert "very rare" not in refused.err + refused.out


@pytest.mark.slow
def test_ledger_and_experiment_must_say_the_same(folder: Path) -> None:
    assert call("run", "my.toml", "--out", "made", folder=folder).code == 0
    ran = mc.load_run(folder / "made")
    assert mc.certify(ran).verdict == "kept"

    def written(there: str, instead: str) -> mc.Result:
        assert there in ran.experiment
        return replace(ran, experiment=ran.experiment.replace(there, instead))

    assert "partition sorted for its data, and experiment.toml iid" in caught(written('"sorted"', '"iid"'))
    assert "classes 3 for its data, and experiment.toml 2" in caught(written('    "perhaps",\n', ""))
    assert "read its labels from the records" in caught(written("labels = [", "said = ["))
    assert "scaled False for its data" in caught(written("[data]", "[data]\nmean = 0.5"))


def test_a_run_without_these_facts_is_refused(folder: Path) -> None:
    assert call("run", "my.toml", "--out", "made", folder=folder).code == 0
    ran = mc.load_run(folder / "made")
    result = mc.certify(ran)
    assert result.verdict == "kept"
    assert any('"sorted" reads labels' in line for line in result.assumptions)
    silent = ran.ledger.copy()
    silent.attrs = {key: value for key, value in ran.ledger.attrs.items() if not key.startswith("data_")}
    assert "does not say its data_" in caught(with_ledger(ran, silent))
    assert "does not say its data_" in caught(replace(with_ledger(ran, silent), experiment=""))
    bare = replace(ran, experiment=ran.experiment.replace("labels = [", "said = ["))
    assert "read its labels from the records" in caught(bare)


def test_a_missing_file_is_looked_for_beside_the_experiment(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    for text in (
        EXPERIMENT,
        EXPERIMENT.replace("gains = [[0, 0.9, 0.4], [0.5, 0, 0.7], [0.6, 0.8, 0]]", 'file = "n.csv"'),
    ):
        (inner / "my.toml").write_text(text)
        refused = call("plan", "inner/my.toml", folder=folder)
        assert refused.code == 2
        assert "does not exist" in refused.err
        assert f"starts at the folder of the experiment file, {inner}" in refused.err
