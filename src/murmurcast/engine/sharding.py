"""How the work is spread over devices: by nodes, or by seeds where the whole problem is small.

Arrays are [nodes, seeds, ...]. Both axes are filled up to a multiple of the number of devices. `put`, `take` and
`exchange` are the only ways of a compiled run between host and devices and between shards. Large networks lie in arrays
of the host (`large.py`), and processes reach each other through their `Team`.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec
from numpy.typing import NDArray

from murmurcast.engine.compile_cache import use_compile_cache

_SMALL = 2**20  # bytes of data and models that every core may hold a copy of


class Layout(NamedTuple):
    """Where everything is.

    Attributes:
        mesh: The devices.
        axis: What is spread over them.
        nodes: How many nodes there are.
        seeds: How many seeds there are.
    """

    mesh: Mesh
    axis: Literal["node", "seed"]
    nodes: int
    seeds: int

    @property
    def by_node(self) -> Spec:
        """Of arrays [nodes, ...]."""
        return Spec("node") if self.axis == "node" else Spec()

    @property
    def by_row_and_node(self) -> Spec:
        """Of tables [rows, nodes, ...]."""
        return Spec(None, "node") if self.axis == "node" else Spec()

    @property
    def by_seed(self) -> Spec:
        """Of arrays [seeds, ...]."""
        return Spec("seed") if self.axis == "seed" else Spec()

    @property
    def by_node_and_seed(self) -> Spec:
        """Of arrays [nodes, seeds, ...]."""
        return Spec("node") if self.axis == "node" else Spec(None, "seed")

    @property
    def filled_nodes(self) -> int:
        """Nodes, filled up."""
        return self.filled_up(self.nodes) if self.axis == "node" else self.nodes

    @property
    def filled_seeds(self) -> int:
        """Seeds, filled up."""
        return self.filled_up(self.seeds) if self.axis == "seed" else self.seeds

    def fill(self, array: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """The array with its node axis filled up by copies of the last node, whose results nobody reads."""
        missing = self.filled_nodes - array.shape[axis]
        if not missing:
            return array  # a set of images is large: no copy without need
        return np.pad(array, [(0, missing if a == axis else 0) for a in range(array.ndim)], mode="edge")

    def put(self, array: Any, spec: Spec) -> jax.Array:
        """The array on its devices."""
        return jax.device_put(array, NamedSharding(self.mesh, spec))

    def put_filled(self, tree: Any) -> Any:
        """Arrays [nodes, seeds, ...] of the host on their devices, both axes filled up by copies of the last."""

        def one(leaf: NDArray[Any]) -> jax.Array:
            missing = self.filled_seeds - leaf.shape[1]
            leaf = np.pad(leaf, [(0, missing if axis == 1 else 0) for axis in range(leaf.ndim)], mode="edge")
            return self.put(self.fill(leaf), self.by_node_and_seed)

        return jax.tree.map(one, tree)

    def take(self, tree: Any) -> Any:
        """Arrays [nodes, seeds, ...] of the devices as NumPy arrays of the real nodes and seeds."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: self.nodes, : self.seeds], tree)

    def take_by_seed(self, tree: Any) -> Any:
        """Arrays [seeds, ...] of the devices as NumPy arrays of the real seeds."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: self.seeds], tree)

    @property
    def exchange(self) -> "Exchange":
        """What channels reach other shards with, inside a device's program."""
        return Exchange(self)

    def own_numbers(self) -> jax.Array:
        """Inside a device's program: [own nodes] the numbers of its nodes."""
        own = self.filled_nodes // (self.mesh.size if self.axis == "node" else 1)
        numbers = jnp.arange(own)
        return numbers + jax.lax.axis_index("node") * own if self.axis == "node" else numbers

    def filled_up(self, count: int) -> int:
        """The next multiple of the number of devices."""
        return -(-count // self.mesh.size) * self.mesh.size


class Gathered(NamedTuple):
    """Signals of all nodes on one device.

    Attributes:
        everybody: [all nodes, ...].
    """

    everybody: jax.Array

    def at(self, numbers: jax.Array) -> jax.Array:
        """[links, ...] of the senders with these numbers."""
        return self.everybody[numbers]

    def weighed(self, numbers: jax.Array, *weights: jax.Array) -> tuple[jax.Array, ...]:
        """[...] weighed sums, of signals that are read once for all of them: what costs is memory."""
        neighbours = self.everybody[numbers]
        return tuple(jnp.tensordot(one, neighbours, axes=1) for one in weights)


class Exchange(NamedTuple):
    """Between the shards of a layout."""

    layout: Layout

    def gather(self, values: jax.Array) -> jax.Array:
        """[all nodes, ...] from every device's own nodes."""
        return jax.lax.all_gather(values, "node", tiled=True) if self.layout.axis == "node" else values

    def reach(self, values: jax.Array) -> "Gathered":
        """Everybody's signals, from every device's own nodes."""
        return Gathered(self.gather(values))

    def total(self, values: jax.Array) -> jax.Array:
        """The sum of [own nodes, ...] over all devices, fillers left out."""
        if self.layout.axis == "seed":
            return values.sum(axis=0)
        mine = jax.lax.axis_index("node") * len(values) + np.arange(len(values)) < self.layout.nodes
        shape = (-1,) + (1,) * (values.ndim - 1)
        return jax.lax.psum((values * mine.reshape(shape)).sum(axis=0), "node")


def layout(nodes: int, seeds: int, needed_bytes: int) -> Layout:
    """A layout for a run that needs so many bytes for data and models of one seed."""
    use_compile_cache()
    devices = jax.devices()
    if needed_bytes <= _SMALL and seeds >= len(devices):
        return Layout(Mesh(np.array(devices), ("seed",)), "seed", nodes, seeds)
    return Layout(Mesh(np.array(devices[:nodes]), ("node",)), "node", nodes, seeds)
