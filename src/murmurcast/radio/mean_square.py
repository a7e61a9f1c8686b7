"""Whether nodes agree under random weights: how fast their disagreement shrinks in the mean square.

With weights W_t drawn anew in every epoch, E||x - mean||^2 shrinks by the spectral radius of E[W~ (x) conj W~], where
W~ is W on the space of disagreement. Below 1 nodes agree; above it models may drift apart though the mean of W looks
harmless. It is free of data: a plan can check it.
"""

import numpy as np

from murmurcast._check import FloatArray
from murmurcast._threads import threads_for
from murmurcast.errors import Error
from murmurcast.radio import combining, fading
from murmurcast.radio.combining import Pilot
from murmurcast.radio.divisor import STEADY, Channel, Reception

MAX_NODES = 60  # of a check: the map is nodes^2 x nodes^2
DRAWS = 1000
_STEPS, _TOLERANCE = 200, 1e-4


def rate(
    arriving: FloatArray,
    reception: Reception,
    channel: Channel = STEADY,
    dither: bool = True,
    seed: int = 0,
    draws: int = DRAWS,
) -> float:
    """Mean-square rate: by what factor the disagreement's square shrinks in an epoch on average, in the long run.

    Args:
        arriving: [receiver, sender] root mean square of |h_ji| sqrt(alpha_j p_j), dense, on any scale; 0 for no link.
        reception: How receivers combine.
        channel: How links fade; every epoch is drawn on its own, also of "jakes".
        dither: Whether every sender turns its phase at random in every epoch. Phases of the links, which nobody knows,
            are drawn once from the seed.
        seed: Of the draws.
        draws: How many rounds to take the mean over.
    """
    nodes = len(arriving)
    if nodes > MAX_NODES:
        raise Error(
            f"the mean-square rate of {nodes} nodes needs {nodes**2} x {nodes**2} numbers",
            hint=f"check a part of the network of at most {MAX_NODES} nodes",
        )
    found = weights(arriving, reception, channel, dither, seed, draws)
    disagreeing = found - found.mean(axis=1, keepdims=True)
    spread = np.eye(nodes) - 1 / nodes + 0j
    last, ratio = 0.0, 1.0
    with threads_for(nodes):
        for _ in range(_STEPS):
            spread = (disagreeing @ spread @ disagreeing.conj().swapaxes(-1, -2)).mean(axis=0)
            last, ratio = ratio, float(np.trace(spread).real)
            if ratio == 0 or abs(ratio - last) <= _TOLERANCE * ratio:
                break
            spread /= ratio
    return ratio


def weights(
    arriving: FloatArray, reception: Reception, channel: Channel, dither: bool, seed: int, draws: int
) -> "np.typing.NDArray[np.complex128]":
    """[draws, nodes, nodes] weights of so many rounds with perfect pilots; complex rows that sum to 1.

    Args:
        arriving: As in `rate`.
        reception: As in `rate`.
        channel: As in `rate`.
        dither: As in `rate`.
        seed: As in `rate`.
        draws: As in `rate`.
    """
    generator, nodes = np.random.default_rng(seed), len(arriving)
    turned = np.exp(2j * np.pi * generator.random((nodes, nodes)))
    shape = (draws, nodes, nodes)
    gains = np.broadcast_to(arriving * turned, shape)
    if channel.fading != "none":
        gains = gains * fading.with_line_of_sight(fading.rayleigh(generator, shape), channel.k_factor_db)
    if dither:
        gains = gains * np.exp(2j * np.pi * generator.random((draws, 1, nodes)))
    linked = np.broadcast_to(arriving > 0, shape)
    if reception.halves:
        coins = generator.random((draws, nodes)) < 0.5
        linked = linked & (coins[:, :, None] != coins[:, None, :])
    pilot = Pilot(0.0, np.zeros(shape[:-1]), np.zeros(shape[:-1]))
    if reception.access == "referenced":
        power = np.square(arriving).sum(axis=1) / (2 if reception.halves else 1)
        found = combining.referenced(gains, linked, pilot, power, reception.kappa, reception.damping)
    elif reception.access == "aligned":
        found = combining.aligned(np.abs(gains), linked, pilot, reception.normaliser)
    else:
        found = combining.own_slot(gains, linked, pilot, reception.normaliser)
    return np.asarray(found.weights + found.own[..., None] * np.eye(nodes))
