"""The auditor's look at secret coins: do records join as often, and as independently, as a promise counts on?

Canaries bring coins of their own, so guesses show nothing of the records'. Here a node holds nothing but copies of one
record, and in another world of another one: its gradients then differ by as many times one record's share as records
joined. Over many epochs the number that joined must have the binomial distribution of the claimed coins;
that of a batch of a fixed size, or of a sum that is divided by how many joined, does not vary. With one record changed
alone, gradients differ when it joined: at no place more often than the coin falls.
"""

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from murmurcast._check import FloatArray
from murmurcast.audits.hostile import direction, partition_of, with_partition
from murmurcast.audits.noise_checks import Check
from murmurcast.data.partition import Partition, Sorted
from murmurcast.privacy.releases import Releases
from murmurcast.problems.base import Data, Problem
from murmurcast.problems.sampling import Sampling

NAME = "coins"
_EPOCHS = 1000  # that are tried
_AT_ONCE = (50, 20, 5, 1)  # divisors: another size for the last ones would be another program
_MAX_BYTES = 2**29  # of records' gradients that are held at once
_CENTRAL = 0.5  # probability, at least, of the sizes that are counted as near the expected one
_JOINED = 1e-3  # of one record's share: less is rounding
_DISTINCT = 0.1  # of a gradient: where two records' differ by less, float32 could not count who joined
_POINT = 0.1  # the size of the model at which gradients are taken


class _Node(NamedTuple):
    """A node that holds nothing but copies of one record.

    Attributes:
        size: How many.
        rate: Of the coin that is claimed.
        worlds: Its data in one world, and in the other.
        changed: Its data in the one world but for one record, by the record's place.
    """

    size: int
    rate: float
    worlds: tuple[Data, Data]
    changed: dict[int, Data]


def counted_on(claims: tuple[Releases, ...], sampling: Sampling | None) -> Sampling | None:
    """The coins that a promise counts on; None where it holds for any sample."""
    return sampling if any(part.law.name == "sampled gaussian" for part in claims) else None


def unseen(claimed: Sampling | None, checks: tuple[Check, ...]) -> tuple[str, ...]:
    """Where the audit could not look."""
    return () if claimed is None or checks else ("the coins by which records join: no record could be seen to",)


def check_coins(problem: Problem, claimed: Sampling | None, level: float, seed: int = 0) -> tuple[Check, ...]:
    """One check of the largest and of the smallest node; none where nothing is claimed, or to be seen.

    Args:
        problem: Whose gradients are taken.
        claimed: How records join, as a promise counts on it.
        level: The probability with which an honest system is accused, at most.
        seed: Of the record, its places and the coins.
    """
    partition = partition_of(problem)
    if claimed is None or partition is None:
        return ()
    rng = np.random.default_rng([seed, 2])
    model = jnp.asarray(_POINT * rng.standard_normal(problem.shape), jnp.float32)
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), _EPOCHS)
    copies = _copies(problem, partition, claimed, rng)
    # Arguments, not constants of the program: then one compiled program serves all systems of a size.
    at_once = _at_once(problem, claimed, partition)
    compiled = jax.jit(lambda *given: _apart(copies.problem, at_once, *given))
    chances: list[tuple[float, str]] = []
    for place in range(len(copies.sizes)):
        share = copies.share(place, model) / claimed.batch
        if not share > 0:
            return ()
        chances += _chances(copies.node(place, claimed, rng), partial(compiled, keys, model), share)
    least, words = min(chances)
    probability = min(1.0, least * len(chances))
    return (Check(NAME, len(chances), probability, words, probability < level),)


def _chances(node: _Node, apart: Any, share: float) -> list[tuple[float, str]]:
    """How probable what was seen of a node is, test by test.

    Args:
        node: With copies of one record.
        apart: [epochs] how far apart the gradients of two worlds lie.
        share: How far one record that joins moves a gradient from one world to the other.
    """
    who = f"of the node with {node.size} records"
    joined = np.rint(np.asarray(apart(*node.worlds), np.float64) / share)
    total, whole = int(joined.sum()), node.size * len(joined)
    words = f"{total / whole:.3g} {who} join an epoch on average, and coins of {node.rate:.3g} are claimed"
    chances = [(float(binom.sf(total - 1, whole, node.rate)), words)]
    if node.rate < 1:
        chances.append(_of_sizes(joined, node, who))
    for place, data in node.changed.items():
        times = int(np.sum(np.asarray(apart(node.worlds[0], data)) > _JOINED * share))
        words = f"record {place} {who} joins {times} of {len(joined)} epochs, and coins of {node.rate:.3g} are claimed"
        chances.append((float(binom.sf(times - 1, len(joined), node.rate)), words))
    return chances


