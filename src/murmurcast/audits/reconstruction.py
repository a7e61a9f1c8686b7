"""The most likely features and label of one record, from noisy readings of its gradient.

Reading t is a_t (x, 1)' with noise, where a_t = clip factor times (p(m_t) - y): linear in x once the coefficients a_t
are known, and they follow from x and y. So every candidate (x, y) gives coefficients, these give by weighted least
squares over all epochs, with a Gaussian prior N(mean_y, C_y), a better x in closed form, and the candidate's evidence:

    P = sum_t ||a_t||^2 / noise_t^2,   b = sum_t a_t' reading_t / noise_t^2,   u = b - P mean_y
    x = mean_y + C_y (1 + P C_y)^-1 u
    log evidence = b'(mean_y, 1) - P (||mean_y||^2 + 1)/2 + u' C_y (1 + P C_y)^-1 u / 2 - log det(1 + P C_y) / 2

The first candidates are records that the eavesdropper knows; the best ones are improved in turn. The result is the
mean over all that were tried, weighted by their evidence. With much noise that is the mean of the known records, the
best guess of one who hears nothing; without noise it is the record.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.audits.record_readings import Readings, coefficients
from murmurcast.errors import Error

Labels = NDArray[np.int64]
_CANDIDATES = 1000  # more cost time and change little
_IMPROVED, _ROUNDS, _SETTLED = 12, 15, 1e-7
_STUDIED = 20_000  # records from which covariances are taken
_POOLED = 10.0  # records of its own with which a label's covariance counts as much as that of all
_SMALLEST_SPREAD = 0.01  # of a feature, in units of the range: nothing is ruled out


class Prior(NamedTuple):
    """What the eavesdropper knows of records before it listens.

    Attributes:
        features: [candidates, features] some of the known records.
        labels: [candidates] theirs.
        chance: [classes] of every label, from those of all known records.
        guess: [features] the mean of all known records: the best guess without listening.
        mean: [classes, features] by label.
        spread: [classes, features] eigenvalues of the covariances by label.
        axes: [classes, features, features] their eigenvectors, as columns.
        low: The least value of a feature.
        high: The largest.
    """

    features: FloatArray
    labels: Labels
    chance: FloatArray
    guess: FloatArray
    mean: FloatArray
    spread: FloatArray
    axes: FloatArray
    low: float
    high: float


class Reconstruction(NamedTuple):
    """What the eavesdropper believes.

    Attributes:
        features: [features] the record's.
        label: The most likely one.
        chances: [classes] of every label.
    """

    features: FloatArray
    label: int
    chances: FloatArray


class _Judged(NamedTuple):
    """Candidates, improved, with their labels and log evidence."""

    features: FloatArray
    labels: Labels
    evidence: FloatArray


def prior_of(features: NDArray[Any], labels: NDArray[Any], classes: int, seed: int = 0) -> Prior:
    """What known records say of an unknown one.

    Args:
        features: [known, features], at least two.
        labels: [known], 0..classes-1.
        classes: How many labels there are.
        seed: Of the draw of candidates.
    """
    _check.at_least(1, classes=classes)
    if len(features) < 2 or len(features) != len(labels):
        raise Error(
            f"{len(features)} known records and {len(labels)} labels", hint="give at least two, each with its label"
        )
    low, high = float(features.min()), float(features.max())
    guess = features.mean(axis=0, dtype=np.float64)
    drawn = np.random.default_rng(seed).permutation(len(features))[:_STUDIED]
    studied, theirs = features[drawn], labels[drawn].astype(np.int64)
    mean = np.array([_mean(features[labels == label], guess) for label in range(classes)])
    chance = (np.bincount(labels, minlength=classes) + 1) / (len(labels) + classes)  # none is ruled out
    spread, axes = np.linalg.eigh(_covariances(studied - mean[theirs].astype(studied.dtype), theirs, classes))
    spread = np.maximum(spread, 0) + (_SMALLEST_SPREAD * (high - low)) ** 2
    candidates = studied[:_CANDIDATES].astype(np.float64), theirs[:_CANDIDATES]
    return Prior(*candidates, chance, guess, mean, spread, axes, low, high)


def reconstruct(readings: Readings, prior: Prior) -> Reconstruction:
    """The record as the eavesdropper sees it in the end."""
    classes = len(prior.mean)
    if readings.gradients.shape[1:] != (classes, prior.mean.shape[1] + 1):
        raise Error(
            f"readings have shape {readings.gradients.shape[1:]}, the prior {classes} classes of "
            f"{prior.mean.shape[1]} features",
            hint="make both from the same data set",
        )
    blunt = np.tile(_from_bias_alone(readings, prior), (classes, 1))
    pool = _joined(
        _judged(readings, prior, prior.features, prior.labels),
        _judged(readings, prior, blunt, np.arange(classes)),
    )
    order = np.argsort(-pool.evidence, kind="stable")
    best, rest = _picked(pool, order[:_IMPROVED]), _picked(pool, order[_IMPROVED:])
    # Each stays one candidate, however often it is improved: the likeliest do not gain weight by being tried again.
    pool = _joined(rest, _improved(readings, prior, best))
    # As many candidates of a label as happened to be drawn count together as often as the label occurs.
    share = softmax(pool.evidence + np.log(prior.chance / np.bincount(pool.labels, minlength=classes))[pool.labels])
    chances = np.asarray(np.bincount(pool.labels, weights=share, minlength=classes), np.float64)
    return Reconstruction(share @ pool.features, int(chances.argmax()), chances)


def _judged(readings: Readings, prior: Prior, features: FloatArray, labels: Labels) -> _Judged:
    """Every candidate, improved by the readings, with the evidence for the coefficients it gave."""
    exact = coefficients(readings.points, features, labels, readings.clip)
    weighted = (exact / np.square(readings.noise)[:, None, None]).reshape(-1, len(labels))
    precision = np.sum(weighted * exact.reshape(weighted.shape), axis=0)
    support = weighted.T @ readings.gradients.reshape(len(weighted), -1)  # b
    improved, evidence = np.empty_like(features), support[:, -1] - precision / 2
    for label in np.unique(labels):
        of_label, mean, axes = labels == label, prior.mean[label], prior.axes[label]
        seen, certain = support[of_label, :-1], precision[of_label, None]
        surplus = (seen - certain * mean) @ axes
        shrunk = surplus * prior.spread[label] / (1 + certain * prior.spread[label])
        improved[of_label] = mean + shrunk @ axes.T
        logarithm = np.log1p(certain * prior.spread[label])
        evidence[of_label] += seen @ mean - certain[:, 0] / 2 * (mean @ mean)
        evidence[of_label] += np.sum(surplus * shrunk - logarithm, axis=1) / 2
    return _Judged(np.clip(improved, prior.low, prior.high), labels, evidence)


def _from_bias_alone(readings: Readings, prior: Prior) -> FloatArray:
    """[features] by least squares with the bias column, where the coefficients stand by themselves: exact if noiseless.

    Whatever the clip did to the gradient it did to this column too.
    """
    bias = readings.gradients[..., -1] / readings.noise[:, None]
    pixels = readings.gradients[..., :-1] / readings.noise[:, None, None]
    features = np.einsum("tc,tcd->d", bias, pixels) / max(float(np.sum(bias**2)), 1e-300)
    return np.asarray(np.clip(features, prior.low, prior.high))


def _improved(readings: Readings, prior: Prior, best: _Judged) -> _Judged:
    """Every candidate at its best, over rounds in which each takes the place of the one it was made from."""
    now = best
    for _ in range(_ROUNDS):
        following = _judged(readings, prior, now.features, now.labels)
        rises = following.evidence > best.evidence
        features = np.where(rises[:, None], following.features, best.features)
        best = _Judged(features, best.labels, np.maximum(following.evidence, best.evidence))
        if np.abs(following.features - now.features).max() <= _SETTLED * (prior.high - prior.low):
            break
        now = following
    return best


def _picked(pool: _Judged, which: Labels) -> _Judged:
    return _Judged(pool.features[which], pool.labels[which], pool.evidence[which])


def _joined(*parts: _Judged) -> _Judged:
    return _Judged(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _mean(own: NDArray[Any], otherwise: FloatArray) -> FloatArray:
    return np.asarray(own.mean(axis=0, dtype=np.float64)) if len(own) else otherwise


def _covariances(centred: NDArray[Any], labels: Labels, classes: int) -> FloatArray:
    """[classes, features, features] of every label; those of few records lean on that of all."""
    sums = np.array([centred[labels == label].T @ centred[labels == label] for label in range(classes)], np.float64)
    counts = np.bincount(labels, minlength=classes)[:, None, None]
    return np.asarray((sums + _POOLED * sums.sum(axis=0) / len(labels)) / (counts + _POOLED))
