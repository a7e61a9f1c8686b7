"""What a receiver makes of what its antenna hears: for every access, the weights of one round, from gains and pilots.

    m_i = sum_j weights_ij u_j + own_i u_i + n_i,   n_i of noise_i times the receiver's noise in every symbol

g_ij = h_ji b_j is how sender j's symbols arrive at i. Everything here is free of data: gains, pilots and noise are
given to every adversary, so m is a function of what was sent and of what everybody may know. Arrays are of NumPy
(planning, tests) or of JAX (inside the loop), [..., receivers, heard].
"""

from typing import Any, NamedTuple

Array = Any  # of NumPy or JAX


class Combining(NamedTuple):
    """One round's weights.

    Attributes:
        weights: [..., receivers, heard] complex, of what neighbours said.
        own: [..., receivers] real, of what the node said itself.
        noise: [..., receivers] how much of its noise's amplitude in a symbol reaches the mixed point.
    """

    weights: Array
    own: Array
    noise: Array


class Pilot(NamedTuple):
    """What a receiver learns of the channel.

    Attributes:
        error: What its noise adds: [..., receivers] to the sum of all pilots, or [..., receivers, heard] to each.
        wrong: [..., receivers] relative error besides, 0 unless a test asks for it.
        least: [..., receivers] the energy of a pilot below which nothing is made of what is heard.
    """

    error: Array
    wrong: Array
    least: Array


def aligned(arriving: Array, linked: Array, pilot: Pilot, normaliser: int) -> Combining:
    """(d/R) y/P + (1 - d/R) u: the paper's, with phases that agree at every receiver."""
    xp = arriving.__array_namespace__()
    arriving = xp.where(linked, arriving, 0)
    seen = (arriving.sum(-1) + pilot.error) * (1 + pilot.wrong)
    clear = (abs(seen) ** 2 >= pilot.least) & (abs(seen) > 0)
    share = xp.where(clear, linked.sum(-1) / normaliser, 0)
    factor = share / xp.where(clear, seen, 1)
    return Combining(factor[..., None] * arriving, 1 - share, abs(factor))


def own_slot(arriving: Array, linked: Array, pilot: Pilot, normaliser: int) -> Combining:
    """Every sender alone, with a pilot of its own; the receiver weighs what it made out by how strongly it arrived."""
    xp = arriving.__array_namespace__()
    seen = (arriving + pilot.error) * (1 + pilot.wrong[..., None])
    heard = linked & (abs(seen) ** 2 >= pilot.least[..., None])
    strength = xp.where(heard, abs(seen), 0)
    share = heard.sum(-1) / normaliser
    total = strength.sum(-1)
    part = share[..., None] * strength / xp.where(total > 0, total, 1)[..., None]
    factor = part / xp.where(heard, seen, 1)
    return Combining(factor * arriving, 1 - share, xp.sqrt((abs(factor) ** 2).sum(-1)))


def referenced(
    arriving: Array, linked: Array, pilot: Pilot, mean_power: Array, kappa: float, damping: float
) -> Combining:
    """Towards what is heard, as far as the pilot is clear: u + kappa conj(P)(y - P u)/(|P|^2 + c Lambda).

    Args:
        arriving: g.
        linked: Who is heard at all.
        pilot: Of all at once.
        mean_power: [..., receivers] Lambda, what arrives on average.
        kappa: How far.
        damping: c.
    """
    xp = arriving.__array_namespace__()
    arriving = xp.where(linked, arriving, 0)
    seen = (arriving.sum(-1) + pilot.error) * (1 + pilot.wrong)
    clear = abs(seen) ** 2 >= pilot.least
    below = abs(seen) ** 2 + damping * mean_power
    factor = xp.where(clear, kappa * seen.conj() / xp.where(below > 0, below, 1), 0)
    return Combining(factor[..., None] * arriving, 1 - (factor * seen).real, abs(factor))
