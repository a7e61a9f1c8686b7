"""Imports go only downwards."""

import ast
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import murmurcast

SOURCE = Path(murmurcast.__file__).parent
LAYERS = (  # folders, and the modules of the ground
    ("errors", "_cipher", "_devices", "_display", "_json", "_npz", "_progress", "_threads"),
    ("_check", "_files"),
    ("network", "data", "privacy"),
    ("radio",),
    ("problems",),
    ("planning",),
    ("channels",),
    ("algorithms",),
    ("engine",),
    ("runs",),
    ("certificates",),
    ("audits", "testing"),
    ("reports",),
    ("experiments",),
    ("reproduction",),
    ("cli", "__main__"),
)
ASKS_THE_CATALOGUE = {"_display.py"}  # for how objects are shown: what lies above them decides, by public names


def layer(module: str) -> int:
    """How high a module's folder lies."""
    folder = module.split(".")[0]
    for height, folders in enumerate(LAYERS):
        if folder in folders:
            return height
    raise AssertionError(f"{folder} is in no layer: add it to LAYERS")


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports at run time, anywhere in it."""
    tree = ast.parse(path.read_text())
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    result = set()
    for node in ast.walk(tree):
        if node in typing_only or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names if alias.name.startswith("murmurcast.")}
        elif node.module and node.module.split(".")[0] == "murmurcast":
            inner = node.module.removeprefix("murmurcast").lstrip(".")
            for alias in node.names:
                candidate = f"{inner}.{alias.name}".lstrip(".")
                exists = (SOURCE / candidate.replace(".", "/")).with_suffix(".py").exists()
                result.add(candidate if exists or not inner else inner)
    return result


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent.name == "cli")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_only_downwards(path: Path) -> None:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for other in imported(path):
        assert layer(other) <= layer(name), f"{name} imports {other}, which is above it"


def test_only_one_file_asks_the_catalogue() -> None:
    """`import murmurcast` reaches every folder, late: where it is used, and for what, is looked at by hand."""
    result = {
        str(path.relative_to(SOURCE))
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) and any(alias.name == "murmurcast" for alias in node.names)
    }
    assert result == ASKS_THE_CATALOGUE
    names = set(re.findall(r"murmurcast\.(\w+)\.", (SOURCE / "_display.py").read_text()))
    assert names == {"display"} <= set(murmurcast.__all__)


def test_every_public_name_exists_and_is_documented() -> None:
    page = (SOURCE.parents[1] / "docs" / "reference" / "python.md").read_text()
    for name in murmurcast.__all__:
        assert (getattr(murmurcast, name).__doc__ or "").strip(), name
        assert re.search(rf"`mc\.{name}[(`.]", page), f"{name} is missing from docs/reference/python.md"


def test_contributing_names_files_that_exist() -> None:
    """Every path in backticks: from the project's folder, the package's, or the one that its row of the table is of."""
    root, row = SOURCE.parents[1], ""
    for line in (root / "CONTRIBUTING.md").read_text().splitlines():
        quoted = re.findall(r"`([\w./-]+)`", line)
        row = next((name for name in quoted if name.endswith("/")), "") if line.startswith("|") else ""
        inner = [name for name in quoted if name.endswith("/")]
        for name in quoted:
            if not re.search(r"(/|\.(py|md|toml|lock))$", name) or name == "reproduction/" or "/tests/" in name:
                continue
            places = [root, SOURCE, *(SOURCE / row / place for place in ("", *inner))]
            assert any((place / name).exists() for place in places), f"CONTRIBUTING names {name}, which does not exist"


def test_contributing_names_every_source_file() -> None:
    """In the row of its folder; after the name of an inner folder come the files of that one."""
    named = set()
    for line in (SOURCE.parents[1] / "CONTRIBUTING.md").read_text().splitlines():
        outer = inner = SOURCE
        for name in re.findall(r"`([\w./-]+)`", line) if line.startswith("|") else ():
            if name.endswith("/"):
                inner = outer / name
                outer = inner if outer == SOURCE else outer
            elif name.endswith(".py"):
                named.add(inner / name if (inner / name).exists() else SOURCE / name)
    for path in SOURCE.rglob("*.py"):
        of_commands = path.parent.name == "cli" and path.name.startswith("_")
        if path.name != "__init__.py" and not of_commands:
            assert path in named, f"the table of CONTRIBUTING leaves out {path.relative_to(SOURCE)}"


def functions(path: Path) -> "list[ast.FunctionDef]":
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    """A file of at most 400 lines, a function's body of at most 50, docstring apart, with at most 8 parameters."""
    assert len(path.read_text().splitlines()) <= 400
    for function in functions(path):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        lines = 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1
        assert lines <= 50, f"{function.name} has {lines} lines"
        given = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
        names = [one.arg for one in given if one.arg not in ("self", "cls")]
        assert len(names) <= 8, f"{function.name} has {len(names)} parameters"


