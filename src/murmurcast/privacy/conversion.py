"""The one place that turns releases into mu, and mu into epsilon at delta."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.privacy import discrete, gaussian, laplace, sampling
from murmurcast.privacy.releases import Releases

NoiseSource = Literal["seeded", "secure"]


class Curve(NamedTuple):
    """How mu and epsilon belong together.

    Attributes:
        source: "seeded": Gaussian noise in real numbers, by its exact curve. "secure": discrete Gaussian noise on a
            grid, by its bound, with rounding, arithmetic and the sampler counted.
        rounding: What rounding adds to mu.
        samples: How many integers a node draws.
        laplace: The noise is Laplace's, and mu is its mu of Gaussian DP.
        spent: mu of what was released before the first epoch.
        sampled: Of every node, its releases over records that join by a secret coin, ratios as shares of mu of the
            steps; () where records do not. mu is then that of the plain bound, which holds for any sample.
        overflow: The probability that records were left out for want of room, in the whole run.
    """

    source: NoiseSource = "seeded"
    rounding: float = 0.0
    samples: int = 0
    laplace: bool = False
    spent: float = 0.0
    sampled: tuple[sampling.Parts, ...] = ()
    overflow: float = 0.0

    def epsilon(self, mu: ArrayLike, delta: float) -> FloatArray:
        """The epsilon of a whole mu, rounding and what was released before included.

        Of sampled releases that of every node, [nodes] from [nodes], or of the worst node from one number.

        Guarantees:
            `gaussian.epsilon`, `discrete.epsilon` or `sampling.epsilon`: exact, or a bound.
        """
        if self.sampled:
            return self._epsilon_of_sampled(np.asarray(mu, np.float64), delta)
        if self.laplace:
            return laplace.epsilon(mu, delta)
        if self.source == "seeded":
            return gaussian.epsilon(mu, delta)
        return discrete.epsilon(mu, delta, self.samples)

    def mu_of_steps(self, epsilon: float, delta: float) -> FloatArray:
        """What a budget leaves for the gradient steps: the largest mu it allows, without what else takes of it.

        One number, or of sampled releases [nodes].
        """
        if self.sampled:
            fixed = (sampling.Part(1.0, self.spent, 1),)
            factors = {
                parts: sampling.largest_factor(parts, epsilon, delta, fixed, self.overflow)
                for parts in dict.fromkeys(self.sampled)
            }
            if not all(factors.values()):
                raise Error(
                    f"epsilon {epsilon:g} at delta {delta:g} leaves nothing for steps on records that join by coins: "
                    f"with a probability of {self.overflow:.2g} in all, more join than there is room for",
                    hint='raise delta or epsilon, or take batches of a fixed size: sampling = "fixed"',
                )
            return np.array([factors[parts] for parts in self.sampled])
        if self.laplace:
            return np.asarray(
                max(_gaussian_mu(epsilon, delta), laplace.MU_OF_CONCENTRATED * discrete.mu(epsilon, delta))
            )
        if self.source == "seeded":
            return np.asarray(np.sqrt(_gaussian_mu(epsilon, delta) ** 2 - self.spent**2))
        left = discrete.mu(epsilon, delta, self.samples) - self.rounding
        if left <= 0:
            raise Error(
                f"epsilon {epsilon:g} at delta {delta:g} is less than rounding to a grid costs in so many epochs",
                hint='raise epsilon, lower schedule.epochs, or set noise_source = "seeded"',
            )
        return np.asarray(left)

    def total_mu(self, mu_of_steps: FloatArray) -> FloatArray:
        """The whole mu from that of the gradient steps."""
        if self.source == "secure":
            return np.asarray(mu_of_steps + self.rounding)
        return np.hypot(mu_of_steps, self.spent) if self.spent else mu_of_steps

    def epsilon_for(self, mu_of_steps: FloatArray, epsilon: float, delta: float) -> FloatArray:
        """The epsilon of a budget that leaves so much for the steps, where what was released before has its share.

        Args:
            mu_of_steps: What is needed.
            epsilon: The budget of which `spent` is a share.
            delta: Of both.
        """
        if not self.spent or self.sampled:
            return self.epsilon(self.total_mu(mu_of_steps), delta)
        left = self.mu_of_steps(epsilon, delta)
        return self.epsilon(mu_of_steps * np.hypot(left, self.spent) / left, delta)

    def parts_at(self, mu: FloatArray) -> tuple[sampling.Parts, ...]:
        """[nodes] all releases of every node, with their ratios, from the whole mu [nodes] of this curve."""
        if not self.sampled:
            return tuple((sampling.Part(1.0, float(one), 1),) for one in mu)
        steps = np.sqrt(np.maximum(mu**2 - self.spent**2, 0.0))
        before = sampling.Part(1.0, self.spent, 1)
        return tuple(
            (*sampling.scaled(parts, float(one)), before) for parts, one in zip(self.sampled, steps, strict=True)
        )

    def _epsilon_of_sampled(self, mu: FloatArray, delta: float) -> FloatArray:
        of_nodes = np.broadcast_to(mu, len(self.sampled)) if mu.ndim == 0 else mu
        epsilon = np.array([sampling.epsilon(parts, delta, self.overflow) for parts in self.parts_at(of_nodes)])
        return np.asarray(epsilon.max()) if mu.ndim == 0 else epsilon


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


def curve_of(releases: Releases) -> Curve:
    """The curve of such releases: of their law, of how many there are, and of how they compare with each other."""
    law, epochs = releases.law, len(releases.ratio)
    if law.name == "discrete gaussian":
        return curve("secure", law.dim, epochs)
    if law.name != "sampled gaussian":
        return Curve(laplace=law.name == "laplace", spent=releases.before)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.sqrt(np.sum(np.square(releases.ratio), axis=0))
        shares = np.where(np.isinf(releases.ratio), 1.0, releases.ratio / np.where(steps > 0, steps, 1.0))
    parts = tuple(sampling.parts_of(rate, column) for rate, column in zip(law.rates, shares.T, strict=True))
    return Curve(spent=releases.before, sampled=parts, overflow=law.overflow * epochs)


def after(before: float, releases: Releases) -> Releases:
    """The releases of a run whose nodes released something of this mu before, under Gaussian noise."""
    if before and releases.law.name not in ("gaussian", "sampled gaussian"):
        law = "nothing is sent in" if releases.law.name == "none" else f"{releases.law.name} noise hides"
        raise Error(
            f"centring and whitening are released under Gaussian noise, and {law} training: no account of both "
            "together is known here",
            hint="set privacy.centring and privacy.whitening to 0, or use a method with Gaussian noise",
        )
    return releases._replace(before=before) if before else releases


def joined(curves: Sequence[Curve], mus: Sequence[FloatArray]) -> Curve:
    """The curve of runs together whose whole mu are these, each [nodes], all on the same records.

    Gaussian noise meets the discrete Gaussian's bound too, so that serves where both occur. Laplace noise meets the
    Gaussian's curve, and a better one of its own where all runs have it. Sampled releases keep what
    sampling brings, but for noise on a grid.
    """
    if any(curve.source == "secure" for curve in curves):
        return Curve("secure", samples=sum(curve.samples for curve in curves))
    if not any(curve.sampled for curve in curves):
        return Curve(laplace=all(curve.laplace for curve in curves))
    total = np.sqrt(np.sum(np.square(mus), axis=0))
    factor = 1 / np.where((total > 0) & np.isfinite(total), total, 1.0)
    of_runs = [curve.parts_at(mu) for curve, mu in zip(curves, mus, strict=True)]
    parts = tuple(
        sampling.scaled((part for of_run in of_runs for part in of_run[node]), float(factor[node]))
        for node in range(len(total))
    )
    return Curve(sampled=parts, overflow=sum(curve.overflow for curve in curves))


def mu_of(releases: Releases) -> FloatArray:
    """[nodes] what a run's releases come to: mu of Gaussian DP, rounding included; infinite where nothing hides them.

    Guarantees:
        Unit and adversary: the releases'. Formula: adaptive composition; mu^2 = sum of ratio^2 ("gaussian" and, as a
        bound that holds for any sample, "sampled gaussian"), plus what rounding adds ("discrete gaussian"), times pi/2
        ("laplace"), plus what was released before.
    """
    if releases.law.name == "laplace":
        return laplace.mu(releases.ratio)
    with np.errstate(over="ignore"):
        steps = np.sqrt(np.sum(np.square(releases.ratio), axis=0))
    return curve_of(releases).total_mu(steps)


def epsilon_of(releases: Releases, delta: float) -> FloatArray:
    """[nodes] the epsilon of a run's releases at delta; infinite where nothing hides them."""
    mu = mu_of(releases)
    finite = np.isfinite(mu)
    epsilon = curve_of(releases).epsilon(np.where(finite, mu, releases.before), delta)
    return np.where(finite, epsilon, np.inf)
