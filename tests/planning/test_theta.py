"""The theta that a split is made for and needs itself: the same as by plain rounds, and found where those swing."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from murmurcast.errors import Infeasible
from murmurcast.network import topologies
from murmurcast.network.graph import Network
from murmurcast.planning import solve
from murmurcast.planning.plan import Plan, PowerRule
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ClippedGradients
from murmurcast.planning.theta import Tried, settled_theta
from tests.conftest import asymmetric_network


def sought(needed: Callable[[float], float], start: float, slack: float = 1e-6) -> tuple[Tried[None] | None, int]:
    thetas: list[float] = []

    def attempt(theta: float) -> Tried[None]:
        thetas.append(theta)
        return Tried(theta, needed(theta), None)

    return settled_theta(attempt, start, slack, lambda _: False), len(thetas)


@pytest.mark.parametrize("slope", [-5.0, -1.5, -0.9, -0.2, 0.0, 0.3, 0.8])
def test_it_is_found_whatever_the_slope(slope: float) -> None:
    # Plain rounds swing for ever from a slope of -1 on.
    result, rounds = sought(lambda theta: 7.0 * (theta / 7.0) ** slope, 4.0)
    assert result is not None
    assert result.needed <= result.theta <= result.needed * (1 + 3e-6)
    assert result.theta == pytest.approx(7.0, rel=1e-5)
    assert rounds <= 8


def test_a_jump_past_theta_leaves_the_safe_side_of_it() -> None:
    result, rounds = sought(lambda theta: 20.0 if theta < 10.0 else 5.0, 4.0)
    assert result is not None
    assert 10.0 <= result.theta <= 10.0 * (1 + 1e-5)
    assert rounds < 40


def test_a_theta_that_no_split_is_made_for_bounds_the_search() -> None:
    def needed(theta: float) -> float:
        if theta > 12.0:
            raise Infeasible("too large", hint="none", smallest_epsilon=1.0)
        return 10.0 * math.exp(-3 * (theta / 10.0 - 1))

    result, _ = sought(needed, 6.0)
    assert result is not None
    assert result.theta == pytest.approx(10.0, rel=1e-5)


def test_nothing_holds_where_ever_more_is_needed() -> None:
    result, rounds = sought(lambda theta: 2 * theta, 1.0)
    assert result is None
    assert rounds <= 60


def test_a_split_that_is_of_no_use_ends_the_search() -> None:
    assert settled_theta(lambda theta: Tried(theta, 2 * theta, None), 1.0, 1e-6, lambda _: True) is None


def built(network: Network, noise: float, objective: str = "sum") -> Plan:
    budget, rule = Budget(epsilon=1.0, target="per-epoch"), PowerRule(objective=objective)  # type: ignore[arg-type]
    return solve.plan(network, ClippedGradients(), budget, Schedule(epochs=20, noise_to_step=noise), power=rule)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("objective", ["sum", "max-min"])
def test_small_networks_settle_where_plain_rounds_do(
    monkeypatch: pytest.MonkeyPatch, seed: int, objective: str
) -> None:
    network = asymmetric_network(seed)
    noise = float(np.random.default_rng([seed, 5]).uniform(60, 400))
    plain = built(network, noise, objective)
    monkeypatch.setattr(solve, "_EXACT_UP_TO", 0)
    monkeypatch.setattr(solve, "_LARGE_SLACK", 1e-9)
    sought = built(network, noise, objective)
    assert sought.theta >= (1 / sought.z).max() * (1 - 1e-12)
    if plain.fell_back_to_even:  # plain rounds did not settle, or on something worse
        assert sought.objective_value >= plain.objective_value * (1 - 1e-4)
    else:
        assert sought.theta == pytest.approx(plain.theta, rel=1e-7)
        np.testing.assert_allclose(sought.alpha, plain.alpha, rtol=1e-6)


def test_a_mid_sized_network_settles_where_plain_rounds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    network = topologies.geometric(400, seed=1)
    plain = built(network, 400.0)
    monkeypatch.setattr(solve, "_EXACT_UP_TO", 0)
    sought = built(network, 400.0)
    assert not plain.fell_back_to_even
    assert sought.theta >= (1 / sought.z).max()
    assert sought.theta == pytest.approx(plain.theta, rel=5e-4)
    assert sought.objective_value == pytest.approx(plain.objective_value, rel=5e-4)
