"""The one place that turns releases into mu, and mu into epsilon at delta."""

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.privacy import discrete, gaussian, laplace
from murmurcast.privacy.releases import Law, Releases

NoiseSource = Literal["seeded", "secure"]


class Curve(NamedTuple):
    """How mu and epsilon belong together.

    Attributes:
        source: "seeded": Gaussian noise in real numbers, by its exact curve. "secure": discrete Gaussian noise on a
            grid, by its bound, with rounding, arithmetic and the sampler counted.
        rounding: What rounding adds to mu.
        samples: How many integers a node draws.
        laplace: The noise is Laplace's, and mu is its mu of Gaussian DP.
    """

    source: NoiseSource = "seeded"
    rounding: float = 0.0
    samples: int = 0
    laplace: bool = False

    def epsilon(self, mu: ArrayLike, delta: float) -> FloatArray:
        """The epsilon of a whole mu, rounding included.

        Guarantees:
            `gaussian.epsilon`, or `discrete.epsilon`: exact, or a bound.
        """
        if self.laplace:
            return laplace.epsilon(mu, delta)
        if self.source == "seeded":
            return gaussian.epsilon(mu, delta)
        return discrete.epsilon(mu, delta, self.samples)

    def mu_of_steps(self, epsilon: float, delta: float) -> float:
        """What a budget leaves for the gradient steps: the largest mu it allows, without what rounding takes."""
        if self.laplace:
            return max(_gaussian_mu(epsilon, delta), laplace.MU_OF_CONCENTRATED * discrete.mu(epsilon, delta))
        if self.source == "seeded":
            return _gaussian_mu(epsilon, delta)
        left = discrete.mu(epsilon, delta, self.samples) - self.rounding
        if left <= 0:
            raise Error(
                f"epsilon {epsilon:g} at delta {delta:g} is less than rounding to a grid costs in so many epochs",
                hint='raise epsilon, lower schedule.epochs, or set noise_source = "seeded"',
            )
        return left

    def with_rounding(self, mu_of_steps: FloatArray) -> FloatArray:
        """The whole mu from that of the gradient steps."""
        return mu_of_steps if self.source == "seeded" else np.asarray(mu_of_steps + self.rounding)


EXACT = Curve()


@lru_cache  # a power split that is run to its fixed point asks a hundred times for the same root
def _gaussian_mu(epsilon: float, delta: float) -> float:
    return float(gaussian.mu(epsilon, delta))


def note(source: NoiseSource) -> str:
    """What may be said of the transcript of a run: all nodes of a simulation are in one process."""
    if source == "seeded":
        return "simulation: the seed is known, no privacy is claimed for this transcript"
    return (
        "secure noise: only the certificate is claimed, against those who see what is sent and published; whoever runs "
        "this simulation holds all nodes' data"
    )


def curve(source: NoiseSource, dim: int, epochs: int) -> Curve:
    """The curve of a run with m = `dim` parameters and T = `epochs` transmissions."""
    return EXACT if source == "seeded" else Curve("secure", discrete.rounding(dim, epochs), dim * epochs)


def curve_of(law: Law, epochs: int) -> Curve:
    """The curve of releases of this law in so many epochs."""
    if law.name == "sampled gaussian":
        raise Error(
            "no account of sampled Gaussian releases is known here: they have no mu",
            hint="count them as plain Gaussian releases, which holds for any sample",
        )
    if law.name == "discrete gaussian":
        return curve("secure", law.dim, epochs)
    return Curve(laplace=law.name == "laplace")


def mu_of(releases: Releases) -> FloatArray:
    """[nodes] what a run's releases come to: mu of Gaussian DP, rounding included; infinite where nothing hides them.

    Guarantees:
        Unit and adversary: the releases'. Formula: adaptive composition; mu^2 = sum of ratio^2 ("gaussian"), plus what
        rounding adds ("discrete gaussian"), times pi/2 ("laplace").
    """
    if releases.law.name == "laplace":
        return laplace.mu(releases.ratio)
    with np.errstate(over="ignore"):
        steps = np.sqrt(np.sum(np.square(releases.ratio), axis=0))
    return curve_of(releases.law, len(releases.ratio)).with_rounding(steps)


def epsilon_of(releases: Releases, delta: float) -> FloatArray:
    """[nodes] the epsilon of a run's releases at delta; infinite where nothing hides them."""
    mu = mu_of(releases)
    finite = np.isfinite(mu)
    curve = curve_of(releases.law, len(releases.ratio))
    return np.where(finite, curve.epsilon(np.where(finite, mu, 0.0), delta), np.inf)
