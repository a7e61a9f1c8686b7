"""How long a per-epoch plan will take is said before it begins, with a way out."""

import json
from pathlib import Path

import numpy as np
import pytest

from murmurcast.errors import LongWork
from murmurcast.network import topologies
from murmurcast.network.graph import Network
from murmurcast.planning import forecast, solve
from murmurcast.planning.plan import PowerRule
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients, Setup
from tests.commands import run

PER_EPOCH = Budget(epsilon=1.0, target="per-epoch")


class BegunError(Exception):
    """The first round has begun."""


def plain(nodes: int) -> Network:
    return topologies.geometric(nodes, float(np.sqrt(20 / np.pi / nodes)), seed=1)


def setup_of(network: Network, budget: Budget, noise: float) -> Setup:
    schedule = Schedule(epochs=10, noise_to_step=noise)
    return Setup(network=network, problem=ClippedGradients(), budget=budget, schedule=schedule)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(61, "about a minute"), (100, "about 2 minutes"), (2100, "about 40 minutes"), (3 * 3600, "about 3 hours")],
)
def test_words_claim_one_digit(seconds: float, words: str) -> None:
    assert forecast.in_words(seconds) == words


def test_the_estimate_is_told_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "_SMALL", 0)
    monkeypatch.setattr(forecast, "_WORTH_TELLING", 0.0)
    stages: list[str] = []

    def stop(words: str) -> None:
        stages.append(words)
        if "round 1" in words:
            raise BegunError

    setup = setup_of(plain(500), PER_EPOCH, 1e4)
    with pytest.warns(LongWork, match='estimate.*target = "certificate"'), pytest.raises(BegunError):
        solve.planned(setup, PowerRule(), z="perron", on_stage=stop)
    assert stages[0].startswith("a per-epoch plan of 500 nodes")
    assert "(an estimate)" in stages[0]


def test_plan_warns_in_python_and_a_total_budget_needs_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "_SMALL", 0)
    monkeypatch.setattr(forecast, "_WORTH_TELLING", 0.0)
    network, schedule = plain(400), Schedule(epochs=10, noise_to_step=1e4)
    with pytest.warns(LongWork) as stated:
        solve.plan(network, ClippedGradients(), PER_EPOCH, schedule)
    assert stated[0].filename == __file__  # it points at who asked for the plan
    solve.plan(network, ClippedGradients(), Budget(epsilon=1.0), Schedule(epochs=10))  # a warning would be an error


@pytest.mark.parametrize("objective", ["sum", "max-min", "noise"])
def test_small_networks_say_nothing_and_large_ones_take_longer(objective: str) -> None:
    rule = PowerRule(objective=objective)  # type: ignore[arg-type]
    assert forecast.forecast(plain(1000), rule) == ""
    seconds = [forecast.estimated_seconds(plain(nodes), rule) for nodes in (5_000, 20_000)]
    assert 0 < seconds[0] < seconds[1] / 3


def test_a_hundred_thousand_nodes_are_offered_the_certificate() -> None:
    network = plain(100_000)
    words = forecast.forecast(network, PowerRule())
    assert "100000 nodes" in words
    assert 'target = "certificate"' in words
    assert 600 < forecast.estimated_seconds(network, PowerRule()) < 7200


def experiment(nodes: int, noise: float) -> str:
    radius = float(np.sqrt(20 / np.pi / nodes))
    return f"""
        network = {{topology = "geometric", nodes = {nodes}, radius = {radius}, seed = 1, z = "perron"}}
        privacy = {{epsilon = 1.0, clip = 1.0, target = "per-epoch"}}
        schedule = {{epochs = 10, noise_to_step = {noise}}}
        power = {{objective = "max-min"}}
    """


@pytest.mark.slow
def test_the_command_says_it_on_stderr_and_json_stays_json(tmp_path: Path) -> None:
    # So much noise that every alpha is at its maximum: the plan takes no time although such plans usually do.
    (tmp_path / "my.toml").write_text(experiment(6_000, 1e9))
    done = run("plan", tmp_path / "my.toml", "--json", "--collusion", "none")
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "(an estimate)" in notes[0]
    assert 'target = "certificate"' in notes[0]
    assert json.loads(done.stdout)["alpha"][0] == pytest.approx(0.99)


@pytest.mark.slow
def test_a_hundred_thousand_nodes_say_it_before_they_turn_out_to_be_impossible(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(experiment(100_000, 10.0))
    done = run("plan", tmp_path / "my.toml")
    assert done.returncode == 2
    assert done.stderr.index("note: a per-epoch plan of 100000 nodes") < done.stderr.index("error: no power split")
