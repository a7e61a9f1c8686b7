"""The draws of a round: which key each has, and whose numbers it is drawn by."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from murmurcast.algorithms.base import Again, Algorithm, Draw, Round
from murmurcast.channels.base import most_links, padded
from murmurcast.engine import noise
from murmurcast.errors import Error

_LAWS: dict[str, Callable[..., jax.Array]] = {"normal": noise.normal, "laplace": noise.laplace}


class Pairs(NamedTuple):
    """Every node's pairs of neighbours.

    Attributes:
        number: [nodes, neighbours] of the pair, the same at both ends.
        sign: [nodes, neighbours] 1 at the end with the smaller number, -1 at the other, 0 for filling.
    """

    number: Any
    sign: Any


class DrawnFrom(NamedTuple):
    """Where a draw comes from.

    Attributes:
        draw: What is drawn.
        round_number: In which round it is made, from 0.
        draw_number: As which of the round's draws, from 0.
        epochs_ago: How many epochs ago.
    """

    draw: Draw
    round_number: int
    draw_number: int
    epochs_ago: int


def sources(algorithm: Algorithm, round_number: int) -> dict[str, DrawnFrom]:
    """Where the draws of a round come from, by name."""
    one = algorithm.rounds[round_number]
    drawn_from = {}
    for number, (name, draw) in enumerate(one.draws.items()):
        drawn_from[name] = (
            DrawnFrom(draw, round_number, number, 0)
            if isinstance(draw, Draw)
            else _earlier(algorithm, round_number, name, draw)
        )
    return drawn_from


def _earlier(algorithm: Algorithm, round_number: int, name: str, again: Again) -> DrawnFrom:
    names = [one.name for one in algorithm.rounds]
    made_in = round_number if again.of_round is None else names.index(again.of_round) if again.of_round in names else -1
    draws = algorithm.rounds[made_in].draws if made_in >= 0 else {}
    draw = draws.get(again.draw)
    made_before = again.epochs_ago > 0 or (again.epochs_ago == 0 and made_in < round_number)
    if not isinstance(draw, Draw) or not made_before:
        raise Error(
            f'the draw "{name}" of round "{names[round_number]}" is to be "{again.draw}" again, not made before',
            hint="name a fresh draw of this round of an earlier epoch, or of an earlier round",
        )
    return DrawnFrom(draw, made_in, list(draws).index(again.draw), again.epochs_ago)


def words(one: Round) -> str:
    """The draws of a round as the ledger has them."""

    def of(name: str, draw: Draw | Again) -> str:
        if isinstance(draw, Again):
            where = "" if draw.of_round is None else f" of {draw.of_round}"
            return f"{name}: {draw.draw}{where} again, {draw.epochs_ago} epochs ago"
        ends = " with opposite signs" if draw.per == "pair" and draw.opposite else ""
        return f"{name}: {draw.law} of a {draw.per}{ends}"

    return "; ".join(of(name, draw) for name, draw in one.draws.items()) or "none"


def owners(draw: Draw, gains: csr_array) -> tuple[int, ...]:
    """(how many,) where a node has several of a draw, one for each that hears it; () where it has one."""
    return () if draw.per == "node" else (most_links(gains),)


def pairs(algorithm: Algorithm) -> Pairs | None:
    """Every node's pairs of neighbours, where a draw needs them."""
    per_pair = any(isinstance(d, Draw) and d.per == "pair" for one in algorithm.rounds for d in one.draws.values())
    if not per_pair:
        return None
    network = algorithm.setup.network
    network.require_two_way(f"{algorithm.name}, which draws noise for pairs of neighbours,")
    links = network.gains.tocoo()
    sender, receiver = links.coords
    first, second = np.minimum(sender, receiver), np.maximum(sender, receiver)
    # In 64 bits: two pairs with one number would share their noise.
    _, number = np.unique(first.astype(np.int64) * network.nodes + second, return_inverse=True)
    sign = np.where(sender < receiver, 1.0, -1.0)
    return Pairs(padded(network.gains, number.astype(np.int32)), padded(network.gains, sign))


def draw_all(
    source: DrawnFrom, roots: jax.Array, epoch: jax.Array, numbers: jax.Array, place: tuple[Any, ...], dtype: Any
) -> jax.Array:
    """[nodes, owners..., seeds, size] one draw of all nodes of a shard.

    Args:
        source: Where it comes from.
        roots: [seeds, 2] keys of the seeds.
        epoch: The epoch that asks.
        numbers: [nodes] numbers of the nodes.
        place: (how many numbers a draw has, how many owners there are at a node, the nodes' pairs).
        dtype: Of the draws.
    """
    size, several, own_pairs = place
    draw, then = source.draw, epoch - source.epochs_ago
    # Seed by seed: over all seeds at once, XLA derives the keys again for every number that is drawn.
    keys = jax.vmap(lambda root: noise.draw_key(root, then, source.round_number, source.draw_number))(roots)
    stream, law = noise.stream(keys, size), _LAWS[draw.law]
    owner = numbers
    if draw.per == "link":
        owner = (numbers[:, None] * several[0] + jnp.arange(several[0])).ravel()
    elif draw.per == "pair":
        owner = own_pairs.number.ravel()
    # In a loop of its own: what a loop writes is kept, while plain code would draw anew wherever noise is used.
    drawn = jax.lax.map(lambda number: law(stream, number, dtype), owner)
    drawn = drawn.reshape(len(numbers), *several, len(roots), size)
    if draw.per == "pair":
        sign = own_pairs.sign if draw.opposite else jnp.abs(own_pairs.sign)
        drawn = drawn * sign[:, :, None, None].astype(dtype)
    return drawn if not source.epochs_ago else jnp.where(then >= 1, drawn, 0)


class Drawn(NamedTuple):
    """The draws of a round.

    Attributes:
        values: By name, [nodes, owners..., seeds, ...].
        axes: By name, where behind the nodes the axis of seeds is.
    """

    values: dict[str, jax.Array]
    axes: dict[str, int]


def of_round(
    algorithm: Algorithm, number: int, shape: tuple[int, ...], roots: jax.Array, own_pairs: Any, dtype: Any
) -> "DrawRound":
    """What draws a round for some nodes."""
    gains, size = algorithm.setup.network.gains, math.prod(shape)

    def draw(epoch: jax.Array, numbers: jax.Array, secret: jax.Array | None = None) -> Drawn:
        values, axes = {}, {}
        for name, source in sources(algorithm, number).items():
            several = owners(source.draw, gains)
            if source.draw.law == "discrete gaussian" and secret is not None:
                flat = secret
            else:
                flat = draw_all(source, roots, epoch, numbers, (size, several, own_pairs), dtype)
            values[name] = flat.reshape(len(numbers), *several, len(roots), *shape)
            axes[name] = len(several)
        return Drawn(values, axes)

    return draw


class DrawRound(Protocol):
    """Draws a round."""

    def __call__(self, epoch: jax.Array, numbers: jax.Array, secret: jax.Array | None = None, /) -> Drawn:
        """For the nodes of these numbers; `secret` are the integers of secure noise, which come from the host."""
        ...


def receiver_noise(shape: tuple[int, ...], number: int, roots: jax.Array, epoch: jax.Array, dtype: Any) -> Any:
    """What receivers' own noise of a round is drawn with; meets `ReceiverNoise` of the channels."""

    def of(receiver: jax.Array) -> jax.Array:
        keys = noise.receiver_key(roots, epoch, number)
        drawn = noise.coarse_normal(noise.stream(keys, math.prod(shape)), receiver, dtype)
        return drawn.reshape(len(roots), *shape)

    return of
