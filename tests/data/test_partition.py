"""Rules of partition: every example once, and each rule's own promise."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurcast.data import datasets
from murmurcast.data.datasets import Dataset, Dirichlet, Drawn, Iid, PartitionRule, QuantitySkew, Shards, Sorted
from murmurcast.data.partition import Partition
from murmurcast.errors import Error

RULES = (Sorted(), Iid(), Shards(per_node=3), Dirichlet(concentration=2.0), QuantitySkew(concentration=0.3))


def labelled(targets: Any, classes: int | None, names: tuple[str, ...] = ()) -> Dataset:
    column = np.arange(len(targets), dtype=np.float32)[:, None]
    return Dataset(
        name="made",
        features=column,
        targets=np.asarray(targets),
        test_features=column[:1],
        test_targets=np.asarray(targets)[:1],
        classes=classes,
        label_names=names,
    )


@given(
    targets=st.lists(st.integers(0, 4), min_size=30, max_size=200),
    nodes=st.integers(1, 10),
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 10**12),
)
@settings(max_examples=100)
def test_every_example_goes_to_exactly_one_node(targets: list[int], nodes: int, rule: PartitionRule, seed: int) -> None:
    built = labelled(targets, 5)
    try:
        result = built.partition(rule, nodes, seed)
    except Error:
        assert isinstance(rule, Dirichlet)  # few examples and unlucky labels: no draw gives everybody one
        return
    assert sorted(np.concatenate(result.rows).tolist()) == list(range(len(targets)))
    assert result.sizes.min() >= 1
    assert result.sizes.tolist() == [len(part) for part in result.rows]
    np.testing.assert_array_equal(result.table.sum(axis=1), result.sizes)
    np.testing.assert_array_equal(result.table.sum(axis=0), np.bincount(targets, minlength=5))
    again = built.partition(rule, nodes, seed)
    assert all(np.array_equal(one, other) for one, other in zip(result.rows, again.rows, strict=True))
    assert len(result.as_text().splitlines()) == nodes + 2


def test_sorted_is_stable_and_cuts_equally() -> None:
    result = labelled([2, 0, 1, 0, 2, 1, 0], 3).partition("sorted", nodes=3)
    assert [part.tolist() for part in result.rows] == [[1, 3, 6], [2, 5], [0, 4]]
    assert result.table.tolist() == [[3, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_iid_gives_every_node_about_the_same_mix() -> None:
    result = labelled(np.repeat([0, 1], 5000), 2).partition("iid", nodes=10, seed=1)
    assert set(result.sizes.tolist()) == {1000}
    assert np.abs(result.table - 500).max() < 80  # five standard deviations


def test_shards_give_few_labels_to_every_node() -> None:
    result = labelled(np.repeat(np.arange(10), 100), 10).partition(Shards(per_node=2), nodes=50, seed=1)
    assert set(result.sizes.tolist()) == {20}
    assert (result.table > 0).sum(axis=1).max() <= 2
    assert (
        result.rows[0].tolist()
        != labelled(np.repeat(np.arange(10), 100), 10).partition("shards", 50, 2).rows[0].tolist()
    )


def test_dirichlet_concentration_goes_from_few_labels_to_an_even_mix() -> None:
    built = labelled(np.repeat(np.arange(10), 1000), 10)
    even = built.partition(Dirichlet(concentration=1e6), nodes=5).table
    assert np.abs(even - 200).max() <= 2
    skew = built.partition(Dirichlet(concentration=0.05), nodes=5).table
    assert (skew < 10).mean() > 0.4


def test_dirichlet_shares_have_the_right_spread() -> None:
    """One of n equal shares has variance (1/n)(1 - 1/n) / (n c + 1); a wrong concentration must fail."""
    nodes, concentration = 4, 0.7
    built = labelled(np.repeat(np.arange(300), 200), 300)
    share = built.partition(Dirichlet(concentration=concentration), nodes).table / 200
    expected = (1 / nodes) * (1 - 1 / nodes) / (nodes * concentration + 1)
    assert share.var() == pytest.approx(expected, rel=0.12)
    assert share.var() != pytest.approx(
        expected * (nodes * concentration + 1) / (nodes * concentration * 2 + 1), rel=0.2
    )


def test_dirichlet_keeps_its_minimum_or_says_what_would_work() -> None:
    built = labelled(np.arange(400) % 4, 4)
    assert built.partition(Dirichlet(concentration=1.0, minimum=40), nodes=5).sizes.min() >= 40
    with pytest.raises(Error, match="at best the poorest had") as raised:
        built.partition(Dirichlet(concentration=0.05, minimum=79), nodes=5)
    assert "raise concentration" in raised.value.hint
    with pytest.raises(Error, match="do not give 5 nodes 81 each") as raised:
        built.partition(Dirichlet(minimum=81), nodes=5)
    assert "set minimum to 80 or less" in raised.value.hint


def test_quantity_skew_keeps_its_minimum_at_any_size() -> None:
    built = labelled(np.arange(5000) % 2, 2)
    result = built.partition(QuantitySkew(concentration=0.1, minimum=3), nodes=1000)
    assert result.sizes.min() >= 3
    assert result.sizes.max() > 30
    exact = built.partition(QuantitySkew(minimum=5), nodes=1000)
    assert set(exact.sizes.tolist()) == {5}


def test_values_are_sorted_too_but_have_no_labels() -> None:
    built = labelled(np.array([3.5, -1.0, 2.0, 0.0]), None)
    result = built.partition("sorted", nodes=2)
    assert [part.tolist() for part in result.rows] == [[1, 3], [2, 0]]
    assert result.table.tolist() == [[2], [2]]
    assert result.warnings == ()
    assert built.partition("shards", nodes=2).sizes.tolist() == [2, 2]
    assert result.as_text().split() == ["node", "all", "0", "2", "1", "2", "all", "4"]
    with pytest.raises(Error, match="dirichlet shares out labels") as raised:
        built.partition("dirichlet", nodes=2)
    assert "quantity" in raised.value.hint


@pytest.mark.parametrize(
    ("rule", "nodes", "message"),
    [
        ("sorted", 8, "7 training examples are too few for 8 nodes"),
        ("sorted", 0, "nodes is 0"),
        ("shards", 4, "4 x 2 shards"),
        ("sort", 2, '"sort" is not a rule'),
    ],
)
def test_impossible_requests_are_refused(rule: str, nodes: int, message: str) -> None:
    with pytest.raises(Error, match=message) as raised:
        labelled([2, 0, 1, 0, 2, 1, 0], 3).partition(rule, nodes)
    assert raised.value.hint


def test_bad_parameters_are_refused() -> None:
    for wrong in (
        lambda: Shards(per_node=0),
        lambda: Dirichlet(concentration=0.0),
        lambda: Dirichlet(minimum=0),
        lambda: QuantitySkew(concentration=float("nan")),
        lambda: labelled([0, 1], 2).partition("iid", 2, seed=-1),
    ):
        with pytest.raises(Error):
            wrong()


def test_a_partition_made_by_hand_is_checked() -> None:
    built = labelled([0, 1, 0], 2)
    with pytest.raises(Error, match="by no node, or by two"):
        Partition(dataset=built, rule=Iid(), rows=(np.array([0, 1]), np.array([1])))
    with pytest.raises(Error, match="node 1 holds no example"):
        Partition(dataset=built, rule=Iid(), rows=(np.array([0, 1, 2]), np.array([], dtype=np.int64)))


def test_a_rule_of_ones_own_can_be_used() -> None:
    class EveryOther:
        def deal(self, generator: np.random.Generator, targets: Any, nodes: int) -> list[Any]:  # noqa: ARG002
            return [np.arange(node, len(targets), nodes) for node in range(nodes)]

    assert labelled([0, 1, 0, 1], 2).partition(EveryOther(), nodes=2).table.tolist() == [[2, 0], [0, 2]]


def test_warnings_name_few_nodes_and_sum_up_many() -> None:
    built = labelled(np.repeat(np.arange(10), 60), 10)
    four = built.partition("sorted", nodes=4)
    assert four.warnings[0] == "node 0 has no examples of 7 of 10 labels"
    assert len(four.warnings) == 4
    (line,) = built.partition("sorted", nodes=20).warnings
    assert line == "20 of 20 nodes lack at least one of 10 labels; node 0 lacks most: 9"
    assert built.partition("iid", nodes=2).warnings == ()
    assert "sizes differ: node " in built.partition(QuantitySkew(concentration=0.2), nodes=5).warnings[-1]


def test_the_table_is_aligned_and_abbreviated() -> None:
    digits = datasets.digits()
    text = digits.partition("sorted", nodes=4).as_text().splitlines()
    assert text[0].split() == ["node", *"0123456789", "all"]
    assert len({len(line) for line in text}) == 1
    assert text[-1].split()[-1] == "1438"
    many = digits.partition("iid", nodes=21).as_text().splitlines()
    assert [line.split()[0] for line in many] == ["node", *map(str, range(10)), "...", "20", "all"]
    assert len(digits.partition("iid", nodes=20).as_text().splitlines()) == 22
    names = tuple(f"a rather long label {label}" for label in range(13))
    wide = labelled(np.arange(130) % 13, 13, names).partition("iid", nodes=2).as_text().splitlines()
    assert wide[1].split()[11] == "..."
    assert len(wide[1].split()) == 14
    assert max(map(len, wide)) < 180
    assert repr(digits.partition("iid", 4)).startswith("Partition('digits' by Iid(kind='iid'): 4 nodes, 359 to 360")


def test_drawn_examples_are_distinct_at_a_node_and_shared_between_nodes() -> None:
    built = labelled([0, 1, 2] * 10, 3)
    result = built.partition(Drawn(per_node=8), nodes=50, seed=3)  # more nodes than examples
    assert all(len(np.unique(rows)) == 8 for rows in result.rows)
    assert len(np.unique(np.concatenate(result.rows))) == 30
    assert len({rows.tobytes() for rows in result.rows}) > 40
    again, other = built.partition(Drawn(per_node=8), 50, 3), built.partition(Drawn(per_node=8), 50, 4)
    assert all(np.array_equal(one, same) for one, same in zip(result.rows, again.rows, strict=True))
    assert result.sha256 == again.sha256 != other.sha256
    with pytest.raises(Error, match="too few to draw 31"):
        built.partition(Drawn(per_node=31), nodes=2)