def _of_sizes(joined: FloatArray, node: _Node, who: str) -> tuple[float, str]:
    """Whether sizes are near the expected one as often as those of independent coins are, neither more nor less."""
    law, expected, widths = binom(node.size, node.rate), round(node.size * node.rate), np.arange(node.size + 1)
    inside = law.cdf(expected + widths) - law.cdf(expected - widths - 1)
    width = int(widths[np.argmax(inside >= _CENTRAL)])
    near = int(np.sum(np.abs(joined - expected) <= width))
    count, probability = len(joined), float(inside[width])
    tail = min(binom.cdf(near, count, probability), binom.sf(near - 1, count, probability))
    words = f"{near} of {count} epochs {who} have within {width} of the expected number, {probability:.0%} should have"
    return min(1.0, 2 * float(tail)), words


class _Copies(NamedTuple):
    """Nodes as large as the largest and the smallest, with copies of one record.

    Attributes:
        problem: On them, with copies of the one record.
        other: The same with copies of the other.
        sizes: Of the nodes.
    """

    problem: Problem
    other: Problem
    sizes: tuple[int, ...]

    def node(self, place: int, claimed: Sampling, rng: np.random.Generator) -> _Node:
        """One of the nodes, with a record changed at its first place, its last, and one between."""
        size = self.sizes[place]
        one, other = (_of_node(each.local_data(), place) for each in (self.problem, self.other))
        places = (0, size - 1, int(rng.integers(size)))
        changed = {at: jax.tree.map(lambda mine, its, at=at: _exchanged(mine, its, at), one, other) for at in places}
        return _Node(size, claimed.rates[claimed.sizes.index(size)], (one, other), changed)

    def share(self, place: int, model: jax.Array) -> float:
        """How far the mean gradient of all records lies from that of the other world: as far as one record's.

        0 where that is too little to count by, as under a loss that looks at no record, or where coins cannot be left.
        """
        key = jax.random.key(0)
        gradients = []
        for each in (self.problem, self.other):
            plain = _without_coins(each)
            if plain is None:
                return 0.0
            gradients.append(jnp.ravel(plain.gradient_at_public(model, _of_node(plain.local_data(), place), key)))
        apart, size = (
            float(jnp.linalg.norm(gradients[0] - gradients[1])),
            float(jnp.linalg.norm(jnp.stack(gradients), axis=1).max()),
        )
        return apart if apart > _DISTINCT * size else 0.0


def _copies(problem: Problem, partition: Partition, claimed: Sampling, rng: np.random.Generator) -> _Copies:
    """For the nodes whose coins fall least and most often."""
    sizes = tuple(sorted({max(claimed.sizes), min(claimed.sizes)}, reverse=True))
    records = direction(rng, (2, partition.dataset.features.shape[1]), 1.0)
    targets = (0, 1) if partition.dataset.classes is not None else (1.0, -1.0)
    one, other = (
        with_partition(problem, _shared_out(partition, record, target, sizes))
        for record, target in zip(records, targets, strict=True)
    )
    return _Copies(one, other, sizes)


def _shared_out(partition: Partition, record: NDArray[np.float32], target: float, sizes: tuple[int, ...]) -> Partition:
    """Nodes of these sizes, all of whose records are this one."""
    dataset, total = partition.dataset, sum(sizes)
    features = np.tile(record, (total, 1))
    targets: Any = np.full(total, target, dataset.targets.dtype)
    data = replace(
        dataset, features=features, targets=targets, optimum=None, holders=None, preprocessed=False
    )  # rows of our own
    ends = np.cumsum(sizes)
    rows = tuple(np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True))
    return Partition(dataset=data, rule=Sorted(), rows=rows)


def _without_coins(problem: Any) -> Any:
    """The same problem where all records join; None where a problem of somebody's own does not say how."""
    known = {field.name for field in fields(problem)} if is_dataclass(problem) else set()
    return replace(problem, batch=None, sampling="fixed") if {"batch", "sampling"} <= known else None


def _at_once(problem: Problem, claimed: Sampling, partition: Partition) -> int:
    """Of how many epochs gradients are taken together: every record that joins may have one as long as the model."""
    each = 4 * claimed.room * (problem.dim + partition.dataset.features.shape[1])
    return next((count for count in _AT_ONCE if count * each <= _MAX_BYTES), 1)


def _of_node(data: Data, place: int) -> Data:
    own: Data = jax.tree.map(lambda leaf: jnp.asarray(leaf[place]), data)
    return own


def _exchanged(mine: jax.Array, other: jax.Array, at: int) -> jax.Array:
    """An array of a node with the entry of one record from its other world."""
    return mine if mine.ndim == 0 else jnp.asarray(mine.at[at].set(other[at]))


def _apart(problem: Problem, at_once: int, keys: jax.Array, model: jax.Array, one: Data, other: Data) -> jax.Array:
    """[epochs] how far apart the gradients of two worlds lie, the coins being the same in both."""

    def difference(key: jax.Array) -> jax.Array:
        first, second = (problem.gradient_at_public(model, mine, key) for mine in (one, other))
        return jnp.asarray(jnp.linalg.norm(jnp.ravel(first - second)))

    distances: jax.Array = jax.lax.map(difference, keys, batch_size=at_once)
    return distances
