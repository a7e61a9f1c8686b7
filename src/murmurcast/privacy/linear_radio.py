"""The linear diagnostic of a radio: weights that change, receivers with noise, several rounds. Not a guarantee.

As `linear`, with A_t instead of A and receiver noise of standard deviation tau in every mixed point:

    Sig_t   = W_t P_t W_t* + diag(tau_C^2),       L_t = P_t W_t* Sig_t^+
    P_{t+1} = F_t (I - L_t W_t) P_t F_t* + diag(tau_H^2) + S_{t+1}

Where an epoch has several rounds, observers hear every one of them: all that they hear in an epoch is taken together,
as one linear function of what hidden nodes say and of what hidden receivers add on the way. Where a sender is heard
alone, W_t has a row for each, not one for their mixture.

Gains, phases and who listens when are known to the observers. Their own receiver noise is 0 unless given: an observer
may have better antennas than a plan knows of.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast._threads import one_blas_thread, side_by_side
from murmurcast.privacy import linear

Weights = np.typing.NDArray[np.float64 | np.complex128]
Numbers = np.typing.NDArray[np.int64]
_CHUNK = 16 * 2**20  # numbers held at once when all responses of several targets are kept


class RadioNoise(NamedTuple):
    """What receivers add to their mixed points, per coordinate.

    Attributes:
        hidden: [epochs, nodes] tau; only that of nodes that are not observers is used.
        observers: [epochs, nodes] tau of the observers; only theirs is used. 0, the default, is a better antenna.
    """

    hidden: FloatArray
    observers: FloatArray | float = 0.0


class Antennas(Protocol):
    """What observers' antennas have of one round."""

    def __call__(self, observers: tuple[int, ...], /) -> Weights:
        """[epochs, rows, nodes]: every row a sum that they hear, of what nodes send; their own signals do not count."""
        ...


class OneRound(NamedTuple):
    """What becomes of what nodes send in one of an epoch's rounds.

    Attributes:
        weights: [epochs, nodes, nodes] A_t, receiver first; complex where receivers combine symbols with their phases.
        noise: [epochs, nodes] tau, what receivers add to their mixed points.
        antennas: What observers hear.
        own_noise: [epochs, rows] of what they hear; 0 for a better antenna.
    """

    weights: Weights
    noise: FloatArray
    antennas: Antennas
    own_noise: FloatArray | float = 0.0


Epoch = tuple[OneRound, ...]  # the rounds of all epochs, in order


def mixtures(weights: Weights) -> Antennas:
    """Of receivers that hear the sums of which they make their mixed points: [epochs, nodes, nodes] A_t."""
    return lambda observers: weights[:, list(observers)]


