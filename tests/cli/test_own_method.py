"""A method of the user's own through the commands: what is wrong with it is said, and nothing is left behind."""

import os
from pathlib import Path

import pytest

from tests.commands import refused, run

METHODS = """
import jax.numpy as jnp
import murmurcast as mc

def with_signal(plan, make):
    algorithm = mc.power_controlled(plan)
    only = algorithm.rounds[0]
    return algorithm._replace(rounds=(only._replace(send=lambda here, state, drawn: make(state.own)),))

def stacked(plan):
    return with_signal(plan, lambda own: jnp.stack([own, own]))

def whole(plan):
    return with_signal(plan, lambda own: own.astype(int))

def failing(plan):
    return with_signal(plan, lambda own: [own][1])
"""

EXPERIMENT = """
[network]
topology = "ring"
nodes = 4
[privacy]
epsilon = 5.0
[problem]
kind = "quadratic"
[schedule]
epochs = 3
step = 0.1
[algorithm]
name = "own_methods:stacked"
"""


@pytest.mark.parametrize("command", ["run", "audit"])
@pytest.mark.parametrize(("name", "words"), [("stacked", "carries"), ("whole", "int32"), ("failing", "IndexError")])
def test_what_it_sends_must_fit(command: str, name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "own_methods.py").write_text(METHODS)
    (tmp_path / "own.toml").write_text(EXPERIMENT)
    chosen = ("--set", f"algorithm.name=own_methods:{name}")
    done = run(command, "own.toml", *chosen, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert words in refused(done)
    assert not (tmp_path / "runs").exists()  # so that the same command works once the method is mended
