"""The linear diagnostic of a radio: weights that change from epoch to epoch, and receivers with noise. Not a guarantee.

As `linear`, with A_t instead of A and receiver noise of standard deviation tau in every mixed point:

    Sig_t   = W_t P_t W_t* + diag(tau_C^2),       L_t = P_t W_t* Sig_t^+
    P_{t+1} = F_t (I - L_t W_t) P_t F_t* + diag(tau_H^2) + S_{t+1}

Gains, phases and who listens when are known to the observers. Their own receiver noise is 0 unless given: an observer
may have better antennas than a plan knows of.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._threads import one_blas_thread
from murmurcast.privacy import linear

Weights = np.typing.NDArray[np.float64 | np.complex128]


class RadioNoise(NamedTuple):
    """What receivers add to their mixed points, per coordinate.

    Attributes:
        hidden: [epochs, nodes] tau; only that of nodes that are not observers is used.
        observers: [epochs, nodes] tau of the observers; only theirs is used. 0, the default, is a better antenna.
    """

    hidden: FloatArray
    observers: FloatArray | float = 0.0


def common_direction(
    weights: Weights, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray, receivers: RadioNoise
) -> FloatArray:
    """Mu of every target if all its gradient changes point one way.

    Args:
        weights: [epochs, nodes, nodes] A_t, receiver first; complex where receivers combine symbols with their phases.
            One matrix stands for all epochs.
        observers: The coalition; its members share all they hear and know their own noise.
        effective_noise: [epochs, nodes] s_k,t.
        push: [epochs, nodes] S_k gamma_t / z_kk,t, how far one gradient can move what the node says.
        receivers: Noise of the receivers.

    Returns:
        [nodes] mu; 0 for the observers.
    """
    return np.asarray(_along(weights, observers, effective_noise, push, receivers, np.ones((1, len(push))))[0])


def steady_or_turning(
    weights: Weights, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray, receivers: RadioNoise
) -> FloatArray:
    """Mu of every target, the larger of two: its gradient changes all point one way, or turn round every epoch.

    Args:
        weights: As in `common_direction`.
        observers: As in `common_direction`.
        effective_noise: As in `common_direction`.
        push: As in `common_direction`.
        receivers: As in `common_direction`.

    Returns:
        [nodes] mu; 0 for the observers.
    """
    signs = np.ones((2, len(push)))
    signs[1, 1::2] = -1
    return np.asarray(_along(weights, observers, effective_noise, push, receivers, signs).max(axis=0))


def _along(
    weights: Weights,
    observers: tuple[int, ...],
    effective_noise: FloatArray,
    push: FloatArray,
    receivers: RadioNoise,
    signs: FloatArray,
) -> FloatArray:
    """[sequences, nodes] mu of every target along given sequences of signs, [sequences, epochs]; one sweep for all."""
    linear.require_numbers(effective_noise, push)
    _check.not_negative(hidden=receivers.hidden.ravel(), observers=np.asarray(receivers.observers).ravel())
    epochs, nodes = effective_noise.shape
    varying = np.broadcast_to(weights, (epochs, nodes, nodes))
    hidden = linear.hidden_from(varying[0].real, observers)
    size, sequences = len(hidden), len(signs)
    response = np.zeros((size, sequences * size), weights.dtype)
    node, column = np.tile(np.arange(size), sequences), np.arange(sequences * size)
    total = np.zeros(sequences * size)
    with one_blas_thread():
        for epoch, (observe, carry) in enumerate(_steps(varying, observers, hidden, effective_noise, receivers)):
            total += np.square(np.abs(observe @ response)).sum(axis=0)
            response = carry @ response
            response[node, column] -= np.outer(signs[:, epoch], push[epoch, hidden]).ravel()
    result = np.zeros((sequences, nodes))
    result[:, hidden] = np.sqrt(total).reshape(sequences, size)
    return result


def _steps(
    weights: Weights,
    observers: tuple[int, ...],
    hidden: "np.typing.NDArray[np.int64]",
    effective_noise: FloatArray,
    receivers: RadioNoise,
) -> Iterator[tuple[Any, Any]]:
    """Of every epoch [rank, hidden] what is said -> whitened observation, and [hidden, hidden] F (I - L W).

    What is observed is a function of what hidden nodes say and of the observers' own noise in units of its standard
    deviation: its row space leaves out what is heard twice, or not at all, whichever noise is 0.
    """
    size, members = len(hidden), list(observers)
    tau = np.broadcast_to(receivers.observers, effective_noise.shape)[:, members]
    added = np.broadcast_to(receivers.hidden, effective_noise.shape)[:, hidden] ** 2
    variance = linear.with_some_noise(effective_noise)[:, hidden] ** 2
    uncertain: Any = np.diag(variance[0])
    for epoch, now in enumerate(weights):
        forward = now[np.ix_(hidden, hidden)]
        known = linear.row_space(np.concatenate([now[members][:, hidden], np.diag(tau[epoch])], axis=1))
        heard, own = known[:, :size], known[:, size:]
        cross = heard @ uncertain
        root = np.linalg.cholesky(cross @ heard.conj().T + own @ own.conj().T)
        observe = np.linalg.solve(root, heard)
        moved = forward @ np.linalg.solve(root, cross).conj().T
        yield observe, forward - moved @ observe
        if epoch + 1 < len(weights):
            uncertain = forward @ uncertain @ forward.conj().T - moved @ moved.conj().T
            uncertain = (uncertain + uncertain.conj().T) / 2
            uncertain[np.diag_indices(size)] += added[epoch] + variance[epoch + 1]