def common_direction(
    weights: Weights, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray, receivers: RadioNoise
) -> FloatArray:
    """Mu of every target if all its gradient changes point one way; of one round, whose mixtures observers hear.

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
    rounds = _one_round(weights, observers, effective_noise, receivers)
    return common_direction_of(rounds, observers, effective_noise, push)


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
    rounds = _one_round(weights, observers, effective_noise, receivers)
    return steady_or_turning_of(rounds, observers, effective_noise, push)


def _one_round(
    weights: Weights, observers: tuple[int, ...], effective_noise: FloatArray, receivers: RadioNoise
) -> Epoch:
    _check.not_negative(hidden=receivers.hidden.ravel(), observers=np.asarray(receivers.observers).ravel())
    epochs, nodes = effective_noise.shape
    _check.observers(nodes, observers)
    varying = np.broadcast_to(weights, (epochs, nodes, nodes))
    own = np.broadcast_to(receivers.observers, effective_noise.shape)[:, list(observers)]
    return (OneRound(varying, receivers.hidden, mixtures(varying), own),)


def common_direction_of(
    rounds: Epoch, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray
) -> FloatArray:
    """[nodes] as `common_direction`, of any rounds and antennas."""
    return np.asarray(_along(rounds, observers, effective_noise, push, np.ones((1, len(push))))[0])


def steady_or_turning_of(
    rounds: Epoch, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray
) -> FloatArray:
    """[nodes] as `steady_or_turning`, of any rounds and antennas."""
    signs = np.ones((2, len(push)))
    signs[1, 1::2] = -1
    return np.asarray(_along(rounds, observers, effective_noise, push, signs).max(axis=0))


def worst_direction_of(
    rounds: Epoch,
    observers: tuple[int, ...],
    effective_noise: FloatArray,
    push: FloatArray,
    on_target: Count = quiet,
) -> tuple[FloatArray, FloatArray]:
    """([nodes], [nodes]) as `linear.worst_direction`, of any rounds and antennas."""
    linear.require_numbers(effective_noise, push)
    nodes = effective_noise.shape[1]
    hidden = _hidden(nodes, observers)
    with one_blas_thread():
        steps = [(now.observe, now.carry) for now in filter_steps(rounds, observers, effective_noise)]
    heard = sum(len(observe) for observe, _ in steps)
    size = max(1, _CHUNK // max(1, heard * len(steps)))
    bounds: list[tuple[float, float]] = []
    for start in range(0, len(hidden), size):
        targets = np.arange(start, min(start + size, len(hidden)))
        seen = _responses(steps, targets) * push[:-1, hidden[targets]].T[:, None]
        for interval in side_by_side(lambda one: linear.largest_over_directions(one.conj().T @ one), seen):
            bounds.append(interval)
            on_target(len(bounds), len(hidden))
    result = np.zeros((2, nodes))
    result[:, hidden] = np.sqrt(bounds).T
    return result[0], result[1]


def _hidden(nodes: int, observers: tuple[int, ...]) -> Numbers:
    """The nodes that are not observers, in ascending order."""
    return np.setdiff1d(np.arange(nodes), _check.observers(nodes, observers))


def _responses(steps: list[tuple[Any, Any]], targets: Numbers) -> Any:
    """[targets, all that is heard, epochs - 1] whitened response to a unit impulse in every epoch but the last."""
    count, hidden = len(steps), steps[0][1].shape[0]
    heard = sum(len(observe) for observe, _ in steps)
    result = np.zeros((len(targets), heard, count - 1), steps[0][1].dtype)
    rows = np.zeros((0, hidden))
    for impulse in range(count - 2, -1, -1):
        observe, carry = steps[impulse + 1]
        rows = np.concatenate([observe, rows @ carry])
        result[:, heard - len(rows) :, impulse] = rows[:, targets].T
    return result


def _along(
    rounds: Epoch, observers: tuple[int, ...], effective_noise: FloatArray, push: FloatArray, signs: FloatArray
) -> FloatArray:
    """[sequences, nodes] mu of every target along given sequences of signs, [sequences, epochs]; one sweep for all."""
    linear.require_numbers(effective_noise, push)
    nodes = effective_noise.shape[1]
    hidden = _hidden(nodes, observers)
    size, sequences = len(hidden), len(signs)
    response = np.zeros((size, sequences * size), np.result_type(*(one.weights for one in rounds)))
    node, column = np.tile(np.arange(size), sequences), np.arange(sequences * size)
    total = np.zeros(sequences * size)
    with one_blas_thread():
        for epoch, now in enumerate(filter_steps(rounds, observers, effective_noise)):
            total += np.square(np.abs(now.observe @ response)).sum(axis=0)
            response = now.carry @ response
            response[node, column] -= np.outer(signs[:, epoch], push[epoch, hidden]).ravel()
    result = np.zeros((sequences, nodes))
    result[:, hidden] = np.sqrt(total).reshape(sequences, size)
    return result


class _Together(NamedTuple):
    """All rounds of one epoch, as functions of what hidden nodes say and of unit noise that receivers add.

    Attributes:
        heard: [rows, hidden + noises] what observers hear.
        following: [hidden, hidden + noises] the last mixed points of hidden nodes.
        added: [hidden] variance that the last round adds to them, which nobody hears in this epoch.
    """

    heard: Any
    following: Any
    added: FloatArray


def _epochs(rounds: Epoch, observers: tuple[int, ...], hidden: Numbers) -> Iterator[_Together]:
    """Every epoch's."""
    size, counts = len(hidden), [one.antennas(observers)[:, :, hidden] for one in rounds]
    own = [np.broadcast_to(one.own_noise, heard.shape[:2]) for one, heard in zip(rounds, counts, strict=True)]
    for epoch in range(len(counts[0])):
        point: Any = np.eye(size)  # of what is sent in this round
        noises, rows, added = size, [], np.zeros(size)
        for number, one in enumerate(rounds):
            clear = not own[number][epoch].any()
            row = counts[number][epoch] @ point
            rows.append(row if clear else np.concatenate([row, np.diag(own[number][epoch])], axis=1))
            forward, tau = one.weights[epoch][np.ix_(hidden, hidden)], one.noise[epoch, hidden]
            point = _wider(forward @ point, rows[-1].shape[1])
            noises = point.shape[1]
            if number + 1 == len(rounds):
                added = tau**2
            elif tau.any():
                point = np.concatenate([point, np.diag(tau)], axis=1)
        yield _Together(np.concatenate([_wider(row, noises) for row in rows]), _wider(point, noises), added)


