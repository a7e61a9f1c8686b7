"""What a node divides its gradient by when the weights change from epoch to epoch.

What node i adds in epoch t weighs phi_t+1,i in the common model, where phi_t' = phi_t+1' A_t: that depends on weights
still to come. Dividing by it makes every node's data count alike. It cannot be known in time; these can:

    mean       pi of E[A]: exact on average where epochs are independent (docs/radio-theory.md has the proof)
    predicted  pi of w A_t + (1 - w) E[A], the weights expected over the time in which the network mixes
    recursive  the paper's z_{t+1} = A_t z_t: it settles on the influence of the first epochs' channels

All of them are free of data. Weights are [..., receiver, sender].
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.special import erfcx, exp1

from murmurcast._check import FloatArray
from murmurcast._threads import threads_for
from murmurcast.errors import Error
from murmurcast.network.weights import RECURSIVE_UP_TO, perron
from murmurcast.radio import combining, fading
from murmurcast.radio.combining import Pilot
from murmurcast.radio.settings import AccessName, Fading

DRAWS = 4000
MAX_DRAWN = 4e7  # factors: draws x links
MAX_PREDICTED = 300  # nodes: one dense solve an epoch
_CHUNK = 2**21  # factors at once
_LOG_RANGE, _LOG_STEP, _FAR = (-20.0, 14.0), 0.5, 1e3
_LEAST_SHARE = 0.1  # of the smallest entry of pi: nobody's step is stretched further
_LARGEST_BLEND = 1 - 1e-6  # a part of E[A] is always left: weights of one epoch alone may fall into pieces


class Reception(NamedTuple):
    """How receivers combine what they hear.

    Attributes:
        access: As of `Radio`.
        normaliser: R; "referenced" has none.
        kappa: Of "referenced".
        damping: Of "referenced".
        halves: Of "referenced": a coin splits the nodes in every round, and each half hears the other.
    """

    access: AccessName
    normaliser: int
    kappa: float = 1.0
    damping: float = 1.0
    halves: bool = False


class Channel(NamedTuple):
    """How links fade.

    Attributes:
        fading: "none", "iid" or "jakes". The last two are taken to be the same here: sixteen sinusoids change mean
            weights by 0.3 %.
        k_factor_db: A line of sight, or None.
    """

    fading: Fading
    k_factor_db: float | None = None


STEADY = Channel("none")


def weights(amplitudes: FloatArray, normaliser: int) -> FloatArray:
    """[..., nodes, nodes] A_t of "aligned", "own-slot" and "digital", from what arrives now; rows sum to 1.

    Args:
        amplitudes: [..., receiver, sender] |h_ji| sqrt(alpha_j p_j); 0 where nothing arrives. A node that hears nobody
            keeps its own point.
        normaliser: R.
    """
    pilot = Pilot(0.0, np.zeros(amplitudes.shape[:-1]), np.zeros(amplitudes.shape[:-1]))
    combined = combining.own_slot(amplitudes, amplitudes > 0, pilot, normaliser)
    return np.asarray(combined.weights + combined.own[..., None] * np.eye(amplitudes.shape[-1]))


def expected(
    arriving: csr_array,
    reception: Reception,
    channel: Channel = STEADY,
    least: FloatArray | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> csr_array:
    """E[A] of a fading network by Monte-Carlo: [nodes, nodes] on its links and the diagonal, rows sum to 1.

    Pilots are perfect. Of large networks fewer are drawn, so that draws x links stays within 4e7; where these would be
    too few and an integral gives the mean, it is taken instead.

    Args:
        arriving: [receiver, sender] root mean square of |h_ji| sqrt(alpha_j p_j), on any common scale.
        reception: How receivers combine.
        channel: How links fade.
        least: [nodes] energy of a pilot, on the scale of `arriving` squared, below which a receiver keeps its own
            point; None for 0. For "referenced" it makes no difference worth counting: with so weak a pilot a receiver
            hardly moves.
        seed: Fixed, so that the same network always has the same divisor.
        draws: How many.
    """
    given = csr_array(arriving, copy=True)
    given.sort_indices()
    generator = np.random.default_rng(seed)
    count = int(min(draws, max(1, MAX_DRAWN // max(1, given.nnz)))) if _varies(reception, channel) else 1
    threshold = np.zeros(given.shape[0]) if least is None else least
    integrable = least is None and reception.access != "referenced" and _scattered(channel)
    exact = integrable and count < draws
    heard, degree = np.zeros(given.nnz), np.diff(given.indptr)
    for number in np.unique(degree[degree > 0]):  # receivers that hear equally many together: nothing is padded
        receivers = np.flatnonzero(degree == number)
        entries = given.indptr[receivers][:, None] + np.arange(number)
        strength, least_here = given.data[entries], threshold[receivers]
        if exact:
            heard[entries] = number / reception.normaliser * rayleigh_shares(strength)
            continue
        size = max(1, _CHUNK // strength.size)
        for start in range(0, count, size):
            shape = (min(size, count - start), *strength.shape)
            drawn = _referenced if reception.access == "referenced" else _weighed
            heard[entries] += drawn(generator, shape, strength, least_here, reception, channel).sum(0) / count
    away = csr_array((heard, given.indices, given.indptr), shape=given.shape)
    result = csr_array(away + diags_array(1 - np.asarray(away.sum(axis=1)).ravel()))
    result.sort_indices()
    return result


def _varies(reception: Reception, channel: Channel) -> bool:
    """Whether there is anything to draw; scattered phases have closed forms."""
    if reception.access != "referenced":
        return channel.fading != "none"
    return reception.halves or not _scattered(channel)


def _scattered(channel: Channel) -> bool:
    return channel.fading != "none" and channel.k_factor_db is None


def _weighed(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    strength: FloatArray,
    least: FloatArray,
    reception: Reception,
    channel: Channel,
) -> FloatArray:
    """[draws, receivers, heard] weights where every sender's amplitude counts."""
    if channel.fading == "none":
        factor = np.ones(shape)
    elif channel.k_factor_db is None:
        factor = np.sqrt(generator.standard_exponential(shape))  # |CN(0, 1)|
    else:
        factor = np.abs(fading.with_line_of_sight(fading.rayleigh(generator, shape), channel.k_factor_db))
    of = combining.aligned if reception.access == "aligned" else combining.own_slot
    amplitude = strength * factor
    pilot = Pilot(0.0, np.zeros(shape[:-1]), least)
    return np.asarray(of(amplitude, amplitude > 0, pilot, reception.normaliser).weights)


