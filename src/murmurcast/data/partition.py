"""Who holds which examples: rules that share a training set out among nodes.

A rule is a small frozen object; `deal` gives every node its rows. Every example goes to exactly one node, and the same
seed always gives the same rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast.data.features.catalogue import in_words
from murmurcast.data.fingerprint import sha256_of
from murmurcast.data.holders import Holders
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.data.base import Dataset
    from murmurcast.data.preprocessing import FirstReleases

Rows = NDArray[np.int64]
_PURPOSE = 4  # of the draws, beside the seed
_TRIES = 1000
_NODES_SHOWN, _LABELS_SHOWN, _SHOWN_FIRST = 20, 12, 10
_NAME_SHOWN = 11  # characters of a label's name
_WARNED_ONE_BY_ONE = 4  # nodes


class PartitionRule(Protocol):
    """Anything that can share examples out among nodes."""

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """The rows of every node, each of the [examples] targets to one node; targets are integers if labels."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sorted:
    """The paper's: sort by label (or value), stably, and cut into equal parts; sizes differ by at most one."""

    kind: Literal["sorted"] = "sorted"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:  # noqa: ARG002
        """Neighbouring labels on one node."""
        return np.array_split(np.argsort(targets, kind="stable"), nodes)


@dataclass(frozen=True, kw_only=True)
class Iid:
    """Shuffle and cut into equal parts: every node has about the same mix; sizes differ by at most one."""

    kind: Literal["iid"] = "iid"
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """A random part for every node."""
        return np.array_split(generator.permutation(len(targets)), nodes)


@dataclass(frozen=True, kw_only=True)
class Shards:
    """Sort by label (or value), cut into nodes x per_node shards, and deal `per_node` random ones to every node."""

    kind: Literal["shards"] = "shards"
    per_node: int = 2
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, per_node=self.per_node)

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """A few labels on every node."""
        shards = nodes * self.per_node
        if shards > len(targets):
            raise Error(
                f"{len(targets)} examples cannot be cut into {nodes} x {self.per_node} shards",
                hint="lower nodes or per_node",
            )
        pieces = np.array_split(np.argsort(targets, kind="stable"), shards)
        hands = generator.permutation(shards).reshape(nodes, self.per_node)
        return [np.concatenate([pieces[shard] for shard in hand]) for hand in hands]


@dataclass(frozen=True, kw_only=True)
class Dirichlet:
    """Every label is shared out in proportions drawn from a Dirichlet law, as is usual in federated learning.

    Small `concentration` gives nodes few labels and unequal sizes; large gives everybody the same mix. Drawn anew, up
    to 1000 times, until every node has at least `minimum` examples.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: float = 0.5
    minimum: int = 1
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(concentration=self.concentration)
        _check.at_least(1, minimum=self.minimum)

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """Labels in random proportions."""
        if targets.dtype.kind != "i":
            raise Error(
                "dirichlet shares out labels, and these targets are values",
                hint='use "sorted", "shards", "iid" or "quantity"',
            )
        _require_minimum(self.minimum, len(targets), nodes)
        totals = np.bincount(targets)
        bounds = self._bounds(generator, totals, nodes)
        order = np.lexsort([generator.random(len(targets)), targets])  # by label, shuffled within
        starts = np.cumsum(totals) - totals
        flat = (bounds[:, :-1] + starts[:, None]).ravel()[1:]
        pieces = np.split(order, flat)  # label by label, within it node by node
        return [np.concatenate(pieces[node::nodes]) for node in range(nodes)]

    def _bounds(self, generator: np.random.Generator, totals: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
        """[labels, nodes + 1]: where the part of every node begins and ends within its label."""
        most = 0
        for _ in range(_TRIES):
            share = generator.dirichlet(np.full(nodes, self.concentration), size=len(totals))
            ends = np.rint(np.cumsum(share, axis=1) * totals[:, None]).astype(np.int64)
            ends[:, -1] = totals
            bounds = np.concatenate([np.zeros((len(totals), 1), np.int64), np.minimum(ends, totals[:, None])], axis=1)
            smallest = int(np.diff(bounds, axis=1).sum(axis=0).min())
            if smallest >= self.minimum:
                return bounds
            most = max(most, smallest)
        raise Error(
            f"{_TRIES} draws with concentration {self.concentration:g} left some of {nodes} nodes with fewer than "
            f"{self.minimum} of {int(totals.sum())} examples (at best the poorest had {most})",
            hint="raise concentration or use fewer nodes" + (f", or set minimum to {most} or less" if most else ""),
        )


@dataclass(frozen=True, kw_only=True)
class QuantitySkew:
    """Unequal sizes, alike labels: `minimum` examples for everybody, the rest in proportions from a Dirichlet law."""

    kind: Literal["quantity"] = "quantity"
    concentration: float = 0.5
    minimum: int = 1
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.positive(concentration=self.concentration)
        _check.at_least(1, minimum=self.minimum)

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """Random parts of random sizes."""
        _require_minimum(self.minimum, len(targets), nodes)
        spare = len(targets) - nodes * self.minimum
        share = generator.dirichlet(np.full(nodes, self.concentration))
        extra = np.minimum(np.rint(np.cumsum(share) * spare).astype(np.int64), spare)[:-1]
        cuts = extra + self.minimum * np.arange(1, nodes)
        return list(np.split(generator.permutation(len(targets)), cuts))


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Every node draws `per_node` examples on its own, each at most once; several nodes may hold the same one.

    For networks larger than any set at hand: nodes then hold copies, and a promise is about one node's copy.
    """

    kind: Literal["drawn"] = "drawn"
    per_node: int = 32
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def __post_init__(self) -> None:
        _check.at_least(1, per_node=self.per_node)

    def deal(self, generator: np.random.Generator, targets: NDArray[Any], nodes: int) -> list[Rows]:
        """A random part for every node, whatever the others have."""
        if self.per_node > (most := len(targets)):
            raise Error(f"{most} examples are too few to draw {self.per_node} for a node", hint=f"draw at most {most}")
        return [generator.choice(len(targets), self.per_node, replace=False, shuffle=False) for _ in range(nodes)]


