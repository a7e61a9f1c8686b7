"""The network: who hears whom, how well, with how much power."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csgraph, csr_array, issparse

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._display import html_of
from murmurcast.errors import Error, NotConnected

if TYPE_CHECKING:
    import networkx as nx

    from murmurcast.network.gains import GainModel


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Nodes, the gains of the links between them, and their power budgets.

    Args:
        gains: [nodes, nodes], dense or sparse. `gains[i, j]` is the gain of the link FROM i TO j; 0 means no link.
            The two gains of a link may differ, and a link may go one way only, for methods that allow it; every node
            must be able to reach every other. Kept as a `csr_array`.
        power: Transmit power budget of every node, one number or [nodes].
        positions: [nodes, 2] where the nodes stand, if known.
        names: What the nodes are called, in tables and reports; their numbers where nothing is said.
    """

    gains: csr_array
    power: FloatArray
    positions: FloatArray | None = None
    names: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        gains: ArrayLike | csr_array,
        power: ArrayLike = 1.0,
        positions: ArrayLike | None = None,
        names: Iterable[object] = (),
    ) -> None:
        links = _valid_links(gains)
        nodes = links.shape[0]
        _check.positive(power=power)
        set_ = object.__setattr__
        set_(self, "gains", links)
        set_(self, "power", _check.per_node(nodes, power=power))
        set_(self, "positions", None if positions is None else _valid_positions(positions, nodes))
        set_(self, "names", _check.node_names(nodes, names))

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def nodes(self) -> int:
        """How many nodes there are (K)."""
        return int(self.gains.shape[0])

    @property
    def is_named(self) -> bool:
        """Whether nodes have names besides their numbers."""
        return self.names != _check.node_names(self.nodes, ())

    def named(self, names: Iterable[object]) -> "Network":
        """The same network with other names for its nodes."""
        return Network(gains=self.gains, power=self.power, positions=self.positions, names=names)

    @property
    def links(self) -> int:
        """How many directed links there are."""
        return int(self.gains.nnz)

    @property
    def degree(self) -> FloatArray:
        """[nodes] how many nodes hear each node (d_i); where links are two-way, as many as it hears."""
        return np.diff(self.gains.indptr).astype(np.float64)

    @property
    def heard_degree(self) -> FloatArray:
        """[nodes] how many nodes each node hears."""
        return np.bincount(self.gains.indices, minlength=self.nodes).astype(np.float64)

    @cached_property
    def one_way_link(self) -> tuple[int, int] | None:
        """A link (from, to) that has none back; None where all links are two-way."""
        support = csr_array((np.ones(self.gains.nnz), self.gains.indices, self.gains.indptr), shape=self.gains.shape)
        sender, receiver = (support - support.T).tocoo().coords
        one_way = ((int(i), int(j)) for i, j in zip(sender, receiver, strict=True) if support[i, j])
        return next(one_way, None)

    def require_two_way(self, what: str) -> None:
        """All links are two-way, as some methods need; `what` says which."""
        if self.one_way_link is None:
            return
        i, j = self.one_way_link
        raise Error(
            f"{what} needs two-way links: node {j} hears node {i} but not the other way round (gains[{i}, {j}] is "
            f"{self.gains[i, j]:g}, gains[{j}, {i}] is 0)",
            hint="give both gains (they may differ), set both to 0, or use a method for one-way links",
        )

    @property
    def max_degree(self) -> int:
        """The largest number of neighbours of any node."""
        return int(self.degree.max())

    def neighbours(self, node: int) -> tuple[int, ...]:
        """The nodes that hear `node`; where links are two-way, it hears them too."""
        row = slice(self.gains.indptr[node], self.gains.indptr[node + 1])
        return tuple(int(j) for j in self.gains.indices[row])

    @classmethod
    def from_links(
        cls,
        nodes: int,
        links: ArrayLike,
        *,
        gain: "GainModel",
        power: ArrayLike = 1.0,
        positions: ArrayLike | None = None,
        seed: int = 0,
    ) -> Self:
        """A network whose gains are drawn from a model, each direction of a link on its own or both at once.

        Args:
            nodes: How many nodes.
            links: [n, 2] pairs of neighbours, each pair once or in both directions.
            gain: The model, such as `mc.gains.Uniform(low=0.3, high=1.0)`.
            power: As in `Network`.
            positions: As in `Network`; distance-dependent models need them.
            seed: The draws depend on this, `nodes` and the set of links only.
        """
        _check.at_least(0, seed=seed)
        pairs = np.asarray(links, dtype=np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= nodes):
            raise Error(
                f"a link names node {pairs.max() if pairs.max() >= nodes else pairs.min()}, there are {nodes} nodes",
                hint=f"number the nodes 0 to {nodes - 1}",
            )
        both = np.concatenate([pairs, pairs[:, ::-1]])
        support = csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(nodes, nodes))
        support.sum_duplicates()
        sender, receiver = support.nonzero()
        spots = None if positions is None else _valid_positions(positions, nodes)
        distance = None if spots is None else np.linalg.norm(spots[sender] - spots[receiver], axis=1)
        values = _drawn(gain, seed, sender, receiver, distance)
        return cls(
            gains=csr_array((values, (sender, receiver)), shape=(nodes, nodes)), power=power, positions=positions
        )

    @classmethod
    def from_networkx(
        cls, graph: "nx.Graph[Any]", *, gain: "GainModel | None" = None, power: ArrayLike | None = None, seed: int = 0
    ) -> Self:
        """Any networkx graph, its nodes numbered in the graph's own order and called as they are there.

        Args:
            graph: Edges carry `gain`, unless a model is given; an undirected edge gives both directions the same gain.
                Nodes may carry `power` and `pos`.
            gain: Draw the gains from this model instead.
            power: Overrides the nodes' own; 1.0 where neither is given.
            seed: As in `from_links`.
        """
        number = {node: index for index, node in enumerate(graph)}
        spots = [graph.nodes[node].get("pos") for node in graph]
        positions = None if any(spot is None for spot in spots) else np.asarray(spots, dtype=np.float64)
        if power is None:
            power = np.array([graph.nodes[node].get("power", 1.0) for node in graph])
        pairs = [(number[u], number[v]) for u, v in graph.edges()]
        if gain is not None:
            drawn = cls.from_links(len(number), pairs, gain=gain, power=power, positions=positions, seed=seed)
            return cls(gains=drawn.gains, power=drawn.power, positions=drawn.positions, names=graph)
        values = [data.get("gain") for _, _, data in graph.edges(data=True)]
        if any(value is None for value in values):
            raise Error("an edge of the graph has no gain", hint="set its 'gain' attribute, or pass a gain model")
        links = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        weights = np.asarray(values, dtype=np.float64)
        if not graph.is_directed():
            links, weights = np.concatenate([links, links[:, ::-1]]), np.concatenate([weights, weights])
        shape = (len(number), len(number))
        gains = csr_array((weights, (links[:, 0], links[:, 1])), shape=shape)
        return cls(gains=gains, power=power, positions=positions, names=graph)

    def to_networkx(self) -> "nx.DiGraph[int]":
        """A directed graph with `gain` on its edges, `power`, `name` and (if known) `pos` on its nodes."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        for node in range(self.nodes):
            graph.add_node(node, power=float(self.power[node]), name=self.names[node])
            if self.positions is not None:
                graph.nodes[node]["pos"] = tuple(float(x) for x in self.positions[node])
        sender, receiver = self.gains.nonzero()
        values = zip(sender.tolist(), receiver.tolist(), self.gains.data.tolist(), strict=True)
        graph.add_weighted_edges_from(values, weight="gain")
        return graph


def _drawn(gain: "GainModel", seed: int, sender: Any, receiver: Any, distance: FloatArray | None) -> FloatArray:
    """[links] one gain each; of a reciprocal model one for both directions."""
    generator = np.random.default_rng(seed)
    if not getattr(gain, "reciprocal", False):
        return gain.draw(generator, len(sender), distance)
    ends = np.stack([np.minimum(sender, receiver), np.maximum(sender, receiver)])
    pairs, first, pair = np.unique(ends, axis=1, return_index=True, return_inverse=True)
    drawn = gain.draw(generator, pairs.shape[1], None if distance is None else distance[first])
    return np.asarray(drawn[pair.ravel()])


def _valid_links(gains: ArrayLike | csr_array) -> csr_array:
    """The gain matrix as CSR without explicit zeros, checked in every way a network can be wrong."""
    try:
        given: Any = gains if issparse(gains) else np.asarray(gains)
        if given.dtype.kind not in "fiuc":
            raise TypeError
    except (TypeError, ValueError):
        raise Error("gains is not a matrix of numbers", hint="give one row per sender, all of one length") from None
    if given.dtype.kind == "c":
        raise Error("gains are complex", hint="give amplitudes |h|: numpy.abs(gains)")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        shape = " x ".join(map(str, given.shape)) or "one number"
        raise Error(f"gains is {shape}, expected a square matrix", hint="give one row and one column per node")
    links: csr_array = csr_array(given, dtype=np.float64, copy=True)
    if links.shape[0] < 2:
        raise Error("a network needs at least 2 nodes", hint="give a gain matrix of 2 x 2 or larger")
    links.sum_duplicates()
    _forbid(links, ~np.isfinite(links.data), "not a finite number", "replace it by a number, or by 0 for no link")
    if (links.data < 0).any():
        _forbid(links, links.data < 0, "negative", _hint_for_negative(links.data))
    links.eliminate_zeros()
    extreme = (links.data < 1e-30) | (links.data > 1e30)
    _forbid(links, extreme, "outside 1e-30 to 1e30", "give 0 for no link, or other units")
    links.sort_indices()
    if (own := np.flatnonzero(links.diagonal())).size:
        raise Error(
            f"gains[{own[0]}, {own[0]}] is not 0: node {own[0]} has a link to itself", hint="set the diagonal to 0"
        )
    _require_connected(links)
    for part in (links.data, links.indices, links.indptr):
        part.flags.writeable = False
    return links


def _hint_for_negative(gains: FloatArray) -> str:
    """Amplitudes are not negative; gains that all are, and mostly far below -1, are decibels."""
    given = gains[gains != 0]
    if (given < 0).all() and np.median(given) < -1:
        return "these look like dB: a gain is an amplitude, 10 ** (dB / 20), and 0 where there is no link"
    return "a gain is an amplitude |h|: give its absolute value"


def _forbid(links: csr_array, bad: "np.ndarray[tuple[int], np.dtype[np.bool_]]", what: str, hint: str) -> None:
    if bad.any():
        first = np.flatnonzero(bad)[0]
        sender = int(np.searchsorted(links.indptr, first, side="right")) - 1
        raise Error(f"gains[{sender}, {links.indices[first]}] is {links.data[first]:g}, which is {what}", hint=hint)


def _require_connected(links: csr_array) -> None:
    count, label = csgraph.connected_components(links, directed=True, connection="strong")
    if count == 1:
        return
    sizes = np.bincount(label)
    pieces = tuple(tuple(np.flatnonzero(label == piece).tolist()) for piece in np.argsort(-sizes, kind="stable")[:20])
    shown = "; ".join("{" + _few(piece) + "}" for piece in pieces[:4])
    more = f" and {count - 4} more" if count > 4 else ""
    raise NotConnected(
        f"the network is not connected, it falls into {count} pieces: {shown}{more}",
        hint="add links between the pieces; for a random network take a larger radius or probability, or another seed",
        pieces=pieces,
    )


def _few(members: Iterable[int]) -> str:
    listed = list(members)
    return ", ".join(map(str, listed[:6])) + (f", ... ({len(listed)} nodes)" if len(listed) > 6 else "")


def _valid_positions(positions: ArrayLike, nodes: int) -> FloatArray:
    array = np.array(positions, dtype=np.float64)
    if array.shape != (nodes, 2) or not np.isfinite(array).all():
        raise Error(
            f"positions has shape {array.shape}, expected {nodes} x 2 finite numbers", hint="give x and y of every node"
        )
    return _check.frozen(array)
