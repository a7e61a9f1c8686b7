"""What problems on examples share: their fields, and a partition as the arrays that nodes hold."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.data.base import Dataset
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.problems.base import Leaf, Omega, minibatch, require_omega
from murmurcast.problems.clip import Clip, Clipping
from murmurcast.problems.sampling import Sampling, SamplingRule, joined, sampling

MAX_BYTES = 16 * 2**30  # bytes
MAX_BATCH = 2**16 - 1
_ROWS_AT_ONCE = 4096
_MAX_ORDERED_BYTES = 2**29  # of features
LARGEST_VALUE = 1e12  # in the data: products of a few of them stay within float32


class Rows(NamedTuple):
    """Examples, of one node or of all with a leading node axis.

    Attributes:
        features: [rows, features].
        columns: [features, rows] the same, transposed: products with either are then quick, at the cost of holding the
            data twice. None for minibatches, which are too small to gain.
        targets: [rows] labels or values.
        reach: [rows] the norm of an example's features as its gradient sees them.
        present: [rows] 1 for an example, 0 for filling.
        size: How many are present.
    """

    features: Leaf
    columns: Leaf
    targets: Leaf
    reach: Leaf
    present: Leaf
    size: Leaf


class Pool(NamedTuple):
    """All examples, whoever holds them.

    Attributes:
        features: [examples, features].
        targets: [examples] labels or values.
        reach: [examples] the norm of an example's features as its gradient sees them.
    """

    features: Leaf
    targets: Leaf
    reach: Leaf


@dataclass(frozen=True)
class InPool:
    """What a node holds of an array of the pool, of which only the examples that are asked for are read.

    Attributes:
        array: [examples, ...] everybody's.
        places: [rows] the node's.
    """

    array: jax.Array
    places: jax.Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the array."""
        return self.array.dtype

    def __getitem__(self, picked: Leaf) -> jax.Array:
        return self.array[self.places[picked]]


class Holdings(NamedTuple):
    """Which examples of a pool nodes hold.

    Attributes:
        rows: [nodes, rows] places in the pool, filled up with a node's own first.
        size: [nodes] how many are held.
    """

    rows: Leaf
    size: Leaf


class TestPart(NamedTuple):
    """What models are evaluated on."""

    features: Leaf
    targets: Leaf


