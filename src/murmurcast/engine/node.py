"""One node in one round: its constants, what it can do locally, what it sends, what it makes of what it hears.

The compiled loop runs this for all nodes and seeds at once, an auditor replays it, and a process of its own could run
it for one node: all go through the same functions.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from murmurcast.algorithms.base import Info, Local, Round, Updated, state_of
from murmurcast.algorithms.tables import row_of
from murmurcast.engine import noise
from murmurcast.problems.base import Data, Problem
from murmurcast.problems.trust import engine_clip


class Received(NamedTuple):
    """What a round leaves at a node.

    Attributes:
        state: Its next state.
        info: Metrics for people, under the round's name.
    """

    state: Any
    info: Info


def constants_at(tables: Any, epoch: Any, nodes: int) -> Any:
    """The tables' entries of all nodes in an epoch, each [nodes] or [nodes, neighbours]."""

    def entry(table: Any) -> Any:
        row = row_of(table, epoch)
        return row if row.ndim else jnp.broadcast_to(row, (nodes,))

    return jax.tree.map(entry, tables)


def local(problem: Problem, mine: Data, key: jax.Array) -> Local:
    """What only this node can do: gradients on its data, clipped, for the minibatch that the key chooses."""
    clip = engine_clip(problem)
    return Local(
        lambda point: clip.of_node(problem.gradient_at_public(point, mine, key)),
        lambda point: clip.of_node(problem.gradient_at_private(point, mine, key)),
        problem.project,
    )


def starts(problem: Problem, roots: Any, dtype: Any) -> NDArray[Any]:
    """[seeds, ...] where all nodes begin, or [seeds, nodes, ...] where each has a point of its own."""
    constants = []

    def of_seed(key: jax.Array) -> jax.Array:
        point = problem.start(jax.random.wrap_key_data(key))
        if isinstance(point, np.ndarray):
            constants.append(point)
        return jnp.asarray(point).astype(dtype)

    jax.eval_shape(of_seed, jax.ShapeDtypeStruct((2,), np.uint32))
    if constants:
        return np.broadcast_to(constants[0].astype(dtype), (len(roots), *constants[0].shape))
    return np.asarray(jax.jit(lambda roots: jax.vmap(of_seed)(noise.start_key(roots)))(roots))


def points(problem: Problem, roots: Any, numbers: NDArray[np.int32], dtype: Any) -> NDArray[Any]:
    """[nodes, seeds, ...] where the nodes of these numbers begin."""
    start_points = starts(problem, roots, dtype)
    if start_points.ndim == 1 + len(problem.shape):
        return np.broadcast_to(start_points, (len(numbers), *start_points.shape))
    return start_points.swapaxes(0, 1)[numbers]


def transmit(one_round: Round, here: Any, state: Any, drawn: dict[str, jax.Array]) -> jax.Array:
    """All that leaves the node in this round."""
    return one_round.send(here, state, drawn)


def receive(one_round: Round, here: Any, state: Any, sent: jax.Array, heard: jax.Array, local: Local) -> Received:
    """The node's next state, from its own signal and from what it heard."""
    following = one_round.update(here, state, sent, heard, local)
    info = following.info if isinstance(following, Updated) else {}
    return Received(state_of(following), {f"{one_round.name}_{name}": value for name, value in info.items()})
