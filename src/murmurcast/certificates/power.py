"""Power sent against noise claimed: a statistical test.

A signal is a model plus Gaussian noise that is fresh: whatever the model is, ||signal||^2 / s^2 is at least a
chi-square of as many degrees of freedom as the model has parameters, s being the standard deviation of the noise in it
(a noncentral chi-square is larger in distribution than a central one). Over the evaluated epochs and the seeds these
add up: given the past, each is at least a fresh chi-square. So a node that sent the noise it claims falls below the
quantile used here with a chance that is known, and a ledger whose noise was never sent is found out by its energy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from murmurcast._check import FloatArray
from murmurcast.algorithms.account import NoiseSent
from murmurcast.certificates.ledger import Ledger, refuse
from murmurcast.runs.result import Result

FALSE_ALARM = 1e-9  # the chance at most that a run which sent its noise is refused
_ROUNDING = 1e-3  # relative: of sums of squares in float32
_DIVERGED = 1e15  # a model beyond this has left what its energy can be reckoned with


class Sent(NamedTuple):
    """What the metrics say was sent.

    Attributes:
        epochs: [epochs] those that were evaluated.
        energy: [seeds, epochs, nodes] ||signal||^2.
    """

    epochs: NDArray[np.int64]
    energy: FloatArray


def require_noise_sent(run: Result, ledger: Ledger, noise_sent: NoiseSent) -> None:
    """No node sent far less energy than the noise it claims must have had, and none sent after it had dropped out."""
    sent = power_sent(run, ledger)
    std = noise_sent(ledger, sent.epochs)
    # The first message is free of data, and may be sent without noise.
    silent = (std == 0) & (sent.epochs > 1)[:, None]
    if (sent.energy[:, silent] != 0).any():
        refuse(ledger.run, "the metrics have power sent where the ledger has none")
    with np.errstate(all="ignore"):
        squares = np.where(std > 0, sent.energy / std**2, 0.0)
    squares = np.where(np.isfinite(squares), squares, np.inf)  # models that left the numbers
    dim, draws = int(np.prod(run.published.shape[2:])), (std > 0).sum(axis=0) * len(squares)
    claimed, share = np.broadcast_to(std > 0, squares.shape), FALSE_ALARM / 2
    _require_least(ledger, squares.sum(axis=(0, 1)), dim * draws, share / ledger.nodes)
    of_each = np.where(claimed, squares, np.inf).min(axis=(0, 1))
    _require_least(ledger, of_each, np.where(draws > 0, dim, 0), share / max(1, int(claimed.sum())))


def require_silence(run: Result, ledger: Ledger) -> None:
    """Where nothing is sent, no power is."""
    if power_sent(run, ledger).energy.any() or np.asarray(run.metrics["loudest"]).any():
        refuse(ledger.run, "the metrics have power sent, and the ledger says that nothing is sent")


def _require_least(ledger: Ledger, energy: FloatArray, freedom: NDArray[np.int64], chance: float) -> None:
    """[nodes] sums of squares are not below what chi-squares of so many degrees of freedom reach but by this chance."""
    least = 2 * gammaincinv(np.maximum(freedom, 1) / 2, chance) * (freedom > 0)
    low = energy * (1 + _ROUNDING) < least
    if low.any():
        node = int(np.argmin(np.where(low, energy / np.maximum(freedom, 1), np.inf)))
        refuse(
            ledger.run,
            f"node {node} sent {energy[node]:.4g} times the variance of the noise it claims, and {freedom[node]} draws "
            f"of that noise come to {least[node]:.4g} at least: the noise in the ledger was not sent",
        )


def power_sent(run: Result, ledger: Ledger) -> Sent:
    """What the metrics say was sent, if they can be believed at all."""
    power = ledger.per_node("power")
    epochs = np.asarray(run.metrics["epoch"], np.int64)
    if epochs[-1] != ledger.epochs:
        refuse(ledger.run, f"the metrics end at epoch {epochs[-1]}, and the ledger at {ledger.epochs}")
    sent_power, loudest = (np.asarray(run.metrics[name], np.float64) for name in ("sent_power", "loudest"))
    if (sent_power < 0).any() or (loudest < sent_power.max(axis=1) * (1 - _ROUNDING)).any():
        refuse(ledger.run, "the metrics have power sent below 0, or above the loudest signal")
    reach = np.abs(run.published.reshape(*run.published.shape[:2], -1)).max(axis=2)  # not a number where it diverged
    lost = ~np.isfinite(sent_power).all(axis=1) & (reach <= _DIVERGED)
    if lost.any():
        refuse(ledger.run, f"the metrics do not say what node {int(np.argwhere(lost)[0, 1])} sent")
    return Sent(epochs, sent_power * power)
