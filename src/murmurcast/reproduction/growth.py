"""How U2, the slope of regret against log T, grows with K, m and ln(1.25/delta): one at a time, the rest held."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.errors import Error
from murmurcast.network import topologies
from murmurcast.network.graph import Network
from murmurcast.reproduction import fits
from murmurcast.reproduction.fits import Exponent
from murmurcast.reproduction.regret import Noise, Regret, Setting, bowls, foreseen_slope, measure, setting

CONDITION = 3.0  # largest over smallest curvature of every f_i
BASE = Noise(epsilon=10.0, delta=1e-5, to_step=40.0)
NODES, DIMENSIONS = (8, 12, 20, 32), (2, 4, 8, 16, 32)
DELTAS = (1e-2, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
_EPOCHS, _RUNS = 3000, 96
_NOISE_PER_NODE = BASE.to_step / 6  # q / K: theta grows with K, and q with it, so that alpha stays


class Point(NamedTuple):
    """One value of what is swept.

    Attributes:
        value: K, m or ln(1.25/delta).
        slope: U2, of the mean regret of all nodes over the later part of the horizons.
        error: Its standard error over runs.
        silent: The slope without noise.
        foreseen: What the noise adds in the long run, in closed form.
    """

    value: float
    slope: float
    error: float
    silent: float
    foreseen: float


class Sweep(NamedTuple):
    """One sweep.

    Attributes:
        symbol: What is swept.
        theorem: The exponent in the theorem's U2.
        points: By value.
        exponent: Of the slope.
        noise_exponent: Of the slope less the slope without noise.
        fixed: In words, what does not change.
    """

    symbol: str
    theorem: float
    points: tuple[Point, ...]
    exponent: Exponent
    noise_exponent: Exponent
    fixed: str


def horizons(epochs: int, points: int = 60) -> FloatArray:
    """Whole numbers from 1 to `epochs`, evenly spread on a logarithmic scale."""
    return np.unique(np.geomspace(1, epochs, points).round())


def base_network() -> Network:
    """Six nodes in a ring, every gain drawn on its own."""
    return topologies.ring(6, seed=0)


def repeated_ring(nodes: int) -> Network:
    """A ring with chords that repeats one uneven pattern of four nodes, so that theta/K hardly changes with K.

    Every node is linked to those one and s places away on both sides, s the odd number next to sqrt(K): a plain ring
    would mix ever more slowly, and what is left of the start would pass for growth of U2. Nodes speak louder clockwise
    and to those beside them. `nodes` must be a multiple of 4 and at least 8.
    """
    if nodes % 4 or nodes < 8:
        raise Error(f"nodes is {nodes}, expected a multiple of 4 from 8 on", hint="the ring repeats four nodes")
    loudness = np.tile([1.0, 0.8, 0.5, 0.7], nodes // 4)
    chord = 2 * int(np.sqrt(nodes) / 2) + 1
    beside, across = (np.roll(np.eye(nodes), places, axis=1) for places in (1, chord))
    heard = beside + 0.8 * beside.T + 0.7 * across + 0.5 * across.T
    return Network(gains=loudness[:, None] * heard)


def slopes(regret: Regret, level: int = 0) -> tuple[float, float, float]:
    """U2 of the mean over nodes, its standard error over runs, and the slope without noise, over the later part."""
    late = fits.later(regret.horizons)
    across = np.log(regret.horizons[late])
    by_run = fits.line(across, regret.noisy[late, level].mean(axis=1))[1]
    silent = fits.line(across, regret.silent[late].mean(axis=1))[1]
    return float(by_run.mean()), float(by_run.std(ddof=1) / np.sqrt(len(by_run))), float(silent)


def sweep(symbol: str, theorem: float, points: tuple[Point, ...], fixed: str, *, independent: bool = True) -> Sweep:
    """Points with their exponents; errors of points with the same random draws move all of them alike, and cancel."""
    values, total, error, silent = np.array([point[:4] for point in points]).T
    known = error if independent else None
    return Sweep(
        symbol,
        theorem,
        points,
        fits.power_law(values, total, known),
        fits.power_law(values, total - silent, known),
        fixed,
    )


def over_nodes(on_stage: Stage = quiet) -> Sweep:
    """Sweeps K, on a ring with chords that repeats."""
    on_stage(f"regret for {len(NODES)} numbers of nodes")

    def point(nodes: int) -> Point:
        noise = BASE._replace(to_step=_NOISE_PER_NODE * nodes)
        return _measured(nodes, setting(repeated_ring(nodes), bowls(nodes, 2, CONDITION), noise, _EPOCHS), _RUNS)

    fixed = (
        "a ring with chords that repeats four nodes; mu, G, epsilon, delta, m = 2, the curvature of F over K, and q/K"
    )
    return sweep("K", 3.0, _two_at_a_time(point, NODES), fixed)


def over_dim(plane: Point, on_stage: Stage = quiet) -> Sweep:
    """Sweeps m, by copies of the plane.

    Args:
        plane: The point m = 2, which the sweep of delta has measured.
        on_stage: Called with a few words whenever a new stage of the work begins.
    """
    on_stage(f"regret for {len(DIMENSIONS)} dimensions")

    def point(dim: int) -> Point:
        network = base_network()
        runs = _RUNS if dim < 16 else _RUNS // 2  # more coordinates average as well as more runs
        return _measured(dim, setting(network, bowls(network.nodes, dim, CONDITION), BASE, _EPOCHS), runs)

    points = (plane._replace(value=2.0), *_two_at_a_time(point, DIMENSIONS[1:]))
    fixed = "network, plan, mu, G, all spectra, the distance to x* and F(0) - F(x*); without noise nothing changes"
    return sweep("m", 1.0, points, fixed)


def over_delta(on_stage: Stage = quiet) -> Sweep:
    """Sweeps ln(1.25/delta), the noise after the paper's Gaussian formula at a fixed epsilon of one epoch.

    The formula makes sigma proportional to sqrt(ln(1.25/delta)). The limits on the power split depend on sigma and
    delta through sigma^2 / ln(1.25/delta) only, so alpha does not change, which is verified.
    """
    on_stage(f"regret for {len(DELTAS)} values of delta")
    network = base_network()
    problem = bowls(network.nodes, 2, CONDITION)
    base = setting(network, problem, BASE, _EPOCHS)
    settings = [setting(network, problem, at_delta(delta), _EPOCHS) for delta in DELTAS]
    for other in settings:
        if not np.allclose(other.plan.alpha, base.plan.alpha, rtol=1e-6, atol=0):
            raise Error("the power split moved with delta", hint="noise must follow sqrt(ln(1.25/delta))")
    levels = tuple(float(other.plan.noise_to_step[0] / BASE.to_step) for other in settings)
    regret = measure(base, horizons(_EPOCHS), _RUNS, levels)
    points = tuple(
        Point(float(np.log(1.25 / delta)), *slopes(regret, number), foreseen_slope(other))
        for number, (delta, other) in enumerate(zip(DELTAS, settings, strict=True))
    )
    fixed = "network, power split, problem, epsilon, m = 2, and the random draws"
    return sweep("ln(1.25/delta)", 1.0, points, fixed, independent=False)


def at_delta(delta: float) -> Noise:
    """The base noise for another delta at the same epsilon."""
    growth = np.sqrt(np.log(1.25 / delta) / np.log(1.25 / BASE.delta))
    return Noise(BASE.epsilon, delta, float(BASE.to_step * growth))


def sweeps(on_stage: Stage = quiet) -> tuple[Sweep, ...]:
    """K, m and ln(1.25/delta), in the order of the theorem."""
    by_delta = over_delta(on_stage)
    plane = by_delta.points[DELTAS.index(BASE.delta)]
    return over_nodes(on_stage), over_dim(plane, on_stage), by_delta


def _two_at_a_time(point: Callable[[int], Point], values: tuple[int, ...]) -> tuple[Point, ...]:
    """Most of the time goes into compiling, which uses one core."""
    with ThreadPoolExecutor(2) as pool:
        return tuple(pool.map(point, values))


def _measured(value: int, prepared: Setting, runs: int) -> Point:
    regret = measure(prepared, horizons(_EPOCHS), runs)
    return Point(float(value), *slopes(regret), foreseen_slope(prepared))
