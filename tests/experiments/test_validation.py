"""The validation part: of every node, of the training part alone, and the same every time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.data.partition import Partition
from murmurcast.experiments.validation import EVERY, Examples, _held_out, with_validation

TESTS = 9


def numbered(*sizes: int) -> mc.SoftmaxRegression:
    """Record r has r as its first feature, and the test part has negative ones: each is known by its face."""
    records = sum(sizes)
    built = mc.datasets.logistic(examples=100, features=2, classes=2, seed=3)
    features, tests = (np.array(built.features[:count]) for count in (records, TESTS))
    features[:, 0], tests[:, 0] = np.arange(records), -1 - np.arange(TESTS)
    targets = np.arange(records, dtype=np.int32) % np.int32(2)
    unseen: dict[str, Any] = {"test_features": tests, "test_targets": np.zeros(TESTS, targets.dtype)}
    dataset = replace(built, features=features, targets=targets, **unseen)
    order = np.random.default_rng(1).permutation(records)  # nodes hold what is theirs in any order
    rows = tuple(np.split(order, np.cumsum(sizes)[:-1]))
    return mc.SoftmaxRegression(data=Partition(dataset=dataset, rule=built.partition("iid", 2).rule, rows=rows))


def faces(features: object) -> list[int]:
    return [int(face) for face in np.asarray(features)[:, 0]]


@pytest.fixture(scope="module")
def problem() -> mc.SoftmaxRegression:
    return numbered(15, 12, 4, 1)


@pytest.fixture(scope="module")
def cut(problem: mc.SoftmaxRegression) -> Examples:
    return with_validation(problem)


def test_every_fifth_of_a_node_in_its_own_order_is_held_out(problem: mc.SoftmaxRegression, cut: Examples) -> None:
    expected = [rows[place] for rows in problem.data.rows for place in range(EVERY - 1, len(rows), EVERY)]
    expected.append(problem.data.rows[2][-1])  # of four records, the last
    assert faces(cut.data.dataset.test_features) == [int(row) for row in expected]


def test_nodes_keep_the_rest_of_what_is_theirs(problem: mc.SoftmaxRegression, cut: Examples) -> None:
    held_out = set(faces(cut.data.dataset.test_features))
    for before, after in zip(problem.data.rows, cut.data.rows, strict=True):
        kept = faces(cut.data.dataset.features[after])
        assert kept == [int(row) for row in before if row not in held_out]
    assert cut.data.sizes.tolist() == [12, 10, 3, 1]
    assert cut.nodes == problem.nodes


def test_no_record_is_in_both_parts_and_none_is_of_the_test_part(cut: Examples) -> None:
    kept, held_out = faces(cut.data.dataset.features), faces(cut.data.dataset.test_features)
    assert not set(kept) & set(held_out)
    assert len({*kept, *held_out}) == len(kept) + len(held_out) == 32
    assert min(kept + held_out) >= 0


def test_targets_go_with_their_records(cut: Examples) -> None:
    dataset = cut.data.dataset
    for features, targets in ((dataset.features, dataset.targets), (dataset.test_features, dataset.test_targets)):
        assert [face % 2 for face in faces(features)] == np.asarray(targets).tolist()


def test_it_is_the_same_every_time_and_changes_nothing(problem: mc.SoftmaxRegression, cut: Examples) -> None:
    before = faces(problem.data.dataset.test_features)
    again = with_validation(problem)
    np.testing.assert_array_equal(again.data.dataset.features, cut.data.dataset.features)
    np.testing.assert_array_equal(again.data.dataset.test_features, cut.data.dataset.test_features)
    assert faces(problem.data.dataset.test_features) == before
    assert problem.data.sizes.tolist() == [15, 12, 4, 1]


def test_what_belongs_to_the_problem_stays(problem: mc.SoftmaxRegression) -> None:
    cut = with_validation(replace(problem, clip=0.37, l2=0.02))
    assert (cut.clip, cut.l2) == (0.37, 0.02)
    assert cut.data.rule == problem.data.rule
    assert cut.data.dataset.classes == problem.data.dataset.classes


def test_a_published_optimum_is_not_that_of_the_part() -> None:
    data = mc.datasets.least_squares(examples=30, features=2, seed=1)
    cut = with_validation(mc.RidgeRegression(data=data.partition("iid", 3)))
    assert isinstance(cut, mc.RidgeRegression)
    assert cut.data.dataset.optimum is None


@pytest.mark.parametrize(("count", "held_out"), [(0, 0), (1, 0), (2, 1), (4, 1), (5, 1), (9, 1), (10, 2), (500, 100)])
def test_how_many_are_held_out(count: int, held_out: int) -> None:
    assert _held_out(count).sum() == held_out
    assert _held_out(count).shape == (count,)


def test_nodes_with_one_record_each_have_nothing_to_hold_out() -> None:
    with pytest.raises(mc.Error, match="no node has two records") as caught:
        with_validation(numbered(1, 1, 1))
    assert caught.value.hint