@dataclass(frozen=True, kw_only=True)
class Column:
    """Every record belongs to a node already, and a column of the data names it: nothing is dealt.

    Args:
        column: What that column is called; None takes the one that the set was loaded with.
    """

    kind: Literal["column"] = "column"
    column: str | None = None
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    def holders(self, dataset: "Dataset") -> Holders:
        """The node of every record."""
        if dataset.holders is None or self.column not in (None, dataset.holders.column):
            has = "none is known" if dataset.holders is None else f'the set has "{dataset.holders.column}"'
            raise Error(
                f'the partition "column" needs a column that names the node of every record, and {has}',
                hint='name it when the data is loaded: mc.datasets.load("my.csv", node_column="site"); in a file '
                'data.partition = {column = "site"}',
            )
        return dataset.holders


_RULES: dict[str, type[Sorted | Iid | Shards | Dirichlet | QuantitySkew | Drawn]] = {
    "sorted": Sorted,
    "iid": Iid,
    "shards": Shards,
    "dirichlet": Dirichlet,
    "quantity": QuantitySkew,
    "drawn": Drawn,
}


def kind_of(rule: PartitionRule | Column) -> str:
    """The name of a rule of these; "own" for any other, also for one derived from these: it may do anything."""
    return next((name for name, known in (*_RULES.items(), ("column", Column)) if type(rule) is known), "own")


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """Which training examples every node holds.

    Attributes:
        dataset: The set that is shared out.
        rule: How.
        rows: One read-only array of row numbers per node; every training example is in exactly one of them, unless
            nodes drew theirs (`Drawn`).
        names: What the nodes are called; their numbers where nothing is said.
        first: What nodes released before training to centre and whiten their rows; None where they did not.
        origin: The same before that.
    """

    dataset: "Dataset"
    rule: PartitionRule | Column
    rows: tuple[Rows, ...]
    names: tuple[str, ...] = ()
    first: "FirstReleases | None" = None
    origin: "Partition | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(_frozen(part) for part in self.rows))
        object.__setattr__(self, "names", _check.node_names(len(self.rows), self.names))
        if not all(len(part) for part in self.rows):
            bare = next(name for name, part in zip(self.names, self.rows, strict=True) if not len(part))
            raise Error(f"node {bare} holds no example", hint="use fewer nodes or another rule")
        if self.first is None:
            self.dataset.require_raw()
        if type(self.rule) is Drawn:
            return
        used = np.sort(np.concatenate(self.rows)) if self.rows else np.empty(0)
        if not np.array_equal(used, np.arange(len(self.dataset.targets))):
            raise Error("some example is held by no node, or by two", hint="give every row to exactly one node")

    def __repr__(self) -> str:
        low, high = self.sizes.min(), self.sizes.max()
        return f"Partition({self.dataset.name!r} by {self.rule}: {self.nodes} nodes, {low} to {high} examples each)"

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return len(self.rows)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """[nodes], how many examples every node holds."""
        return _frozen([len(part) for part in self.rows])

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """[nodes, classes], how many examples of every label a node holds; for regression [nodes, 1], the sizes."""
        classes = self.dataset.classes
        if classes is None:
            return _frozen(self.sizes[:, None])
        return _frozen([np.bincount(self.dataset.targets[part], minlength=classes) for part in self.rows])

    @cached_property
    def sha256(self) -> str:
        """Of the training records, their maps and who holds which: a secret, where they are (`runs.commitment`).

        Of the records as they were given: what statistics under noise make of them depends on the machine's arithmetic.
        """
        if self.origin is not None:
            return self.origin.sha256
        maps = " ".join(in_words(one) for one in self.dataset.maps)
        described = (np.frombuffer(maps.encode(), np.uint8),) if maps else ()
        return sha256_of((self.dataset.features, self.dataset.targets, *self.rows, *described))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may surprise: labels that nodes lack, and sizes far apart. Empty where there is nothing."""
        return (*_missing_labels(self.table, self.names), *_unequal_sizes(self.sizes, self.names))

    def as_text(self) -> str:
        """A plain table of labels by node, abbreviated where there are many of either."""
        names = self.dataset.label_names
        counts = self.table[:, : len(names)]  # for regression no column but the sizes
        lines = [["node", *(name[:_NAME_SHOWN] for name in names), "all"]]
        for node in _abbreviated([str(node) for node in range(self.nodes)], _NODES_SHOWN):
            if node == "...":
                lines.append([node, *[""] * (len(names) + 1)])
            else:
                label_counts = map(str, counts[int(node)])
                lines.append([self.names[int(node)][:_NAME_SHOWN], *label_counts, str(self.sizes[int(node)])])
        lines.append(["all", *map(str, counts.sum(axis=0)), str(self.sizes.sum())])
        lines = [[line[0], *_abbreviated(line[1:-1], _LABELS_SHOWN, line[0] != "..."), line[-1]] for line in lines]
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def make_partition(
    dataset: "Dataset", rule: str | PartitionRule | Column, nodes: int | Sequence[str] | None, seed: int = 0
) -> Partition:
    """Shares the training examples of a set out among nodes; a string names a rule with its defaults."""
    _check.at_least(0, seed=seed)
    if isinstance(rule, str):
        if rule not in (*_RULES, "column"):
            raise Error(f'"{rule}" is not a rule of partition', hint=_check.nearest(rule, (*_RULES, "column")))
        rule = Column() if rule == "column" else _RULES[rule]()
    if isinstance(rule, Column):
        return _by_column(dataset, rule, nodes)
    if nodes is None:
        raise Error("how many nodes there are is not said", hint="partition(rule, nodes=network.nodes)")
    names = () if isinstance(nodes, int | np.integer) or not isinstance(nodes, Sequence) else tuple(nodes)
    count, examples = len(names) or nodes, len(dataset.targets)
    _check.at_least(1, nodes=count)  # type: ignore[arg-type]
    count = int(count)  # type: ignore[arg-type]
    if count > examples and type(rule) is not Drawn:
        raise Error(
            f"{examples} training examples are too few for {count} nodes",
            hint=f'use at most {examples} nodes, or let each draw its own: partition = "drawn"',
        )
    rows = rule.deal(np.random.default_rng([seed, _PURPOSE]), dataset.targets, count)
    return Partition(dataset=dataset, rule=rule, rows=tuple(rows), names=names)


def _by_column(dataset: "Dataset", rule: Column, nodes: int | Sequence[str] | None) -> Partition:
    """Records stay where they are; nodes are numbered in the order of their names, or as the caller lists them.

    A network whose nodes only have numbers takes the names of the column.
    """
    holders = rule.holders(dataset)
    names = holders.names
    if isinstance(nodes, Sequence) and tuple(nodes) != _check.node_names(len(nodes), ()):
        names = tuple(nodes)
    count = len(nodes) if isinstance(nodes, Sequence) else nodes
    if count is not None and count != len(names):
        raise Error(
            f'the column "{holders.column}" names {len(names)} nodes, and the network has {count}',
            hint="give the network as many nodes as the column names",
        )
    return Partition(dataset=dataset, rule=rule, rows=tuple(holders.dealt(names)), names=names)


def _abbreviated(items: list[str], most: int, marked: bool = True) -> list[str]:
    """All items, or the first ten, "..." and the last."""
    if len(items) <= most:
        return items
    return [*items[:_SHOWN_FIRST], "..." if marked else "", items[-1]]


def _require_minimum(minimum: int, examples: int, nodes: int) -> None:
    if minimum * nodes > examples:
        raise Error(
            f"{examples} examples do not give {nodes} nodes {minimum} each",
            hint=f"set minimum to {examples // nodes} or less, or use fewer nodes",
        )


def _frozen(values: Any) -> NDArray[np.int64]:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def _missing_labels(table: NDArray[np.int64], names: Sequence[str]) -> list[str]:
    missing = (table == 0).sum(axis=1)
    lacking = np.flatnonzero(missing)
    nodes, labels = table.shape
    if len(lacking) <= _WARNED_ONE_BY_ONE:
        return [f"node {names[int(node)]} has no examples of {missing[node]} of {labels} labels" for node in lacking]
    worst = int(missing.argmax())
    return [
        f"{len(lacking)} of {nodes} nodes lack at least one of {labels} labels; "
        f"node {names[worst]} lacks most: {missing[worst]}"
    ]


def _unequal_sizes(sizes: NDArray[np.int64], names: Sequence[str]) -> list[str]:
    low, high = int(sizes.argmin()), int(sizes.argmax())
    if sizes[high] < 2 * sizes[low] or sizes[high] - sizes[low] < 2:
        return []
    few, many = f"node {names[low]} has {sizes[low]} examples", f"node {names[high]} has {sizes[high]}"
    return [f"sizes differ: {few}, {many}"]
