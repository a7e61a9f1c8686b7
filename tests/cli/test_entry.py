"""Ways into the command: `python -m`, completion in a shell, and help that names no type beside a flag."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from murmurcast.cli import app
from tests import commands

COMMANDS = sorted(str(one.name) for one in app.registered_commands)


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "murmurcast"]
    done = subprocess.run([*call, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"murmurcast {version('murmurcast')}\n")
    done = subprocess.run([*call, "plan", "none.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "none.toml" in commands.refused(done)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_flags_stand_alone_in_help(command: str) -> None:
    done = commands.run(*command.split(), "--help", env=os.environ | {"COLUMNS": "150"})
    assert done.returncode == 0, done.stderr
    assert "<bool>" not in done.stdout
    assert re.search(r"--help +Show this message and exit\.", done.stdout)


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell is offered for the last word of a line."""
    words = line.split(" ")
    asked = {"_MURMURCAST_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    asked |= {"_TYPER_COMPLETE_ARGS": line}
    done = commands.run(env=os.environ | asked)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_commands_options_and_values_are_completed() -> None:
    assert completed("murmurcast comp") == ["compare"]
    assert set(completed("murmurcast re")) == {"report", "reproduce"}
    assert "--figure" in completed("murmurcast compare --f")
    assert completed("murmurcast compare --format ") == ["latex", "csv", "md"]
    assert any("compare" in word for word in completed("murmurcast comp", "zsh"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell: str) -> None:
    """Which shell asks is told here: what started the tests may be none."""
    done = commands.run(env=os.environ | {"_MURMURCAST_COMPLETE": f"source_{shell}"})
    assert done.returncode == 0, done.stderr
    assert f"_MURMURCAST_COMPLETE=complete_{shell}" in done.stdout
