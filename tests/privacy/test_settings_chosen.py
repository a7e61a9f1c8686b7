"""What a run may state about how its settings were chosen."""

import pytest

import murmurcast as mc
from murmurcast.privacy import settings_chosen


@pytest.mark.parametrize(
    "statement", ["not stated", "fixed beforehand", "on public data", "on this data, paid: runs/a, b"]
)
def test_statements_that_are_known(statement: str) -> None:
    assert mc.Budget(epsilon=1.0, settings_chosen=statement).settings_chosen == statement


@pytest.mark.parametrize("statement", ["", "by magic", "on this data", "on this data, paid: ", "on this data, paid: ,"])
def test_any_other_is_refused_with_the_words_to_write(statement: str) -> None:
    with pytest.raises(mc.Error, match="settings_chosen") as refused:
        mc.Budget(epsilon=1.0, settings_chosen=statement)
    assert "on public data" in refused.value.hint


def test_runs_are_known_by_their_name_or_their_folder() -> None:
    statement = "on this data, paid: runs/a, b , elsewhere/c"
    assert settings_chosen.paid_runs(statement) == ("runs/a", "b", "elsewhere/c")
    assert settings_chosen.missing_runs(statement, ("a", "other/b")) == ("elsewhere/c",)
    assert settings_chosen.missing_runs("on public data", ()) == ()


def test_only_what_is_stated_and_counted_leaves_no_question() -> None:
    assert settings_chosen.question("ours", "fixed beforehand", ("ours",)) == ""
    assert settings_chosen.question("ours", "on public data", ("ours",)) == ""
    assert settings_chosen.question("ours", "on this data, paid: a", ("ours", "a")) == ""
    assert "privacy.settings_chosen" in settings_chosen.question("ours", "not stated", ("ours",))
    assert "missing here: a." in settings_chosen.question("ours", "on this data, paid: a", ("ours",))
