"""Who hears whom: the usual shapes, each made into a network by a gain model.

Every function takes the same last arguments: `gain` (a model of `murmurcast.network.gains`), `power`, `seed`, and,
where nodes have positions, `size_m`, by which positions are multiplied: the side of the square, the radius of the
circle, or how far apart nodes of a path or grid are, in metres. Those that are drawn by networkx import it themselves:
it is slow to import, and geometric networks do without.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast.errors import Error
from murmurcast.network.gains import GainModel, Uniform
from murmurcast.network.graph import Network

_UNIFORM = Uniform()
MAX_LINKS = 2e7


def diamond(*, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0) -> Network:
    """The paper's Figure 1: four nodes in a cycle, drawn as a diamond."""
    import networkx as nx

    spots = {0: (-1.0, 0.0), 1: (0.0, 1.0), 2: (1.0, 0.0), 3: (0.0, -1.0)}
    return _build(nx.cycle_graph(4), spots, gain, power, seed, size_m)


def complete(
    nodes: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0
) -> Network:
    """Everybody hears everybody."""
    import networkx as nx

    _check.at_least(2, nodes=nodes)
    _require_reasonable(nodes * (nodes - 1))
    graph = nx.complete_graph(nodes)
    return _build(graph, nx.circular_layout(graph), gain, power, seed, size_m)


def ring(
    nodes: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0
) -> Network:
    """Everybody hears the two beside them, in a circle."""
    import networkx as nx

    _check.at_least(3, nodes=nodes)
    _require_reasonable(2 * nodes)
    graph = nx.cycle_graph(nodes)
    return _build(graph, nx.circular_layout(graph), gain, power, seed, size_m)


def path(
    nodes: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0
) -> Network:
    """A line of nodes, one apart."""
    import networkx as nx

    _check.at_least(2, nodes=nodes)
    _require_reasonable(2 * nodes)
    return _build(nx.path_graph(nodes), {node: (float(node), 0.0) for node in range(nodes)}, gain, power, seed, size_m)


def star(
    nodes: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0
) -> Network:
    """Node 0 hears and is heard by all others, who do not hear each other."""
    import networkx as nx

    _check.at_least(2, nodes=nodes)
    _require_reasonable(2 * nodes)
    around = nx.circular_layout(nx.cycle_graph(nodes - 1))
    spots = {0: (0.0, 0.0)} | {node + 1: spot for node, spot in around.items()}
    return _build(nx.star_graph(nodes - 1), spots, gain, power, seed, size_m)


def grid(
    rows: int, columns: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0, size_m: float = 1.0
) -> Network:
    """A rectangle of nodes, one apart, numbered row by row."""
    import networkx as nx

    _check.at_least(1, rows=rows, columns=columns)
    _check.at_least(2, nodes=rows * columns)
    _require_reasonable(4 * rows * columns)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    spots = {node: (float(node % columns), -float(node // columns)) for node in graph}
    return _build(graph, spots, gain, power, seed, size_m)


def erdos_renyi(
    nodes: int, probability: float, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0
) -> Network:
    """Every pair is linked with the same probability; an error where the draw is not connected."""
    import networkx as nx

    _check.at_least(2, nodes=nodes)
    _check.at_least(0, seed=seed)
    if not 0 < probability <= 1:
        raise Error(f"probability is {probability:g}, expected above 0 and at most 1", hint="try 2 ln(nodes) / nodes")
    _require_reasonable(nodes + probability * nodes * nodes)
    return _build(nx.fast_gnp_random_graph(nodes, probability, seed=seed), None, gain, power, seed, 1.0)


def random_regular(
    nodes: int, degree: int, *, gain: GainModel = _UNIFORM, power: ArrayLike = 1.0, seed: int = 0
) -> Network:
    """Everybody hears `degree` others, drawn at random; an error where the draw is not connected."""
    import networkx as nx

    _check.at_least(2, nodes=nodes)
    _check.at_least(1, degree=degree)
    _check.at_least(0, seed=seed)
    if degree >= nodes or nodes * degree % 2:
        raise Error(
            f"{nodes} nodes cannot all hear {degree} others",
            hint="take a degree below the number of nodes, and not both of them odd",
        )
    _require_reasonable(nodes * degree)
    return _build(nx.random_regular_graph(degree, nodes, seed=seed), None, gain, power, seed, 1.0)


def geometric(
    nodes: int,
    radius: float | None = None,
    *,
    gain: GainModel = _UNIFORM,
    power: ArrayLike = 1.0,
    seed: int = 0,
    size_m: float = 1.0,
) -> Network:
    """Nodes dropped at random in the unit square, linked within `radius`.

    The default radius, sqrt(5 ln(nodes + 1) / (pi nodes)), is about 2.2 times the one from which on such networks tend
    to be connected; nodes near the border hear fewer. Positions are kept, times `size_m`, the square's side; the radius
    stays a share of that side.
    """
    _check.positive(size_m=size_m)
    _check.at_least(2, nodes=nodes)
    _check.at_least(0, seed=seed)
    reach = math.sqrt(5 * math.log(nodes + 1) / (math.pi * nodes)) if radius is None else radius
    _check.positive(radius=reach)
    _require_reasonable(nodes + nodes * nodes * min(1.0, math.pi * reach * reach))
    from scipy.spatial import KDTree

    spots = np.random.default_rng(seed).uniform(size=(nodes, 2))
    links = KDTree(spots).query_pairs(reach, output_type="ndarray")
    return Network.from_links(nodes, links, gain=gain, power=power, positions=spots * size_m, seed=seed)


def _require_reasonable(links: float) -> None:
    """Before a generator fills the memory."""
    if links > MAX_LINKS:
        raise Error(
            f"the network would have about {links:.2g} links, more than {MAX_LINKS:.2g}",
            hint="take fewer nodes, a smaller radius or probability, or read a network from a file",
        )


def _build(
    graph: Any, spots: Mapping[int, Any] | None, gain: GainModel, power: ArrayLike, seed: int, size_m: float
) -> Network:
    _check.positive(size_m=size_m)
    nodes = graph.number_of_nodes()
    positions = None if spots is None else np.array([spots[node] for node in range(nodes)]) * size_m
    links = np.array(graph.edges(), dtype=np.int64).reshape(-1, 2)
    return Network.from_links(nodes, links, gain=gain, power=power, positions=positions, seed=seed)
