"""Problems whose records do not join an epoch as the promise counts on, though their ledgers would say so."""

import jax
import jax.numpy as jnp

from murmurcast.problems.base import minibatch
from murmurcast.problems.examples import Rows
from murmurcast.problems.sampling import joined
from murmurcast.problems.softmax import SoftmaxRegression


def taken(mine: Rows, picked: jax.Array, present: jax.Array) -> Rows:
    """Some of a node's rows."""
    return Rows(mine.features[picked], None, mine.targets[picked], mine.reach[picked], present, mine.size)


class _Faulty(SoftmaxRegression):
    """Where coins are claimed, `by_coins` says who joins instead."""

    def drawn(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        return super().drawn(mine, key) if self.sampled is None else self.by_coins(mine, key)

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        raise NotImplementedError

    @property
    def expected(self) -> int:
        assert self.batch is not None
        return self.batch

    def counted(self, mine: Rows) -> jax.Array:
        return jnp.asarray(self.expected, mine.features.dtype)

    def those(self, mine: Rows, result: jax.Array) -> tuple[Rows, jax.Array]:
        """The rows that were found, in as much room as there is."""
        assert self.sampled is not None
        (picked,) = jnp.nonzero(result, size=self.sampled.room, fill_value=0)
        present = (jnp.arange(self.sampled.room) < jnp.sum(result)).astype(mine.present.dtype)
        return taken(mine, picked, present), self.counted(mine)


class JoinsMoreOften(_Faulty):
    """By coins of a larger probability than is claimed."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        often = round(1.25 * self.expected)
        return self.those(mine, joined(key, mine.size, often, len(mine.present)))


class FixedSize(_Faulty):
    """Batches of a fixed size, drawn without replacement: every record joins as often as is claimed."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        picked = minibatch(key, mine.size, self.expected)
        return taken(mine, picked, mine.present[picked]), self.counted(mine)


class DividesByThoseWhoJoined(_Faulty):
    """The sum over the realised size, which tells it and moves all others' shares."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        rows, _ = SoftmaxRegression.drawn(self, mine, key)
        return rows, jnp.maximum(jnp.sum(rows.present), 1)


class FirstRecordsJoin(_Faulty):
    """As many as coins say, but always the first of the file."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        count = jnp.sum(joined(key, mine.size, self.expected, len(mine.present)))
        return self.those(mine, jnp.arange(len(mine.present)) < count)


class SameCoinsAlways(_Faulty):
    """One draw of coins for all epochs."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:  # noqa: ARG002
        return self.those(mine, joined(jax.random.key(0), mine.size, self.expected, len(mine.present)))


class LastRecordAlwaysJoins(_Faulty):
    """One record that takes part in every epoch."""

    def by_coins(self, mine: Rows, key: jax.Array) -> tuple[Rows, jax.Array]:
        result = joined(key, mine.size, self.expected, len(mine.present))
        return self.those(mine, result | (jnp.arange(len(mine.present)) == mine.size - 1))
