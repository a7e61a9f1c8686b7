"""Scores and rankings as values: order, tables, and JSON there and back."""

import json
import math

import numpy as np
import pytest

from murmurcast._json import json_text
from murmurcast.privacy.releases import ADVERSARIES
from murmurcast.runs.ranking import NOBODY, TRUSTED, Ranking, Score, Trial

TRIALS = (Trial(0.1, "sqrt", {"shared_to_own": 1.0}, 0.5), Trial(1.0, "sqrt", {}, math.nan))


def score(method: str, mean: float, against: str = "everybody") -> Score:
    epsilon = None if against == NOBODY else 1.0
    return Score(
        method, against, epsilon, epsilon, 40, 1, 40, 0.1, "sqrt", {}, False, (mean, mean), (mean, mean, mean), TRIALS
    )


def ranking(*scores: Score, metric: str = "accuracy") -> Ranking:
    return Ranking("mine", metric, "record", 1, 1e-5, 3, 2, (1.0,), (40,), scores, ())


def test_a_score_comes_back_from_json_as_it_was() -> None:
    before = score("decor", 0.25, "eavesdropper")
    after = Score.from_dict(json.loads(json_text(before.as_dict())))
    assert after._replace(trials=()) == before._replace(trials=())
    assert after.trials[0] == before.trials[0]
    assert math.isnan(after.trials[1].value)


def test_a_score_that_diverged_comes_back_as_not_a_number() -> None:
    lost = score("decor", 0.25)._replace(by_seed=(math.nan, 0.5))
    after = Score.from_dict(json.loads(json_text(lost.as_dict())))
    assert math.isnan(after.by_seed[0])
    assert math.isnan(after.mean)


@pytest.mark.parametrize("missing", ["by_seed", "trials", "method", "step"])
def test_half_a_score_is_none(missing: str) -> None:
    values = score("decor", 0.25).as_dict()
    del values[missing]
    with pytest.raises((TypeError, LookupError)):
        Score.from_dict(values)


def test_mean_and_spread_are_over_seeds() -> None:
    one = score("decor", 0.0)._replace(by_seed=(0.2, 0.4, 0.9))
    assert one.mean == pytest.approx(0.5)
    assert one.spread == pytest.approx(np.std([0.2, 0.4, 0.9], ddof=1))
    assert one._replace(by_seed=(0.2,)).spread is None


def test_accuracy_goes_down_and_loss_goes_up() -> None:
    scores = (score("a", 0.2), score("b", 0.9), score("c", math.nan), score("d", 0.5))
    assert [one.method for one in ranking(*scores).table("everybody", 1.0, 40)] == ["b", "d", "a", "c"]
    assert [one.method for one in ranking(*scores, metric="loss").table("everybody", 1.0, 40)] == ["a", "d", "b", "c"]


def test_ties_are_broken_by_name() -> None:
    assert [one.method for one in ranking(score("b", 0.5), score("a", 0.5)).table("everybody", 1.0, 40)] == ["a", "b"]


def test_a_weaker_promise_never_stands_in_a_stronger_table() -> None:
    everybody, one_node, eavesdropper, _ = ADVERSARIES
    result = ranking(
        score("strong", 0.3),
        score("pairs", 0.1, everybody),
        score("pairs", 0.2, one_node),
        score("pairs", 0.9, eavesdropper),
        score("server", 0.95, TRUSTED),
        score("free", 0.99, NOBODY),
    )
    assert result.adversaries == (everybody, one_node, eavesdropper)
    shown = {who: [(one.method, one.mean) for one in result.table(who, 1.0, 40)] for who in result.adversaries}
    assert shown[everybody] == [("strong", 0.3), ("pairs", 0.1)]
    assert shown[one_node] == [("strong", 0.3), ("pairs", 0.2)]
    assert shown[eavesdropper] == [("pairs", 0.9), ("strong", 0.3)]
    assert [one.method for one in result.ceiling(1.0, 40)] == ["server"]
    assert [one.method for one in result.unprotected(40)] == ["free"]


def test_other_budgets_are_other_tables() -> None:
    result = ranking(score("a", 0.3), score("a", 0.6)._replace(epsilon=3.0), score("a", 0.7)._replace(uses=200))
    assert [one.mean for one in result.table("everybody", 1.0, 40)] == [0.3]
    assert result.table("everybody", 7.0, 40) == ()


def test_plain_values_hold_tables_and_the_statement() -> None:
    values = json.loads(json_text(ranking(score("a", 0.3), score("b", math.nan)).as_dict()))
    (table,) = values["tables"]
    assert [one["method"] for one in table["methods"]] == ["a", "b"]
    assert table["methods"][1]["mean"] is None
    assert "not paid" in values["statement"]
    assert values["unit"] == "record"


def test_the_unit_is_told_with_its_records() -> None:
    assert ranking().hidden == "record"
    assert "3 records" in ranking()._replace(records_per_person=3).hidden
