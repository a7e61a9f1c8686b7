"""What the air does to the models: weights, compensation, z and its limit.

With the power split alpha, node j's model arrives at i with amplitude h_ji sqrt(alpha_j p_j). Dividing by c_i R, where
c_i is the mean of those amplitudes, and keeping 1 - d_i/R of its own makes one row-stochastic matrix A of them all.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._threads import threads_for
from murmurcast.errors import Error
from murmurcast.network.graph import Network

Z = Literal["recursive", "perron", "mean", "predicted"]
RECURSIVE_UP_TO = 3000  # nodes: z is nodes x nodes
MAX_Z_ENTRIES = 2e8  # numbers: epochs x nodes
_SETTLED = 1e-14  # of every entry
_MOST_ITERATIONS, _WATCHED = 1000, 50
_MUCH_VISITED = 10  # times as often as another


class Mixing(NamedTuple):
    """One round of mixing.

    Attributes:
        weights: [nodes, nodes] a_ij, receiver first; rows sum to 1.
        compensation: [nodes] c_i, what receiver i divides its sum by (times R).
        normaliser: R.
    """

    weights: csr_array
    compensation: FloatArray
    normaliser: int


class MixingRate(NamedTuple):
    """|[A^t]_ij - pi_j| <= constant * rate^t for all i, j and t >= 0."""

    constant: float
    rate: float


def normaliser(network: Network, rule: str | int) -> int:
    """R by its rule: "lazy" (max degree + 1), "max-degree", or a number of at least the max degree."""
    most = int(network.heard_degree.max())
    named = {"lazy": most + 1, "max-degree": most}
    if isinstance(rule, str):
        if rule not in named:
            raise Error(f'normaliser is "{rule}"', hint=_check.nearest(rule, named))
        return named[rule]
    if rule > 10**6:
        raise Error(f"normaliser is {rule:.3g}, more than a million", hint='use "lazy": nothing would ever mix')
    if rule < most:
        raise Error(
            f"normaliser is {rule}, below the largest degree {most}: own weights would be negative",
            hint=f'use "lazy" (here {most + 1}) or a number of at least {most}',
        )
    return rule


def mixing(network: Network, alpha: FloatArray, normaliser: int) -> Mixing:
    """The weights that a power split makes of a network."""
    arriving = arriving_amplitudes(network, alpha)
    compensation = arriving.sum(axis=1) / network.heard_degree
    own = diags_array(1 - network.heard_degree / normaliser)
    weights = csr_array(diags_array(1 / (compensation * normaliser)) @ arriving + own)
    weights.sort_indices()
    return Mixing(weights, _check.frozen(compensation), normaliser)


class ColumnMixing(NamedTuple):
    """One round of mixing that keeps the sum over nodes.

    Attributes:
        weights: [nodes, nodes] b_ij, receiver first; columns sum to 1.
        amplitude: [nodes] q_j, what sender j multiplies with; h_ji q_j is b_ij.
        normaliser: R.
    """

    weights: csr_array
    amplitude: FloatArray
    normaliser: int


def column_mixing(network: Network) -> ColumnMixing:
    """Column-stochastic weights that one multicast makes: b_ij = (d_j/R) h_ji/H_j, b_jj = 1 - d_j/R.

    d_j is how many hear j, R is the largest of them plus 1, and H_j the sum of j's outgoing gains, which a sender
    learns from one number of feedback by each that hears it. Links may go one way.
    """
    resolved = network.max_degree + 1
    outgoing = np.asarray(network.gains.sum(axis=1)).ravel()
    amplitude = network.degree / (resolved * outgoing)
    own = diags_array(1 - network.degree / resolved)
    weights = csr_array(network.gains.T @ diags_array(amplitude) + own)
    weights.sort_indices()
    return ColumnMixing(weights, _check.frozen(amplitude), resolved)


def arriving_amplitudes(network: Network, alpha: FloatArray) -> csr_array:
    """[receiver, sender] h_ji sqrt(alpha_j p_j): how strongly the sender's model arrives."""
    return csr_array(network.gains.T @ diags_array(np.sqrt(alpha * network.power)))


