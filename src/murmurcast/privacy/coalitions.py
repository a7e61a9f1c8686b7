"""Who learns what: the linear diagnostic of every single receiver and of pairs of them. Not a guarantee.

One sweep of the filter serves all targets of one coalition, so a network of K nodes takes K sweeps for its receivers
and K (K - 1)/2 for its pairs. Where these are too many, the likeliest are tried: those to whom a target's signal makes
up most of what they hear in one epoch.
"""

from itertools import combinations, islice
from typing import NamedTuple, Protocol

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, quiet
from murmurcast._threads import side_by_side
from murmurcast.privacy import linear

QUICK = 1.0  # seconds for all of it, unless everything is asked for
_FOR_RECEIVERS = 0.75  # of them
_PER_EPOCH, _PER_PRODUCT = 1.5e-4, 2.2e-10  # seconds an epoch, and per nodes^3, on a core with nothing else to do
_ROUNDING = 1e-9  # relative; who learns equally much, but for rounding, is named in the same order on every processor


class Collusion(NamedTuple):
    """What single receivers and pairs learn of every node, as mu of the linear diagnostic. Not a guarantee.

    Changes of a node's gradient all point one way, or turn round every epoch, whichever tells more.

    Attributes:
        receivers: Who was tried alone, in ascending order.
        single_mu: [receivers, nodes] what each of them learns of every node; 0 of itself.
        pairs_tried: How many pairs were tried.
        pairs: How many there are.
        pair: [nodes, 2] the two that learn most of a node, of the pairs tried. (7, -1) where 7 alone learns more than
            any of them: 7 and anybody. (-1, -1) where nobody was tried, or nobody learns anything.
        pair_mu: [nodes] what they learn together, at least.
    """

    receivers: tuple[int, ...]
    single_mu: FloatArray
    pairs_tried: int
    pairs: int
    pair: "np.typing.NDArray[np.int64]"
    pair_mu: FloatArray

    @property
    def worst_receiver(self) -> "np.typing.NDArray[np.int64]":
        """[nodes] the receiver, of those tried, that learns most of a node; -1 where none was tried."""
        if not self.receivers:
            return np.full(len(self.pair), -1)
        return _most_learnt(self.receivers, self.single_mu)

    @property
    def worst_single_mu(self) -> FloatArray:
        """[nodes] what that receiver learns."""
        return np.asarray(self.single_mu.max(axis=0, initial=0.0))

    @property
    def is_complete(self) -> bool:
        """Every receiver and every pair was tried."""
        return len(self.receivers) == len(self.pair) and self.pairs_tried == self.pairs


class Learnt(Protocol):
    """What a coalition learns of every node."""

    def __call__(self, members: tuple[int, ...], /) -> FloatArray:
        """[nodes] mu; 0 for its members."""
        ...


def collusion(
    weights: FloatArray,
    effective_noise: FloatArray,
    push: FloatArray,
    seconds: float = QUICK,
    on_coalition: Count = quiet,
    learnt: Learnt | None = None,
    times_longer: float = 1.0,
) -> Collusion:
    """The linear diagnostic of receivers and pairs of them, as many as about so many seconds allow.

    Which ones follows from the numbers given, never from a clock: the same call gives the same answer everywhere.

    Args:
        weights: [nodes, nodes] A, receiver first.
        effective_noise: [epochs, nodes] s_k,t.
        push: [epochs, nodes] S_k gamma_t / z_kk,t, how far one gradient can move what the node says.
        seconds: What it may take, roughly; `math.inf` tries all.
        on_coalition: Called with (coalitions done, coalitions in all).
        learnt: What a coalition learns; by default of the ideal channel, in one round. The weights then only say who is
            tried first.
        times_longer: How much longer that takes than with the ideal channel.
    """
    linear.require_numbers(effective_noise, push)
    _check.not_negative(seconds=seconds)
    nodes = len(weights)
    each = times_longer * likely_seconds(nodes, len(push))
    alone = _affordable(min(seconds, _FOR_RECEIVERS) if np.isfinite(seconds) else seconds, each, nodes)
    all_pairs = nodes * (nodes - 1) // 2 if nodes > 2 else 0  # of two nodes nobody is left to observe
    audible = weights * effective_noise[-1]  # the first message may be sent without noise
    np.fill_diagonal(audible, 0.0)
    importance = _order(push, effective_noise)
    receivers = tuple(sorted(_likeliest(_shares_alone(audible), importance, alone)))
    together = _affordable(seconds - len(receivers) * each, each, all_pairs) if len(receivers) > 1 else 0
    candidates = np.array(list(combinations(receivers, 2)), np.int64).reshape(-1, 2)
    if together < len(candidates):
        candidates = candidates[_likeliest(_shares_of_pairs(audible, candidates), importance, together)]
    of = len(receivers) + len(candidates)
    single = np.zeros((len(receivers), nodes))

    def ideally(members: tuple[int, ...]) -> FloatArray:
        return linear.steady_or_turning(weights, members, effective_noise, push)

    of_members: Learnt = learnt or ideally
    for place, mu in enumerate(side_by_side(of_members, [(receiver,) for receiver in receivers])):
        single[place] = mu
        on_coalition(place + 1, of)
    pair, pair_mu = _with_anybody(receivers, single, all_pairs > 0)
    coalitions = list(map(tuple, candidates.tolist()))
    for place, (members, mu) in enumerate(
        zip(coalitions, side_by_side(of_members, coalitions), strict=True), len(receivers)
    ):
        more = mu > pair_mu * (1 + _ROUNDING)
        pair[more], pair_mu[more] = members, mu[more]
        on_coalition(place + 1, of)
    return Collusion(receivers, single, len(candidates), all_pairs, pair, pair_mu)


