"""The programs that choose the split: feasible, optimal, deterministic."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from murmurcast._check import FloatArray
from murmurcast.errors import Infeasible
from murmurcast.network import topologies
from murmurcast.network.gains import Constant, Uniform
from murmurcast.network.graph import Network
from murmurcast.network.weights import mixing, perron
from murmurcast.planning.power.interior_point import largest_sum_inside
from murmurcast.planning.power.largest_sum import _first_order, _inside, _vertex, drawn_back, largest_sum
from murmurcast.planning.power.least_noise import least_noise
from murmurcast.planning.power.max_min import even_split, max_min
from murmurcast.planning.power.per_epoch_limits import Limits, limits, sparse
from murmurcast.privacy import gaussian, paper
from tests.conftest import asymmetric_network

SEEDS = range(25)


def numbers(network: Network, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng([seed, 2])
    return rng.uniform(5, 15, network.nodes), rng.uniform(0.5, 3, network.nodes)


def some_limits(network: Network, seed: int, epsilon: float = 1.0) -> Limits:
    noise, sensitivity = numbers(network, seed)
    return limits(network, noise, sensitivity, 3.0, epsilon, 1e-5, 0.002, 0.98)


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_are_the_papers_epsilon(seed: int) -> None:
    network = asymmetric_network(seed)
    noise, sensitivity = numbers(network, seed)
    alpha = np.random.default_rng(seed).uniform(0.01, 0.6, network.nodes)
    ratio = paper.ratio(network.gains, network.power, alpha, noise, sensitivity, 3.0)
    epsilon = paper.epsilon_per_epoch(ratio, 1e-5)
    within = some_limits(network, seed, epsilon=10.0)
    # used <= 1 exactly where epsilon <= 10; on the boundary both are equal.
    at = within._replace(cost=within.cost * (10.0 / epsilon.max()) ** 2)
    assert at.used(alpha).max() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(within.rows() @ alpha, within.used(alpha), rtol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_largest_sum_is_the_linear_programs_optimum(seed: int) -> None:
    within = some_limits(asymmetric_network(seed), seed)
    alpha = largest_sum(within)
    assert within.used(alpha).max() <= 1 + 1e-12
    program = sparse(within)
    nodes = len(alpha)
    bounds = [*zip(within.floor, within.ceiling, strict=True), *[(0, None)] * nodes]
    result: Any = linprog(  # type: ignore[call-overload]
        np.concatenate([-np.ones(nodes), np.zeros(nodes)]),
        A_ub=program.below,
        b_ub=np.zeros(program.below.shape[0]),
        A_eq=program.equal,
        b_eq=np.ones(nodes),
        bounds=bounds,
    )
    assert alpha.sum() == pytest.approx(-result.fun, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_min_is_the_fairest(seed: int) -> None:
    within = some_limits(asymmetric_network(seed), seed)
    alpha = max_min(within)
    assert within.used(alpha).max() <= 1 + 1e-12
    least = alpha.min()
    if least < 0.98 - 1e-9:
        assert within.used(np.full(len(alpha), least * 1.0001)).max() > 1
    assert least >= largest_sum(within).min() - 1e-9
    assert alpha.sum() <= largest_sum(within).sum() + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_least_noise_beats_any_other_split(seed: int) -> None:
    network = asymmetric_network(seed)
    within = some_limits(network, seed)
    noise, _ = numbers(network, seed)
    pi = perron(mixing(network, np.full(network.nodes, 0.5), network.max_degree + 1).weights)

    def disturbance(alpha: FloatArray) -> float:
        return float(np.sum((pi * noise) ** 2 * (1 / alpha - 1)))

    alpha = least_noise(within, pi, noise)
    assert within.used(alpha).max() <= 1 + 1e-12
    best = disturbance(alpha)
    assert best <= disturbance(largest_sum(within)) * (1 + 1e-7)
    assert best <= disturbance(max_min(within)) * (1 + 1e-7)
    rows = within.rows().toarray()
    other: Any = minimize(  # type: ignore[call-overload]
        disturbance,
        max_min(within) * 0.9,
        method="SLSQP",
        bounds=list(zip(within.floor, within.ceiling, strict=True)),
        constraints={"type": "ineq", "fun": lambda a: 1 - rows @ a},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    feasible = other.x / max(1.0, within.used(other.x).max())
    assert best <= disturbance(feasible) * (1 + 1e-6)


@pytest.mark.parametrize("program", [largest_sum, max_min])
def test_relabelling_permutes_and_changes_nothing(program: object) -> None:
    for seed in SEEDS:
        network = asymmetric_network(seed)
        order = np.random.default_rng(seed).permutation(network.nodes)
        moved = Network(gains=network.gains.toarray()[np.ix_(order, order)], power=network.power[order])
        noise, sensitivity = numbers(network, seed)
        arguments = (3.0, 1.0, 1e-5, 0.002, 0.98)
        plain = program(limits(network, noise, sensitivity, *arguments))  # type: ignore[operator]
        other = program(limits(moved, noise[order], sensitivity[order], *arguments))  # type: ignore[operator]
        np.testing.assert_allclose(other, plain[order], rtol=1e-7)


def test_ties_are_broken_evenly() -> None:
    # Node 1 of a star is so sensitive that it stays at the floor; at the hub only the sum of nodes 2 and 3 is limited,
    # and however they share it, the sum is the same.
    network = topologies.star(4, gain=Constant())
    within = limits(network, np.full(4, 10.0), np.array([1.0, 8.4, 1e-3, 1e-3]), 3.0, 1.0, 1e-5, 0.01, 0.99)
    alpha = largest_sum(within)
    assert alpha[2] + alpha[3] < 1.6
    assert alpha[2] == pytest.approx(alpha[3], rel=1e-6)
    tilted = alpha + np.array([0, 0, 0.1, -0.1])
    assert within.used(tilted).max() <= 1 + 1e-6


# Below 0.352 some of these networks have no split at all.
@settings(max_examples=30)
@given(st.integers(0, 1000), st.floats(0.36, 5.0), st.floats(1.01, 3.0))
def test_a_larger_budget_never_gives_less(seed: int, epsilon: float, factor: float) -> None:
    network = asymmetric_network(seed)
    tight, loose = (some_limits(network, seed, budget) for budget in (epsilon, epsilon * factor))
    assert largest_sum(tight).sum() <= largest_sum(loose).sum() + 1e-9
    assert max_min(tight).min() <= max_min(loose).min() + 1e-9


def test_infeasible_names_link_and_smallest_epsilon() -> None:
    network = asymmetric_network(1)
    noise, sensitivity = numbers(network, 1)
    with pytest.raises(Infeasible) as raised:
        limits(network, noise, sensitivity, 3.0, 1e-3, 1e-5, 0.05, 0.98)
    smallest = raised.value.smallest_epsilon
    alpha = np.full(network.nodes, 0.05)
    ratio = paper.ratio(network.gains, network.power, alpha, noise, sensitivity, 3.0)
    epsilon = paper.epsilon_per_epoch(ratio, 1e-5).toarray()
    receiver, sender = np.unravel_index(int(epsilon.argmax()), epsilon.shape)
    assert smallest == pytest.approx(epsilon.max(), rel=1e-6)
    assert f"link {sender} -> {receiver}" in str(raised.value)
    shown = float(raised.value.hint.split("its minimum, is ")[1].split(";")[0])
    assert smallest <= shown <= smallest * 1.0001
    limits(network, noise, sensitivity, 3.0, smallest, 1e-5, 0.05, 0.98)  # and it does work


@pytest.mark.parametrize("seed", SEEDS)
def test_interior_method_agrees_with_the_vertex(seed: int) -> None:
    within = some_limits(asymmetric_network(seed), seed)
    result = drawn_back(within, _inside(within))
    assert result.sum() == pytest.approx(largest_sum(within).sum(), rel=1e-7)
    assert (result >= within.floor * (1 - 1e-7)).all()
    assert (result <= within.ceiling).all()


def test_interior_method_on_a_mid_sized_network() -> None:
    within = some_limits(topologies.geometric(400, seed=1), 0)
    start = (within.floor + 1 / (1 + within.cost.data.max())) / 2
    result = largest_sum_inside(within, start)
    assert result is not None  # it did not give up
    assert drawn_back(within, result).sum() == pytest.approx(_vertex(within).sum(), rel=1e-8)


def test_floor_that_binds_is_left_to_the_vertex_method() -> None:
    within = some_limits(topologies.geometric(400, seed=1), 0)
    assert max_min(within).min() == pytest.approx(even_split(within).min(), rel=1e-9)


def test_first_order_method_of_large_networks_agrees_with_the_vertex() -> None:
    within = some_limits(topologies.geometric(120, seed=1), 0)
    result = drawn_back(within, _first_order(within))
    assert within.used(result).max() <= 1 + 1e-12
    assert result.sum() == pytest.approx(largest_sum(within).sum(), rel=1e-4)


def test_dense_and_short_rows_give_the_same_split(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS:
        within = some_limits(asymmetric_network(seed), seed)
        short = largest_sum(within)
        monkeypatch.setattr("murmurcast.planning.power.largest_sum._SHORT_ROWS", 0)
        np.testing.assert_allclose(largest_sum(within), short, rtol=1e-7)
        monkeypatch.undo()


def test_complete_network_of_several_hundred_nodes() -> None:
    network = topologies.complete(250)
    within = limits(network, np.full(250, 10.0), np.full(250, 2.0), 30.0, 1.0, 1e-5, 0.001, 0.99)
    alpha = largest_sum(within)
    assert within.used(alpha).max() <= 1 + 1e-12
    assert alpha.sum() >= max_min(within).sum() * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [30.0, 100.0, 1000.0])
def test_ten_thousand_nodes_without_locality(strength: float) -> None:
    nodes = 10_000
    graph = nx.random_regular_graph(10, nodes, seed=1)
    network = Network.from_networkx(graph, gain=Uniform(), seed=0)
    sensitivity = np.full(nodes, float(np.sqrt(strength) / gaussian.classical_epsilon(1.0, 1e-5)))
    within = limits(network, np.full(nodes, 10.0), sensitivity, 1.0, 1.0, 1e-5, 0.01, 0.99)
    alpha = largest_sum(within)
    assert within.used(alpha).max() <= 1 + 1e-12
    assert alpha.sum() > even_split(within).sum()


def test_max_min_where_every_limit_binds_is_the_even_split() -> None:
    # Every alpha is held: nothing is left to solve, however many links there are.
    network = topologies.complete(250, gain=Constant())
    within = limits(network, np.full(250, 10.0), np.full(250, 33.0), 1.0, 1.0, 1e-5, 0.001, 0.99)
    alpha = max_min(within)
    assert 0.1 < alpha[0] < 0.9
    np.testing.assert_array_equal(alpha, even_split(within))
