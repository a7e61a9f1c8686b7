"""What a radio does on a network before anything is trained: signal, noise, slots, time and energy.

Everything follows from public numbers. Where gains change, the numbers are those of the mean gains; of a trace the
weakest step is given besides.
"""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import exp1

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.stability import rate_alone
from murmurcast.network.weights import arriving_amplitudes, mixing
from murmurcast.radio import divisor, mean_square, units
from murmurcast.radio.air_time import joules, message_symbols, uses_of_round
from murmurcast.radio.departures import departures
from murmurcast.radio.flooding import FloodCost, flood_cost
from murmurcast.radio.mean_weights import mean_weights, reception_of
from murmurcast.radio.physics import Split, public_scale
from murmurcast.radio.settings import Radio
from murmurcast.radio.slots import slots

_RATE_UP_TO = 300  # nodes, for the mixing rate
_MEAN_SQUARE_UP_TO = 20  # nodes, for the mean-square rate: a second


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkBudget:
    """What a radio does on a network. Made by `link_budget`.

    Attributes:
        sender: [links] of every directed link.
        receiver: [links]
        distance_m: [links], None where nodes have no positions.
        snr_db: [links] per symbol, the sender at full power over the receiver's noise.
        weakest_snr_db: [links] the same at the weakest step of a trace that the run plays, -inf of links that are not
            heard at one; None without a trace.
        noise_dbm: [nodes] the receivers' noise per symbol.
        heard_snr_db: [nodes] of the mean amplitude that a receiver hears.
        needed_snr_db: [epochs, nodes] SNR*: below it the receiver's noise in the mixed point exceeds the noise that
            hides data. For equal nodes (1 + r^2/(m s^2))/R, times the neighbours where each has a slot. -inf for
            digital links, which are decoded.
        receiver_noise_std: [epochs, nodes] tau, what the receiver's noise leaves in each coordinate of the mixed point.
        privacy_noise_std: [epochs, nodes] the noise that hides data, in the same place.
        doppler_per_epoch: f_D T_e, Doppler shift times the time from one epoch to the next.
        mixing_rate: By how much disagreement shrinks in a round of the mean weights; None beyond 300 nodes and where
            powers of the weights do not converge.
        mean_square_rate: Where weights change from epoch to epoch, by how much the disagreement's square shrinks in a
            round on average: at 1 or above models drift apart. None where they do not change, and beyond 20 nodes.
        slots: Of one round.
        sendings: [nodes] in how many slots of a round a node sends.
        symbols: [nodes] of one sending, pilots included.
        uses: Symbols that an epoch takes on the air, with prefix and guard.
        seconds: Of an epoch, on the air.
        joules: [nodes] of an epoch, at full power: radiated, and what circuits and the gradient take if that was said.
        renewal: What it takes besides to renew the common reference; None where it is never renewed.
        departures: A sentence for every assumption of the paper that does not hold.
    """

    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    distance_m: FloatArray | None
    snr_db: FloatArray
    weakest_snr_db: FloatArray | None
    noise_dbm: FloatArray
    heard_snr_db: FloatArray
    needed_snr_db: FloatArray
    receiver_noise_std: FloatArray
    privacy_noise_std: FloatArray
    doppler_per_epoch: float
    mixing_rate: float | None
    mean_square_rate: float | None
    slots: int
    sendings: NDArray[np.int64]
    symbols: FloatArray
    uses: float
    seconds: float
    joules: FloatArray
    renewal: FloodCost | None
    departures: tuple[str, ...]

    @property
    def receiver_noise_share(self) -> FloatArray:
        """[epochs, nodes] how much of the variance of all noise in the mixed point is the receiver's."""
        own, hiding = self.receiver_noise_std**2, self.privacy_noise_std**2
        return np.asarray(own / (own + hiding))


def link_budget(
    network: Network,
    radio: Radio,
    *,
    alpha: FloatArray,
    noise_std: FloatArray,
    dim: int,
    radius: float,
    normaliser: int,
    rounds: int = 1,
) -> LinkBudget:
    """The link budget of Algorithm 1's plan.

    Args:
        network: Who hears whom; gains with real path loss, power in watts.
        radio: What carries the signals.
        alpha: [nodes] power split.
        noise_std: [epochs, nodes] sigma, per coordinate, before the split.
        dim: m, number of parameters.
        radius: The largest norm of a model.
        normaliser: R.
        rounds: Mixing rounds of an epoch.
    """
    _check.at_least(1, dim=dim, rounds=rounds)
    _check.positive(radius=radius)
    links, noise = network.gains.tocoo(), radio.noise_w(network.power)
    sender, receiver = links.coords
    snr = units.snr_db(links.data, network.power[sender], noise[receiver])
    turns = slots(network, radio.access, radio.duplex)
    symbols = message_symbols(network, radio, dim)
    uses = rounds * uses_of_round(turns, symbols, radio)
    seconds = uses / radio.bandwidth_hz
    mixed = _mixed(network, radio, alpha, noise_std, normaliser)
    rates = _rates(network, radio, alpha, normaliser, len(noise_std))
    scale = public_scale(Split(alpha, noise_std, normaliser, dim, radius, rounds))
    tau = np.sqrt(noise / 2) * mixed.receiver_factor / scale[:, None]
    heard = _heard_snr(network, noise)
    with np.errstate(divide="ignore"):
        needed = 10 * np.log10(heard * tau**2 / mixed.privacy_variance)
    spots = network.positions
    return LinkBudget(
        sender=sender.astype(np.int64),
        receiver=receiver.astype(np.int64),
        distance_m=None if spots is None else np.linalg.norm(spots[sender] - spots[receiver], axis=1),
        snr_db=snr,
        weakest_snr_db=_weakest_snr(network, radio, noise, len(noise_std)),
        noise_dbm=units.dbm(noise),
        heard_snr_db=10 * np.log10(heard),
        needed_snr_db=needed,
        receiver_noise_std=tau,
        privacy_noise_std=np.sqrt(mixed.privacy_variance),
        doppler_per_epoch=radio.doppler_hz * (seconds + radio.compute_seconds),
        mixing_rate=rates.mean,
        mean_square_rate=rates.mean_square,
        slots=turns.number,
        sendings=turns.sendings,
        symbols=symbols,
        uses=uses,
        seconds=seconds,
        joules=joules(network.power, radio, rounds * turns.sendings * symbols, seconds),
        renewal=flood_cost(network, radio, dim) if radio.recentre_every else None,
        departures=departures(network, radio, turns.number, float(symbols.max())),
    )