@dataclass(frozen=True, kw_only=True, eq=False)
class OnExamples(ABC):
    """A problem on a partitioned set.

    Args:
        data: Who holds which examples.
        clip: What gradients are clipped to.
        clipping: "example" (each example's gradient, as unit record needs), "node" (the node's), or "none".
        l2: Weight of l2/2 ||x||^2 in every f_i.
        batch: Examples per node and epoch; None takes all.
        sampling: "fixed": a batch has that size. "poisson": every example joins by a secret coin of its own, and that
            many are expected; promises about records then count what the coins hide.
        ball: Omega is the ball of this radius around 0.
        box: Omega is the box of this half width around 0.
    """

    data: Partition
    clip: float = 1.0
    clipping: Clipping = "example"
    l2: float = 0.0
    batch: int | None = None
    sampling: SamplingRule = "fixed"
    ball: float | None = None
    box: float | None = None

    def __post_init__(self) -> None:
        _require_shared_out(self.data)
        if self.l2:
            _check.positive(l2=self.l2)
        _require_moderate(self.data)
        require_omega(self.ball, self.box)
        _averaged_over(self.data, self.batch)
        _check.one_of(get_args(SamplingRule), sampling=self.sampling)
        if self.sampling == "poisson" and self.batch is None:
            raise Error(
                'sampling = "poisson" needs the expected size of a batch', hint="set batch, or leave sampling out"
            )
        self.gradient_clip  # noqa: B018 - checks itself

    @cached_property
    def gradient_clip(self) -> Clip:
        """What gradients are clipped to."""
        return Clip(limit=self.clip, per=self.clipping, examples_per_node=self.examples_per_node)

    @cached_property
    def sampled(self) -> Sampling | None:
        """How examples join by coins; None where they do not."""
        if self.sampling == "fixed" or self.batch is None:
            return None
        return sampling(self.batch, self.data.sizes)

    @property
    def nodes(self) -> int:
        """How many nodes hold a part of it."""
        return self.data.nodes

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of one model."""

    @property
    def dim(self) -> int:
        """m, the number of parameters."""
        return math.prod(self.shape)

    @property
    def radius(self) -> float | None:
        """The largest norm of a model."""
        return self.omega.radius(self.dim)

    @property
    def examples_per_node(self) -> FloatArray:
        """[nodes] the fixed number by which examples are averaged: the batch, or all a node has. Sizes are public."""
        return _averaged_over(self.data, self.batch)

    @property
    def bytes_per_gradient(self) -> int:
        """The features of the batch, or of all examples of the largest node."""
        rows = self.batch or int(self.data.sizes.max()) if self.sampled is None else self.sampled.room
        return 4 * rows * self.data.dataset.features.shape[1]

    @property
    def omega(self) -> Omega:
        """Where models may lie."""
        return Omega(self.ball, self.box)

    @property
    def _averages_all(self) -> bool:
        """Whether a gradient is the plain mean of all examples', whose curvature is that of their mean."""
        return self.gradient_clip.per != "example" and self.batch is None

    def mean_square_reach(self, features: FloatArray) -> float:
        """What bounds the curvature of clipped examples or of any batch: the mean ||x||^2, or the largest.

        Clipping keeps an example's Lipschitz constant, and the mean of the constants bounds that of the mean.
        """
        squares = np.square(features).sum(axis=1)
        if self.batch is None:
            return float(squares.mean())
        return float(squares.max()) * (1.0 if self.sampled is None else self.sampled.room / self.batch)

    def start(self, key: jax.Array) -> jax.Array | FloatArray:  # noqa: ARG002
        """All begin at 0."""
        return np.zeros(self.shape)

    def project(self, model: jax.Array) -> jax.Array:
        """The nearest point of Omega."""
        return self.omega.project(model)

    @property
    def constant(self) -> float:
        """The value of the constant feature that an example's gradient also sees."""
        return 0.0

    @property
    def rows_of_node(self) -> int:
        """How many rows there are for the examples of a node, those that stay empty among them."""
        return int(self.data.sizes.max())

    def pool(self, nodes: NDArray[np.int64]) -> tuple[Pool, Holdings]:
        """The examples of some nodes, once: nodes of a large network refer to them by their places."""
        data, sizes = self.data.dataset, self.data.sizes
        places = np.repeat([[rows[0]] for rows in self.data.rows], self.rows_of_node, axis=1)
        places[np.arange(places.shape[1]) < sizes[:, None]] = np.concatenate(self.data.rows)
        in_turn = np.concatenate([self.data.rows[node] for node in nodes])
        used = np.unique(in_turn)
        # A node's own side by side, which is quicker, where nobody holds copies and another order takes little room.
        order = in_turn if len(in_turn) == len(used) and data.features.nbytes <= _MAX_ORDERED_BYTES else used
        everything = np.array_equal(order, np.arange(len(data.features)))  # then nothing is copied
        features, targets = (part if everything else part[order] for part in (data.features, data.targets))
        parts = np.array_split(features, -(-len(features) // _ROWS_AT_ONCE))  # not all in float64 at once
        squares = np.concatenate([np.einsum("nd,nd->n", part, part, dtype=np.float64) for part in parts])
        pool = Pool(features, targets, np.sqrt(squares + self.constant**2))
        place_of = np.zeros(len(data.features), np.int32)
        place_of[order] = np.arange(len(order))
        return pool, Holdings(place_of[places], sizes.astype(np.int32))

    def of_pool(self, pool: Pool, holdings: Holdings) -> Rows:
        """One node's examples, from the pool."""
        present = (jnp.arange(len(holdings.rows)) < holdings.size).astype(pool.features.dtype)
        in_pool = (InPool(part, holdings.rows) for part in pool)
        # A batch is picked from the pool itself: whoever laid out all of a node's examples first would copy them twice.
        features, targets, reach = in_pool if self.batch is not None else (part[holdings.rows] for part in pool)
        return Rows(features, None, targets, reach, present, holdings.size)

    def averaged(self, total: jax.Array, count: jax.Array) -> jax.Array:
        """A node's gradient from the sum of its clipped examples, clipped as a whole where nodes are."""
        if self.batch == 1 and self.sampled is None:  # one example is no sum
            return self.gradient_clip.of_node(total / count)
        most = 1.0 if self.sampled is None else self.sampled.room / self.sampled.batch
        # The excess goes to the number: what follows is compiled to the same bits as without it where it is 1.
        return self.gradient_clip.of_node(total / (count * self.gradient_clip.excess(total / count, most)))

    def drawn(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        """The rows a node computes with in one epoch, and the fixed number it divides by."""
        if self.batch is None:
            return mine, mine.size.astype(mine.features.dtype)
        if self.sampled is None:
            picked = minibatch(key, mine.size, self.batch)
            present = mine.present[picked]
        else:
            in_batch = joined(key, mine.size, self.batch, len(mine.present))
            (picked,) = jnp.nonzero(in_batch, size=self.sampled.room, fill_value=0)
            present = (jnp.arange(self.sampled.room) < jnp.sum(in_batch)).astype(mine.present.dtype)
        rows = Rows(mine.features[picked], None, mine.targets[picked], mine.reach[picked], present, mine.size)
        return rows, jnp.asarray(self.batch, mine.features.dtype)


def stacked(problem: OnExamples) -> Rows:
    """All nodes' examples, short nodes filled up with zeros."""
    partition = problem.data
    data, sizes = partition.dataset, partition.sizes
    nodes, most = len(sizes), int(sizes.max())
    needed = nodes * most * data.features.shape[1] * 4
    if needed > MAX_BYTES:
        raise Error(
            f"{nodes} nodes with up to {most} examples need {needed / 2**30:.0f} GiB",
            hint="choose a partition with more even sizes, or fewer examples",
        )
    features = np.zeros((nodes, most, data.features.shape[1]), np.float32)
    targets = np.zeros((nodes, most), data.targets.dtype)
    present = np.zeros((nodes, most), np.float32)
    for node, rows in enumerate(partition.rows):
        features[node, : len(rows)] = data.features[rows]
        targets[node, : len(rows)] = data.targets[rows]
        present[node, : len(rows)] = 1
    squares = np.einsum("knd,knd->kn", features, features, dtype=np.float64) + problem.constant**2
    columns = np.ascontiguousarray(features.transpose(0, 2, 1)) if problem.batch is None else None
    return Rows(features, columns, targets, np.sqrt(squares), present, sizes.astype(np.int32))


def example_weights(partition: Partition) -> FloatArray:
    """[examples], node after node: 1/(nodes n_i), so that F/nodes is the weighted sum of the examples' losses."""
    return np.repeat(1 / (partition.nodes * partition.sizes), partition.sizes)


def _require_shared_out(data: object) -> None:
    """This says who holds which examples."""
    if isinstance(data, Partition):
        return
    hint = 'load it by mc.datasets.load("my.csv", classes=3), then share it out: .partition("iid", nodes=4)'
    if isinstance(data, Dataset):
        hint = 'share it out among the nodes first: data.partition("iid", nodes=network.nodes)'
    raise Error(f"data is a {type(data).__name__}, expected a partition: who holds which examples", hint=hint)


def _require_moderate(partition: Partition) -> None:
    """No number is so large that a gradient could overflow, and with it its clip."""
    for name in ("features", "targets"):
        largest = float(np.abs(getattr(partition.dataset, name)).max())
        if largest > LARGEST_VALUE:
            raise Error(
                f"the {name} reach {largest:.3g}, more than {LARGEST_VALUE:g}", hint="scale the data by a constant"
            )


def _averaged_over(partition: Partition, batch: int | None) -> FloatArray:
    if batch is None:
        return partition.sizes.astype(np.float64)
    _check.at_least(1, batch=batch)
    if batch > MAX_BATCH:
        raise Error(f"batch is {batch}, more than {MAX_BATCH}", hint="leave batch out: all examples are used")
    smallest = int(partition.sizes.argmin())
    if batch > partition.sizes[smallest]:
        raise Error(
            f"batch is {batch}, but node {smallest} has only {partition.sizes[smallest]} examples",
            hint=f"set batch to {partition.sizes[smallest]} or less, or choose a partition with more even sizes",
        )
    return np.full(partition.nodes, float(batch))
