"""Attacks a system with canaries, and says what that shows of its promise."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import norm

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, Stage, quiet
from murmurcast.algorithms.base import Algorithm
from murmurcast.audits import bounds, canaries, clipping, one_run
from murmurcast.audits.adversaries import System, gather, receivers_attack
from murmurcast.audits.evidence import Evidence
from murmurcast.audits.guessing import Guesses, Numbers, guess
from murmurcast.errors import Error
from murmurcast.planning.setup import Setup
from murmurcast.privacy.rounding import at_least, at_most
from murmurcast.problems.base import Problem
from murmurcast.runs.record import Precision, claimed, strongest_mu
from murmurcast.runs.require import require_algorithm, require_clip, require_planned_for, require_settings

FALSE_POSITIVE_RATES = (0.1, 0.01, 0.001)
CURVE = tuple(float(rate) for rate in np.geomspace(1e-3, 1, 61))  # false-positive rates to draw
NOTE = "an audit can refute a promise, not prove it: what it did not try may still leak"
Verdict = Literal["not falsified", "FALSIFIED", "nothing is promised"]
_CANARIES = 16_000  # enough to find halved noise where epsilon 0.3 is promised at delta 1e-5
_MIN_CANARIES = 100
_MAX_CANARIES = 10_000_000  # of which every adversary keeps a reading for every epoch
_BEST_MU = 2.5  # canaries of a larger mu are guessed nearly always right, whatever is done to the noise
_SURE_OF_POWER = 0.9
_BOUNDS = 4  # of every attack: two of mu, two of epsilon; all hold together


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How sure to be, and whom to tell: nothing here changes what is promised.

    Args:
        confidence: Of all bounds together.
        precision: Of the runs; secure noise needs and gets float64.
        on_stage: Told what begins.
        on_epoch: Told (epochs done, epochs in all) of the stage.
    """

    confidence: float = 0.95
    precision: Precision = "float32"
    on_stage: Stage = quiet
    on_epoch: Count = quiet

    def __post_init__(self) -> None:
        _check.fraction(confidence=self.confidence)


class Attack(NamedTuple):
    """What one adversary showed.

    Attributes:
        adversary: Who it is.
        mu_linear: What it would reach under linear gradients, if all is as claimed. A diagnostic.
        filter: Which filter showed more: "matched", made for the claim, or "learned" from canaries that are told.
        guesses: Canaries that were guessed by this filter.
        right: How many of them rightly.
        mu: At least this, noise being independent between coordinates, as it is claimed to be.
        epsilon_by_counts: At least this, by Clopper-Pearson bounds of false and true positives.
        epsilon_one_run: At least this, by the bound for many canaries in one run, whatever ties them together.
        true_positives: Rates at `FALSE_POSITIVE_RATES`; None where there are too few canaries to tell.
        caught_from: The largest share of the noise's std that would have been caught; 0 where no cut would.
        curve: True-positive rates at `CURVE`, to draw.
    """

    adversary: str
    mu_linear: float
    filter: Literal["matched", "learned"]
    guesses: int
    right: int
    mu: float
    epsilon_by_counts: float
    epsilon_one_run: float
    true_positives: tuple[float | None, ...]
    caught_from: float
    curve: tuple[float, ...] = ()

    @property
    def epsilon(self) -> float:
        """The better of both bounds."""
        return max(self.epsilon_by_counts, self.epsilon_one_run)


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """What attacks on a system showed. All bounds hold together with the confidence.

    Attributes:
        algorithm: Its name.
        unit: What is promised to be hidden.
        target: The node under attack.
        runs: How many were made.
        canaries: How many in each run.
        share: Size of a canary's change, as a share of the sensitivity.
        delta: At which every epsilon is meant.
        confidence: Of all bounds together.
        mu_promised: For a change of this size; infinite where nothing is promised.
        epsilon_promised: The same, at delta.
        epsilon_whole: What is promised for the largest change that one unit can make.
        attacks: What every adversary showed.
        clip: Largest change of the target's gradient that hostile data made, as a share of the sensitivity; None where
            no data could be made hostile.
        warnings: What was asked for and not done.
    """

    algorithm: str
    unit: str
    target: int
    runs: int
    canaries: int
    share: float
    delta: float
    confidence: float
    mu_promised: float
    epsilon_promised: float
    epsilon_whole: float
    attacks: tuple[Attack, ...]
    clip: float | None
    warnings: tuple[str, ...] = ()

    @property
    def true_positives_allowed(self) -> tuple[float, ...]:
        """The largest rates that the promise allows at `FALSE_POSITIVE_RATES`."""
        return tuple(float(norm.cdf(norm.ppf(rate) + self.mu_promised)) for rate in FALSE_POSITIVE_RATES)

    @property
    def falsified_by(self) -> tuple[str, ...]:
        """Everything that contradicts the promise."""
        found = [attack.adversary for attack in self.attacks if self._refutes(attack)]
        beyond = self.clip is not None and self.clip > clipping.LARGEST_SHARE and np.isfinite(self.mu_promised)
        return (*found, "hostile data") if beyond else tuple(found)

    @property
    def verdict(self) -> Verdict:
        """Whether the promise stands."""
        if not np.isfinite(self.mu_promised):
            return "nothing is promised"
        return "FALSIFIED" if self.falsified_by else "not falsified"

    @property
    def caught_from(self) -> float:
        """The largest share of the noise's std that would have been caught, with probability 0.9."""
        return max(attack.caught_from for attack in self.attacks)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """(heading, line) of what was found."""
        lines = [("Verdict", self._verdict_in_words())]
        if self.verdict == "not falsified":
            lines.append(("Power", self._power_in_words()))
        if self.clip is not None:
            lines.append(
                ("Clip", f"hostile data changed the gradient by at most {self.clip:.3g} times the sensitivity")
            )
        return tuple(lines)

    def _verdict_in_words(self) -> str:
        if self.verdict == "nothing is promised":
            most = max(self.attacks, key=lambda attack: attack.epsilon)
            return f"nothing is promised, and {most.adversary} shows epsilon {at_least(most.epsilon, 3)} or more"
        held = f"the certified epsilon {at_most(self.epsilon_promised)} (mu {at_most(self.mu_promised)})"
        if self.share < 1:
            held += f" of changes of this size; of the largest change it is {at_most(self.epsilon_whole)}"
        if self.verdict == "FALSIFIED":
            return f"FALSIFIED by {' and '.join(self.falsified_by)}: more than {held}"
        return f"not falsified: nobody shows more than {held}"

    def _power_in_words(self) -> str:
        if not self.caught_from:
            return "no cut in noise would have been caught; more runs give more power"
        return f"noise cut to {self.caught_from:.0%} of its std or less would have been caught, at power 0.9"

    def _refutes(self, attack: Attack) -> bool:
        return attack.mu > self.mu_promised or attack.epsilon > self.epsilon_promised


