"""Who comes before whom: order, ties, adversaries, and values that survive a file."""

import json
import math

import numpy as np
import pytest

from murmurcast._json import json_text
from murmurcast.runs.ranking import NOBODY, NOT_PAID, TRUSTED, Score, Trial
from tests.runs.rankings import EAVESDROPPER, EPSILONS, EVERYBODY, ONE_NODE, USES, full, ranking, score


def names(scores: tuple[Score, ...]) -> list[str]:
    return [one.method for one in scores]


def test_the_best_is_first_by_accuracy_and_by_loss() -> None:
    scores = (score("middle", 0.5), score("low", 0.1), score("high", 0.9))
    assert names(ranking(*scores).table(EVERYBODY, 2.0, 40)) == ["high", "middle", "low"]
    assert names(ranking(*scores, metric="loss").table(EVERYBODY, 2.0, 40)) == ["low", "middle", "high"]


def test_ties_are_broken_by_name_whatever_the_order_of_scores() -> None:
    scores = [score(name, 0.5) for name in ("c", "a", "b")]
    for given in (scores, scores[::-1]):
        assert names(ranking(*given).table(EVERYBODY, 2.0, 40)) == ["a", "b", "c"]
        assert names(ranking(*given, metric="loss").table(EVERYBODY, 2.0, 40)) == ["a", "b", "c"]


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_comes_last_by_either_metric(metric: str, value: float) -> None:
    lost = score("a-lost", 0.0, by_seed=(0.5, value))
    result = ranking(lost, score("z-worst", -1e6), score("y-worst", 1e6), metric=metric)
    assert names(result.table(EVERYBODY, 2.0, 40))[-1] == "a-lost"


def test_a_promise_against_everybody_counts_against_weaker_adversaries() -> None:
    result = ranking(score("strong", 0.5), score("weak", 0.9, against=EAVESDROPPER))
    assert result.adversaries == (EVERYBODY, EAVESDROPPER)
    assert names(result.table(EVERYBODY, 2.0, 40)) == ["strong"]
    assert names(result.table(ONE_NODE, 2.0, 40)) == ["strong"]
    assert names(result.table(EAVESDROPPER, 2.0, 40)) == ["weak", "strong"]


def test_a_method_stands_once_and_with_the_promise_made_for_the_adversary() -> None:
    for against, mean in ((EVERYBODY, 0.35), (ONE_NODE, 0.75), (EAVESDROPPER, 0.85)):
        (paired,) = [one for one in full().table(against, 2.0, 40) if one.method == "paired"]
        assert paired.against == against
        assert paired.mean == pytest.approx(mean)
    # Where it was made for none in between, the stronger promise stands, even if it does worse.
    result = ranking(score("paired", 0.2), score("paired", 0.9, against=EAVESDROPPER))
    assert [(one.against, one.method) for one in result.table(ONE_NODE, 2.0, 40)] == [(EVERYBODY, "paired")]


def test_tables_hold_their_own_budget_and_uses_alone() -> None:
    result = full()
    for epsilon in EPSILONS:
        for uses in USES:
            table = result.table(EVERYBODY, epsilon, uses)
            assert names(table) == ["power-controlled", "slow", "paired"]
            assert {(one.epsilon, one.uses) for one in table} == {(epsilon, uses)}
            assert [(one.method, one.epsilon) for one in result.ceiling(epsilon, uses)] == [("server", epsilon)]
    assert result.table(EVERYBODY, 3.0, 40) == result.ceiling(3.0, 40) == ()


def test_servers_and_methods_without_promise_are_ranked_nowhere() -> None:
    result = full()
    assert result.adversaries == (EVERYBODY, ONE_NODE, EAVESDROPPER)
    for against in result.adversaries:
        assert not {"server", "open"} & set(names(result.table(against, 2.0, 40)))
    assert [(one.method, one.uses) for one in result.unprotected(10)] == [("open", 10)]
    only = ranking(score("server", 0.5, against=TRUSTED), score("open", 0.9, against=NOBODY, epsilon=None))
    assert only.adversaries == ()
    assert only.as_dict()["tables"] == []


