"""Network amplification, "spread and clean": an experimental bound for receivers that do not hear everything.

Observers C hear W V_t = A[C, H] V_t of the hidden nodes H and know everything of their own. Take two runs that differ
in the data of the hidden node j, and let the hidden noises of the second be those of the first plus a shift. Write D_t
for how far the two states of j are apart, and R_k,t for the other hidden nodes. With any numbers v that the observers
cannot hear, W v = 0, shift

    delta_j,t = v_j D_t - D_t,    delta_k,t = v_k D_t - R_k,t:    what the hidden nodes say differs by v D_t.

Unseen: the observers hear W v D_t = 0 more. So they, and whatever they do next, are the same in both runs. What is left
moves on: the mixed points differ by (F v) D_t, F = A[H, H], and the next states by at most that plus the gradients'
difference times gamma_t/z. Gradients are L-Lipschitz at the own points and clipped to G, and projections bring points
no farther apart, so with ||D_t|| <= F_t and ||R_k,t|| <= rho_k,t, both 0 in epoch 1,

    F_{t+1} = |(F v)_j| F_t + (gamma_t/z_jj,t) min(2G, S_j + L_j F_t)
    rho_k,t+1 = |(F v)_k| F_t + (gamma_t/z_kk,t) min(2G, L_k rho_k,t)
    cost_t = ((1 - v_j) F_t / s_j,t)^2 + sum_{k != j} ((|v_k| F_t + rho_k,t) / s_k,t)^2.

Paid: the view of the first run is a function of the shifted noises, so telling the runs apart is no easier than telling
shifted noises from plain ones. The shift of epoch t follows from the noises before t, and sum_k ||delta_k,t||^2 /
s_k,t^2 <= cost_t: given the past, a Gaussian mechanism with mu^2 = cost_t. These compose adaptively, and mu^2 is the
sum of cost_t.

The bound holds for every v with W v = 0. v = 0 is tier 1: j's noise hides all. Otherwise v_t spreads the change over
the noises of the others and cleans up what would travel on: it minimises ||v - e_j||^2_{S_t^-1} + kappa ||F
v||^2_{S_{t+1}^-1}, S_t = diag(s_t^2). After epoch T nothing travels on, so the second term is dropped there. One kappa
serves a whole run; the best is kept for every target. A poor choice of v costs tightness, not truth.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._threads import side_by_side
from murmurcast.privacy.linear import hidden_from

KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class _Hidden(NamedTuple):
    """What the observers do not see, and what limits it.

    Attributes:
        forward: [hidden, hidden] F.
        unheard: [hidden, free] a basis of all v with W v = 0.
        noise: [epochs, hidden] s_k,t.
        stride: [epochs, hidden] gamma_t / z_kk,t.
        smoothness: [hidden] L_k.
        largest: 2G, no two gradients of a node differ by more.
        change: [hidden, hidden] diag(S), what the data of a target changes in its gradient.
    """

    forward: FloatArray
    unheard: FloatArray
    noise: FloatArray
    stride: FloatArray
    smoothness: FloatArray
    largest: float
    change: FloatArray


def spread_and_clean(
    weights: FloatArray,
    observers: tuple[int, ...],
    effective_noise: FloatArray,
    stride: FloatArray,
    sensitivity: FloatArray,
    clip: float,
    smoothness: ArrayLike,
) -> FloatArray:
    """An experimental bound of what the observers learn of every target, as mu.

    Args:
        weights: [nodes, nodes] A, receiver first.
        observers: The coalition; its members share all they hear and know their own noise.
        effective_noise: [epochs, nodes] s_k,t.
        stride: [epochs, nodes] gamma_t / z_kk,t, how far a node goes per unit of gradient.
        sensitivity: [nodes] S_k, the largest change of the target's gradient at one point.
        clip: G, the bound of every node's gradient.
        smoothness: L, a Lipschitz constant of every node's gradient, one number or [nodes].

    Returns:
        [nodes] mu; 0 for the observers.

    Guarantees:
        Unit: the one `sensitivity` speaks of; gradients taken at the node's own point.
        Adversary: these observers only, with all they hear and know; all other nodes add their noise honestly and show
            nothing else, no published model either.
        Formula: the recursion above, the least of v = 0 and `KAPPAS`.
        Range: positive noise; L >= 0 and true, all of the gradient within the clip, data-free terms too.
        Status: experimental; machine-checked, not peer reviewed.
    """
    smooth = _check.per_node(len(weights), smoothness=smoothness)
    _check.not_negative(smoothness=smooth)
    _check.above_zero(effective_noise=effective_noise.ravel(), stride=stride.ravel())
    _check.positive(clip=clip, sensitivity=sensitivity)
    hidden = hidden_from(weights, observers)
    heard, noise = weights[list(observers)][:, hidden], effective_noise[:, hidden]
    system = _Hidden(
        forward=weights[np.ix_(hidden, hidden)],
        # In units of the noise, where the least squares below are well conditioned.
        unheard=noise[0][:, None] * _null_space(heard * noise[0]),
        noise=noise,
        stride=stride[:, hidden],
        smoothness=smooth[hidden],
        largest=2 * clip,
        change=np.diag(sensitivity[hidden]),
    )
    result = np.zeros(len(weights))
    result[hidden] = np.sqrt(np.fmin.reduce(list(side_by_side(lambda kappa: _energy(system, kappa), (None, *KAPPAS)))))
    return result


def _energy(system: _Hidden, kappa: float | None) -> FloatArray:
    """[hidden] sum of cost_t for every target; None shifts nothing but the target's own noise."""
    apart = np.zeros_like(system.forward)  # of node to target: F_t on the diagonal, rho_k,t off it
    total = np.zeros(len(apart))
    with np.errstate(over="ignore", invalid="ignore"):  # a spread that runs away is no candidate, as v = 0 stays finite
        for epoch, noise in enumerate(system.noise):
            shift = np.zeros_like(apart) if kappa is None else _unheard_shift(system, kappa, epoch)
            drift = apart.diagonal()
            needed = np.abs(shift) * drift + apart
            np.fill_diagonal(needed, np.abs(1 - shift.diagonal()) * drift)
            total += np.square(needed / noise[:, None]).sum(axis=0)
            moved = np.abs(system.forward @ shift) * drift
            apart = moved + system.stride[epoch][:, None] * _gradients_apart(system, apart)
    return total