def audit(
    algorithm: Algorithm,
    problem: Problem,
    *,
    actual: Algorithm | None = None,
    target: int | None = None,
    coalition: tuple[int, ...] | None = None,
    runs: int | None = None,
    seed: int = 0,
    options: AuditOptions | None = None,
) -> Audit:
    """Plants canaries at a node, runs the real system, and lets adversaries guess them from what they really have.

    An audit can refute a promise. It cannot prove one: whatever it did not try may still leak.

    Args:
        algorithm: What the nodes claim to do; it carries the setup and the promise.
        problem: What they learn; it must be the one that was planned for.
        actual: What the nodes really do, such as an implementation of your own; the algorithm itself by default. It
            runs for as many epochs, over the same kind of channel.
        target: The node under attack; the one that pays most by default.
        coalition: Receivers that act together; everybody but the target by default. They attack Algorithm 1 only; for
            any other, and where nodes drop out, a warning says so.
        runs: How many runs; by default as many as make about 16,000 canaries.
        seed: Of runs, signs and splits; the same seed gives the same audit, unless noise is secure.
        options: How sure to be, and whom to tell.
    """
    told = options or AuditOptions()
    require_planned_for(algorithm, problem)
    actual = algorithm if actual is None else actual
    _require_alike(algorithm, actual)
    plan, nodes = algorithm.plan, algorithm.setup.network.nodes
    promised = strongest_mu(claimed(algorithm, problem), nodes)
    cost = np.where(np.isinf(promised), plan.certificate.mu, promised)
    if target is None:
        target = int(np.argmax(cost))
    members = _coalition(nodes, target, coalition)
    runs = -(-_CANARIES // problem.dim) if runs is None else runs
    _check.at_least(1, runs=runs)
    _check.at_least(0, seed=seed)
    require_settings((seed,), None, None, told.precision)
    _require_enough(runs, problem.dim)
    share = min(1.0, _BEST_MU / max(float(cost[target]), _BEST_MU))
    precision: Precision = "float64" if plan.budget.noise_source == "secure" else told.precision
    require_clip(problem, precision)
    planted = canaries.draw(plan, target, problem.dim, runs, share, seed)
    system = System(algorithm, actual, problem, planted, seed, precision, told.on_stage, told.on_epoch)
    evidence = gather(system, members)
    told.on_stage("guessing")
    limit = share * float(promised[target])
    attacks = judge(evidence, planted.signs, limit, plan.budget.delta, told.confidence, seed)
    told.on_stage("trying hostile data")
    point: Literal["mixed", "own"] = "own" if algorithm.settings.get("gradient_at") == "own" else "mixed"
    return Audit(
        algorithm=algorithm.name,
        unit=plan.budget.unit,
        target=target,
        runs=runs,
        canaries=problem.dim,
        share=share,
        delta=plan.budget.delta,
        confidence=told.confidence,
        mu_promised=limit,
        epsilon_promised=_epsilon(plan, limit),
        epsilon_whole=_epsilon(plan, float(promised[target])),
        attacks=attacks,
        clip=clipping.largest_change(problem, plan.budget.unit, target, point, seed),
        warnings=() if coalition is None or receivers_attack(algorithm) else (_deaf(algorithm, members),),
    )


def _epsilon(setup: Setup, mu: float) -> float:
    return float(setup.curve.epsilon(mu, setup.budget.delta)) if np.isfinite(mu) else np.inf


def in_words(found: Audit) -> str:
    """What was attacked, in a line."""
    runs = f"{found.runs} run{'s' if found.runs > 1 else ''}"
    size = "the largest change" if found.share == 1 else f"{found.share:.3g} of the largest change"
    return (
        f"{found.algorithm}, node {found.target}, unit {found.unit}; {runs} with {found.canaries} canaries each, of "
        f"{size} that one {found.unit} can make"
    )


def judge(
    evidence: dict[str, Evidence],
    signs: FloatArray,
    mu_promised: float,
    delta: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[Attack, ...]:
    """What evidence shows.

    Args:
        evidence: By adversary, readings of [runs, canaries].
        signs: [runs, canaries].
        mu_promised: For a change of the canaries' size; only an audit's power depends on it.
        delta: At which every epsilon is meant.
        confidence: Of all bounds together.
        seed: Of the split of canaries into those that are learned from and those that are counted.
    """
    each = 1 - (1 - confidence) / (_BOUNDS * len(evidence))
    return tuple(
        _attack(who, found, guess(found, signs, seed), mu_promised, delta, each) for who, found in evidence.items()
    )


def _attack(who: str, evidence: Evidence, guesses: Guesses, limit: float, delta: float, confidence: float) -> Attack:
    """What one adversary showed; `confidence` is that of each bound."""
    everything: Numbers = np.arange(len(guesses.signs))
    split = guesses.split
    filters = {"matched": (guesses.matched, everything), "learned": (guesses.learned, split.counting)}
    right = {name: guesses.right(*with_which) for name, with_which in filters.items()}
    trials = {name: len(which) for name, (_, which) in filters.items()}
    shown = {name: float(bounds.mu_lower_bound(right[name], trials[name], confidence)) for name in filters}
    best: Literal["matched", "learned"] = "learned" if shown["learned"] > shown["matched"] else "matched"
    # Of what the attack reaches a lower bound: what is stated about power must hold, too.
    reached = float(bounds.mu_lower_bound(right["matched"], trials["matched"], _SURE_OF_POWER))
    caught = bounds.smallest_cut(reached, limit, trials["matched"], confidence)
    statistic = guesses.better()
    choose, count = ((statistic[which], guesses.signs[which]) for which in (split.choosing, split.counting))
    threshold = bounds.best_threshold(*_by_world(*choose), delta, confidence)
    return Attack(
        adversary=who,
        mu_linear=evidence.mu,
        filter=best,
        guesses=trials[best],
        right=right[best],
        mu=shown[best],
        epsilon_by_counts=bounds.counted(threshold, *_by_world(*count), delta, confidence).epsilon,
        epsilon_one_run=one_run.measure(choose, count, delta, confidence).epsilon,
        true_positives=tuple(_true_positives(*count, rate) for rate in FALSE_POSITIVE_RATES),
        caught_from=caught,
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


def _require_alike(claimed: Algorithm, actual: Algorithm) -> None:
    """What is done can be held against what is claimed, signal by signal."""
    require_algorithm(actual)
    for what, of in (
        ("number of nodes", lambda one: one.setup.network.nodes),
        ("number of epochs", lambda one: one.epochs),
        ("channel", lambda one: [part.channel.kind for part in one.rounds]),
    ):
        if of(actual) != of(claimed):
            raise Error(
                f"actual has another {what} than what is claimed: {of(actual)}, not {of(claimed)}",
                hint="make both from one plan and for one channel, or audit actual by itself",
            )


def _require_enough(runs: int, each: int) -> None:
    if runs * each < _MIN_CANARIES:
        raise Error(f"{runs * each} canaries are too few to learn from and to count", hint="raise the number of runs")
    if runs > 1 and runs * each > _MAX_CANARIES:
        raise Error(
            f"{runs} runs of {each} canaries each are more than {_MAX_CANARIES:,} canaries",
            hint="lower the number of runs",
        )


def _coalition(nodes: int, target: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    _check.at_least(0, target=target)
    if target >= nodes:
        raise Error(f"target is {target}, and nodes are 0 to {nodes - 1}", hint="name one of them")
    everybody = (node for node in range(nodes) if node != target)
    members = _check.whole_numbers("(0, 2)", coalition=everybody if given is None else given)
    members = _check.observers(nodes, members)
    if target in members:
        raise Error(f"node {target} is in the coalition against itself", hint="name another target, or leave it out")
    return members


def _deaf(algorithm: Algorithm, members: tuple[int, ...]) -> str:
    who = f"receiver{'s' if len(members) > 1 else ''} {', '.join(map(str, members))}"
    why = "where nodes drop out" if "drops" in algorithm.settings else f"on {algorithm.name}"
    return f"coalition: {who} did not attack; {why} only the eavesdropper does, who hears every signal by itself"
