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
from murmurcast.radio.trace import ChannelTrace

MAX_NODES = 60  # of a check: the map is nodes^2 x nodes^2
DRAWS = 1000
_STEPS = 40  # of Arnoldi's iteration
_NEGLIGIBLE = 1e-10


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
    _require_size(len(arriving))
    return _rate_of(weights(arriving, reception, channel, dither, seed, draws))


def rate_of_trace(
    trace: ChannelTrace, amplitude: FloatArray, reception: Reception, dither: bool, epochs: int, seed: int = 0
) -> float:
    """The same of a trace, as if its steps came in random order.

    Args:
        trace: The channel.
        amplitude: [nodes] sqrt(alpha_j p_j).
        reception: As in `rate`.
        dither: As in `rate`.
        epochs: Of the run; of the steps it plays at most 1000 are taken, evenly.
        seed: Of dither and halves.
    """
    _require_size(trace.nodes)
    steps = np.arange(DRAWS) * min(epochs, trace.steps) // DRAWS
    gains = trace.by_receiver[:, steps].swapaxes(0, 1) * amplitude
    mean_power = np.square(trace.rms.T * amplitude).sum(axis=1)
    return _rate_of(_combined(np.random.default_rng(seed), gains, mean_power, reception, dither))


def _require_size(nodes: int) -> None:
    if nodes > MAX_NODES:
        raise Error(
            f"the mean-square rate of {nodes} nodes needs {nodes**2} x {nodes**2} numbers",
            hint=f"check a part of the network of at most {MAX_NODES} nodes",
        )


def _rate_of(drawn_weights: "np.typing.NDArray[np.complex128]") -> float:
    disagreeing = drawn_weights - drawn_weights.mean(axis=1, keepdims=True)
    with threads_for(drawn_weights.shape[-1]):
        return _spectral_radius(disagreeing)


def _spectral_radius(weights: "np.typing.NDArray[np.complex128]") -> float:
    """Of X -> mean of W X W*, by Arnoldi's iteration from the identity: the leading X is a covariance, so it is met."""
    nodes = weights.shape[-1]
    steps = min(_STEPS, nodes**2)
    adjoint = weights.conj().swapaxes(-1, -2)
    basis = np.zeros((steps + 1, nodes**2), np.complex128)
    basis[0] = np.eye(nodes).ravel() / np.sqrt(nodes)
    projected = np.zeros((steps + 1, steps), np.complex128)
    radius = np.inf
    for step in range(steps):
        image = (weights @ basis[step].reshape(nodes, nodes) @ adjoint).mean(axis=0).ravel()
        for _ in range(2):  # twice, so that rounding does not tilt the basis
            parts = basis[: step + 1].conj() @ image
            projected[: step + 1, step] += parts
            image = image - parts @ basis[: step + 1]
        last, radius = radius, float(np.abs(np.linalg.eigvals(projected[: step + 1, : step + 1])).max())
        left = float(np.linalg.norm(image))
        if left < _NEGLIGIBLE or abs(radius - last) < _NEGLIGIBLE:
            break
        projected[step + 1, step], basis[step + 1] = left, image / left
    return radius


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
    return _combined(generator, gains, np.square(arriving).sum(axis=1), reception, dither)


def _combined(
    generator: np.random.Generator,
    gains: "np.typing.NDArray[np.complex128]",
    mean_power: FloatArray,
    reception: Reception,
    dither: bool,
) -> "np.typing.NDArray[np.complex128]":
    """[draws, nodes, nodes] weights from what arrives, [draws, receiver, sender]."""
    shape, (draws, nodes) = gains.shape, gains.shape[:2]
    if dither:
        gains = gains * np.exp(2j * np.pi * generator.random((draws, 1, nodes)))
    linked = np.abs(gains) > 0
    if reception.halves:
        coins = generator.random((draws, nodes)) < 0.5
        linked = linked & (coins[:, :, None] != coins[:, None, :])
    pilot = Pilot(0.0, np.zeros(shape[:-1]), np.zeros(shape[:-1]))
    if reception.access == "referenced":
        power = mean_power / (2 if reception.halves else 1)
        combined = combining.referenced(gains, linked, pilot, power, reception.kappa, reception.damping)
    elif reception.access == "aligned":
        combined = combining.aligned(np.abs(gains), linked, pilot, reception.normaliser)
    else:
        combined = combining.own_slot(gains, linked, pilot, reception.normaliser)
    return np.asarray(combined.weights + combined.own[..., None] * np.eye(nodes))
