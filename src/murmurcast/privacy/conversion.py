"""From the mu of a run to its epsilon, by where the noise comes from."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.privacy import discrete, gaussian

NoiseSource = Literal["seeded", "secure"]


class Curve(NamedTuple):
    """How mu and epsilon belong together.

    Attributes:
        source: "seeded": Gaussian noise in real numbers, by its exact curve. "secure": discrete Gaussian noise on a
            grid, by its bound, with rounding, arithmetic and the sampler counted.
        rounding: What rounding adds to mu.
        samples: How many integers a node draws.
    """

    source: NoiseSource = "seeded"
    rounding: float = 0.0
    samples: int = 0

    def epsilon(self, mu: ArrayLike, delta: float) -> FloatArray:
        """The epsilon of a whole mu, rounding included.

        Guarantees:
            `gaussian.epsilon`, or `discrete.epsilon`: exact, or a bound.
        """
        if self.source == "seeded":
            return gaussian.epsilon(mu, delta)
        return discrete.epsilon(mu, delta, self.samples)

    def mu_of_steps(self, epsilon: float, delta: float) -> float:
        """What a budget leaves for the gradient steps: the largest mu it allows, without what rounding takes."""
        if self.source == "seeded":
            return float(gaussian.mu(epsilon, delta))
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