def mix_signals(network: Network, alpha: FloatArray, normaliser: int, said: FloatArray) -> FloatArray:
    """One round in signal form: the antennas' sum, compensated, plus the node's own noisy value.

    Args:
        network: The network.
        alpha: [nodes] power split.
        normaliser: R.
        said: [nodes, dim] V, what every node says (model plus scaled noise), before the factor sqrt(alpha p).

    Returns:
        [nodes, dim] the mixed points; equal to `mixing(...).weights @ said`.
    """
    arriving = arriving_amplitudes(network, alpha)
    compensation = arriving.sum(axis=1) / network.heard_degree
    own = (1 - network.heard_degree / normaliser)[:, None] * said
    return np.asarray(arriving @ said / (compensation * normaliser)[:, None] + own)


def z_diagonal(weights: csr_array, epochs: int, start: Z) -> FloatArray:
    """z_ii,t, what node i divides its gradient by in epoch t.

    Args:
        weights: [nodes, nodes] A.
        epochs: T.
        start: "recursive" runs z_{t+1} = A z_t from z_1 = I; all others stay at its limit.

    Returns:
        [epochs, nodes]; for "perron" a view that repeats one row.
    """
    nodes = weights.shape[0]
    if start != "recursive":
        return np.broadcast_to(perron(weights), (epochs, nodes))
    if nodes > RECURSIVE_UP_TO:
        raise Error(
            f"the z recursion of {nodes} nodes needs {nodes} x {nodes} numbers",
            hint='set z = "perron": z is free of data, so it may be run to its limit before training',
        )
    if nodes * epochs > MAX_Z_ENTRIES:
        raise Error(
            f"the z recursion of {nodes} nodes over {epochs} epochs needs {nodes * epochs:.2g} numbers",
            hint='set z = "perron", or lower schedule.epochs',
        )
    if not weights.diagonal().all():
        node = int(np.argmin(weights.diagonal()))
        raise Error(
            f"z of node {node} is 0 in epoch 2, and its gradient is divided by it: "
            f"the node has as many neighbours as the normaliser R, so its own weight is 0",
            hint='set normaliser = "lazy" (R = max degree + 1), or z = "perron" (z starts at its limit)',
        )
    step = weights.toarray() if weights.nnz * 8 > nodes * nodes else weights
    z = np.eye(nodes)
    diagonal = np.empty((epochs, nodes))
    with threads_for(nodes):
        for epoch in range(epochs):
            diagonal[epoch] = z.diagonal()
            following = step @ z
            if (np.abs(following - z) <= 4e-16 * z).all():  # of each entry: z may be tiny, and is divided by
                diagonal[epoch + 1 :] = diagonal[epoch]
                break
            z = following
    return _check.frozen(diagonal)


def perron(weights: csr_array) -> FloatArray:
    """The left Perron vector: pi A = pi, sum 1. z_ii,t tends to it.

    Power iteration of the chain that always moves, made lazy by one half so that it cannot be periodic: dividing its
    limit by the chance of moving gives pi, however much of its own a node keeps. Where the network mixes too slowly
    for that (long rings, paths, grids, large plains), one sparse solve, which is cheap on just such networks.
    """
    nodes = weights.shape[0]
    away = csr_array(weights - diags_array(weights.diagonal()))
    moving = np.asarray(away.sum(axis=1)).ravel()
    jump = csr_array(away.T @ diags_array(1 / moving))
    visits, changes = np.full(nodes, 1 / nodes), [np.inf]
    while len(changes) <= _MOST_ITERATIONS and not _hopeless(changes):
        following = (jump @ visits + visits) / 2
        change, last = float(np.abs(following / visits - 1).max()), changes[-1]
        visits = following / following.sum()
        # What is left to go is the geometric tail of the changes.
        if change == 0 or change * max(1.0, change / max(last - change, 1e-300)) < _SETTLED:
            pi = visits / moving
            return _check.frozen(pi / pi.sum())
        changes.append(change)
    pi = _perron_over(weights, int(np.argmax(visits / moving)))
    if pi.max() > _MUCH_VISITED:  # on long rings the iteration does not yet know which node that is
        pi = _perron_over(weights, int(np.argmax(pi)))
    return _check.frozen(pi / pi.sum())


