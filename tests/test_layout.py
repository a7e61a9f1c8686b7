"""Imports go only downwards."""

import ast
import re
from pathlib import Path

import pytest

import murmurcast

SOURCE = Path(murmurcast.__file__).parent
LAYERS = (  # folders, and the modules of the ground
    ("errors", "_progress"),
    ("_check", "_files"),
    ("network", "data", "privacy"),
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
    ("cli",),
)


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
    found = set()
    for node in ast.walk(tree):
        if node in typing_only or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("murmurcast.")}
        elif node.module and node.module.split(".")[0] == "murmurcast":
            inner = node.module.removeprefix("murmurcast").lstrip(".")
            for alias in node.names:
                candidate = f"{inner}.{alias.name}".lstrip(".")
                exists = (SOURCE / candidate.replace(".", "/")).with_suffix(".py").exists()
                found.add(candidate if exists or not inner else inner)
    return found


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent.name == "cli")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_only_downwards(path: Path) -> None:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for other in imported(path):
        assert layer(other) <= layer(name), f"{name} imports {other}, which is above it"


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


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        murmurcast.__getattr__("nothing_like_it")