def _order(push: FloatArray, effective_noise: FloatArray) -> "np.typing.NDArray[np.int64]":
    """[nodes] the nodes that pay most against everybody first; those that differ by rounding only, by their number."""
    cost = np.square(push[:-1] / effective_noise[1:]).sum(axis=0)
    return np.argsort(-np.round(cost / cost.max(), 9), kind="stable")


def _with_anybody(
    receivers: tuple[int, ...], single: FloatArray, possible: bool
) -> "tuple[np.typing.NDArray[np.int64], FloatArray]":
    """What a pair learns at least: what one of the two learns alone."""
    nodes = single.shape[1]
    pair, pair_mu = np.full((nodes, 2), -1), np.zeros(nodes)
    if possible and receivers:
        pair_mu = single.max(axis=0)
        pair[:, 0] = _most_learnt(receivers, single)
    return pair, pair_mu


def _most_learnt(receivers: tuple[int, ...], single: FloatArray) -> "np.typing.NDArray[np.int64]":
    """[nodes] who of the receivers learns most of a node, the first of equals; -1 where nobody learns anything."""
    most = single.max(axis=0)
    first = np.argmax(single >= most * (1 - _ROUNDING), axis=0)
    return np.where(most > 0, np.array(receivers)[first], -1)


def likely_seconds(nodes: int, epochs: int) -> float:
    """About how long one coalition takes."""
    return epochs * (_PER_EPOCH + _PER_PRODUCT * nodes**3)


def _affordable(seconds: float, each: float, most: int) -> int:
    """How many; a single one would say nothing about the rest, so it is all, several, or none."""
    count = most if not np.isfinite(seconds) else min(most, int(max(0.0, seconds) / each))
    return count if count > 1 or count == most else 0


def _shares_alone(audible: FloatArray) -> FloatArray:
    """[receivers, targets] how much of what a receiver hears in one epoch is the target's."""
    total = np.square(audible).sum(axis=1, keepdims=True)
    return np.asarray(np.square(audible) / np.where(total > 0, total, 1.0))


def _shares_of_pairs(audible: FloatArray, pairs: "np.typing.NDArray[np.int64]") -> FloatArray:
    """[pairs, targets] the same for two receivers, who hear two different sums: b_j' (B B')^-1 b_j."""
    one, other = audible[pairs[:, 0]], audible[pairs[:, 1]]
    between = np.arange(len(pairs))
    norms = np.square(one).sum(axis=1) - one[between, pairs[:, 1]] ** 2
    others = np.square(other).sum(axis=1) - other[between, pairs[:, 0]] ** 2
    cross = (one * other).sum(axis=1)
    within = norms * others - cross**2
    numerator = others[:, None] * one**2 + norms[:, None] * other**2 - 2 * cross[:, None] * one * other
    shares = numerator / np.where(within > 1e-12 * norms * others, within, np.inf)[:, None]
    shares[between, pairs[:, 0]] = shares[between, pairs[:, 1]] = 0.0
    return np.asarray(shares)


def _likeliest(shares: FloatArray, importance: "np.typing.NDArray[np.int64]", count: int) -> list[int]:
    """Candidates, so many: the best for the first target, the best for the next, and so on round and round."""
    if count >= len(shares):
        return list(range(len(shares)))
    ranked = np.argsort(-np.round(shares, 9), axis=0, kind="stable")
    in_turn = (int(candidate) for row in ranked for candidate in row[importance])
    return list(islice(dict.fromkeys(in_turn), count)) if count else []