def rayleigh_shares(strength: FloatArray) -> FloatArray:
    """[receivers, heard] E[r_j / sum_k r_k] of independent Rayleigh amplitudes of these root mean squares.

    With L_k(s) the Laplace transform of r_k it is the integral of -L_j'(s) prod_{k != j} L_k(s) over s > 0: by the
    trapezoidal rule over ln s, which converges exponentially. They sum to 1, which makes up for the ends cut off.
    """
    total, share = np.zeros_like(strength), strength / strength.sum(axis=-1, keepdims=True)
    for s in np.exp(np.arange(*_LOG_RANGE, _LOG_STEP)):
        x = share * s / 2
        hidden = np.sqrt(np.pi) * erfcx(x)
        far = x > _FAR  # where differences of large numbers lose their digits
        near = np.where(far, 1.0, x)
        with np.errstate(divide="ignore", over="ignore"):
            transform = np.where(far, 1 / (2 * x**2), 1 - near * hidden)
            slope = np.where(far, 1 / x**3, hidden * (1 + 2 * near**2) - 2 * near)
        others = np.exp(np.log(transform).sum(axis=-1, keepdims=True) - np.log(transform))
        total += s * share * slope * others
    return np.asarray(total / total.sum(axis=-1, keepdims=True))


def _referenced(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    strength: FloatArray,
    least: FloatArray,  # noqa: ARG001
    reception: Reception,
    channel: Channel,
) -> FloatArray:
    """[draws, receivers, heard] weights of "referenced", real and averaged over as much as has a closed form.

    With b = c Lambda: where all is scattered, the part of g_j in P is |g_j|^2 of |P|^2 on average, and |P|^2 is
    exponential. Else over the phase of g_j alone: with a = |g_j| and Q the sum of all others,
    conj(P) g_j/(|P|^2 + b) averages to (1 - (|Q|^2 + b - a^2)/sqrt((|Q|^2 + b - a^2)^2 + 4 a^2 b))/2, never negative.
    """
    sends = np.where(generator.random(shape) < 0.5, 1.0, 0.0) if reception.halves else np.ones(shape)
    power = np.square(strength)
    floor = reception.damping * power.sum(-1)[:, None] / (2 if reception.halves else 1)
    if _scattered(channel):
        total = (sends * power).sum(-1, keepdims=True)
        total = np.maximum(total, floor / 500)  # who hears that little does not move
        moved = 1 - floor / total * np.exp(floor / total) * exp1(floor / total)
        return np.asarray(reception.kappa * sends * power / total * moved)
    factor = sends * np.exp(2j * np.pi * generator.random(shape))
    if channel.fading != "none":
        factor *= fading.with_line_of_sight(fading.rayleigh(generator, shape), channel.k_factor_db)
    return over_own_phase(strength * factor, floor, reception.kappa)


def over_own_phase(arriving: "np.typing.NDArray[np.complex128]", floor: FloatArray, kappa: float) -> FloatArray:
    """[..., receivers, heard] weights of "referenced", each averaged over the phase of its own sender.

    Args:
        arriving: [..., receivers, heard] g, with phases; 0 of who does not send.
        floor: [receivers, 1] c Lambda.
        kappa: How far a node moves.
    """
    own = np.abs(arriving) ** 2
    others = np.abs(arriving.sum(-1, keepdims=True) - arriving) ** 2 + floor - own
    return np.asarray(kappa / 2 * (1 - others / np.sqrt(others**2 + 4 * own * floor)))


