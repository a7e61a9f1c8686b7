"""The auditor's own look at the noise: is it as large, as fresh and as blind to data as the promise says?

Whoever planted the canaries and has all data can subtract both from what was sent; what is left is the noise. Given all
that was sent before, it must be standard normal in units of what is claimed, independent between coordinates, epochs
and nodes, and of everything that data did. Every test below has a known distribution if that is so. A failure is no
bound of epsilon: it refutes what the promise was computed from.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from murmurcast._check import FloatArray
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.following import LOW_BITS, Following
from murmurcast.audits.laplace_readings import variance_as_normal

NEGLIGIBLE = 0.01  # a correlation, or a lack of std: rounding may be the cause, and no promise depends on it
CHECKS = 5  # that must hold together
_MAX_PRODUCTS = 2e11  # multiplications for correlations of everything with everything
_MIN_COLUMNS = 1000
_TELLING = 1e-3  # of the noise: what gradients elsewhere must do to it at least


class Check(NamedTuple):
    """One property of the noise, looked for everywhere at once.

    Attributes:
        name: The property.
        tests: How many places were looked at.
        probability: Of what was seen at the worst place or something worse, if all is as claimed, all places allowed
            for.
        worst: The worst place, in words.
        refutes: Whether that is too improbable.
    """

    name: str
    tests: int
    probability: float
    worst: str
    refutes: bool


def check_noise(following: Following, canaries: Canaries, confidence: float) -> tuple[Check, ...]:
    """All checks; together they accuse an honest system with a probability of at most 1 - confidence.

    Args:
        following: The nodes' signals, without data and canaries.
        canaries: What was planted.
        confidence: Of all checks together.
    """
    level = (1 - confidence) / CHECKS
    return (
        check_size(following, level),
        check_independence(following, level),
        check_blindness(following, canaries, level),
        check_gradients(following, level),
        check_silence(following, level),
    )


def smallest_cut_of_size(following: Following, confidence: float, power: float = 0.9) -> float:
    """The largest share of its std to which noise may be cut, at one node in one epoch, and is caught at this power."""
    tests, count = _tests_of_size(following), following.noise.shape[-1] * following.noise.shape[-2]
    if not tests:
        return 0.0
    least = chi2.ppf((1 - confidence) / CHECKS / tests, count)
    variance = float(least / chi2.ppf(power, count))  # to which it may be cut
    if following.law == "laplace":
        return (1 - NEGLIGIBLE) * float(brentq(lambda share: variance_as_normal(share) - variance, 1e-3, 1.0))
    return float((1 - NEGLIGIBLE) * np.sqrt(variance))


def check_size(following: Following, level: float) -> Check:
    """Noise is not smaller than claimed, at any node in any epoch, nor at any node over all epochs."""
    nodes, noisy = following.nodes, following.noisy
    count = following.noise.shape[-1] * following.noise.shape[-2]
    squares = np.square(following.noise, dtype=np.float64).sum(axis=(-2, -1))
    epochs = noisy.sum(axis=1)
    # The least that rounding leaves of the claim stands for the claim.
    each = chi2.cdf(squares / (1 - NEGLIGIBLE) ** 2, count)
    over_all = chi2.cdf((squares * noisy).sum(axis=1) / (1 - NEGLIGIBLE) ** 2, np.maximum(count * epochs, 1))
    each, over_all = np.where(noisy, each, 1.0), np.where(epochs > 0, over_all, 1.0)
    at = np.unravel_index(np.argmin(each), each.shape)
    always = np.unravel_index(np.argmin(over_all), over_all.shape)
    if over_all[always] <= each[at]:
        share = np.sqrt((squares * noisy).sum(axis=1)[always] / max(count * epochs[always], 1))
        where, least = f"node {nodes[always[0]]} has {share:.1%} of the std", over_all[always]
    else:
        share, least = np.sqrt(squares[at] / count), each[at]
        where = f"node {nodes[at[0]]} in epoch {at[1] + 1} has {share:.1%} of the std"
    return _check("the size of the noise", _tests_of_size(following), float(least), where, level)


def check_independence(following: Following, level: float) -> Check:
    """Noise is not the same, in part, at two nodes, in two epochs, or in all coordinates; nor is its size."""
    labels, rows = _rows(following)
    count = min(rows.shape[1], max(_MIN_COLUMNS, int(_MAX_PRODUCTS / max(len(rows), 1) ** 2)))
    size = np.sqrt(np.square(rows[:, :count]).sum(axis=1))
    used = rows[:, :count] / np.maximum(size, np.finfo(np.float32).tiny)[:, None]
    likeness = np.triu(np.abs(used @ used.T), 1)
    pairs = len(rows) * (len(rows) - 1) // 2
    suspects = [_of_two_nodes(following), _of_coordinates(following), _of_messages(following)]
    if pairs:
        one, other = np.unravel_index(np.argmax(likeness), likeness.shape)
        words = f"{labels[one]} and of {labels[other]} has a correlation of {likeness[one, other]:.2f}"
        suspects.append((float(_probability(likeness[one, other], np.array(count))), words))
    tests = pairs + len(following.nodes) ** 2 + 2 * int(following.noisy.sum())
    least, where = min(suspects)
    return _check("the independence of the noise", tests, least, f"the noise of {where}", level)


def _rows(following: Following) -> tuple[list[str], NDArray[np.float32]]:
    """Every node's noise in every epoch and in every signal, [rows, coordinates of all runs], and what it is called."""
    places = np.argwhere(following.noisy)
    several = following.noisy.shape[2] > 1
    labels = [
        f"node {following.nodes[node]} in epoch {epoch + 1}" + (f" in signal {link + 1}" if several else "")
        for node, epoch, link in places
    ]
    return labels, following.noise[tuple(places.T)].reshape(len(places), -1)


