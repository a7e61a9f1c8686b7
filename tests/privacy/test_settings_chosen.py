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


PAID = settings_chosen.PAID


@pytest.mark.parametrize(
    ("tried", "others", "missing"),
    [
        ("a", (), "a"),
        ("a, a", ("a",), "a"),  # two runs of one name, and one of them is counted
        ("a, a", ("a", "a"), ""),
        ("x/a, y/a", ("a",), "x/a, y/a"),  # it may be either, or another
        ("x/a, y/a", ("y/a",), "x/a"),
        ("x/a, y/a", ("y/a", "x/a"), ""),
        ("x/a, y/a", ("x/a", "z/a"), "y/a"),
        ("a, y/a", ("x/a", "a"), "y/a"),
        ("x/a", ("y/a",), ""),  # moved, and nothing else ends so
        ("x/a", ("y/a", "z/a"), "x/a"),
        ("a", ("y/a", "z/a"), "a"),
        ("./x/a/", ("x/a", "y/a"), ""),
        ("a, b, c", ("c", "runs/b"), "a"),
    ],
)
def test_each_run_that_is_counted_is_one_of_those_that_were_tried(
    tried: str, others: tuple[str, ...], missing: str
) -> None:
    expected = settings_chosen.paid_runs(PAID + missing)
    assert settings_chosen.missing_runs(PAID + tried, others) == expected
    assert set(settings_chosen.missing_runs(PAID + tried, others[::-1])) == set(expected)


@pytest.mark.parametrize("tried", ["a", "runs/a", "monday/a"])
def test_a_run_never_counts_for_itself(tried: str) -> None:
    assert settings_chosen.missing_runs(PAID + tried, (), "tuesday/a") == (tried,)
    assert f"missing here: {tried}." in settings_chosen.question("tuesday/a", PAID + tried, ())
    assert f"missing here: {tried}." in settings_chosen.question("a", PAID + tried, ("b",))
    assert settings_chosen.question("tuesday/b", PAID + tried, ("a",)) == ""


def test_where_the_asking_run_ends_alike_whole_names_are_compared() -> None:
    assert settings_chosen.missing_runs(PAID + "a", ("a",), "a") == ()
    assert settings_chosen.missing_runs(PAID + "monday/a", ("a",), "a") == ("monday/a",)
    assert settings_chosen.missing_runs(PAID + "monday/a", ("wednesday/a",), "tuesday/a") == ("monday/a",)
    assert settings_chosen.missing_runs(PAID + "monday/a", ("monday/a",), "tuesday/a") == ()
    assert settings_chosen.missing_runs(PAID + "monday/a", ("wednesday/a",), "tuesday/b") == ()


def test_only_what_is_stated_and_counted_leaves_no_question() -> None:
    assert settings_chosen.question("ours", "fixed beforehand", ("ours",)) == ""
    assert settings_chosen.question("ours", "on public data", ("ours",)) == ""
    assert settings_chosen.question("ours", "on this data, paid: a", ("ours", "a")) == ""
    assert "privacy.settings_chosen" in settings_chosen.question("ours", "not stated", ("ours",))
    assert "missing here: a." in settings_chosen.question("ours", "on this data, paid: a", ("ours",))


def test_public_data_may_be_named_with_its_hash_and_the_number_of_tries() -> None:
    choice = settings_chosen.PublicChoice("fashion-mnist", "0a" * 32, 24)
    assert choice.statement == f"on public data: fashion-mnist, sha256 {'0a' * 32}, 24 settings tried"
    assert settings_chosen.public_choice(choice.statement) == choice
    assert mc.Budget(epsilon=1.0, settings_chosen=choice.statement).settings_chosen == choice.statement
    said = settings_chosen.assumption(choice.statement)
    assert "fashion-mnist" in said
    assert "0a" * 32 in said
    assert "24 settings were tried" in said
    assert settings_chosen.question("ours", choice.statement, ("ours",)) == ""
    assert settings_chosen.public_choice("on public data") is None


@pytest.mark.parametrize("name", ["a, sha256 b", 'a"b\n[x]', "x; fixed beforehand", "", "y" * 300, "été 1.csv"])
def test_whatever_a_file_is_called_its_statement_is_known_and_on_one_line(name: str) -> None:
    statement = settings_chosen.PublicChoice(name, "f" * 64, 1).statement
    settings_chosen.check(statement)
    assert not set(statement) & set('\n"\\;')
    assert settings_chosen.public_choice(statement) is not None


@pytest.mark.parametrize(
    "statement",
    [
        f"on public data: digits, sha256 {'0' * 63}, 3 settings tried",
        f"on public data: digits, sha256 {'0' * 64}, 0 settings tried",
        f"on public data: digits, sha256 {'0' * 64}, 3 settings tried, honestly",
        "on public data: digits",
    ],
)
def test_half_an_origin_is_refused(statement: str) -> None:
    with pytest.raises(mc.Error, match="settings_chosen"):
        settings_chosen.check(statement)