def _hopeless(changes: list[float]) -> bool:
    """Whether at the rate of late the iteration would not end in time: rates only fall off, so it is seen early."""
    done = len(changes)
    if done <= 2 * _WATCHED:
        return False
    shrunk = math.log(changes[-1 - _WATCHED] / changes[-1])
    return shrunk * (_MOST_ITERATIONS - done) < _WATCHED * math.log(changes[-1] / _SETTLED)


def _perron_over(weights: csr_array, fixed: int) -> FloatArray:
    """Divides pi by its entry at one node, which leaves a regular system; at a much visited node it keeps its digits.

    Its columns' diagonals outweigh the rest, so no pivots need to be looked for, and the order may be the one that
    fills up least where links go both ways.
    """
    nodes = weights.shape[0]
    others = np.flatnonzero(np.arange(nodes) != fixed)
    system = csc_array(eye_array(nodes) - weights.T)
    factor = splu(
        csc_array(system[:, others][others]),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    pi = np.ones(nodes)
    pi[others] = factor.solve(-system[:, [fixed]].toarray()[others, 0])
    return pi


def mixing_rate(weights: csr_array) -> MixingRate:
    """How fast the network forgets: constant C and rate xi with |[A^t]_ij - pi_j| <= C xi^t for all i, j, t >= 0.

    xi is the second largest eigenvalue modulus and C the largest entry of sum_k |v_k| |w_k| over the other right and
    left eigenvectors. Where the eigenvectors are too close to dependent for that, xi is the square root of that modulus
    and C the largest entry of |A^t - 1 pi| / xi^t over the epochs up to the first whose column-sum norm is below xi^t:
    from there on the bound repeats itself.
    """
    _check_dense("the mixing rate", weights.shape[0])
    dense = weights.toarray()
    deviation = dense - perron(weights)[None, :]
    with threads_for(len(deviation)):
        values, vectors = np.linalg.eig(deviation)
    rate = float(np.abs(values).max())
    require_aperiodic(rate)
    start = np.eye(len(dense)) - perron(weights)[None, :]
    if np.linalg.cond(vectors) < 1e8:
        # deviation^t = V diag(values^t) V^-1 on the range of `start`, which projects the consensus direction out.
        coefficients = np.linalg.solve(vectors, start)
        return MixingRate(float((np.abs(vectors) @ np.abs(coefficients)).max()), max(rate, 1e-300))
    rate = float(np.sqrt(max(rate, 1e-12)))
    power, bound, constant = start, 1.0, float(np.abs(start).max())
    while np.abs(power).sum(axis=0).max() > bound or bound == 1.0:
        power, bound = power @ deviation, bound * rate
        constant = max(constant, float(np.abs(power).max() / bound))
    return MixingRate(constant, rate)


def require_aperiodic(rate: float) -> None:
    """Powers of weights with this second largest eigenvalue modulus converge."""
    if rate >= 1 - 1e-12:
        raise Error(
            "the weights are periodic: powers of A do not converge", hint='set normaliser = "lazy" (R = max degree + 1)'
        )


def _check_dense(what: str, nodes: int) -> None:
    if nodes > RECURSIVE_UP_TO:
        raise Error(f"{what} of {nodes} nodes needs dense matrices", hint=f"use at most {RECURSIVE_UP_TO} nodes")
