"""Records that join by coins: how often, how independently, for how many there is room, and what a gradient is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, chi2

from murmurcast.data.datasets import least_squares, logistic
from murmurcast.errors import Error
from murmurcast.problems.model import Model
from murmurcast.problems.per_example import Example
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.sampling import joined, sampling
from murmurcast.problems.softmax import SoftmaxRegression

BATCH = 12


def problem(batch: int | None = BATCH, **options: Any) -> SoftmaxRegression:
    data = logistic(examples=250, features=5, classes=3, seed=4).partition("shards", nodes=3, seed=1)
    return SoftmaxRegression(data=data, clip=0.3, l2=0.01, batch=batch, **options)


def node(one: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[number]), one.local_data())


def test_coins_fall_as_often_as_they_should_and_independently() -> None:
    size, rows, epochs = 60, 64, 4000
    keys = jax.random.split(jax.random.key(3), epochs)
    result = np.asarray(jax.vmap(lambda key: joined(key, jnp.asarray(size), BATCH, rows))(keys))
    assert not result[:, size:].any()  # what fills up never joins
    rate, result = BATCH / size, result[:, :size]
    expected = epochs * rate * (1 - rate)
    assert chi2.sf(np.sum((result.sum(axis=0) - epochs * rate) ** 2) / expected, size) > 1e-4
    # Sizes are binomial: neither fixed nor wild; and one epoch says nothing of the next.
    assert result.sum(axis=1).var() == pytest.approx(size * rate * (1 - rate), rel=0.15)
    centred = result - rate
    next_to = np.mean(centred[1:] * centred[:-1]) / (rate * (1 - rate))
    assert abs(next_to) < 5 / np.sqrt(result.size)
    pairs = np.corrcoef(result.T)[np.triu_indices(size, 1)]
    assert np.abs(pairs).max() < 5.5 / np.sqrt(epochs)


def test_all_join_where_the_batch_is_everything() -> None:
    assert bool(joined(jax.random.key(0), jnp.asarray(7), 7, 7).all())


def test_room_is_fixed_beforehand_and_hardly_ever_runs_out() -> None:
    sizes = np.array([40, 1000, 300])
    result = sampling(BATCH, sizes)
    assert result.rates == tuple(BATCH / sizes)
    assert 2 * BATCH < result.room < 100
    exact = max(float(binom.sf(result.room, size, BATCH / size)) for size in sizes)
    assert result.overflow == pytest.approx(exact, rel=1e-6, abs=1e-40)
    assert 0 < result.overflow <= 2.0**-64
    assert result._replace(room=result.room - 1).overflow > 2.0**-64  # no more than is needed
    assert sampling(30, np.array([30, 30])).room == 30
    assert sampling(30, np.array([30, 30])).overflow == 0


@pytest.mark.parametrize("kind", ["softmax", "ridge", "model"])
@pytest.mark.slow
def test_a_gradient_is_the_clipped_sum_of_those_who_joined_over_the_expected_number(kind: str) -> None:
    one: Any = problem(sampling="poisson")
    if kind == "ridge":
        data = least_squares(examples=150, features=5, seed=1).partition("quantity", nodes=3, seed=2)
        one = RidgeRegression(data=data, clip=0.3, batch=6, sampling="poisson")
    if kind == "model":

        def loss(w: jax.Array, example: Example) -> jax.Array:
            return jnp.square(jnp.dot(w, example.features) - example.target)

        one = Model(
            data=one.data, clip=0.3, batch=BATCH, sampling="poisson", initialise=lambda _: jnp.zeros(5), loss=loss
        )
    mine, key = node(one, 1), jax.random.key(8)
    model = jnp.asarray(np.random.default_rng(2).standard_normal(one.shape), jnp.float32)
    who = np.flatnonzero(joined(key, mine.size, one.batch, len(mine.present)))
    assert 0 < len(who) != one.batch
    alone = type(one)(**{**vars_of(one), "batch": None, "sampling": "fixed", "l2": 0.0})
    total = np.sum(
        [np.asarray(alone.gradient_at_public(model, only(mine, int(row)), key), np.float64) for row in who], axis=0
    )  # each of one record, so its own clipped gradient
    result = np.asarray(one.gradient_at_public(model, mine, key))
    np.testing.assert_allclose(result, total / one.batch + one.l2 * np.asarray(model), atol=2e-6)


def vars_of(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__}


def only(mine: Any, row: int) -> Any:
    """A node with one record."""
    part = jax.tree.map(lambda leaf: leaf[row : row + 1] if leaf.ndim else jnp.ones_like(leaf), mine)
    return part._replace(columns=None)


def test_shapes_do_not_tell_how_many_joined() -> None:
    one = problem(sampling="poisson")
    assert one.sampled is not None
    shapes = {
        jax.tree.map(jnp.shape, one.drawn(node(one, 0), jax.random.key(seed))[0]._replace(columns=0))
        for seed in range(5)
    }
    assert len(shapes) == 1
    assert one.drawn(node(one, 0), jax.random.key(0))[0].present.shape == (one.sampled.room,)
    assert float(one.drawn(node(one, 0), jax.random.key(0))[1]) == BATCH
    np.testing.assert_array_equal(one.examples_per_node, BATCH)


@pytest.mark.slow
def test_a_batch_of_everything_is_the_full_gradient() -> None:
    data = logistic(examples=90, features=5, classes=3, seed=4).partition("iid", nodes=3)
    full = SoftmaxRegression(data=data, clip=0.3)
    one = SoftmaxRegression(data=data, clip=0.3, batch=int(data.sizes.min()), sampling="poisson")
    model = jnp.ones(full.shape)
    smallest = int(data.sizes.argmin())
    result, expected = (each.gradient_at_public(model, node(each, smallest), jax.random.key(1)) for each in (one, full))
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_batches_without_a_size_are_refused() -> None:
    with pytest.raises(Error, match="expected size"):
        problem(batch=None, sampling="poisson")
    with pytest.raises(Error, match="sampling"):
        problem(sampling="bernoulli")
    assert problem().sampled is None
