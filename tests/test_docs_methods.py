"""The pages about methods: every method and every option is named, and nothing that does not exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from murmurcast.algorithms import registry
from murmurcast.algorithms.method import Method, Option

DOCS = Path(__file__).parents[1] / "docs"
WORDS_FOR_NUMBERS = re.compile(r"\bnumber\b")


@cache
def section(page: str, heading: str) -> str:
    """From a heading to the next of its rank or above."""
    text = (DOCS / page).read_text()
    rank = len(heading.partition(" ")[0])
    result = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{rank}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert result is not None, f"{page} has no {heading}"
    return result[1]


@cache
def rows(text: str, first: str) -> tuple[tuple[str, ...], ...]:
    """Of the table whose first heading is this."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    result = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        result.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return tuple(result)


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@cache
def overview() -> str:
    return (DOCS / "methods.md").read_text().partition("\n## ")[0]


@cache
def documented_options() -> dict[str, tuple[str, ...]]:
    """Rows of the table of options, by the names that they begin with."""
    table = rows(section("reference/experiment-file.md", "## [algorithm]"), "option")
    return {name: row for row in table for name in quoted(row[0])}


def listed_methods() -> dict[str, tuple[str, ...]]:
    return {name: row for row in rows(overview(), "method") for name in quoted(row[0])}


def noiseless_twins() -> set[str]:
    (paragraph,) = [part for part in overview().split("\n\n") if "are the same recursions without noise" in part]
    return {name for name in quoted(paragraph) if name in registry.NAMES}


def test_every_method_is_listed_once_and_no_other_is() -> None:
    table = [name for row in rows(overview(), "method") for name in quoted(row[0])]
    assert len(table) == len(set(table))
    assert set(table) | noiseless_twins() == set(registry.NAMES)
    assert not set(table) & noiseless_twins()


def test_methods_without_noise_are_those_that_promise_nothing() -> None:
    for name in noiseless_twins():
        assert registry.find(name).reason, name


@pytest.mark.parametrize("name", sorted(listed_methods()))
def test_the_table_agrees_with_what_a_method_promises(name: str) -> None:
    method, row = registry.find(name), listed_methods()[name]
    promised = row[2]
    if method.reason or method.otherwise or not method.sends:
        assert promised.startswith("nothing"), promised
    elif "trusted" in method.promises or "server" in method.promises:
        assert "trusted server" in promised
    elif method.promises == "against everybody":
        assert promised.endswith("everybody")
    else:
        assert "each adversary apart" in promised


@pytest.mark.parametrize("name", sorted(listed_methods()))
def test_the_table_agrees_with_the_uses_of_a_method(name: str) -> None:
    row = listed_methods()[name]
    among = quoted(row[0])
    said = row[1].split(", ")
    stated = said[among.index(name)] if len(said) == len(among) > 1 else row[1]
    uses = registry.find(name).uses
    if stated.isdigit():
        assert uses == stated
    else:
        assert not uses.isdigit(), f"{name} has uses {uses}, the page says {stated}"


def test_forms_that_methods_are_certified_by_are_explained() -> None:
    explained = {row[0] for row in rows(section("methods.md", "## What each costs"), "form")}
    for name, row in listed_methods().items():
        assert set(re.findall(r"\bF\d\b", row[2])) <= explained, name
    assert len(explained) == 7


OPTIONS = [(method, option) for method in registry.methods() for option in method.options]


@pytest.mark.parametrize(("method", "option"), OPTIONS, ids=[f"{one.name}-{each.name}" for one, each in OPTIONS])
def test_every_option_is_documented_with_all_it_may_be(method: Method, option: Option) -> None:
    row = documented_options()[option.name]
    if option.choices:
        assert {f'"{choice}"' for choice in option.choices} <= set(quoted(row[1])), method.name
    else:
        assert WORDS_FOR_NUMBERS.search(row[1]), method.name
    if option.per_node:
        assert "list" in row[1], method.name


def test_no_option_is_documented_that_no_method_has() -> None:
    assert set(documented_options()) == {option.name for _, option in OPTIONS}


@pytest.mark.parametrize("name", sorted(documented_options()))
def test_no_choice_is_documented_that_no_method_takes(name: str) -> None:
    known = {choice for _, option in OPTIONS if option.name == name for choice in option.choices}
    assert {word.strip('"') for word in quoted(documented_options()[name][1])} <= known


def methods_named(text: str) -> set[str]:
    return {word for word in quoted(text) if word in registry.NAMES}


def test_options_of_some_methods_name_those_methods() -> None:
    """A row that names methods names all that have the option, or all but those that it excepts."""
    last: set[str] = set()
    for row in rows(section("reference/experiment-file.md", "## [algorithm]"), "option"):
        meaning = row[3]
        last = methods_named(meaning) if not meaning.startswith("of the same") else last
        for name in quoted(row[0]):
            having = {method.name for method, option in OPTIONS if option.name == name}
            if "for all but" in meaning:
                assert last == set(registry.NAMES) - having, name
            elif last and (meaning.startswith("of ") or "For `" in meaning):
                assert last == having, name


def test_defaults_are_those_of_the_methods() -> None:
    for name, row in documented_options().items():
        defaults = {option.default for _, option in OPTIONS if option.name == name}
        said = quoted(row[2])
        if said:
            assert defaults == {said[0].strip('"')}, name
        elif re.fullmatch(r"[\d.]+", row[2]) and name != "step_factor":
            assert defaults == {float(row[2])}, name


def test_weights_are_explained_with_what_sums_to_one() -> None:
    table = rows(section("methods.md", "## Weights and access"), "`weights`")
    explained = {name for row in table for name in quoted(row[0])}
    taken = {choice for _, option in OPTIONS if option.name == "weights" for choice in option.choices}
    assert taken <= explained
    assert {"row", "column", "sinkhorn"} <= explained
    words = section("methods.md", "## Weights and access")
    for access in ("orthogonal", "slots"):
        assert f'`"{access}"`' in words