def test_files_of_tests_stay_small() -> None:
    for path in Path(__file__).parent.rglob("*.py"):
        lines = len(path.read_text().splitlines())
        assert lines <= 400, f"{path.name} has {lines} lines"


def lines_of_code(path: Path) -> int:
    """Lines that hold code: no comments, no docstrings, no blank ones."""
    text, prose = path.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, False) is not None:
            prose |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, text.split("\n")), start=1)
    return sum(bool(line) and not line.startswith("#") and place not in prose for place, line in lines)


SAYS_NOTHING = {"found", "held", "made", "told"}  # as names: a name says what the thing is


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_names_say_what_things_are(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        for part in ("id", "arg", "attr", "name"):
            name = getattr(node, part, None)
            assert not isinstance(name, str) or name.strip("_").lower() not in SAYS_NOTHING, (
                f"line {getattr(node, 'lineno', '?')}: {name}"
            )


def test_there_is_as_much_test_as_source() -> None:
    source, tests = (
        sum(lines_of_code(path) for path in folder.rglob("*.py") if "reproduction" not in path.parts)
        for folder in (SOURCE, Path(__file__).parent)
    )
    assert tests >= source, f"{source} lines of source, {tests} of tests"


# Where a protocol would say no more than the type does: inside one file, never in what users or other files pass.
PLAIN_CALLABLES = {"testing.py", "audits/inversion.py", "data/sources.py", "data/datasets.py"}


def test_what_is_passed_between_files_has_a_contract() -> None:
    """A function that is handed around is a Protocol whose docstring says what it must do."""
    for path in FILES:
        name = str(path.relative_to(SOURCE))
        if name in PLAIN_CALLABLES or name.startswith("reproduction"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                given = [ast.unparse(one.annotation) for one in node.args.args if one.annotation]
                assert not any("Callable" in words for words in given), f"{name}: {node.name} takes a bare Callable"
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                assert ast.get_docstring(node), f"{name}: {node.name} has no contract"
                assert all(ast.get_docstring(method) for method in methods), f"{name}: {node.name} has no contract"


CHANNELS = "|".join(
    node.name
    for path in sorted((SOURCE / "channels").glob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef) and any(ast.unparse(part).startswith("kind: ClassVar") for part in node.body)
)
TELLS_CHANNELS_APART = re.compile(
    rf"isinstance\(.*\b(?:{CHANNELS})\b|\bchannel\.kind (?:[=!]=|(?:not )?in\b)|(?:[=!]=|\bin) [\w.]*\bchannel\.kind\b"
)


@pytest.mark.parametrize(
    "line",
    [
        "if isinstance(channel, RadioAir):",
        "multicasts = len(algorithm.rounds) == 1 and isinstance(only.channel, Air) and len(fields) == 2",
        "return isinstance(one.channel, (Links, Slots))",
        'if last.channel.kind == "flood":',
        'any(one.channel.kind != "radio" for one in on_air)',
        "known = all(one.channel.kind in _MIXING for one in algorithm.rounds)",
        'return "radio" == channel.kind',
    ],
)
def test_what_tells_channels_apart_is_seen(line: str) -> None:
    assert TELLS_CHANNELS_APART.search(line)


def test_only_channels_tell_channels_apart() -> None:
    """Others ask `channels/base.py`, so that a channel of your own can answer; words are for errors and ledgers."""
    assert set(CHANNELS.split("|")) == {"Air", "Flood", "Links", "RadioAir", "Server", "Silence", "Slots"}
    for line in ("[one.channel.kind for one in algorithm.rounds]", "isinstance(lists, Dense)", "isinstance(x, Airs)"):
        assert not TELLS_CHANNELS_APART.search(line)
    for path in (one for one in FILES if one.parent.name != "channels"):
        wrong = [line for line in path.read_text().splitlines() if TELLS_CHANNELS_APART.search(line)]
        assert not wrong, f"{path.relative_to(SOURCE)}: {wrong}"


def test_the_version_is_that_of_the_package() -> None:
    assert murmurcast.__version__ == version("murmurcast")
    assert "__version__" not in murmurcast.__all__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        murmurcast.__getattr__("nothing_like_it")
