"""The registry: every method once, and nobody else names one."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.method import Method
from murmurcast.experiments import load as experiment_files

SOURCE = Path(mc.__file__).parent


def test_every_file_with_a_method_is_listed_and_every_name_is_a_file() -> None:
    files = {path.stem for path in (SOURCE / "algorithms").glob("*.py") if "\nMETHOD = " in path.read_text()}
    assert {name.replace("-", "_") for name in registry.NAMES} == files
    assert len(set(registry.NAMES)) == len(registry.NAMES)
    for method in registry.methods():
        assert registry.find(method.name) is method
        assert getattr(mc, method.name.replace("-", "_")) is method.make


def test_no_module_but_a_methods_own_names_a_method() -> None:
    """Quoted, as a name; the reproduction is about three of them, and help shows examples."""
    names = "|".join(map(re.escape, registry.NAMES))
    quoted = re.compile(rf"""["'`]({names})["'`]|algorithms\.({names.replace("-", "_")})\b""")
    allowed = ("algorithms", "reproduction", "__init__.py")
    demonstrations = {"audits/inversion.py"}  # of Algorithm 1 on one image, with and without noise
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if place.parts[0] in allowed or str(place) in demonstrations:
            continue
        found = quoted.search(path.read_text())
        assert found is None, f"{place} names {found.group(0) if found else ''}"


def test_unknown_methods_have_a_hint() -> None:
    with pytest.raises(mc.Error, match="no method") as raised:
        registry.find("power-controled")
    assert "power-controlled" in raised.value.hint
    assert "package.module:name" in raised.value.hint


@pytest.mark.parametrize("name", ["no_such_package:method", "murmurcast:no_such_name", "json:", ":method", "math:pi"])
def test_a_method_of_ones_own_that_is_none_has_a_hint(name: str) -> None:
    with pytest.raises(mc.Error) as raised:
        registry.find(name)
    assert raised.value.hint


def test_a_factory_of_ones_own_is_a_method_that_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "import murmurcast as mc",
        "def quiet(plan: mc.Plan, *, length: float = 2.0):",
        '    """Says nothing of itself."""',
        "    return mc.noiseless(plan)",
    )
    (tmp_path / "quiet_method.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    method = registry.find("quiet_method:quiet")
    assert isinstance(method, Method)
    assert (method.summary, method.needs_plan) == ("Says nothing of itself.", True)
    assert "no account" in method.reason
    assert [(option.name, option.default) for option in method.options] == [("length", 2.0)]
    del sys.modules["quiet_method"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"publish": "lastt"}, "publish is"),
        ({"step_factor": 2.0}, "no option step_factor"),
        ({"gradient_at": 3}, "gradient_at is"),
    ],
)
def test_options_are_checked(given: dict[str, Any], words: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        registry.find("power-controlled").checked(given)
    assert raised.value.hint


FILE = """
[network]
topology = "ring"
nodes = 5
[privacy]
epsilon = 5.0
[problem]
kind = "quadratic"
dim = 3
[schedule]
epochs = 6
"""


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_method_is_reached_from_a_file(name: str) -> None:
    by_sender = name in ("ped2fl", "dwfl")
    text = FILE.replace("ring", "complete") + '[network.gain]\nkind = "constant"\n' if by_sender else FILE
    text += f'[algorithm]\nname = "{name}"\n'
    problem, algorithm = experiment_files.parse(text.encode(), "my.toml").build()
    assert algorithm.name == name
    result = mc.run(algorithm, problem)
    found = mc.certify(result)
    method = registry.find(name)
    assert (found.verdict == "nothing is promised") == bool(method.reason or method.otherwise)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('name = "frosty"', 'algorithm.name is "frosty"'),
        ('name = "frost"\nsteps = 3', "unknown key algorithm.steps"),
        ('name = "decor"\nshared_to_own = "much"', "algorithm.shared_to_own is"),
        ('name = "decor"\nagainst = "everyone"', "algorithm.against is"),
    ],
)
def test_what_a_file_says_of_a_method_is_checked_when_it_is_read(line: str, words: str) -> None:
    with pytest.raises(mc.Error, match=words) as raised:
        experiment_files.parse(f"{FILE}[algorithm]\n{line}\n".encode(), "my.toml")
    assert raised.value.hint
