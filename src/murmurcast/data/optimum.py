"""Exact minimisers of the mean loss, in float64, for sets small enough to be solved."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import logsumexp, softmax

from murmurcast._check import FloatArray

_GRADIENT, _STEP, _ROUNDS = 1e-9, 1e-6, 60


def optimum_of(features: NDArray[Any], targets: NDArray[Any], classes: int | None) -> FloatArray | None:
    """The minimiser of least squares (classes None) or of multinomial logistic regression."""
    if classes is None:
        return least_squares_optimum(features, targets)
    return logistic_optimum(features, targets, classes)


def least_squares_optimum(features: NDArray[Any], targets: NDArray[Any]) -> FloatArray:
    """The [features] parameters, without bias, of least mean square; the shortest where several are best."""
    parameters: FloatArray = np.linalg.lstsq(features.astype(np.float64), targets.astype(np.float64), rcond=None)[0]
    return parameters


def logistic_optimum(features: NDArray[Any], targets: NDArray[Any], classes: int) -> FloatArray | None:
    """The [classes, features + 1] parameters, bias last, of least mean cross-entropy.

    A shift common to all classes changes no prediction. Of all optima this is the one whose sum over classes is zero.
    The norm of its gradient is below 1e-9.

    Newton's method; the systems are solved by conjugate gradients, so no Hessian is stored.

    Returns:
        None where labels can be told apart by planes (or one has no example): then the loss has no minimum.
    """
    x = np.column_stack([features.astype(np.float64), np.ones(len(features))])
    hit = (targets[:, None] == np.arange(classes)).astype(np.float64)
    parameters = np.zeros((classes, x.shape[1]))
    if not hit.any(axis=0).all():
        return None
    for _ in range(_ROUNDS):
        chance = softmax(x @ parameters.T, axis=1)
        gradient = (chance - hit).T @ x / len(x)
        step = _newton_step(x, chance, gradient)
        if not np.isfinite(step).all():
            return None
        # Where planes part the labels the gradient vanishes too, but steps stay long: both must be small.
        if np.linalg.norm(gradient) < _GRADIENT / 10 and np.linalg.norm(step) < _STEP:
            return np.asarray(parameters - parameters.mean(axis=0))
        parameters = parameters - _damping(x, hit, parameters, gradient, step) * step
    return None


def _newton_step(x: FloatArray, chance: FloatArray, gradient: FloatArray) -> FloatArray:
    def curve(flat: FloatArray) -> FloatArray:
        direction = flat.reshape(gradient.shape)
        moved = x @ direction.T
        moved = chance * (moved - (chance * moved).sum(axis=1, keepdims=True))
        # The mean over classes stands for the curvature that a common shift lacks; the gradient has no such part.
        return np.asarray((moved.T @ x / len(x) + direction.mean(axis=0)).ravel())

    operator = LinearOperator((gradient.size, gradient.size), matvec=curve, dtype=np.float64)
    with np.errstate(all="ignore"):  # where planes part the labels the curvature vanishes
        solution, _ = cg(operator, gradient.ravel(), rtol=1e-10, atol=0.0, maxiter=10 * gradient.size)
    step = np.asarray(solution).reshape(gradient.shape)
    return np.asarray(step - step.mean(axis=0))


def _damping(x: FloatArray, hit: FloatArray, parameters: FloatArray, gradient: FloatArray, step: FloatArray) -> float:
    """The longest of 1, 1/2, 1/4, ... that lowers the loss enough; 1 where the loss is too flat to tell."""
    promised = float((gradient * step).sum())
    if promised < 1e-10:
        return 1.0
    start = _loss(x, hit, parameters)
    size = 1.0
    while size > 1e-6 and _loss(x, hit, parameters - size * step) > start - 0.1 * size * promised:
        size /= 2
    return size


def _loss(x: FloatArray, hit: FloatArray, parameters: FloatArray) -> float:
    scores = x @ parameters.T
    return float(np.mean(logsumexp(scores, axis=1) - (scores * hit).sum(axis=1)))