def _of_two_nodes(following: Following) -> tuple[float, str]:
    """Noise of two nodes in the same epochs, all epochs taken together: what is shared in part shows here."""
    noise = following.noise.reshape(len(following.nodes), -1)
    size = np.sqrt(np.square(noise, dtype=np.float64).sum(axis=1))
    present = following.noisy.reshape(len(noise), -1).astype(np.float64)
    together = present @ present.T * (following.noise.shape[-1] * following.noise.shape[-2])
    likeness = np.abs(noise @ noise.T) / np.maximum(np.outer(size, size), np.finfo(np.float32).tiny)
    surprise = np.triu((likeness - NEGLIGIBLE) * np.sqrt(together), 1)
    one, other = np.unravel_index(np.argmax(surprise), surprise.shape)
    words = f"nodes {following.nodes[one]} and {following.nodes[other]}, all epochs together, has a correlation of "
    return float(2 * norm.sf(max(surprise[one, other], 0.0))), f"{words}{likeness[one, other]:.2f}"


def _of_coordinates(following: Following) -> tuple[float, str]:
    """The sum over all coordinates of a run has the variance of independent ones."""
    runs, dim = following.noise.shape[-2:]
    if dim == 1:
        return 1.0, ""
    sums = following.noise.sum(axis=-1, dtype=np.float64) / np.sqrt(dim)
    size = np.sqrt(np.maximum(np.square(following.noise, dtype=np.float64).mean(axis=(-2, -1)), 1e-30))[..., None]
    squares = np.square(sums / size).sum(axis=-1)
    tails = np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs))
    tails = np.where(following.noisy, tails, 1.0)
    at = np.unravel_index(np.argmin(tails), tails.shape)
    ratio = squares[at] / runs
    words = f"node {following.nodes[at[0]]} in epoch {at[1] + 1} is tied between coordinates"
    # With one run a sum is one number: what rounding may do to it is far below.
    return (float(2 * tails[at]) if abs(ratio - 1) > dim * NEGLIGIBLE**2 else 1.0), words


