"""Follows a method through its real init, send, channel and update, on noise that is given as numbers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw, Local, state_of
from murmurcast.channels.base import Moment, padded
from murmurcast.engine import draws, node


class OneShard:
    """All nodes are here."""

    @staticmethod
    def gather(values: Any) -> Any:
        return values

    @staticmethod
    def total(values: Any) -> Any:
        return values.sum(axis=0)


class Given:
    """Noise as numbers: see the note of tests/reference/methods.json."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.numbers = {name: np.array(inputs[name]) for name in inputs if name.startswith(("normal_", "laplace_"))}
        gains = np.array(inputs["gains"])
        self.neighbours = [np.flatnonzero(row) for row in gains]
        self.most = max(map(len, self.neighbours))

    def draw(self, name: str, draw: Draw, epoch: int) -> FloatArray:
        """[nodes, ...] of all nodes in an epoch."""
        if draw.per == "node":
            if name == "itself":
                return np.einsum("iid->id", self.numbers["normal_per_link"][epoch - 1])
            return np.asarray(self.numbers[f"{draw.law}_per_node"][epoch - 1])
        nodes, dim = self.numbers["normal_per_node"].shape[1:]
        found = np.zeros((nodes, self.most, dim))
        for i, neighbours in enumerate(self.neighbours):
            for place, j in enumerate(neighbours):
                if draw.per == "link":
                    found[i, place] = self.numbers["normal_per_link"][epoch - 1, i, j]
                else:
                    pair = self.numbers["normal_per_pair"][epoch - 1, min(i, j), max(i, j)]
                    found[i, place] = pair if i < j else -pair
        return found


def follow(
    algorithm: Algorithm, given: Given, start: FloatArray, gradients: tuple[Any, Any], project: Any, epochs: int
) -> list[tuple[Any, list[FloatArray]]]:
    """(state, what was sent in every round) after every epoch; gradients of (node, point), at public and private points."""
    nodes, (public, private) = len(start), gradients

    def local(i: int) -> Local:
        return Local(lambda point: public(i, point), lambda point: private(i, point), project)

    states = [algorithm.init(jnp.asarray(start[i]), local(i)) for i in range(nodes)]
    trace = []
    for epoch in range(1, epochs + 1):
        signals = []
        for number, one in enumerate(algorithm.rounds):
            here, there = (
                node.constants_at(jax.tree.map(jnp.asarray, t), epoch, nodes) for t in (one.sending, one.receiving)
            )
            drawn = {
                name: given.draw(name, source.draw, epoch - source.epochs_ago)
                for name, source in draws.sources(algorithm, number).items()
            }
            sent = jnp.stack(
                [
                    one.send(_at(here, i), states[i], {name: jnp.asarray(values[i]) for name, values in drawn.items()})
                    for i in range(nodes)
                ]
            )
            carried = sent[:, :, None] if one.channel.signals is not None else sent[:, None]
            noise = given.numbers["normal_per_receiver"][epoch - 1]
            moment = Moment(jnp.asarray(epoch), jnp.arange(nodes), lambda i, noise=noise: jnp.asarray(noise)[i][None])
            lists, hear = one.channel.deliver(
                jax.tree.map(jnp.asarray, one.channel.lists(nodes)), carried, moment, OneShard()
            )
            heard = jax.vmap(hear)(lists)
            squeezed = heard[:, :, 0] if one.channel.neighbours is not None else heard[:, 0]
            states = [
                state_of(one.update(_at(there, i), states[i], sent[i], squeezed[i], local(i))) for i in range(nodes)
            ]
            signals.append(np.asarray(sent))
        trace.append((jax.tree.map(lambda *leaves: np.stack(leaves), *states), signals))
    return trace


def _at(tables: Any, i: int) -> Any:
    return jax.tree.map(lambda table: table[i], tables)


__all__ = ["Given", "follow", "padded"]
