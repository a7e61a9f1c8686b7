"""Changing values of an experiment file, and leaving all else as its author wrote it."""

import tomllib
from pathlib import Path

import pytest

from murmurcast.experiments.load import example, example_names, parse
from murmurcast.experiments.schema import ScheduleSection
from murmurcast.experiments.tune_search import Setting
from murmurcast.experiments.tuned_file import HEADER, moved_paths, tuned_file
from murmurcast.experiments.tuning import changes
from murmurcast.privacy.settings_chosen import PublicChoice

STATEMENT = PublicChoice("digits", "ab" * 32, 20).statement
CHANGES = changes(Setting(0.25, 187.5, 12, "constant"), STATEMENT, ScheduleSection())


@pytest.mark.parametrize("name", example_names())
def test_every_shipped_example_keeps_its_comments_and_other_values(name: str) -> None:
    text = example(name)
    built = tuned_file(text, CHANGES, "--public digits")
    assert built.comments_kept
    before, after = tomllib.loads(text), tomllib.loads(built.text)
    for section, part in before.items():
        for key, value in part.items():
            assert after[section].get(key) == CHANGES.get((section, key), value), (section, key)
    for (section, key), value in CHANGES.items():
        assert after[section].get(key) == value
    comments = [line.split("#", 1)[1] for line in text.splitlines() if "#" in line]
    assert all(comment in built.text for comment in comments)
    assert built.text.startswith(f"{HEADER} --public digits\n")
    assert parse(built.text.encode(), name).privacy.settings_chosen == STATEMENT


def test_values_change_where_they_stand_and_new_keys_join_their_section() -> None:
    text = "# mine\n[privacy]\nepsilon = 1.0  # in all\n  clip = 3   # long\n\n[data]\nname = 'clip = 3.csv'\n"
    built = tuned_file(
        text, {("privacy", "clip"): 0.25, ("privacy", "settings_chosen"): "x", ("schedule", "step"): 2.0}, ""
    )
    assert built.text.splitlines()[1:] == [
        "# mine",
        "[privacy]",
        "epsilon = 1.0  # in all",
        "  clip = 0.25  # long",
        'settings_chosen = "x"',
        "",
        "[data]",
        "name = 'clip = 3.csv'",
        "",
        "[schedule]",
        "step = 2.0",
    ]


def test_a_name_cannot_write_into_the_file() -> None:
    built = tuned_file(example("digits"), CHANGES, "--public a\n[privacy]\nepsilon = 1000.0\r.csv")
    assert built.comments_kept
    assert tomllib.loads(built.text)["privacy"]["epsilon"] == 10.0


def test_a_comment_stays_in_its_column_where_there_is_room() -> None:
    built = tuned_file("[schedule]\nstep = 2.0                  # long\n", {("schedule", "step"): 187.5}, "")
    assert built.text.splitlines()[2] == "step = 187.5                # long"


def test_an_earlier_choice_leaves_no_second_heading() -> None:
    once = tuned_file(example("digits"), CHANGES, "--public a")
    twice = tuned_file(once.text, CHANGES, "--public b")
    assert twice.text.count(HEADER) == 1
    assert "--public b" in twice.text.splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "privacy = {epsilon = 1.0, clip = 2.0}  # in braces\n",
        "privacy.epsilon = 1.0 # with a dot\nprivacy.clip = 2.0\n",
        "[privacy]\nepsilon = 1.0\n'clip' = 2.0  # in quotes\n",
        '[privacy]\nepsilon = 1.0\nsettings_chosen = """\nclip = 7\n"""\nclip = 2.0\n',
    ],
)
def test_what_cannot_be_followed_is_written_anew_with_every_value(text: str) -> None:
    built = tuned_file(text, CHANGES, "")
    values = tomllib.loads(built.text)
    assert values["privacy"] == {"epsilon": 1.0, "clip": 0.25, "settings_chosen": STATEMENT}
    assert values["schedule"] == {"epochs": 12, "step": 187.5, "decay": "constant"}


def test_it_is_said_that_comments_are_lost() -> None:
    built = tuned_file("privacy = {epsilon = 1.0}  # in braces\n", CHANGES, "")
    assert not built.comments_kept
    assert "in braces" not in built.text


def test_relative_paths_follow_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    values = {"data": {"name": "mine.csv"}, "network": {"file": "../net.npz"}, "radio": {"trace": "/abs/t.npz"}}
    assert moved_paths(values, tmp_path / "a", tmp_path / "a") == {}
    moved = moved_paths(values, tmp_path / "a", tmp_path / "b")
    assert moved == {("data", "name"): "../a/mine.csv", ("network", "file"): "../net.npz"}
    assert moved_paths({"data": {"name": "mnist"}}, tmp_path / "a", tmp_path / "b") == {}
