"""What an adversary's evidence shows, with confidence: from readings to guesses, from guesses to bounds."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.audits import bounds, one_run
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.guessing import Guesses, Numbers, guess
from murmurcast.privacy.releases import ADVERSARIES, Adversary

FALSE_POSITIVE_RATES = (0.1, 0.01, 0.001)
CURVE = tuple(float(rate) for rate in np.geomspace(1e-3, 1, 61))  # false-positive rates to draw
BOUNDS = 4  # of every attack: two of mu, two of epsilon; all hold together
_SURE_OF_POWER = 0.9


class EpsilonAt(Protocol):
    """The curve of a promise."""

    def __call__(self, mu: float, /) -> float:
        """Epsilon at the promise's delta; infinite where mu is."""
        ...


class Promise(NamedTuple):
    """What is promised to one target, for changes of the size of its canaries.

    Attributes:
        target: The node.
        share: Size of a canary's change, as a share of the sensitivity.
        mu: For a change of this size; infinite where nothing is promised.
        epsilon: The same, at delta.
        epsilon_whole: For the largest change that one unit can make.
        delta: At which every epsilon is meant.
        against: From whom it is hidden.
        coins: Whether it counts on records that join by secret coins; mu is then that of the plain bound.
        guess: Where it does, the best chance of guessing right that it leaves.
    """

    target: int
    share: float
    mu: float
    epsilon: float
    epsilon_whole: float
    delta: float
    against: Adversary = "everybody"
    coins: bool = False
    guess: float = 1.0


class Attack(NamedTuple):
    """What one adversary showed of one target.

    Attributes:
        adversary: Who it is.
        target: Whose canaries it guessed.
        mu_linear: What it would reach under linear gradients, if all is as claimed. A diagnostic.
        filter: Which filter showed more: "matched", made for the claim, or "learned" from canaries that are told.
        guesses: Canaries that were guessed by this filter.
        right: How many of them rightly.
        mu: At least this, noise being independent between coordinates, as it is claimed to be.
        epsilon_by_counts: At least this, by Clopper-Pearson bounds of false and true positives.
        epsilon_one_run: At least this, by the bound for many canaries in one run, whatever ties them together.
        true_positives: Rates at `FALSE_POSITIVE_RATES`; None where there are too few canaries to tell.
        caught_from: The largest share of the noise's std that would have been caught; 0 where no cut would, and where
            the promise counts on coins, of which that is not known.
        mu_promised: What it may show at most, having what it has.
        epsilon_promised: The same, at delta.
        curve: True-positive rates at `CURVE`, to draw.
    """

    adversary: str
    target: int
    mu_linear: float
    filter: Literal["matched", "learned"]
    guesses: int
    right: int
    mu: float
    epsilon_by_counts: float
    epsilon_one_run: float
    true_positives: tuple[float | None, ...]
    caught_from: float
    mu_promised: float
    epsilon_promised: float
    curve: tuple[float, ...] = ()

    @property
    def epsilon(self) -> float:
        """The better of both bounds."""
        return max(self.epsilon_by_counts, self.epsilon_one_run)

    @property
    def refutes(self) -> bool:
        """Whether it showed more than it may."""
        return self.mu > self.mu_promised or self.epsilon > self.epsilon_promised

    @property
    def excess(self) -> float:
        """What it showed as a share of what it may show; where nothing is promised, epsilon itself."""
        if not np.isfinite(self.mu_promised):
            return self.epsilon
        return max(self.mu / max(self.mu_promised, 1e-12), self.epsilon / max(self.epsilon_promised, 1e-12))


def judge(
    evidence: Iterable[tuple[str, Evidence]],
    signs: FloatArray,
    promises: tuple[Promise, ...],
    epsilon_at: EpsilonAt,
    confidence: float,
    seed: int = 0,
) -> tuple[Attack, ...]:
    """What evidence of one target shows; of an adversary against whom nothing is promised it is left out.

    Args:
        evidence: By adversary, readings of [runs, canaries].
        signs: [runs, canaries].
        promises: To this target, one for every adversary; what an attack shows does not depend on them.
        epsilon_at: The promise's epsilon for a part of what it is about.
        confidence: Of each bound.
        seed: Of the split of canaries into those that are learned from and those that are counted.
    """
    attacks = []
    for who, one in evidence:
        promise = _promise_to(one.against, promises)
        if promise is None:
            continue
        limit = _for_part(promise, one.part, epsilon_at)
        attacks.append(_attack(who, one, guess(one, signs, seed), limit, confidence))
    return tuple(attacks)


