"""Attacks a system with canaries, looks at its noise and its clip, and says what that shows of its promise."""

from dataclasses import dataclass

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Count, Stage, quiet
from murmurcast.algorithms.base import Algorithm, counting_first_releases
from murmurcast.algorithms.observed import why_not_observed
from murmurcast.audits import canaries, clipping, coins, first_releases, noise_checks
from murmurcast.audits.adversaries import MAX_ATTACKS, Gathered, System, evidence_of, gather
from murmurcast.audits.attack import BOUNDS, Attack, Promise, judge
from murmurcast.audits.canaries import Numbers
from murmurcast.audits.claims import takes_private_gradients
from murmurcast.audits.following import bytes_of_following
from murmurcast.audits.noise_checks import Check
from murmurcast.audits.verdict import Audit
from murmurcast.engine.check import require_fitting
from murmurcast.errors import Error
from murmurcast.planning.plan import Plan
from murmurcast.planning.setup import Setup
from murmurcast.privacy import sampling
from murmurcast.privacy.conversion import EXACT, Curve, curve_of, mu_of
from murmurcast.privacy.releases import Adversary, Releases
from murmurcast.problems.base import Problem
from murmurcast.problems.sampling import Sampling
from murmurcast.runs.record import Precision, claimed, strongest_mu
from murmurcast.runs.require import require_algorithm, require_clip, require_planned_for, require_settings

_CANARIES = 16_000  # at every target
_MIN_CANARIES = 100
_MAX_CANARIES = 10_000_000  # of which every adversary keeps a reading for every epoch
_BEST_MU = 2.5  # canaries of a larger mu are guessed nearly always right, whatever is done to the noise
_FOR_OTHERS = 0.01  # of what may go wrong in the checks, for each look at something else than noise in training
_FIRST_UNSEEN = "guesses from what was released before training: only the noise there was looked at"
_MAX_FOLLOWED_BYTES = 2**30  # of nodes whose signals are looked at


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How sure to be, and whom to tell: nothing here changes what is promised.

    Args:
        confidence: Of all bounds and checks together: an honest system is accused with at most the rest. By default so
            that 200 audits of honest systems accuse nobody, with a probability of 98 %.
        precision: Of the runs; secure noise needs and gets float64.
        on_stage: Told what begins.
        on_epoch: Told (epochs done, epochs in all) of the stage.
    """

    confidence: float = 0.9999
    precision: Precision = "float32"
    on_stage: Stage = quiet
    on_epoch: Count = quiet

    def __post_init__(self) -> None:
        _check.fraction(confidence=self.confidence)


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
    """Plants canaries at all nodes, runs the real system, and lets adversaries guess them from what they really have.

    Besides, it subtracts all that it knows from what was sent and looks at the noise that is left, and tries to move a
    gradient further than the clip allows. An audit can refute a promise. It cannot prove one: whatever it did not try
    may still leak.

    Args:
        algorithm: What the nodes claim to do; it carries the setup and the promise.
        problem: What they learn; it must be the one that was planned for.
        actual: What the nodes really do, such as an implementation of your own; the algorithm itself by default. It
            runs for as many epochs, over the same kind of channel.
        target: The only node under attack; every node by default, outside the coalition.
        coalition: Receivers that act together; everybody but the target by default, over a radio pairs. They attack
            Algorithm 1 only; for any other, and where nodes drop out, a warning says so.
        runs: How many runs; by default as many as make about 16,000 canaries at every target.
        seed: Of runs, signs and splits; the same seed gives the same audit, unless noise is secure.
        options: How sure to be, and whom to tell.
    """
    chosen = options or AuditOptions()
    actual = algorithm if actual is None else actual
    _check.at_least(0, seed=seed)
    require_settings((seed,), None, None, chosen.precision)
    _require_runnable(algorithm, actual, problem, chosen.precision)
    algorithm = counting_first_releases(algorithm)
    setup, nodes = algorithm.setup, algorithm.setup.network.nodes
    runs = _require_runs(runs, problem.dim)
    claims = claimed(algorithm, problem)
    promised = strongest_mu(claims, nodes)
    cost = np.where(np.isinf(promised), _cost_of(setup), promised)
    members = None if coalition is None else _members(nodes, coalition)
    targets = _targets(nodes, target, members)
    looked_at = _room_for(algorithm, problem.dim, runs, targets, cost)
    targets = np.intersect1d(targets, looked_at)
    share = np.minimum(1.0, _BEST_MU / np.maximum(cost[targets], _BEST_MU))
    precision: Precision = "float64" if setup.budget.noise_source == "secure" else chosen.precision
    require_clip(problem, precision)
    planted = canaries.draw(algorithm, tuple(targets), problem.dim, runs, share, seed)
    system = System(algorithm, actual, problem, planted, looked_at, seed, precision, chosen.on_stage, chosen.on_epoch)
    gathered = gather(system, members)
    promises = [promises_to(algorithm, claims, int(node), one) for node, one in zip(targets, share, strict=True)]
    chosen.on_stage("guessing")
    # Half of what may go wrong is for the attacks, half for the checks.
    half = (1 - chosen.confidence) / 2
    attacks = _attacks(gathered, promises, algorithm, 1 - half / (BOUNDS * MAX_ATTACKS * len(targets)), seed)
    chosen.on_stage("looking at the noise")
    noise = gathered.following if np.isfinite(promised).all() else None
    others, not_looked_at, left = _look_elsewhere(problem, coins.counted_on(claims, setup.sampling), half, seed)
    checks = () if noise is None else noise_checks.check_noise(noise, planted, 1 - left)
    chosen.on_stage("trying hostile data")
    hostile = clipping.try_hostile_data(problem, setup.budget.unit, _point(algorithm), seed)
    unseen = _unseen("" if gathered.together else _why_deaf(setup), nodes, targets, looked_at, target, members)
    return Audit(
        algorithm=algorithm.name,
        unit=setup.budget.unit,
        nodes=nodes,
        runs=runs,
        canaries=problem.dim,
        delta=setup.budget.delta,
        confidence=chosen.confidence,
        promises=tuple(sorted((each[0] for each in promises), key=lambda one: -one.mu)),
        weaker=_weaker(promises),
        attacks=attacks,
        checks=(*checks, *others),
        cut_caught=0.0 if noise is None else noise_checks.smallest_cut_of_size(noise, 1 - half),
        hostile=hostile,
        unseen=(*unseen, *hostile.unseen, *not_looked_at),
        warnings=() if members is None or gathered.together else (_deaf(algorithm, members),),
    )


def _look_elsewhere(
    problem: Problem, counted_on: Sampling | None, half: float, seed: int
) -> tuple[tuple[Check, ...], tuple[str, ...], float]:
    """Checks of releases before training and of coins; what they leave unseen; and what they leave of `half`."""
    first = first_releases.check_first_releases(getattr(problem, "data", None), half * _FOR_OTHERS)
    joining = coins.check_coins(problem, counted_on, half * _FOR_OTHERS, seed)
    checks = (*first, *joining)
    unseen = (*(_FIRST_UNSEEN for _ in first), *coins.unseen(counted_on, joining))
    return checks, unseen, half * (1 - _FOR_OTHERS * len(checks))


def _point(algorithm: Algorithm) -> clipping.Point:
    return "own" if takes_private_gradients(algorithm) else "mixed"


def _attacks(
    gathered: Gathered, promises: list[tuple[Promise, ...]], algorithm: Algorithm, confidence: float, seed: int
) -> tuple[Attack, ...]:
    """Everybody's, target by target."""
    attacks: list[Attack] = []
    for place, to_target in enumerate(promises):
        evidence = evidence_of(gathered, to_target[0].target)
        signs = gathered.canaries.signs[place]
        attacks += judge(evidence, signs, to_target, lambda mu: epsilon_of_mu(algorithm, mu), confidence, seed)
    return tuple(attacks)


