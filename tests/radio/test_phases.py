"""Phases of all multicasts can be aligned on trees only: counted, and tried on random networks."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.gains import Uniform
from murmurcast.network.graph import Network
from murmurcast.radio.phases import alignment


def network_of(graph: Any, seed: int = 0) -> Network:
    return Network.from_networkx(graph, gain=Uniform(), seed=seed)


def random_graph(seed: int) -> Any:
    """A tree, or a tree with a few more links: every other one is a tree."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 9))
    graph = nx.random_labeled_tree(nodes, seed=seed)
    missing = sorted(nx.non_edges(graph))
    if seed % 2 and missing:
        extra = rng.choice(len(missing), size=int(rng.integers(1, min(4, len(missing)) + 1)), replace=False)
        graph.add_edges_from(missing[place] for place in extra)
    return graph


def misfit(graph: Any, theta: Any) -> int:
    """How many phases of links cannot be met: rank of f_j + theta_ji = r_i with and without them, by least squares."""
    links = [(sender, receiver) for one in graph.edges for sender, receiver in (one, one[::-1])]
    nodes = graph.number_of_nodes()
    system = np.zeros((len(links), 2 * nodes))
    for row, (sender, receiver) in enumerate(links):
        system[row, sender], system[row, nodes + receiver] = 1, -1
    columns = np.array([[one[link] for link in links] for one in theta]).T
    left = columns - system @ np.linalg.lstsq(system, columns, rcond=None)[0]
    return int(np.linalg.matrix_rank(left, tol=1e-9))


def drawn_phases(graph: Any, rng: Any, reciprocal: bool) -> Any:
    links = [one for edge in graph.edges for one in (edge, edge[::-1])]
    theta = {link: rng.uniform(0, 2 * np.pi) for link in links}
    return {(i, j): theta[min((i, j), (j, i))] for i, j in links} if reciprocal else theta


def best_coherence(graph: Any, theta: Any, rng: Any) -> float:
    """The largest share of all amplitudes that adds up at the receivers, by turning senders in turn from ten starts."""
    nodes = graph.number_of_nodes()
    gains = np.zeros((nodes, nodes), complex)
    for (sender, receiver), phase in theta.items():
        gains[receiver, sender] = np.exp(1j * phase)
    best = 0.0
    for _ in range(10):
        sent = np.exp(2j * np.pi * rng.random(nodes))
        for _ in range(2000):
            heard = gains @ sent
            sent = gains.conj().T @ (heard / np.maximum(np.abs(heard), 1e-12))
            sent /= np.maximum(np.abs(sent), 1e-12)
        best = max(best, float(np.abs(gains @ sent).sum() / len(theta)))
    return best


@pytest.mark.parametrize(
    ("network", "equations", "conditions"),
    [
        (topologies.complete(4), 8, 5),
        (topologies.diamond(), 4, 2),
        (topologies.ring(3), 3, 1),
        (topologies.path(5), 3, 0),
    ],
)
def test_the_papers_networks_violate_as_many_conditions_as_known(
    network: Network, equations: int, conditions: int
) -> None:
    result = alignment(network)
    assert (result.equations, result.conditions) == (equations, conditions)


@pytest.mark.parametrize("seed", range(40))
def test_conditions_are_as_many_as_least_squares_leaves(seed: int) -> None:
    graph, rng = random_graph(seed), np.random.default_rng(seed)
    result = alignment(network_of(graph, seed))
    assert result.possible == nx.is_tree(graph)
    links = 2 * graph.number_of_edges()
    assert result.conditions == misfit(graph, [drawn_phases(graph, rng, False) for _ in range(links)])
    assert result.reciprocal_conditions == misfit(graph, [drawn_phases(graph, rng, True) for _ in range(links)])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_only_on_trees_do_all_signals_add_up_whatever_is_tried(seed: int) -> None:
    graph, rng = random_graph(seed), np.random.default_rng(seed)
    result = best_coherence(graph, drawn_phases(graph, rng, reciprocal=False), rng)
    if nx.is_tree(graph):
        assert result > 1 - 1e-9
    else:
        assert result < 1 - 1e-4


def test_reciprocal_channels_help_one_odd_cycle_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    triangle = nx.cycle_graph(3)
    triangle.add_edge(2, 3)
    result = alignment(network_of(triangle))
    assert (result.conditions, result.reciprocal_conditions) == (1, 0)
    assert best_coherence(triangle, drawn_phases(triangle, rng, reciprocal=True), rng) > 1 - 1e-9
    assert best_coherence(triangle, drawn_phases(triangle, rng, reciprocal=False), rng) < 1 - 1e-4
    square = nx.cycle_graph(4)
    assert alignment(network_of(square)).reciprocal_conditions == 1
    assert best_coherence(square, drawn_phases(square, rng, reciprocal=True), rng) < 1 - 1e-4


def test_one_way_links_are_refused() -> None:
    gains = [[0, 0.5, 0], [0, 0, 0.7], [0.9, 0, 0]]
    with pytest.raises(Error, match="two-way"):
        alignment(Network(gains=gains))
