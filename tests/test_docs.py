"""Every example in the documentation runs and prints what stands beside it; every link leads somewhere.

In a shown output, "..." on a line of its own stands for any lines, and white space does not count.
"""

import os
import re
import shlex
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

from murmurcast.engine.compile_cache import VARIABLE
from murmurcast.experiments import load as experiment_files
from tests import commands

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BIN = Path(sys.executable).parent
LONG = {  # pages whose examples take long; what they show is tested by itself too
    *("docs/audit.md", "docs/channels-in-and-out.md", "docs/plan.md", "docs/radio.md", "docs/rank.md"),
    *("docs/reference/python.md", "docs/scale.md", "docs/sweep.md", "docs/tune.md", "docs/your-own-model.md"),
    "docs/exact-diffusion.md",
}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    before: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(m[1], m[2], text[: m.start()].strip().split("\n\n")[-1]) for m in FENCE.finditer(text)]


def lines(text: str) -> list[str]:
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


def matches(shown: str, printed: str) -> bool:
    """Whether the shown lines are the printed ones, up to "..."."""
    pattern = "".join(".*" if line == "..." else re.escape(line + "\n") for line in lines(shown))
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines(printed)), re.DOTALL) is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the shipped examples, as after following the guide."""
    for name in experiment_files.example_names():
        (tmp_path / f"{name}.toml").write_text(experiment_files.example(name))
    (tmp_path / "docs" / "images").mkdir(parents=True)
    return tmp_path


def run(command: str, folder: Path) -> str:
    kept = ("JAX_", "MPLCONFIGDIR", "XLA_FLAGS", VARIABLE)  # compiled programs, how to compile them, lists of fonts
    cache = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder), **cache}
    words = shlex.split(command)
    if set("|&;<>$`*") & set(command):
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    elif words[0] == "murmurcast":
        done = commands.run(*words[1:], cwd=folder, env=environment)
    else:
        assert words[0] == "python", command
        done = commands.run_script(folder / words[1], *words[2:], cwd=folder, env=environment)
    return done.stdout + done.stderr


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (name(page) in LONG), id=name(page)) for page in PAGES]
)
def test_examples_print_what_is_shown(page: Path, folder: Path) -> None:
    listed = blocks(page)
    for block, after in zip_longest(listed, listed[1:]):
        named = re.findall(r"`([\w-]+\.(?:toml|csv))`", block.before)
        if block.language in ("toml", "text") and named:
            (folder / named[0]).write_text(block.text)
        elif block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                if command.startswith("murmurcast"):
                    printed = run(command, folder)
                    assert matches(shown, printed), f"{command}\n--- shown\n{shown}\n--- printed\n{printed}"
        elif block.language == "python":
            (folder / "example.py").write_text(block.text)
            printed = run("python example.py", folder)
            shown = after.text if after is not None and after.language == "text" else ""
            assert matches(shown, printed), f"{block.text}\n--- shown\n{shown}\n--- printed\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", goal.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target


def test_a_wrong_output_would_be_noticed() -> None:
    assert matches("a 1\n...\nc 3\n", "a  1\n\nb 2\nc 3\n")
    assert not matches("a 1\n...\nc 4\n", "a 1\nb 2\nc 3\n")
    assert not matches("a 1\n", "a 1\nb 2\n")


def test_long_pages_are_there() -> None:
    assert set(map(name, PAGES)) > LONG