def _of_messages(following: Following) -> tuple[float, str]:
    """All messages are as loud: where one factor is on all coordinates, it may say something, as a pilot could."""
    dim = following.noise.shape[-1]
    energy = np.square(following.noise, dtype=np.float64).sum(axis=-1)  # [nodes, epochs, signals, runs]
    usual = np.maximum(energy.mean(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    # As standard normal numbers, from the nearer tail.
    above, below = (tail(dim * energy / usual, dim) for tail in (chi2.sf, chi2.cdf))
    size = np.where(above < below, norm.isf(np.maximum(above, 1e-300)), norm.ppf(np.maximum(below, 1e-300)))
    squares = (np.square(size) * following.noisy[..., None]).sum(axis=(1, 2, 3))
    count = np.maximum(following.noisy.sum(axis=(1, 2)) * energy.shape[-1], 1)
    moved = count * 2 * dim * NEGLIGIBLE**2  # what a negligible change of every size may add: Patnaik's chi-square
    scale = (count + 2 * moved) / (count + moved)
    tails = chi2.sf(squares / scale, (count + moved) / scale)
    node = int(np.argmin(tails))
    return float(tails[node]), f"node {following.nodes[node]} is louder in some messages than in others"


def check_blindness(following: Following, canaries: Canaries, level: float) -> Check:
    """Neither noise, nor its size, nor the last bits of a signal say anything of what data did."""
    planted, tests, chances = _signs(following, canaries), 0, [(1.0, "")]
    for place, node in enumerate(following.nodes):
        noise, bits, noisy = following.noise[place], following.bits[place], following.noisy[place]
        heard = {
            "the noise": noise,
            "the size of the noise": np.square(noise),
            **{f"bit {last + 1} from the end": (bits >> last & 1).astype(np.float32) for last in range(LOW_BITS)},
        }
        signs = {"its data": following.moved[place], "its model": following.own[place], "its canaries": planted[place]}
        for what, values in heard.items():
            for whose, sign in signs.items():
                each, together = _likeness(values, sign[:, None], noisy)
                tests += each.size + 1
                epoch = int(np.argmin(each.min(axis=1)))
                words = f"{what} of node {node} goes with the sign of {whose}"
                chances += [(together, words), (float(each[epoch].min()), f"{words}, in epoch {epoch + 1}")]
    least, words = min(chances)
    return _check("the blindness of the noise", tests, least, words, level)


def _likeness(
    values: NDArray[np.float32], signs: NDArray[np.int8], noisy: NDArray[np.bool_]
) -> tuple[FloatArray, float]:
    """How probable the correlations of values and signs are, [epochs, links] and of all epochs together."""
    every = np.broadcast_to(signs, values.shape).astype(np.float32)
    known = np.abs(every)
    count = known.sum(axis=(-2, -1), dtype=np.float64) * noisy
    with np.errstate(divide="ignore", invalid="ignore"):
        # About both means: a bit that is set too often says nothing of anybody's data.
        mean = (known * values).sum(axis=(-2, -1), dtype=np.float64) / count
        tilt = every.sum(axis=(-2, -1), dtype=np.float64) / count
        spread = (known * np.square(values)).sum(axis=(-2, -1), dtype=np.float64) - count * mean**2
        across = (every * values).sum(axis=(-2, -1), dtype=np.float64) - count * mean * tilt
        room = np.where(count > 0, spread * (1 - tilt**2), 0.0)
        each = np.nan_to_num(across / np.sqrt(room * count), posinf=0.0, neginf=0.0)
    total = float(np.nan_to_num(across).sum() / np.sqrt(max(room.sum() * count.sum(), np.finfo(np.float64).tiny)))
    return _probability(each, count), float(_probability(np.array(total), count.sum()))


def _signs(following: Following, canaries: Canaries) -> NDArray[np.int8]:
    """[nodes, 1, runs, dim] of the canaries of every node, 0 where it has none."""
    signs = np.zeros((len(following.nodes), 1, *following.noise.shape[-2:]), np.int8)
    places = {node: place for place, node in enumerate(following.nodes.tolist())}
    for target, drawn in zip(canaries.targets.tolist(), canaries.signs, strict=True):
        if target in places:
            signs[places[target], 0] = drawn
    return signs


def check_gradients(following: Following, level: float) -> Check:
    """Gradients are taken at public points as claimed: nothing of what is sent points to private ones instead."""
    name, few = "where gradients are taken", following.elsewhere.shape[-2]
    apart = following.elsewhere * following.noisy[..., None, None]
    along = np.einsum("ntlrd,pntlrd->pn", following.noise[..., :few, :], apart, dtype=np.float64)
    size = np.sqrt(np.square(apart, dtype=np.float64).sum(axis=(2, 3, 4, 5)))
    # Where both points are the same, rounding is all that is left, and it may go with the noise.
    size = np.where(size > _TELLING * np.sqrt(apart[0, 0].size if apart.size else 0), size, 0.0)
    if not size.any():
        return _check(name, 0, 1.0, "", level)
    # Node by node, and all together: a little at every node shows in the sum.
    along = np.column_stack([along, np.where(size > 0, along, 0.0).sum(axis=1)])
    size = np.column_stack([size, np.linalg.norm(size, axis=1)])
    surprise = np.divide(along, size, out=np.zeros_like(along), where=size > 0) - NEGLIGIBLE * size
    point, node = np.unravel_index(np.argmax(surprise), surprise.shape)
    who = f"node {following.nodes[node]}" if node < len(following.nodes) else "every node, all together,"
    where = ("at its own point", "at a point without its own noise")[int(point)]
    words = f"{who} takes its gradients {where}, not at the public one"
    return _check(name, size.size, float(norm.sf(surprise[point, node])), words, level)


def check_silence(following: Following, level: float) -> Check:
    """A signal without noise of its own says nothing that was not sent before."""
    at = np.unravel_index(np.argmax(following.unexplained), following.unexplained.shape)
    words = f"node {following.nodes[at[0]]} in epoch {at[1] + 1} sends what does not follow from what was sent before"
    least = 0.0 if following.unexplained[at] > 1 else 1.0
    return _check("signals without noise", following.unexplained.size, least, words, level)


def _probability(correlation: FloatArray, count: FloatArray) -> FloatArray:
    """How probable correlations as large are by chance, beyond what is negligible."""
    beyond = np.maximum(np.abs(correlation) - NEGLIGIBLE, 0.0)
    return np.asarray(2 * norm.sf(beyond * np.sqrt(count)))


def _tests_of_size(following: Following) -> int:
    return int(following.noisy.sum() + following.noisy.any(axis=1).sum())


def _check(name: str, tests: int, least: float, where: str, level: float) -> Check:
    probability = min(1.0, least * max(tests, 1))
    return Check(name, tests, probability, where, probability < level)
