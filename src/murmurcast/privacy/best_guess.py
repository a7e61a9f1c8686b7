"""What a privacy number means: the best chance of guessing right whether one record, or one node's data, was used.

Somebody who may know everything else is shown the outcome of a run with a certain record, or with another in its place,
each with probability 1/2, and says which it was. Whoever knows nothing is right half of the time. The trade-off curve
of a promise bounds everybody else: false alarms and misses are equal at the best guess, so that

    mu-GDP:              Phi(mu / 2)                                  (exact for the Gaussian mechanism)
    (epsilon, delta)-DP: (e^epsilon + delta) / (1 + e^epsilon)        (a bound; pure epsilon: delta = 0)
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.privacy import sampling
from murmurcast.privacy.conversion import Curve, curve_of, mu_of
from murmurcast.privacy.releases import Releases
from murmurcast.privacy.rounding import percent_at_most


def of_mu(mu: ArrayLike) -> FloatArray:
    """The best chance of guessing right, of a mu-GDP mechanism and even odds.

    Guarantees:
        Unit, adversary: whatever `mu` speaks of. Formula: Phi(mu/2). Range: mu >= 0; 1 where mu is infinite.
    """
    _check.gaussian(mu=mu)
    return np.asarray(ndtr(np.asarray(mu, float) / 2))


def of_epsilon(epsilon: ArrayLike, delta: ArrayLike = 0.0) -> FloatArray:
    """The same from epsilon and delta alone: a bound, whatever the mechanism.

    Guarantees:
        Unit, adversary: the promise's. Formula: (e^epsilon + delta)/(1 + e^epsilon). Range: epsilon >= 0,
        0 <= delta <= 1.
    """
    _check.not_negative(epsilon=epsilon, delta=delta)
    by_epsilon = expit(np.asarray(epsilon, float))
    return np.asarray(by_epsilon + np.asarray(delta, float) * (1 - by_epsilon))


def best_guess(mu: ArrayLike, curve: Curve, delta: float) -> FloatArray:
    """The best chance of guessing right, by what is proved of the noise.

    Gaussian and Laplace noise are mu-GDP. Of noise on a grid concentrated DP is proved, so epsilon at delta speaks. Of
    sampled records the privacy loss distributions speak; mu is then [nodes].
    """
    if curve.sampled:
        by_coins = [sampling.best_guess(parts, curve.overflow) for parts in curve.parts_at(np.asarray(mu, np.float64))]
        return np.minimum(of_mu(mu), by_coins)
    if curve.source == "seeded":
        return of_mu(mu)
    return of_epsilon(curve.epsilon(mu, delta), delta)


def of_releases(releases: Releases, delta: float) -> FloatArray:
    """[nodes] the best chance of guessing right, from a run's releases; 1 where nothing hides them."""
    mu = mu_of(releases)
    finite = np.isfinite(mu)
    return np.where(finite, best_guess(np.where(finite, mu, releases.before), curve_of(releases), delta), 1.0)


def in_words(chance: float, hidden: str) -> str:
    """One line for people, to stand beside an epsilon; `hidden` is a unit, or a person with several records."""
    what = {"record": "one record was", "node": "one node's data was"}.get(hidden, f"the records of one {hidden} were")
    return (
        f"whoever guesses whether {what} used, or other data in its place, is right at most "
        f"{percent_at_most(chance)} of the time (a coin: 50 %)"
    )