def promises_to(algorithm: Algorithm, claims: tuple[Releases, ...], target: int, share: float) -> tuple[Promise, ...]:
    """One for every adversary that anything is promised against, the strongest first."""
    if not claims:
        return (_promise(algorithm, target, share, np.inf, "everybody"),)
    return tuple(_promise(algorithm, target, share, float(mu_of(part)[target]), part.against) for part in claims)


def _promise(algorithm: Algorithm, target: int, share: float, mu: float, against: Adversary) -> Promise:
    curve, delta = _curve_for(algorithm, target), algorithm.setup.budget.delta
    limit, guess = float(share) * mu, 1.0
    if curve.sampled and np.isfinite(mu):  # coins hide the steps alone: what was released before stays as it is
        limit = float(curve.total_mu(np.asarray(share * np.sqrt(max(mu**2 - curve.spent**2, 0.0)))))
        (parts,) = curve.parts_at(np.array([limit]))
        guess = sampling.best_guess(parts, curve.overflow)
    small, whole = (float(curve.epsilon(one, delta)) if np.isfinite(one) else np.inf for one in (limit, mu))
    return Promise(target, float(share), limit, small, whole, delta, against, bool(curve.sampled), guess)


def _weaker(promises: list[tuple[Promise, ...]]) -> tuple[Promise, ...]:
    """What is promised besides, against weaker adversaries: for each the largest of all targets."""
    return tuple(max(one, key=lambda promise: promise.mu) for one in zip(*(each[1:] for each in promises), strict=True))


