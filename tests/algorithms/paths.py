"""Follows a method through its real init, send, channel and update, on noise that is given as numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from murmurcast._check import FloatArray
from murmurcast.algorithms.base import Algorithm, Draw, Local, state_of
from murmurcast.channels.base import Moment
from murmurcast.engine import draws, node
from murmurcast.engine.sharding import Gathered

Gradient = Callable[[Any, Any, Any], Any]  # of node, epoch (0 for what is taken at the start) and point
Fresh = Callable[[str, Draw], Any]  # [epochs, nodes, ...] by name and kind
DrawnPerRound = list[dict[str, Any]]
Tables = list[tuple[Any, Any]]  # sending and receiving, round by round
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}  # paths are short: compiling is what takes time


class Path(NamedTuple):
    """Where a method goes.

    Attributes:
        states: The method's state after every epoch, each part [epochs, nodes, ...].
        sent: What left the antennas, round by round, each [epochs, nodes, ...] or [epochs, nodes, links, ...].
    """

    states: Any
    sent: tuple[Any, ...]


class OneShard:
    """All nodes are here."""

    @staticmethod
    def gather(values: jax.Array) -> jax.Array:
        return values

    @staticmethod
    def reach(values: jax.Array) -> Gathered:
        return Gathered(values)

    @staticmethod
    def total(values: jax.Array) -> jax.Array:
        return values.sum(axis=0)


class LocalWork(NamedTuple):
    """What nodes can do by themselves: gradients at public and at private points, and the way back into Omega."""

    public: Gradient
    private: Gradient
    project: Callable[[Any], Any] = lambda point: point

    def of(self, number: Any, epoch: Any) -> Local:
        return Local(partial(self.public, number, epoch), partial(self.private, number, epoch), self.project)


def draws_of(algorithm: Algorithm, fresh: Fresh) -> DrawnPerRound:
    """The draws of every round, each [epochs, nodes, ...]; those that are made again are the same numbers."""
    built: dict[tuple[int, int], Any] = {}

    def drawn(name: str, source: draws.DrawnFrom) -> Any:
        place = (source.round_number, source.draw_number)
        if place not in built:
            built[place] = fresh(name, source.draw)
        values = built[place]
        ago = source.epochs_ago
        return values if not ago else jnp.concatenate([jnp.zeros_like(values[:ago]), values[:-ago]])

    return [
        {name: drawn(name, source) for name, source in draws.sources(algorithm, number).items()}
        for number in range(len(algorithm.rounds))
    ]


def tables_of(algorithm: Algorithm) -> Tables:
    """What the rounds send and receive by."""
    return [(one.sending, one.receiving) for one in algorithm.rounds]


def trace(
    algorithm: Algorithm,
    drawn: DrawnPerRound,
    start: Any,
    work: LocalWork,
    receiver_noise: Any = None,
    tables: Tables | None = None,
) -> Path:
    """The path as a function of its draws, and of other tables than its own; start is [nodes, ...]."""
    nodes, epochs = len(start), algorithm.epochs
    numbers = jnp.arange(nodes)
    quiet = jnp.zeros((epochs, *jnp.shape(start))) if receiver_noise is None else receiver_noise
    by = jax.tree.map(jnp.asarray, tables_of(algorithm) if tables is None else tables)
    begin = jax.vmap(lambda number, point: algorithm.init(point, work.of(number, 0)))(numbers, start)

    def step(states: Any, now: Any) -> tuple[Any, Any]:
        epoch, here, noise = now
        signals = []
        for one, (sending, receiving), draw in zip(algorithm.rounds, by, here, strict=True):
            sent = jax.vmap(one.send)(node.constants_at(sending, epoch, nodes), states, draw)
            heard = heard_by(one.channel, sent, Moment(epoch, numbers, lambda number: noise[number][None]))

            def update(number: Any, *stated: Any, receive: Any = one.update) -> Any:
                return state_of(receive(*stated, work.of(number, epoch)))

            states = jax.vmap(update)(numbers, node.constants_at(receiving, epoch, nodes), states, sent, heard)
            signals.append(sent)
        return states, (states, tuple(signals))

    _, (states, sent) = jax.lax.scan(step, begin, (jnp.arange(1, epochs + 1), drawn, quiet))
    return Path(states, sent)


def heard_by(channel: Any, sent: jax.Array, moment: Moment) -> jax.Array:
    """What every node hears of signals that have no seeds: [nodes, ...] or [nodes, neighbours, ...]."""
    seeds_at = 1 if channel.signals is None else 2
    lists, hear = channel.deliver(
        jax.tree.map(jnp.asarray, channel.lists(len(sent))), jnp.expand_dims(sent, seeds_at), moment, OneShard()
    )
    return jnp.squeeze(jax.vmap(hear)(lists), 1 if channel.neighbours is None else 2)


def follow(
    algorithm: Algorithm, fresh: Fresh, start: FloatArray, work: LocalWork, receiver_noise: FloatArray | None = None
) -> Path:
    """The path in float64, as arrays of NumPy."""
    with jax.enable_x64(True):
        drawn = jax.tree.map(jnp.asarray, draws_of(algorithm, fresh))
        path = jax.jit(
            lambda given: trace(algorithm, given, jnp.asarray(start), work, receiver_noise),
            compiler_options=QUICK_TO_COMPILE,
        )(drawn)
        result: Path = jax.tree.map(np.asarray, path)
    return result


def follow_by_tables(
    algorithm: Algorithm, fresh: Fresh, start: FloatArray, work: LocalWork
) -> Callable[[Tables], Path]:
    """The same for other tables of the same shapes, compiled once."""
    with jax.enable_x64(True):
        drawn = jax.tree.map(jnp.asarray, draws_of(algorithm, fresh))
    compiled = jax.jit(
        lambda tables, given: trace(algorithm, given, jnp.asarray(start), work, tables=tables),
        compiler_options=QUICK_TO_COMPILE,
    )

    def path(tables: Tables) -> Path:
        with jax.enable_x64(True):
            result: Path = jax.tree.map(np.asarray, compiled(jax.tree.map(jnp.asarray, tables), drawn))
        return result

    return path


def said(algorithm: Algorithm, path: Path) -> list[FloatArray]:
    """What nodes said, round by round: what left the antennas over how loud it was; 0 where there is no link."""
    result = []
    for one, sent in zip(algorithm.rounds, path.sent, strict=True):
        loud = np.asarray(one.sending.amplitude)
        loud = loud.reshape(*loud.shape, *(1,) * (sent.ndim - loud.ndim))
        result.append(np.divide(sent, loud, out=np.zeros_like(sent), where=loud > 0))
    return result


def no_draws(name: str, draw: Draw) -> Any:
    """Of methods that have none."""
    raise AssertionError(f"{name} is drawn: {draw}")


def random_draws(gains: Any, epochs: int, dim: int, seed: int = 0) -> Fresh:
    """Normal draws of every kind; those of a pair are the same at both ends, with opposite signs."""
    rng, nodes = np.random.default_rng(seed), gains.shape[0]
    rows = [gains.indices[gains.indptr[i] : gains.indptr[i + 1]].tolist() for i in range(nodes)]

    def fresh(name: str, draw: Draw) -> FloatArray:  # noqa: ARG001
        if draw.per == "node":
            return rng.normal(size=(epochs, nodes, dim))
        result = np.zeros((epochs, nodes, max(map(len, rows)), dim))
        both = rng.normal(size=(epochs, nodes, nodes, dim))
        for i, row in enumerate(rows):
            for slot, j in enumerate(row):
                one_end = both[:, min(i, j), max(i, j)] * (1 if i < j else -1)
                result[:, i, slot] = both[:, i, j] if draw.per == "link" else one_end
        return result

    return fresh