def _for_part(promise: Promise, part: float, epsilon_at: EpsilonAt) -> Promise:
    """What is promised for readings that have this part of the mu of all.

    Coins hide one epoch less than as much mu in many: where they are counted on, what holds for all readings holds for
    a part of them. As coins leave less to be guessed than mu says, guesses are held against that too.
    """
    mu = part * promise.mu
    if not promise.coins:
        return promise._replace(mu=mu, epsilon=promise.epsilon if part == 1 else epsilon_at(mu))
    return promise._replace(mu=min(mu, float(bounds.mu_of_guess(promise.guess))))


def _promise_to(adversary: Adversary, promises: tuple[Promise, ...]) -> Promise | None:
    """The least that is promised against this adversary or a stronger one."""
    rank = ADVERSARIES.index
    holding = [promise for promise in promises if rank(promise.against) <= rank(adversary)]
    return min(holding, key=lambda promise: promise.mu, default=None)


def _attack(who: str, evidence: Evidence, guesses: Guesses, promise: Promise, confidence: float) -> Attack:
    """What one adversary showed; `confidence` is that of each bound."""
    everything: Numbers = np.arange(len(guesses.signs))
    split, delta = guesses.split, promise.delta
    filters = {"matched": (guesses.matched, everything), "learned": (guesses.learned, split.counting)}
    right = {name: guesses.right(*with_which) for name, with_which in filters.items()}
    trials = {name: len(which) for name, (_, which) in filters.items()}
    shown = {name: float(bounds.mu_lower_bound(right[name], trials[name], confidence)) for name in filters}
    best: Literal["matched", "learned"] = "learned" if shown["learned"] > shown["matched"] else "matched"
    # Of what the attack reaches a lower bound: what is stated about power must hold, too.
    reached = float(bounds.mu_lower_bound(right["matched"], trials["matched"], _SURE_OF_POWER))
    # Who takes part by coins is guessed no better than they let, however small the noise: nothing is stated there.
    caught_from = 0.0 if promise.coins else bounds.smallest_cut(reached, promise.mu, trials["matched"], confidence)
    statistic = guesses.better()
    choose, count = ((statistic[which], guesses.signs[which]) for which in (split.choosing, split.counting))
    threshold = bounds.best_threshold(*_by_world(*choose), delta, confidence)
    return Attack(
        adversary=who,
        target=promise.target,
        mu_linear=evidence.mu,
        filter=best,
        guesses=trials[best],
        right=right[best],
        mu=shown[best],
        epsilon_by_counts=bounds.counted(threshold, *_by_world(*count), delta, confidence).epsilon,
        epsilon_one_run=one_run.measure(choose, count, delta, confidence).epsilon,
        true_positives=tuple(_true_positives(*count, rate) for rate in FALSE_POSITIVE_RATES),
        caught_from=caught_from,
        mu_promised=promise.mu,
        epsilon_promised=promise.epsilon,
        curve=tuple(map(float, _rates(*_by_world(*count), CURVE))),
    )


def _true_positives(statistic: FloatArray, signs: FloatArray, rate: float) -> float | None:
    absent, present = _by_world(statistic, signs)
    if len(absent) * rate < 1:
        return None
    return float(_rates(absent, present, (rate,))[0])


def _rates(absent: FloatArray, present: FloatArray, false_positives: tuple[float, ...]) -> FloatArray:
    """True-positive rates at false-positive rates, as counted."""
    thresholds = np.quantile(absent, 1 - np.asarray(false_positives), method="higher")
    return np.asarray((present[None] > thresholds[:, None]).mean(axis=1))


def _by_world(statistic: FloatArray, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Absent and present, as many of one as of the other."""
    absent, present = statistic[signs < 0], statistic[signs > 0]
    trials = min(len(absent), len(present))
    return absent[:trials], present[:trials]