def epsilon_of_mu(algorithm: Algorithm, mu: float) -> float:
    """What a mu comes to at the budget's delta, by the curve of the noise that is claimed."""
    if not np.isfinite(mu):
        return np.inf
    return float(_curve(algorithm).epsilon(mu, algorithm.setup.budget.delta))


def _curve(algorithm: Algorithm) -> Curve:
    return curve_of(algorithm.releases[0]) if algorithm.releases else EXACT


def _curve_for(algorithm: Algorithm, target: int) -> Curve:
    """That of one node: of sampled releases every node has its own."""
    curve = _curve(algorithm)
    return curve._replace(sampled=curve.sampled[target : target + 1])


def _cost_of(setup: Setup) -> FloatArray:
    """[nodes] what a plan costs, so that canaries are as large as is worth while; unknown where there is no plan."""
    return setup.certificate.mu if isinstance(setup, Plan) else np.zeros(setup.network.nodes)


def _room_for(algorithm: Algorithm, dim: int, runs: int, targets: Numbers, cost: FloatArray) -> Numbers:
    """Whose signals are looked at: everybody's, or as many as there is room for, targets that pay most first."""
    room = max(1, _MAX_FOLLOWED_BYTES // bytes_of_following(algorithm, dim, runs))
    others = np.setdiff1d(np.arange(len(cost)), targets)
    order = np.concatenate([part[np.argsort(-cost[part], kind="stable")] for part in (targets, others)])
    return np.sort(order[:room])


def _why_deaf(setup: Setup) -> str:
    """Why receivers do not attack."""
    known = why_not_observed(setup) if isinstance(setup, Plan) else ""
    return known or "none is known on this method"


def _unseen(
    why_deaf: str,
    nodes: int,
    targets: Numbers,
    looked_at: Numbers,
    target: int | None,
    members: tuple[int, ...] | None,
) -> tuple[str, ...]:
    """Where the audit could not look."""
    said = []
    outside = nodes - len(targets) - (0 if members is None or target is not None else len(members))
    if target is not None and nodes > 1:
        said.append(f"attacks on the {nodes - 1} other nodes, which --target left out")
    elif outside:
        said.append(f"attacks on {outside} nodes that there is no room for; name one with --target, or use fewer runs")
    elif members:
        said.append("attacks on the members of the coalition")
    if len(looked_at) < nodes:
        said.append(f"the noise of {nodes - len(looked_at)} nodes that there is no room for")
    if why_deaf:
        said.append(f"attacks by receivers and by whoever has published models only: {why_deaf}")
    return tuple(said)


def _require_runnable(claimed: Algorithm, actual: Algorithm, problem: Problem, precision: Precision) -> None:
    """Both can be run on the problem, and held against each other."""
    require_planned_for(claimed, problem)
    _require_alike(claimed, actual)
    for one in (claimed, actual):
        require_fitting(one, problem, problem.test_data(), precision)


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


def _require_runs(runs: int | None, each: int) -> int:
    """How many runs, neither too few nor too many."""
    runs = -(-_CANARIES // each) if runs is None else runs
    _check.at_least(1, runs=runs)
    if runs * each < _MIN_CANARIES:
        raise Error(f"{runs * each} canaries are too few to learn from and to count", hint="raise the number of runs")
    if runs > 1 and runs * each > _MAX_CANARIES:
        raise Error(
            f"{runs} runs of {each} canaries each are more than {_MAX_CANARIES:,} canaries",
            hint="lower the number of runs",
        )
    return runs


def _targets(nodes: int, target: int | None, members: tuple[int, ...] | None) -> Numbers:
    if target is None:
        return np.setdiff1d(np.arange(nodes), members or ())
    _check.at_least(0, target=target)
    if target >= nodes:
        raise Error(f"target is {target}, and nodes are 0 to {nodes - 1}", hint="name one of them")
    if target in (members or ()):
        raise Error(f"node {target} is in the coalition against itself", hint="name another target, or leave it out")
    return np.array([target])


def _members(nodes: int, given: tuple[int, ...]) -> tuple[int, ...]:
    return _check.observers(nodes, _check.whole_numbers("(0, 2)", coalition=given))


def _deaf(algorithm: Algorithm, members: tuple[int, ...]) -> str:
    who = f"receiver{'s' if len(members) > 1 else ''} {', '.join(map(str, members))}"
    why = "where nodes drop out" if "drops" in algorithm.settings else f"on {algorithm.name}"
    return f"coalition: {who} did not attack; {why} only the eavesdropper does, who hears every signal by itself"
