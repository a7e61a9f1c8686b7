"""Made-up sets whose best parameters are known exactly."""

import numpy as np

from murmurcast import _check
from murmurcast.data.base import Dataset, from_pool, with_origin
from murmurcast.errors import Error

_LEAST_SQUARES, _LOGISTIC = 2, 3  # the purposes of the draws, beside the seed
MAX_ENTRIES = 10**9  # numbers in one set


def least_squares(
    examples: int = 1000,
    features: int = 20,
    seed: int = 0,
    *,
    noise: float = 0.1,
    heterogeneity: float = 0.0,
) -> Dataset:
    """Values that are a linear function of the features, without bias, plus noise.

    `optimum` [features] minimises the mean of (x w - y)^2 over the training part, whatever constant stands before it.

    Args:
        examples: How many in all; one fifth becomes the test part.
        features: How many numbers an example has, each standard normal.
        seed: Of the truth and of all draws.
        noise: Standard deviation of what is added to every value.
        heterogeneity: How strongly a hidden standard normal factor of every example moves both its features and the
            parameters its value comes from. Nodes cut by "sorted" then want different parameters.
    """
    _require_size(examples, features, seed)
    if 0.8 * examples < features:
        raise Error(
            f"{examples} examples do not settle {features} parameters",
            hint=f"draw at least {-(-5 * features // 4)}",
        )
    _check.not_negative(noise=noise, heterogeneity=heterogeneity)
    generator = np.random.default_rng([seed, _LEAST_SQUARES])
    truth = generator.standard_normal(features)
    towards, drift = (direction / np.linalg.norm(direction) for direction in generator.standard_normal((2, features)))
    factor = heterogeneity * generator.standard_normal((examples, 1))
    x = generator.standard_normal((examples, features)) + factor * towards
    y = (x * (truth + factor * drift)).sum(axis=1) + noise * generator.standard_normal(examples)
    dataset = from_pool("least-squares", x.astype(np.float32), y.astype(np.float32), classes=None, solve=True)
    return with_origin(dataset, "built in")


def logistic(examples: int = 1000, features: int = 10, classes: int = 3, seed: int = 0) -> Dataset:
    """Labels drawn from a softmax of a linear function with bias, so that no planes part them.

    `optimum` [classes, features + 1], bias last, minimises the mean cross-entropy over the training part. A shift
    common to all classes changes nothing; this is the optimum whose sum over classes is zero.

    Args:
        examples: How many in all; one fifth becomes the test part.
        features: How many numbers an example has, each standard normal.
        classes: How many labels.
        seed: Of the truth and of all draws.
    """
    _check.at_least(2, classes=classes)
    _require_size(examples, features * classes, seed)
    generator = np.random.default_rng([seed, _LOGISTIC])
    truth = generator.standard_normal((classes, features)) / np.sqrt(features)
    bias = 0.3 * generator.standard_normal(classes)
    x = generator.standard_normal((examples, features)).astype(np.float32)
    # The largest of scores with Gumbel noise is a draw from their softmax.
    y = np.argmax(x @ truth.T + bias + generator.gumbel(size=(examples, classes)), axis=1)
    dataset = from_pool("logistic", x, y.astype(np.int32), classes=classes, solve=True)
    if dataset.optimum is None:
        raise Error(
            f"{examples} examples of {classes} classes with {features} features can be told apart by planes, "
            "so no parameters are best",
            hint=f"draw more examples, such as {20 * classes * (features + 1)}",
        )
    return with_origin(dataset, "built in")


def _require_size(examples: int, numbers: int, seed: int) -> None:
    _check.at_least(0, seed=seed)
    _check.at_least(5, examples=examples)
    _check.at_least(1, features=numbers)
    if examples * numbers > MAX_ENTRIES:
        raise Error(f"{examples} examples are too many to draw at this size", hint="lower examples or features")