def _gradients_apart(system: _Hidden, apart: FloatArray) -> FloatArray:
    """[hidden, hidden] of node to target, min(2G, L rho) or min(2G, S + L F); states that agree never react."""
    reaction = np.zeros_like(apart)
    np.multiply(system.smoothness[:, None], apart, where=apart > 0, out=reaction)
    return np.minimum(system.largest, system.change + reaction)


def _unheard_shift(system: _Hidden, kappa: float, epoch: int) -> FloatArray:
    """[hidden, hidden] v of node to target: the least of ||v - e_j||^2_{S_t^-1} + kappa ||F v||^2_{S_{t+1}^-1}."""
    now = system.unheard / system.noise[epoch][:, None]
    normal = now.T @ now
    if epoch + 1 < len(system.noise):
        later = system.forward @ system.unheard / system.noise[epoch + 1][:, None]
        normal += kappa * later.T @ later
    return np.asarray(system.unheard @ np.linalg.solve(normal, (now / system.noise[epoch][:, None]).T))


def _null_space(heard: FloatArray) -> FloatArray:
    """[hidden, free] an orthonormal basis of what cannot be heard.

    Rows are taken at equal length, because a weak signal without receiver noise is heard as well as a strong one, and
    only rounding counts as zero: one constraint too many is safe, one too few is not.
    """
    length = np.linalg.norm(heard, axis=1, keepdims=True)
    rows = heard / np.where(length > 0, length, 1.0)
    _, size, basis = np.linalg.svd(rows)
    rank = int((size > size.max(initial=0.0) * max(rows.shape) * np.finfo(float).eps).sum())
    return np.asarray(basis[rank:].T)