def mean(expected: csr_array) -> FloatArray:
    """[nodes] pi of E[A], what every node divides by in all epochs."""
    return perron(expected)


def blend(expected: csr_array, doppler_times_epoch: float) -> float:
    """The weight w in `predicted`: how much of this epoch's channel is still there while the network mixes.

    The mean of rho(k)^2 over k = 1..M epochs, M = 1/(1 - |lambda_2|) with the second eigenvalue of E[A].
    """
    _check_predicted(expected.shape[0])
    deviation = expected.toarray() - perron(expected)[None, :]
    with threads_for(len(deviation)):
        second = float(np.abs(np.linalg.eigvals(deviation)).max())
    horizon = int(min(max(1, round(1 / max(1 - second, 1e-6))), 10**6))
    likeness = fading.correlation(np.arange(1, horizon + 1), doppler_times_epoch)
    return float(min(np.square(likeness).mean(), _LARGEST_BLEND))


def predicted(weights: FloatArray, expected: csr_array, blend: float) -> FloatArray:
    """Perron vectors of the weights expected over the next mixing time, never below a tenth of pi's smallest entry.

    Args:
        weights: [..., nodes, nodes] A_t.
        expected: [nodes, nodes] E[A].
        blend: w, below 1.

    Returns:
        [..., nodes] z of every epoch; noise must follow it.
    """
    _check_predicted(expected.shape[0])
    vectors = _perron(blend * weights + (1 - blend) * expected.toarray())
    return np.asarray(np.maximum(vectors, _LEAST_SHARE * perron(expected).min()))


def recursive(weights: FloatArray) -> FloatArray:
    """[epochs, nodes] the paper's z_ii,t: z_{t+1} = A_t z_t from z_1 = I.

    Args:
        weights: [epochs, nodes, nodes] A_t.
    """
    z = np.eye(weights.shape[-1])
    result = np.empty(weights.shape[:-1])
    with threads_for(len(z)):
        for epoch, now in enumerate(weights):
            result[epoch] = z.diagonal()
            z = now @ z
    return result


def instant(weights: FloatArray) -> FloatArray:
    """[epochs, nodes] Perron vectors of each epoch's weights alone; for comparison only.

    Where an outage cuts the network, one part of it gets all, whichever the solver finds first: no divisor at all.

    Args:
        weights: [epochs, nodes, nodes] A_t.
    """
    with threads_for(weights.shape[-1]):
        values, vectors = np.linalg.eig(np.swapaxes(weights, -1, -2))
    largest = np.argmax(values.real, axis=-1)
    leading = np.take_along_axis(vectors.real, largest[:, None, None], axis=-1)[..., 0]
    return np.asarray(leading / leading.sum(-1, keepdims=True))


def absolute(weights: FloatArray) -> FloatArray:
    """[epochs + 1, nodes] phi_t, the exact divisor, from the future: phi_t' = phi_t+1' A_t, phi_T+1 = 1/K.

    What node i adds in epoch t weighs phi_t+1,i in the last epoch's average. It is for comparison only.

    Args:
        weights: [epochs, nodes, nodes] A_t.
    """
    epochs, nodes = weights.shape[:2]
    result = np.full((epochs + 1, nodes), 1 / nodes)
    for epoch in range(epochs - 1, -1, -1):
        result[epoch] = result[epoch + 1] @ weights[epoch]
    return result


def _perron(weights: FloatArray) -> FloatArray:
    """[..., nodes] left Perron vectors of dense, irreducible weights."""
    nodes = weights.shape[-1]
    system = np.eye(nodes) - np.swapaxes(weights, -1, -2) + 1 / nodes  # its solution sums to 1
    with threads_for(nodes):
        return np.asarray(np.linalg.solve(system, np.full((*weights.shape[:-1], 1), 1 / nodes))[..., 0])


def require_followed(z: str, nodes: int) -> None:
    """Where z follows the channel, the dense weights of every epoch can be held.

    Args:
        z: The rule; those that do not follow the channel pass.
        nodes: How many there are.
    """
    if z == "predicted":
        _check_predicted(nodes)
    if z == "recursive" and nodes > RECURSIVE_UP_TO:
        raise Error(
            f'z = "recursive" of {nodes} nodes over weights that change needs {nodes} x {nodes} numbers in every epoch',
            hint=f'use z = "mean", which divides better under fading, or at most {RECURSIVE_UP_TO} nodes',
        )


def _check_predicted(nodes: int) -> None:
    if nodes > MAX_PREDICTED:
        raise Error(
            f'z = "predicted" of {nodes} nodes needs a dense solve in every epoch',
            hint=f'use z = "mean", or at most {MAX_PREDICTED} nodes',
        )
