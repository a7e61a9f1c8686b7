"""Rows centred and whitened by statistics that every node releases once under noise, before training.

    V_j = mean of j's rows + noise                      x <- (x - average of V) / norm
    V_j = second moment of j's rows + symmetric noise   x <- (average of V + lambda)^(-1/2) x / norm

Rows are cut to norm 1 before each release: how far one of them can move it rests on that. Everybody uses the average
over nodes, each with as much weight as it has rows: all V are public, and so is every function of them. The test part
is transformed by the released statistics too, never by its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.data.base import Features
from murmurcast.data.partition import Partition
from murmurcast.errors import Error
from murmurcast.privacy.first_releases import STATISTICS, Rows, Statistic

_PURPOSE = 9  # of the draws, beside the seed
_INSIDE = 1 - 1e-6  # the norm of rows: in float32 none comes out longer than 1


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstReleases:
    """What nodes released before training, and what rows are made of it.

    Attributes:
        rows: "non-negative": entries below 0 are set to 0 before the first release. "signed": none is.
        seed: Of the noise.
        noise: [nodes] standard deviation of every node's noise, by statistic.
        averages: The public averages over nodes, by statistic: [features], [features, features].
        weights: [nodes] of every node in the averages.
    """

    rows: Rows
    seed: int
    noise: Mapping[Statistic, FloatArray]
    averages: Mapping[Statistic, FloatArray]
    weights: FloatArray

    def apply(self, features: Features) -> Features:
        """Any rows, transformed as those of training were: [examples, features]."""
        transformed = within_unit_ball(features, self.rows)
        for statistic in self.averages:
            transformed = self.step(statistic, transformed)
        return transformed

    def average(self, statistic: Statistic, rows: Sequence[Features]) -> FloatArray:
        """What everybody makes of all nodes' releases, each of its own rows [examples, features]."""
        noise = self.noise[statistic]
        released = (
            weight * release(statistic, own_rows, float(std), self.seed, node)
            for node, (weight, own_rows, std) in enumerate(zip(self.weights, rows, noise, strict=True))
        )
        return np.asarray(sum(released))

    def step(self, statistic: Statistic, features: Features) -> Features:
        """One step of `apply`, by one statistic."""
        if statistic == "centring":
            return _of_unit_norm(features - self.averages["centring"].astype(np.float32))
        return _of_unit_norm(features @ self._whitener)

    @cached_property
    def _whitener(self) -> Features:
        """[features, features] (max(s, 0) + lambda)^(-1/2) in the eigenbasis of the second moment.

        Lambda is half of the largest eigenvalue that the averaged noise alone would have, 2 sqrt(d) times the standard
        deviation off its diagonal.
        """
        values, vectors = np.linalg.eigh(self.averages["whitening"])
        off_diagonal = float(np.linalg.norm(self.weights * self.noise["whitening"])) / math.sqrt(2)
        floor = max(math.sqrt(len(values)) * off_diagonal, 1e-12)
        scale = 1 / np.sqrt(np.maximum(values, 0) + floor)
        return np.asarray((vectors * scale) @ vectors.T, np.float32)


def with_first_releases(
    partition: Partition, noise: Mapping[Statistic, FloatArray], *, rows: Rows = "signed", seed: int = 0
) -> Partition:
    """The same partition, its rows and those of the test part transformed by what nodes release with this noise.

    Args:
        partition: Who holds which rows.
        noise: [nodes] standard deviation of every node's noise, by statistic.
        rows: As in `FirstReleases`.
        seed: Of the noise: draws are keyed by seed, statistic and node.
    """
    if partition.first is not None:
        raise Error("the data has been centred or whitened before", hint="do both at once")
    _check.one_of(("signed", "non-negative"), rows=rows)
    _check.at_least(0, seed=seed)
    data, weights = partition.dataset, partition.sizes / partition.sizes.sum()
    features = within_unit_ball(data.features, rows)
    first = FirstReleases(rows=rows, seed=seed, noise=dict(noise), averages={}, weights=weights)
    for statistic in STATISTICS:
        if statistic not in noise:
            continue
        average = first.average(statistic, [features[indices] for indices in partition.rows])
        first = replace(first, averages={**first.averages, statistic: average})
        features = first.step(statistic, features)
    test = first.apply(data.test_features)
    for part in (features, test):
        part.flags.writeable = False
    dataset = replace(data, features=features, test_features=test, optimum=None, preprocessed=True)
    return replace(partition, dataset=dataset, first=first, origin=partition)


def release(statistic: Statistic, rows: Features, std: float, seed: int, node: int) -> FloatArray:
    """All that leaves a node: a statistic of its rows, which are of norm 1 at most, under noise of this deviation.

    Guarantees:
        Unit, formula: `privacy.first_releases.sensitivity` over `std` is its mu. Adversary: everybody. Range: rounding
        is not counted; whoever knows the seed knows the noise.
    """
    exact = rows.astype(np.float64)
    drawn = _secret_draws(seed, statistic, node)
    if statistic == "centring":
        return np.asarray(exact.mean(axis=0) + std * drawn.standard_normal(exact.shape[1]))
    moment = exact.T @ exact / len(exact)
    return np.asarray(moment + std * _symmetric(drawn.standard_normal(moment.shape)))


def _secret_draws(seed: int, statistic: Statistic, node: int) -> np.random.Generator:
    """A node's own. Not from a list [seed, purpose, ...]: NumPy fills it up with zeros, so that two may be alike."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_PURPOSE, STATISTICS.index(statistic), node)))


def numbers_released(first: FirstReleases, features: int) -> int:
    """How many numbers a node sends before training: of what is symmetric, a half and the diagonal."""
    counts: dict[Statistic, int] = {"centring": features, "whitening": features * (features + 1) // 2}
    return sum(counts[statistic] for statistic in first.noise)


def within_unit_ball(features: Features, rows: Rows = "signed") -> Features:
    """Rows of norm at most 1 in float32; those that are longer are shortened.

    Guarantees:
        No row's Euclidean norm, of the float32 numbers as they are, exceeds 1.
    """
    kept = np.maximum(features, 0) if rows == "non-negative" else features
    return _scaled(kept, _INSIDE / np.maximum(_norms(kept), _INSIDE))


def _of_unit_norm(features: Features) -> Features:
    """Rows of norm 1, or 0 where there is nothing to scale; none of them longer than 1."""
    norms = _norms(features)
    return _scaled(features, np.where(norms > 0, _INSIDE / np.where(norms > 0, norms, 1.0), 0.0))


def _scaled(features: Features, scale: FloatArray) -> Features:
    """Every row times a number of its own, multiplied in float64.

    Of very long or short rows the number itself is none of float32, or one with few digits: the rows would come out
    longer than 1, or infinite.
    """
    scaled = np.empty(features.shape, np.float32)
    # Piece by piece, as NumPy does it with `out`: there is no second copy of all rows in float64.
    return np.multiply(features, scale[:, None], out=scaled, dtype=np.float64, casting="same_kind")


def _norms(features: Features) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", features, features, dtype=np.float64)))


def _symmetric(normal: FloatArray) -> FloatArray:
    """Symmetric, of variance 1 on the diagonal and 1/2 off it: alike in all directions of the Frobenius norm."""
    above = np.triu(normal, 1) / math.sqrt(2)
    return np.asarray(above + above.T + np.diag(np.diag(normal)))
