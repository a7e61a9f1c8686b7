"""What must be public about the data, in words; and that the rules which are said to count records only do so."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.assumptions import (
    DataFacts,
    assumptions,
    facts_of,
    facts_of_section,
    partition_warnings,
    require_public_labels,
)
from murmurcast.data.partition import _RULES, kind_of

TARGETS = np.random.default_rng(5).integers(0, 3, 200).astype(np.int32)


@pytest.mark.parametrize("name", _RULES)
def test_rules_that_read_no_labels_leave_every_record_where_it_is(name: str) -> None:
    """One record gets every other label in turn: a rule that counts records only deals as before."""
    rule = _RULES[name]()

    def dealt(targets: "np.typing.NDArray[np.int32]") -> list[tuple[int, ...]]:
        return [tuple(sorted(rows.tolist())) for rows in rule.deal(np.random.default_rng(1), targets, 7)]

    others = []
    for row in range(40):
        changed = TARGETS.copy()
        changed[row] = (changed[row] + 1) % 3
        others.append(dealt(changed) != dealt(TARGETS))
    assert any(others) == DataFacts(name).rule_reads_targets


@pytest.mark.parametrize("name", _RULES)
@pytest.mark.parametrize(
    ("unit", "protected"), [("record", "one record of one node"), ("node", "the data of one node")]
)
def test_a_rule_that_reads_labels_is_an_assumption_and_a_warning(name: str, unit: str, protected: str) -> None:
    parts = mc.datasets.digits().partition(name, nodes=4)
    facts = facts_of(parts)
    said = [line for line in assumptions(facts, unit) if "from node to node" in line]
    warned = partition_warnings(facts, unit)
    if name in ("iid", "quantity", "drawn"):
        assert said == warned == []
        assert any("one node's copy" in line for line in assumptions(facts, unit)) == (name == "drawn")
        return
    assert len(said) == len(warned) == 1
    assert f'the partition "{name}" reads labels' in said[0]
    assert said[0].endswith(f"the promise is about {protected}")
    assert f"given the partition, the promise is about {protected}" in warned[0]


def test_a_rule_of_ones_own_may_read_anything() -> None:
    class Own(mc.datasets.Iid):
        """May do anything."""

    facts = facts_of(mc.datasets.digits().partition(Own(), nodes=4))
    assert kind_of(Own()) == "own"
    assert "the partition rule of your own may read labels" in partition_warnings(facts, "record")[0]
    values = mc.datasets.least_squares(examples=50, features=3).partition("sorted", nodes=4)
    assert "reads values" in partition_warnings(facts_of(values), "record")[0]


def test_every_fact_has_its_line() -> None:
    plain = assumptions(DataFacts("iid", "built in", 10), "record")
    assert len(plain) == 2
    assert "the number of records of every node" in plain[0]
    assert "test part" in plain[1]
    for facts, words in (
        (DataFacts("iid", "declared", 3), "the 3 labels were declared without looking"),
        (DataFacts("iid", "built in", 3, scaled=True), "constants that scale the features"),
        (DataFacts("iid", "built in", 3, own_model=True), "shape, start and loss of the model"),
    ):
        (line,) = set(assumptions(facts, "record")) - set(plain)
        assert words in line
    assert assumptions(DataFacts("none"), "node") == ()
    assert "is public" in assumptions(DataFacts("unknown", own_model=True), "node")[0]


@pytest.mark.parametrize(
    ("section", "kind", "expected"),
    [
        ({"name": "digits"}, "softmax", DataFacts("sorted", "built in")),
        ({"name": "logistic", "classes": 4}, "softmax", DataFacts("sorted", "built in", 4)),
        ({"name": "my.csv"}, "softmax", DataFacts("sorted", "records")),
        ({"name": "my.csv"}, "ridge", DataFacts("sorted", "values")),
        ({"name": "my.npz", "classes": 3, "std": 2.0}, "softmax", DataFacts("sorted", "declared", 3, scaled=True)),
        (
            {"name": "my.parquet", "labels": ["a", "b"], "partition": {"kind": "iid"}, "mean": None},
            "softmax",
            DataFacts("iid", "declared", 2),
        ),
        ({"name": "digits"}, "model", DataFacts("sorted", "built in", own_model=True)),
        ({"name": "my.csv", "partition": {"column": "site"}}, "ridge", DataFacts("column", "values")),
    ],
)
def test_an_experiment_says_the_same_without_the_data(
    section: dict[str, object], kind: str, expected: DataFacts
) -> None:
    assert facts_of_section(section, {"kind": kind}) == expected


def test_a_model_with_a_squared_error_learns_values() -> None:
    problem = {"kind": "model", "module": "mlp", "loss": "squared-error"}
    assert facts_of_section({"name": "my.csv"}, problem) == DataFacts("sorted", "values", own_model=True)


def test_labels_from_records_are_refused_without_naming_them() -> None:
    require_public_labels(DataFacts("iid", "declared", 3), "mine")
    with pytest.raises(mc.Error, match='labels of "mine" are read from its records') as caught:
        require_public_labels(DataFacts("iid", "records", 3), "mine")
    assert "data.classes = 10" in caught.value.hint
