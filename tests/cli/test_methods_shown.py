"""`murmurcast methods` through its real entry point: one method in full, JSON for programs, methods of one's own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from murmurcast.algorithms import registry
from murmurcast.algorithms.method import Method
from murmurcast.cli.methods import _as_dict, _default
from tests import commands

OWN = '''"""A module of a user's own."""

from typing import Literal

import murmurcast as mc


def mine(plan: mc.Plan, *, loud: float = 2.0, kind: Literal["a", "b"] = "b"):
    """Does as it likes."""
    return mc.noiseless(plan)


def odd(setup, *, length=3):
    """Says no types."""


def without_default(setup, *, length: float):
    """Cannot be left out."""


def word(setup, *, kind: str = "a"):
    """Takes any word."""
'''


def shown(*words: str) -> str:
    done = commands.run("methods", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def own(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """In a folder with a module of a user's own."""
    (folder / "my_methods.py").write_text(OWN)
    code = "import sys; sys.path.insert(0, ''); from murmurcast.cli import main; main()"
    line = [sys.executable, "-c", code, "methods", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)


def strict(text: str) -> dict[str, Any]:
    """One JSON object, without the numbers that JSON does not know."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    result = json.loads(text, parse_constant=refuse)
    assert isinstance(result, dict)
    return result


def test_a_method_in_full_has_equations_promise_formula_options_and_reference() -> None:
    text = " ".join(shown("decor").split())
    method = registry.find("decor")
    for words in (method.promises, method.formula, method.reference, "two-way links", "v_ij = -v_ji"):
        assert " ".join(words.split()) in text
    for option in method.options:
        assert option.name in text
    assert "shared_to_own 10 number" in text
    assert "eavesdropper | eavesdropper and one node | everybody" in text


def test_a_method_without_promise_says_why_and_shows_no_formula() -> None:
    method = registry.find("locally-balanced")
    text = " ".join(shown("locally-balanced").split())
    assert f"promise none: {method.reason}" in text
    assert "formula " not in text


def test_a_promise_on_conditions_says_what_holds_otherwise() -> None:
    text = " ".join(shown("mped2fl").split())
    assert "promise against everybody, with headroom below 1" in text
    assert f"else none: {registry.find('mped2fl').otherwise}" in text
    assert "smoothness not known number" in text


def test_json_of_all_and_of_one_is_strict_and_the_same() -> None:
    everything = strict(shown("--json"))["methods"]
    for name in ("mped2fl", "dwfl", "power-controlled"):
        (one,) = strict(shown(name, "--json"))["methods"]
        assert one == next(each for each in everything if each["name"] == name)
    by_name = {one["name"]: one for one in everything}
    assert by_name["mped2fl"]["options"]["smoothness"] == {"default": None, "choices": None}
    assert by_name["dsgd"]["formula"] is None
    assert by_name["power-controlled"]["needs_plan"] is True
    assert by_name["dp-dsgd"]["needs_plan"] is False


@pytest.mark.parametrize("method", registry.methods(), ids=lambda method: method.name)
def test_json_says_what_the_method_says(method: Method) -> None:
    values = _as_dict(method)
    assert set(values["options"]) == {option.name for option in method.options}
    assert (values["promises"] or "", values["reason"] or "") == (method.promises, method.reason)
    assert (values["uses"], values["secure_noise"], values["projects"]) == (
        method.uses,
        method.secure,
        method.projects,
    )
    for option in method.options:
        listed = values["options"][option.name]
        assert listed["choices"] == (list(option.choices) or None)
        assert listed["default"] == option.default or listed["default"] is None
        assert (listed["default"] is None) == (_default(option) == "not known")


@pytest.mark.parametrize("words", [("decorr",), ("decorr", "--json"), ("DECOR",), ("",), ("no.such:thing",)])
def test_unknown_methods_are_refused_with_a_way_out(words: tuple[str, ...]) -> None:
    said = commands.refused(commands.run("methods", *words))
    assert "package.module:name" in said
    assert ('did you mean "decor"?' in said) == words[0].startswith("decorr")


def test_a_method_of_ones_own_is_shown_by_where_it_is(tmp_path: Path) -> None:
    done = own(tmp_path, "my_methods:mine", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = strict(done.stdout)["methods"]
    assert (result["name"], result["summary"]) == ("my_methods:mine", "Does as it likes.")
    assert result["promises"] is None
    assert "no account" in result["reason"]
    assert result["needs_plan"] is True
    assert result["options"] == {
        "loud": {"default": 2.0, "choices": None},
        "kind": {"default": "b", "choices": ["a", "b"]},
    }
    text = own(tmp_path, "my_methods:mine").stdout
    assert "A module of a user's own." in text
    assert "your own" in text


def test_options_without_types_are_numbers(tmp_path: Path) -> None:
    done = own(tmp_path, "my_methods:odd", "--json")
    assert done.returncode == 0, done.stderr
    assert strict(done.stdout)["methods"][0]["options"] == {"length": {"default": 3, "choices": None}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("without_default", "the option length of my_methods:without_default has no default, expected a number"),
        ("word", "the option kind of my_methods:word has the default 'a', expected a number"),
        ("mc", "expected a method"),
        ("nothing", "cannot be found"),
    ],
)
def test_what_cannot_be_a_method_of_ones_own_is_refused(tmp_path: Path, name: str, words: str) -> None:
    assert words in commands.refused(own(tmp_path, f"my_methods:{name}"))