class _Mixed(NamedTuple):
    """What arrives in the mixed points of one round.

    Attributes:
        receiver_factor: [nodes] tau over the std of the receiver's noise, before the public scale.
        privacy_variance: [epochs, nodes] of the noise that hides data.
    """

    receiver_factor: FloatArray
    privacy_variance: FloatArray


def _mixed(network: Network, radio: Radio, alpha: FloatArray, noise_std: FloatArray, normaliser: int) -> _Mixed:
    said = (1 / alpha - 1) * noise_std**2  # s^2
    if radio.access == "referenced":
        return _mixed_towards_reference(network, radio, alpha, said)
    mixed = mixing(network, alpha, normaliser)
    factor = 1 / (mixed.compensation * normaliser)
    if radio.access == "own-slot":
        factor = factor * np.sqrt(network.heard_degree)
    if radio.access == "digital":
        factor = np.zeros(network.nodes)
    return _Mixed(factor, np.asarray((mixed.weights.power(2) @ said.T).T))


def _mixed_towards_reference(network: Network, radio: Radio, alpha: FloatArray, said: FloatArray) -> _Mixed:
    """Means over random phases, as if many were heard: |P|^2 over its mean Lambda is then exponential."""
    kappa, damping = radio.kappa, radio.damping
    inverse = float(np.exp(damping) * exp1(damping))  # mean of 1/(x + c)
    moved = 1 - damping * inverse  # mean of x/(x + c)
    moved_twice = 1 + damping - damping * (2 + damping) * inverse  # of its square
    squared_factor = kappa**2 * ((1 + damping) * inverse - 1)  # of |factor|^2 Lambda
    arriving = csr_array(network.gains.T.power(2) @ diags_array(alpha * network.power))
    power = np.asarray(arriving.sum(axis=1)).ravel()
    share = csr_array(diags_array(1 / power) @ arriving)
    heard_at_once = power if radio.duplex == "full" else power / 2
    own = 1 - 2 * kappa * moved + kappa**2 * moved_twice
    variance = own * said + squared_factor * (share @ said.T).T
    return _Mixed(np.sqrt(squared_factor / heard_at_once), np.asarray(variance))


def _weakest_snr(network: Network, radio: Radio, noise: FloatArray, epochs: int) -> FloatArray | None:
    """[links] over the steps that are played."""
    if radio.trace is None:
        return None
    sender, receiver = network.gains.tocoo().coords
    played = radio.trace.gains[: min(epochs, radio.trace.steps)]
    weakest = reduce(np.minimum, (np.abs(step[sender, receiver]) for step in played))
    return units.snr_db(weakest, network.power[sender], noise[receiver])


def _heard_snr(network: Network, noise: FloatArray) -> FloatArray:
    """[nodes] of the mean amplitude of all that a receiver hears."""
    amplitude = np.asarray(network.gains.T @ np.sqrt(network.power)) / network.heard_degree
    return np.asarray(amplitude**2 / noise)


class _Rates(NamedTuple):
    """How fast nodes agree: of the mean weights, and in the mean square where weights change."""

    mean: float | None
    mean_square: float | None


def _rates(network: Network, radio: Radio, alpha: FloatArray, normaliser: int, epochs: int) -> _Rates:
    if network.nodes > _RATE_UP_TO:
        return _Rates(None, None)
    if not radio.varies:
        return _Rates(_rate(mixing(network, alpha, normaliser).weights), None)
    mean = _rate(mean_weights(network, alpha, radio, normaliser, epochs))
    if network.nodes > _MEAN_SQUARE_UP_TO:
        return _Rates(mean, None)
    reception = reception_of(radio, normaliser)
    if radio.trace is not None:
        amplitude = np.sqrt(alpha * network.power)
        return _Rates(mean, mean_square.rate_of_trace(radio.trace, amplitude, reception, radio.dither, epochs))
    channel, arriving = divisor.Channel(radio.fading, radio.k_factor_db), arriving_amplitudes(network, alpha)
    return _Rates(mean, mean_square.rate(arriving.toarray(), reception, channel, radio.dither))


def _rate(weights: csr_array) -> float | None:
    if weights.shape[0] > _RATE_UP_TO:
        return None
    try:
        return rate_alone(weights)
    except Error:  # periodic weights
        return None
