"""The registry: every method once, and nobody else names one."""

import ast
import re
import sys
from pathlib import Path
from typing import Any, get_args

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


def text_of(path: Path) -> str:
    """What a file says in strings and imports; what it says to whoever reads it is left out."""
    tree = ast.parse(path.read_text())
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in described]
    homes = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return "\n".join([*(word for word in words if isinstance(word, str)), *homes])


def test_no_module_but_a_methods_own_names_a_method() -> None:
    """Whole words; the reproduction is about three of them, help shows examples, and methods may know each other."""
    names = "|".join(re.escape(name) for name in registry.NAMES if name != "orthogonal")  # a way of access, too
    named = re.compile(rf"""(?<![\w.:/-])({names})(?![\w:-])|algorithms\.({names.replace("-", "_")})\b""")
    allowed = ("reproduction", "cli", "__init__.py")
    demonstrations = {"audits/inversion.py"}  # of Algorithm 1 on one image, with and without noise
    own = {f"algorithms/{name.replace('-', '_')}.py" for name in registry.NAMES} | {"algorithms/registry.py"}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if place.parts[0] in allowed or str(place) in demonstrations | own:
            continue
        outcome = named.search(text_of(path))
        assert outcome is None, f"{place} names {outcome.group(0) if outcome else ''}"


@pytest.mark.parametrize("feature", get_args(registry.Feature))
def test_whatever_a_method_cannot_do_another_can(feature: registry.Feature) -> None:
    able = [method.name for method in registry.methods() if getattr(method, feature)]
    assert 0 < len(able) < len(registry.NAMES)
    assert re.findall("[a-z0-9-]+", registry.names_that(feature).replace(" or ", ", ")) == able


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


BROKEN = """
import murmurcast as mc
from murmurcast.testing import Method
def takes_nothing(): ...
def by_keyword(*, length: float = 1.0): ...
class Empty: ...
def gives_a_number(setup): return 3
def fails(setup): return {}["no such key"]
def refuses(setup): raise mc.Error("not this network", hint="another one")
METHOD = Method("mine", fails, "", "no account", reference="none")
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("takes_nothing", "takes no setup"),
        ("by_keyword", "takes no setup"),
        ("Empty", "takes no setup"),
        ("gives_a_number", "made int, expected an Algorithm"),
        ("fails", "could not make an algorithm: KeyError: 'no such key'"),
        ("refuses", "not this network"),
        ("METHOD", "could not make an algorithm: KeyError"),
    ],
)
def test_a_factory_of_ones_own_that_fails_has_a_hint(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_methods.py").write_text(BROKEN)
    (tmp_path / "own.toml").write_text(
        '[network]\ntopology = "ring"\nnodes = 4\n[privacy]\nepsilon = 5.0\n[problem]\nkind = "quadratic"\n'
        f'[algorithm]\nname = "broken_methods:{name}"\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(mc.Error, match=words) as raised:
        experiment_files.load(tmp_path / "own.toml").build()
    assert raised.value.hint
    sys.modules.pop("broken_methods", None)


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


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", registry.NAMES)
def test_every_method_is_reached_from_a_file(name: str) -> None:
    by_sender = name in ("ped2fl", "dwfl")
    text = FILE.replace("ring", "complete") + '[network.gain]\nkind = "constant"\n' if by_sender else FILE
    text += f'[algorithm]\nname = "{name}"\n'
    problem, algorithm = experiment_files.parse(text.encode(), "my.toml").build()
    assert algorithm.name == name
    result = mc.run(algorithm, problem)
    outcome = mc.certify(result)
    method = registry.find(name)
    assert (outcome.verdict == "nothing is promised") == bool(method.reason or method.otherwise)


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
