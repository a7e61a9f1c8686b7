"""Centring and whitening by released statistics: their noise, their rows, and what the test part goes by."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from murmurcast.data.base import Dataset
from murmurcast.data.datasets import logistic
from murmurcast.data.partition import Partition, Sorted
from murmurcast.data.preprocessing import (
    FirstReleases,
    _of_unit_norm,
    numbers_released,
    release,
    with_first_releases,
    within_unit_ball,
)
from murmurcast.errors import Error

FEATURES, NODES = 6, 3


def shared(seed: int = 2) -> Partition:
    data = logistic(examples=150, features=FEATURES, classes=3, seed=seed).normalised(-2.0, 3.0)
    return data.partition("quantity", nodes=NODES, seed=1)


def noise(centring: float = 0.01, whitening: float = 0.02) -> dict[str, np.ndarray]:
    return {"centring": np.full(NODES, centring), "whitening": np.full(NODES, whitening)}


def built(partition: Partition, **options: object) -> Partition:
    return with_first_releases(partition, noise(), **options)  # type: ignore[arg-type]


def first_of(partition: Partition) -> FirstReleases:
    assert partition.first is not None
    return partition.first


@pytest.mark.parametrize("statistic", ["centring", "whitening"])
def test_noise_is_as_large_as_claimed_and_alike_in_all_directions(statistic: str) -> None:
    rows = within_unit_ball(np.random.default_rng(0).standard_normal((20, FEATURES)).astype(np.float32))
    exact = release(statistic, rows, 0.0, 0, 0)  # type: ignore[arg-type]
    draws = np.array([release(statistic, rows, 0.5, seed, 1) - exact for seed in range(3000)])  # type: ignore[arg-type]
    std = draws.std(axis=0)
    if statistic == "centring":
        np.testing.assert_allclose(std, 0.5, rtol=0.06)
        return
    np.testing.assert_array_equal(draws, draws.transpose(0, 2, 1))
    np.testing.assert_allclose(np.diag(std), 0.5, rtol=0.06)
    np.testing.assert_allclose(std[np.triu_indices(FEATURES, 1)], 0.5 / np.sqrt(2), rtol=0.06)
    # Along any direction of the Frobenius norm the noise is the same: here that of (uu' - vv')/sqrt(2).
    u, v = np.eye(FEATURES)[0] + np.eye(FEATURES)[1], np.eye(FEATURES)[0] - np.eye(FEATURES)[1]
    along = (np.outer(u, u) - np.outer(v, v)) / np.linalg.norm(np.outer(u, u) - np.outer(v, v))
    assert np.einsum("sij,ij->s", draws, along).std() == pytest.approx(0.5, rel=0.06)


@pytest.mark.parametrize("node", [0, 1])
def test_no_public_stream_holds_the_noise(node: int) -> None:
    """NumPy fills a list of numbers up with zeros: [seed, purpose] and [seed, purpose, 0, 0] are one seed."""
    rows = np.zeros((3, 40), np.float32)
    secret = release("centring", rows, 1.0, 0, node)
    for public in range(-1, 64):
        drawn = np.random.default_rng(0 if public < 0 else [0, public]).standard_normal(40)
        assert abs(np.corrcoef(drawn, secret)[0, 1]) < 0.8, public


def test_draws_are_keyed_by_seed_statistic_and_node() -> None:
    rows = within_unit_ball(shared().dataset.features)[:7]
    drawn = {
        (statistic, seed, node): release(statistic, rows, 1.0, seed, node).ravel()[:3].tolist()
        for statistic in ("centring", "whitening")
        for seed in (0, 1)
        for node in (0, 1)
    }
    assert len({tuple(values) for values in drawn.values()}) == len(drawn)
    again = release("centring", rows, 1.0, 1, 1).ravel()[:3].tolist()
    assert drawn[("centring", 1, 1)] == again


def test_rows_have_norm_1_at_most_in_float32() -> None:
    hostile = np.random.default_rng(1).standard_normal((500, 300)).astype(np.float32) * np.float32(1e6)
    for rows in (within_unit_ball(hostile), built(shared()).dataset.features, built(shared()).dataset.test_features):
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
        assert norms.max() <= 1
        assert norms.max() > 1 - 1e-4
    short = np.full((2, 3), 0.1, np.float32)
    np.testing.assert_array_equal(within_unit_ball(short), short)
    assert within_unit_ball(np.array([[-1.0, 0.5]], np.float32), "non-negative").min() == 0


@pytest.mark.parametrize("largest", [3e38, 1e38, 1e30, 1.0, 1e-30, 1e-39, 1e-42, 1e-45])
@pytest.mark.filterwarnings("error")
def test_rows_of_any_size_are_scaled_by_a_number_with_all_its_digits(largest: float) -> None:
    """What the longest rows are divided by has few digits in float32, and what the shortest are is none."""
    drawn = np.random.default_rng(1).uniform(0.5, 1, (20, 2000))
    rows = np.concatenate([drawn * largest, np.full((3, 2000), largest), np.zeros((1, 2000))]).astype(np.float32)
    within, unit = (scaled(rows).astype(np.float64) for scaled in (within_unit_ball, _of_unit_norm))
    for scaled in (within, unit):
        norms = np.linalg.norm(scaled, axis=1)
        assert norms.max() <= 1
        assert not norms[-1]
    np.testing.assert_allclose(np.linalg.norm(unit[:-1], axis=1), 1, atol=2e-6)
    before = rows.astype(np.float64)
    lengths = np.maximum(np.linalg.norm(before, axis=1, keepdims=True), 1)
    np.testing.assert_allclose(within, before / lengths, rtol=2e-6, atol=1e-45)


def test_rows_are_centred_and_whitened_where_noise_is_small() -> None:
    quiet = {name: values * 1e-6 for name, values in noise().items()}
    before = within_unit_ball(shared().dataset.features)
    centred = with_first_releases(shared(), {"centring": quiet["centring"]}).dataset.features
    assert np.abs(before.mean(axis=0)).max() > 0.1
    assert np.abs(centred.mean(axis=0)).max() < 0.1
    spread = np.linalg.eigvalsh(centred.T @ centred)
    white = with_first_releases(shared(), quiet).dataset.features  # type: ignore[arg-type]
    after = np.linalg.eigvalsh(white.T @ white)
    assert after[-1] / after[0] < 0.5 * spread[-1] / spread[0]


def test_the_average_has_weights_by_records_and_all_of_the_noise() -> None:
    partition = shared()
    first = first_of(built(partition, seed=5))
    rows = within_unit_ball(partition.dataset.features)
    expected = sum(
        len(kept) / len(rows) * release("centring", rows[kept], 0.01, 5, node)
        for node, kept in enumerate(partition.rows)
    )
    np.testing.assert_allclose(first.averages["centring"], expected)
    assert np.abs(first.averages["centring"] - rows.mean(axis=0)).max() > 1e-4


def test_the_test_part_goes_by_what_was_released() -> None:
    partition = shared()
    result = built(partition)
    first = first_of(result)
    np.testing.assert_array_equal(result.dataset.test_features, first.apply(partition.dataset.test_features))
    np.testing.assert_allclose(result.dataset.features, first.apply(partition.dataset.features), atol=1e-6)
    # Of one test record alone: nothing of the others is looked at.
    np.testing.assert_allclose(
        result.dataset.test_features[:1], first.apply(partition.dataset.test_features[:1]), atol=1e-6
    )


def test_another_nodes_rows_change_nothing_but_the_average() -> None:
    """What a node releases depends on its own rows only."""
    rows = within_unit_ball(shared().dataset.features)
    one = release("whitening", rows[:10], 0.1, 0, 2)
    changed = rows.copy()
    changed[10:] = 0
    np.testing.assert_array_equal(one, release("whitening", changed[:10], 0.1, 0, 2))


def test_records_are_committed_to_as_they_were_given() -> None:
    partition = shared()
    assert built(partition).sha256 == partition.sha256
    assert built(partition).sha256 != shared(seed=3).sha256


def test_it_is_done_once_and_counted() -> None:
    result = built(shared())
    with pytest.raises(Error, match="before") as raised:
        built(result)
    assert raised.value.hint == "do both at once"
    assert numbers_released(first_of(result), FEATURES) == FEATURES + FEATURES * (FEATURES + 1) // 2
    with pytest.raises(Error, match="rows"):
        built(shared(), rows="positive")
    assert result.dataset.optimum is None


@pytest.mark.parametrize(
    "again",
    [
        lambda data: data.partition("iid", nodes=NODES),
        lambda data: data.split(0.3),
        lambda data: data.normalised(0.0, 2.0),
        lambda data: data.with_features(["unit-norm"]),
        lambda data: Partition(dataset=data, rule=Sorted(), rows=(np.arange(len(data.targets)),)),
    ],
    ids=["partition", "split", "normalised", "with_features", "by hand"],
)
def test_what_the_releases_cost_is_not_lost_by_starting_again(again: Callable[[Dataset], object]) -> None:
    """Rows that cost something, in a partition with nothing in `first`, would be certified without that cost."""
    partition = shared()
    again(partition.dataset)
    data = built(partition).dataset
    for marked in (data, replace(data, name="other")):
        with pytest.raises(Error, match="carries what that cost") as raised:
            again(marked)
        assert "partition first, then mc.preprocess" in raised.value.hint
    with pytest.raises(Error, match="carries what that cost"):
        replace(built(partition), first=None)
    assert replace(built(partition), names=("a", "b", "c")).first is not None