def test_mean_and_spread_are_over_seeds() -> None:
    one = score("any", 0.0, by_seed=(0.1, 0.2, 0.6))
    assert one.mean == pytest.approx(0.3)
    assert one.spread == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1))
    assert score("any", 0.0, by_seed=(0.4,)).spread is None
    assert math.isnan(score("any", 0.0, by_seed=(0.4, math.nan)).mean)


def test_a_score_comes_back_from_json_as_it_was() -> None:
    trials = (Trial(0.1, "sqrt", {"shared_to_own": 3.0}, 0.25), Trial(1.0 / 3.0, "constant", {}, 0.5))
    before = score("any", 0.3, options={"shared_to_own": 3.0}, at_edge=True, trials=trials)
    after = Score.from_dict(json.loads(json_text(before.as_dict())))
    assert after == before
    assert isinstance(after.by_seed, tuple)
    assert isinstance(after.trials[0], Trial)
    nothing = score("any", 0.3, epsilon=None, certified=None, against=NOBODY, trials=())
    assert Score.from_dict(json.loads(json_text(nothing.as_dict()))) == nothing


def test_numbers_that_json_does_not_know_come_back_as_none() -> None:
    trials = (Trial(0.1, "sqrt", {}, math.nan), Trial(0.2, "sqrt", {}, math.inf), Trial(0.3, "sqrt", {}, 0.5))
    before = score("any", 0.3, by_seed=(0.1, math.nan), by_node=(math.inf, 0.2, -math.inf), trials=trials)
    text = json_text(before.as_dict())
    assert "NaN" not in text
    assert "Infinity" not in text
    after = Score.from_dict(json.loads(text))
    np.testing.assert_array_equal(after.by_seed, (0.1, math.nan))
    np.testing.assert_array_equal(after.by_node, (math.nan, 0.2, math.nan))
    np.testing.assert_array_equal([one.value for one in after.trials], (math.nan, math.nan, 0.5))
    # A score that was kept stands where the one that was found stood.
    for one in (before, after):
        assert names(ranking(one, score("other", -5.0)).table(EVERYBODY, 2.0, 40)) == ["other", "any"]


@pytest.mark.parametrize("spoilt", [{"by_seed": None}, {"trials": [{"step": 1.0}]}, {"by_node": ["much"]}, {"more": 1}])
def test_values_that_are_no_score_are_refused(spoilt: dict[str, object]) -> None:
    values = json.loads(json_text(score("any", 0.3).as_dict())) | spoilt
    with pytest.raises((ValueError, LookupError, TypeError)):
        Score.from_dict(values)


def test_plain_values_show_the_tables_as_they_are_shown() -> None:
    result = full()
    values = json.loads(json_text(result.as_dict()))
    assert values["statement"] == NOT_PAID
    budgets = [(one["against"], one["epsilon"], one["uses"]) for one in values["tables"]]
    assert budgets == [(who, epsilon, uses) for who in result.adversaries for epsilon in EPSILONS for uses in USES]
    for one in values["tables"]:
        table = result.table(one["against"], one["epsilon"], one["uses"])
        assert [row["method"] for row in one["methods"]] == names(table)
        assert [row["against"] for row in one["methods"]] == [each.against for each in table]
        assert [row["mean"] for row in one["methods"]] == [each.mean for each in table]
    assert len(values["scores"]) == len(result.scores)
    assert values["left_out"] == [{"method": "one-gain", "reason": "gains differ"}]
    assert (values["unit"], values["delta"], values["epsilons"]) == ("record", 1e-5, list(EPSILONS))


def test_what_is_hidden_is_said_in_words() -> None:
    assert ranking().hidden == "record"
    assert ranking(unit="node").hidden == "node"
    assert "3" in ranking(records_per_person=3).hidden
