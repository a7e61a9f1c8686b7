"""What one setting, and all of them, have to say about Theorem 2."""

from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.reproduction import fits
from murmurcast.reproduction.fits import Fit
from murmurcast.reproduction.geometric import Geometric, first_term, geometric
from murmurcast.reproduction.growth import Sweep, slopes
from murmurcast.reproduction.regret import RADIUS, Regret, Setting, contraction, foreseen_slope

_FIRST_FITTED = 10  # T: before it the noise is larger than Omega, and no law is near


class Case(NamedTuple):
    """The regret of one setting.

    Attributes:
        title: In words.
        nodes: K.
        dim: m.
        convexity: mu.
        theta: The bound of 1/z.
        divisor: What the steps are divided by beside mu and t: theta in the paper.
        gradient: G.
        contraction: a; the consensus error decays as t^-a.
        runs: How many were averaged.
        horizons: [points] T.
        mean: [points, nodes] R_i(T).
        error: [points, nodes] its standard error.
        silent: [points, nodes] without noise.
        whole: [nodes] the three fits over all T from 10 on.
        later: [nodes] the three fits over the later part.
        exponent: [nodes] d log R / d log T at the end.
        silent_exponent: [nodes] the same without noise.
        slope: U2 of the mean over nodes, its standard error, and the slope without noise, over the later part.
        foreseen: The slope that noise brings in the long run, in closed form.
        mixing: C and xi.
        first_term: The theorem's U1.
        z: [epochs, nodes] |z_ii - pi_i| after t = 0, 1, ... rounds of mixing, while C xi^t matters.
    """

    title: str
    nodes: int
    dim: int
    convexity: float
    theta: float
    divisor: float
    gradient: float
    contraction: float
    runs: int
    horizons: FloatArray
    mean: FloatArray
    error: FloatArray
    silent: FloatArray
    whole: tuple[tuple[Fit, ...], ...]
    later: tuple[tuple[Fit, ...], ...]
    exponent: FloatArray
    silent_exponent: FloatArray
    slope: tuple[float, float, float]
    foreseen: float
    mixing: Geometric
    first_term: float
    z: FloatArray

    @property
    def promised_exponent(self) -> float:
        """The exponent of T that regret has without noise: 1 - 2a where a < 1/2, else 0."""
        return max(0.0, 1 - 2 * self.contraction)

    @property
    def bound(self) -> FloatArray:
        """[points, nodes] the theorem's U1 + U2 (1 + log T), with the U2 that was fitted to each node."""
        fitted = np.array([node[0].slope for node in self.later])
        return np.asarray(self.first_term + fitted * (1 + np.log(self.horizons))[:, None])

    @property
    def z_bound(self) -> FloatArray:
        """[epochs] C xi^t."""
        return self.mixing.bound(np.arange(len(self.z), dtype=np.float64))


class Theory(NamedTuple):
    """All that was measured of Theorem 2.

    Attributes:
        usual: A network and problem as the theorem has them.
        flat: All f_i with curvature mu, one node hardly heard: theta exceeds 2 K.
        remedied: The same with steps 1/(mu K t).
        sweeps: U2 against K, m and ln(1.25/delta).
    """

    usual: Case
    flat: Case
    remedied: Case
    sweeps: tuple[Sweep, ...]


def case(title: str, prepared: Setting, regret: Regret) -> Case:
    """What follows from a measured regret."""
    problem, planned = prepared.problem, prepared.plan
    runs = regret.noisy.shape[-1]
    mean = regret.noisy[:, 0].mean(axis=-1)
    mixing = geometric(planned.mixing.weights)
    return Case(
        title=title,
        nodes=problem.nodes,
        dim=problem.dim,
        convexity=prepared.convexity,
        theta=planned.theta,
        divisor=prepared.divisor,
        gradient=problem.clip,
        contraction=contraction(prepared),
        runs=runs,
        horizons=regret.horizons,
        mean=mean,
        error=regret.noisy[:, 0].std(axis=-1, ddof=1) / np.sqrt(runs),
        silent=regret.silent,
        whole=_fits(regret.horizons, mean, regret.horizons >= _FIRST_FITTED),
        later=_fits(regret.horizons, mean, fits.later(regret.horizons)),
        exponent=_exponents(regret.horizons, mean),
        silent_exponent=_exponents(regret.horizons, regret.silent),
        slope=slopes(regret),
        foreseen=foreseen_slope(prepared),
        mixing=mixing,
        first_term=first_term(mixing, problem.clip, problem.nodes, planned.theta, 2 * RADIUS),
        z=np.abs(planned.z - planned.perron)[: mixing.checked + 1],
    )


def _fits(
    at: FloatArray, regret: FloatArray, among: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> tuple[tuple[Fit, ...], ...]:
    return tuple(fits.fits(at[among], node) for node in regret[among].T)


def _exponents(at: FloatArray, regret: FloatArray) -> FloatArray:
    return np.array([fits.local_exponent(at, node) for node in regret.T])
