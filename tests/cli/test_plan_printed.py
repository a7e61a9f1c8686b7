"""`print(plan)` is what the command prints."""

from pathlib import Path

import pytest

import murmurcast as mc
from tests import commands

EXAMPLES = ("certified", "paper-1", "ring")


def words(text: str) -> list[str]:
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


@pytest.mark.slow
def test_print_shows_the_tables_of_the_command(tmp_path: Path) -> None:
    for name in EXAMPLES:
        (tmp_path / "my.toml").write_text(commands.run("plan", "--example", name).stdout)
        experiment = mc.load(tmp_path / "my.toml")
        done = commands.run("plan", "my.toml", "--collusion", "none", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        command, printed = words(done.stdout), words(str(experiment.build_plan(tmp_path)))
        # The command also knows the experiment: what is assumed of its data, and what may mislead about it.
        assert set(printed) - set(command) == set(), name
        kept = [line for line in command if line in set(printed)]
        assert kept == printed, name
        assert len(printed) > 15


def test_it_is_plain_text_of_120_columns() -> None:
    network, schedule = mc.topologies.ring(25, seed=1), mc.Schedule(epochs=9)
    text = str(mc.plan(network, mc.ClippedGradients(), mc.Budget(epsilon=1.0), schedule))
    assert "\x1b" not in text
    assert "The 20 nodes that pay most" in text
    assert "over 50 links" in text
    tables = [line for line in text.splitlines() if "─" in line]
    assert tables
    assert max(map(len, tables)) <= 120
    assert not text.endswith("\n")