def _wider(rows: Any, columns: int) -> Any:
    """The same with zeros for noises that came later."""
    return np.pad(rows, ((0, 0), (0, max(0, columns - rows.shape[1]))))


class Step(NamedTuple):
    """One epoch of the filter, after the observation is whitened: with unit variance in every part of a symbol.

    Attributes:
        observe: [rank, hidden] what hidden nodes say -> whitened observation.
        carry: [hidden, hidden] F (I - L W).
        whiten: [rank, rows] what the observers hear of the hidden nodes, round after round -> whitened observation.
        predict: [hidden, hidden] the last mixed points of hidden nodes, of what they were expected to say.
        correct: [hidden, rank] the same, of the whitened innovation: both together are the best guess of them.
    """

    observe: Any
    carry: Any
    whiten: Any
    predict: Any
    correct: Any


def filter_steps(rounds: Epoch, observers: tuple[int, ...], effective_noise: FloatArray) -> Iterator[Step]:
    """The Riccati sweep; it depends on the observers only, so one serves all targets.

    Noises of receivers are in units of their standard deviation: the row space of what is observed leaves out what is
    heard twice, or not at all, whichever noise is 0.

    Args:
        rounds: Weights, receivers' noise and antennas.
        observers: The coalition.
        effective_noise: [epochs, nodes] s_k,t.

    Yields:
        The filter of every epoch, for all nodes that are no observers, in ascending order.
    """
    hidden = _hidden(effective_noise.shape[1], observers)
    size = len(hidden)
    variance = linear.with_some_noise(effective_noise)[:, hidden] ** 2
    uncertain: Any = np.diag(variance[0])
    for epoch, now in enumerate(_epochs(rounds, observers, hidden)):
        scale = np.concatenate([np.sqrt(variance[epoch]), np.ones(now.heard.shape[1] - size)])
        basis, reduce = _row_space(now.heard * scale)
        known = basis / scale
        heard, own = known[:, :size], known[:, size:]
        forward, added = now.following[:, :size], now.following[:, size:]
        cross = heard @ uncertain
        root = np.linalg.cholesky(cross @ heard.conj().T + own @ own.conj().T)
        observe = np.linalg.solve(root, heard)
        moved = np.linalg.solve(root, cross @ forward.conj().T + own @ added.conj().T).conj().T
        yield Step(observe, forward - moved @ observe, np.linalg.solve(root, reduce), forward, moved)
        if epoch + 1 < len(variance):
            uncertain = forward @ uncertain @ forward.conj().T + added @ added.conj().T - moved @ moved.conj().T
            uncertain = (uncertain + uncertain.conj().T) / 2
            uncertain[np.diag_indices(size)] += now.added + variance[epoch + 1]


def _row_space(heard: Any) -> tuple[Any, Any]:
    """An orthonormal basis of what is heard, and what makes it of the rows.

    A weak sum is heard as well as a strong one, where no noise is in it; and any is with what noise is in it.
    """
    length = np.linalg.norm(heard, axis=1)
    length = np.where(length > 0, length, 1.0)
    left, size, basis = np.linalg.svd(heard / length[:, None], full_matrices=False)
    kept = size > size.max(initial=0.0) * linear.NEGLIGIBLE
    return basis[kept], (left[:, kept] / size[kept]).conj().T / length
