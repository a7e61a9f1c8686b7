"""The Corollary is false: an attack on what is really sent shows more than it allows.

Three nodes in a line, as in the docs, with a budget so small that counting can refute it. Node 0 holds few records and
little noise of its own; node 1, the relay, holds many records; node 2 is loud. Receiver 1 hears node 0 under the noise
of node 2, so every per-epoch epsilon of the paper is small. Node 2 knows its own noise, hears the relay, and tells
apart two worlds that differ in one record of node 0. It is no neighbour of node 0: the paper sets no limit there.

All trials go through the engine that trains. The threshold of the attack is chosen on one half of them, the other half
is counted.
"""

from typing import Literal, NamedTuple

import jax
import numpy as np
from scipy.stats import norm

from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.algorithms.observed import system_of
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.audits.bounds import Measured, epsilon_lower_bound, measure
from murmurcast.audits.receivers import listen, view
from murmurcast.audits.replay import replay
from murmurcast.audits.transcript import Transcript, transcripts
from murmurcast.data.base import Dataset
from murmurcast.data.partition import Partition, Sorted
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan, PowerRule
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan as make_plan
from murmurcast.privacy import gaussian, linear
from murmurcast.privacy.paper import PaperClaim
from murmurcast.privacy.rounding import at_least, at_most
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.reproduction.document import Curve, Finding, Table

TARGET, RELAY, LOUD = 0, 1, 2
_GAINS = ((0.0, 0.9, 0.0), (0.8, 0.0, 0.7), (0.0, 0.6, 0.0))  # sender first
_RECORDS = (2, 300, 20)  # at every node
_NOISE_TO_STEP = (2.0, 2.0, 500.0)
_EPOCHS, _STEP, _CLIP = 10, 0.01, 1.0
_EPSILON_PER_EPOCH, _LARGEST_ALPHA = 0.09, 0.8
_DIRECTION = np.array([0.6, 0.0, 0.8])  # of the changed record's features, of length 1
_FAR = 1000.0  # value of the changed record: so far from any model that its gradient is always clipped
_TRIALS = 8000  # of each world, of a refutation; half of them are counted
_CONTROL_TRIALS = 4000
_CHECKED = 100  # runs of each world in which the target's gradients are computed in both worlds
_BINS = 60
_DATA_SEED = 8
World = Literal["present", "absent", "half way"]


class Kept(NamedTuple):
    """What was sent and heard in both worlds."""

    absent: Transcript
    present: Transcript


class Attack(NamedTuple):
    """What observers found about the target.

    Attributes:
        plan: The plan they attacked.
        observers: Who they are.
        mu: Of the linear diagnostic, all changes in one direction.
        linear_epsilon: What mu comes to at the claim's delta. A diagnostic.
        certified_epsilon: Of the target at the claim's delta, against everybody.
        absent: [trials] log likelihood ratio in one world.
        present: [trials] in the other.
        measured: Counts, and the epsilon they show.
    """

    plan: Plan
    observers: tuple[int, ...]
    mu: float
    linear_epsilon: float
    certified_epsilon: float
    absent: FloatArray
    present: FloatArray
    measured: Measured


class Counterexample(NamedTuple):
    """A claim, an attack that refutes it, and attacks that must fail.

    Attributes:
        plan: Made with the paper's per-epoch limits.
        claim: What the Corollary says of the whole run.
        attack: By the loud node, which is no neighbour of the target.
        neighbour: A control: by the relay, the target's only neighbour, which does not know the loud noise.
        certified: A control: by everybody else, on a plan with the claim's epsilon as its certificate.
        change: Of the target's gradient between the worlds, over S: the least along the direction and the longest.
        margin: Least distance of the changed record's residual from the clip, over the clip; above 0 it is clipped
            always.
    """

    plan: Plan
    claim: PaperClaim
    attack: Attack
    neighbour: Attack
    certified: Attack
    change: tuple[float, float]
    margin: float

    @property
    def refuted(self) -> bool:
        """Whether the attack shows more than the Corollary claims."""
        return refutes(self.attack.measured, self.claim)


def refutes(measured: Measured, claim: PaperClaim) -> bool:
    """Whether counts show more than a claim allows, at the claim's delta or a larger one."""
    return measured.delta >= claim.delta and measured.epsilon > claim.epsilon


def run_counterexample(on_stage: Stage = quiet) -> Counterexample:
    """Plans, trains in both worlds, attacks, and counts. The same numbers every time."""
    on_stage("planning the relay")
    plan = relay_plan()
    claim = plan.paper_claim
    on_stage("running both worlds")
    kept = _both_worlds(plan, _TRIALS)
    on_stage("attacking")
    attack = attacked(plan, kept, (LOUD,), claim.delta)
    few = Kept(*(world.of_seeds(slice(_CONTROL_TRIALS)) for world in kept))
    neighbour = attacked(plan, few, (RELAY,), claim.delta)
    on_stage("running the control")
    safe = certified_plan(claim)
    together = _both_worlds(safe, _CONTROL_TRIALS)
    certified = attacked(safe, together, (RELAY, LOUD), claim.delta)
    return Counterexample(plan, claim, attack, neighbour, certified, *_changes(plan, kept))


def relay_plan() -> Plan:
    """The relay with the paper's limits, one epoch and one receiver at a time."""
    return make_plan(
        Network(gains=np.array(_GAINS)),
        problem("absent"),
        Budget(epsilon=_EPSILON_PER_EPOCH, unit="record", target="per-epoch"),
        Schedule(epochs=_EPOCHS, step=_STEP, noise_timing="aligned", noise_to_step=_NOISE_TO_STEP),
        power=PowerRule(maximum=_LARGEST_ALPHA),
    )


def certified_plan(claim: PaperClaim) -> Plan:
    """The same network and data with what the Corollary claims as the certificate; the noise follows from it."""
    return make_plan(
        Network(gains=np.array(_GAINS)),
        problem("absent"),
        Budget(epsilon=claim.epsilon, delta=claim.delta, unit="record"),
        Schedule(epochs=_EPOCHS, step=_STEP, noise_timing="aligned"),
    )


def problem(world: World) -> RidgeRegression:
    """Ridge regression on ordinary records and the one that differs.

    Args:
        world: The target's first record lies far on one side ("present"), on the other ("absent"), or has no features
            and with them no gradient ("half way").
    """
    rng = np.random.default_rng(_DATA_SEED)
    total, dim = sum(_RECORDS), len(_DIRECTION)
    features = rng.standard_normal((total, dim))
    targets = features @ rng.standard_normal(dim) + 0.1 * rng.standard_normal(total)
    features[0] = _DIRECTION if world != "half way" else 0.0
    targets[0] = {"present": -_FAR, "absent": _FAR, "half way": 0.0}[world]  # the gradient is (x'w - y) x, clipped
    x, y = features.astype(np.float32), targets.astype(np.float32)
    dataset = Dataset(name="relay", features=x, targets=y, test_features=x[1:], test_targets=y[1:])
    rows = np.split(np.arange(total), np.cumsum(_RECORDS)[:-1])
    return RidgeRegression(data=Partition(dataset=dataset, rule=Sorted(), rows=tuple(rows)), clip=_CLIP)


def _both_worlds(plan: Plan, trials: int) -> Kept:
    """Both worlds with seeds of their own."""
    algorithm = power_controlled(plan)
    absent = transcripts(algorithm, problem("absent"), range(trials), "float64")
    return Kept(absent, transcripts(algorithm, problem("present"), range(trials, 2 * trials), "float64"))


def attacked(plan: Plan, kept: Kept, observers: tuple[int, ...], delta: float) -> Attack:
    """What observers learn of the target from what was sent and heard in both worlds, at a delta."""
    absent, present = (log_likelihood_ratio(plan, world, observers) for world in kept)
    mu = float(plan.linear_common(observers)[TARGET])
    certified = float(gaussian.epsilon(plan.certificate.mu[TARGET], delta))
    linearly = float(gaussian.epsilon(mu, delta))
    return Attack(plan, observers, mu, linearly, certified, absent, present, measure(absent, present, delta))


def log_likelihood_ratio(plan: Plan, transcript: Transcript, observers: tuple[int, ...]) -> FloatArray:
    """[trials] of "present" over "absent", for what observers have of the runs."""
    hidden = linear.hidden_from(plan.mixing.weights.toarray(), observers)
    algorithm, system = power_controlled(plan), system_of(plan)
    seen = view(algorithm, system, transcript, observers)
    with jax.enable_x64(True):
        seeds = tuple(range(len(transcript.sent)))  # of minibatches, and there are none
        followed = replay(algorithm, problem("half way"), None, hidden, seeds)
        evidence = listen(algorithm, system, seen, followed).about(TARGET, float(plan.sensitivity[TARGET]))
    return np.asarray(evidence.matched() @ _DIRECTION)


def _changes(plan: Plan, kept: Kept) -> tuple[tuple[float, float], float]:
    """How far the worlds' gradients differ on what was really sent, over S; and how safely the record is clipped."""
    points = [_mixed_points(plan, world) for world in kept]
    reached = max(float(np.abs(at[:, :, TARGET] @ _DIRECTION).max()) for at in points)
    some = np.concatenate([at[:_CHECKED, :, TARGET].reshape(-1, at.shape[-1]) for at in points])
    present, absent = (_gradients(problem(world), some) for world in ("present", "absent"))
    change = (present - absent) / plan.sensitivity[TARGET]
    along, length = change @ _DIRECTION, np.linalg.norm(change, axis=1)
    return (float(along.min()), float(length.max())), (_FAR - reached - _CLIP) / _CLIP


def _gradients(problem: RidgeRegression, points: FloatArray) -> FloatArray:
    """[points, dim] of the target, in float64."""
    with jax.enable_x64(True):
        mine = jax.tree.map(lambda leaf: np.asarray(leaf)[TARGET], problem.local_data())
        return np.asarray(jax.vmap(lambda at: problem.gradient_at_public(at, mine, jax.random.key(0)))(points))


def _mixed_points(plan: Plan, transcript: Transcript) -> FloatArray:
    """[seed, epoch, node, dim] the points at which gradients were taken."""
    said = transcript.sent / np.sqrt(plan.alpha * plan.network.power)[:, None]
    return np.asarray(plan.mixing.weights.toarray() @ said)


def findings(c: Counterexample) -> list[Finding]:
    """What was claimed and what was found."""
    attack, shown = c.attack, c.attack.measured
    low, high = c.change
    exact = max(abs(low - 1), abs(high - 1)) < 1e-6 and c.margin > 0
    claim = f"epsilon {at_most(c.claim.epsilon, 3)} at delta {at_most(c.claim.delta, 2)}"
    counts = _counts(shown)
    return [
        Finding(
            not c.refuted,
            f"The Corollary claims {claim} for {c.plan.schedule.epochs} epochs; an attack by node {LOUD}, which is no "
            f"neighbour of node {TARGET} and knows all other data, as differential privacy assumes, shows at least "
            f"{at_least(shown.epsilon, 3)} at the same delta ({shown.confidence:.0%} confidence: {counts}).",
        ),
        Finding(
            exact,
            f"The two worlds differ in one record of node {TARGET}, whose gradient changes by S = "
            f"{c.plan.sensitivity[TARGET]:.3g} {'exactly' if exact else f'times {low:.6f} to {high:.6f}'}.",
        ),
        Finding(
            None if shown.epsilon <= attack.certified_epsilon else False,
            f"The attack {_place(shown, attack.certified_epsilon)} the certified epsilon of node {TARGET}, "
            f"{at_most(attack.certified_epsilon, 3)} at the same delta.",
        ),
        Finding(
            None,
            f"The linear diagnostic of node {LOUD} about node {TARGET} is mu {attack.mu:.2f}, epsilon "
            f"{attack.linear_epsilon:.1f} at the same delta; {shown.trials} runs can show at most "
            f"{_most(shown):.1f}.",
        ),
        Finding(
            c.neighbour.measured.epsilon <= c.claim.epsilon,
            f"Node {RELAY}, the neighbour, does not know the noise of node {LOUD}: what it shows, "
            f"{at_least(c.neighbour.measured.epsilon, 3)}, {_place(c.neighbour.measured, c.claim.epsilon)} the claim.",
        ),
        Finding(
            c.certified.measured.epsilon <= c.certified.certified_epsilon,
            f"With the claim's epsilon as the certificate, what everybody else together shows, "
            f"{at_least(c.certified.measured.epsilon, 3)}, "
            f"{_place(c.certified.measured, c.certified.certified_epsilon)} the certified "
            f"{at_most(c.certified.certified_epsilon, 3)}.",
        ),
    ]


def _place(shown: Measured, limit: float) -> str:
    return "stays below" if shown.epsilon <= limit else "exceeds"


def _counts(shown: Measured) -> str:
    """How often the attack is right and wrong, of the guess it hardly ever gets wrong."""
    missed, falsely = shown.trials - shown.true_positives, shown.false_positives
    guess, right, wrong = ("absent", shown.trials - falsely, missed)
    if falsely < missed:
        guess, right, wrong = ("present", shown.true_positives, falsely)
    return f'of {shown.trials} runs of each world it calls {right} "{guess}" rightly and {wrong} wrongly'


def tables(c: Counterexample) -> list[Table]:
    """Claimed, shown, linear and certified epsilon of all attacks."""
    rows = tuple(_row(c, attack) for attack in (c.attack, c.neighbour, c.certified))
    headings = (
        "attack by",
        "plan",
        "claimed",
        "shown",
        "called wrongly",
        "called rightly",
        "runs",
        "linear",
        "certified",
    )
    note = (
        f"Epsilon about one record of node {TARGET} at delta {c.claim.delta:.2g}. Claimed: by the paper's Corollary. "
        f"Shown: at least, with {c.attack.measured.confidence:.0%} confidence. Called: "
        'how many runs the attack calls "present" in the world where that is wrong and where it is right, of runs that '
        "its threshold was not chosen on. Linear: the diagnostic. Certified: against everybody."
    )
    return [Table("counterexample", "The Corollary against an attack", headings, rows, note)]


def curves(c: Counterexample) -> dict[str, Curve]:
    """The histogram of the attack's statistic with the diagnostic's densities, and the ROC of both."""
    return {"counterexample-histogram": _histogram(c.attack), "counterexample-roc": _roc(c)}


def epsilons(c: Counterexample) -> dict[str, float]:
    """Claimed, shown, linear and certified epsilon of the attack, all at the claim's delta."""
    return {
        "claimed": c.claim.epsilon,
        "shown": c.attack.measured.epsilon,
        "linear": c.attack.linear_epsilon,
        "certified": c.attack.certified_epsilon,
    }


def _row(c: Counterexample, attack: Attack) -> tuple[str, ...]:
    shown, nodes = attack.measured, " and ".join(map(str, attack.observers))
    ours = attack.plan is not c.plan
    return (
        f"node{'s' if len(attack.observers) > 1 else ''} {nodes}",
        "certified" if ours else "the paper's",
        "-" if ours else at_most(c.claim.epsilon, 3),
        at_least(shown.epsilon, 3),
        str(shown.false_positives),
        str(shown.true_positives),
        str(shown.trials),
        f"{attack.linear_epsilon:.3g}",
        at_most(attack.certified_epsilon, 3),
    )


def _most(shown: Measured) -> float:
    """What counting can show at best: every guess right."""
    return float(epsilon_lower_bound(0, shown.trials, shown.trials, shown.delta, shown.confidence))


def _histogram(attack: Attack) -> Curve:
    both = np.concatenate([attack.absent, attack.present])
    edges = np.linspace(both.min(), both.max(), _BINS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    counted = [np.histogram(world, edges, density=True)[0] for world in (attack.absent, attack.present)]
    half = attack.mu**2 / 2
    predicted = [norm.pdf(middle, mean, attack.mu) for mean in (-half, half)]
    headings = ("log_ratio", "absent", "present", "linear_absent", "linear_present")
    return Curve(headings, np.column_stack([middle, *counted, *predicted]))


def _roc(c: Counterexample) -> Curve:
    """Rates of right guesses at rates of wrong ones: the attack's, the diagnostic's, and the most the claim allows."""
    attack = c.attack
    wrong = np.concatenate([[0.0], np.geomspace(1 / len(attack.absent), 1, 100)])
    thresholds = np.quantile(attack.absent, 1 - wrong[1:], method="higher")
    right = np.concatenate([[0.0], (attack.present[None] > thresholds[:, None]).mean(axis=1)])
    linear = norm.cdf(norm.ppf(wrong) + attack.mu)
    # Of both limits of (epsilon, delta)-DP the tighter one.
    first = np.exp(c.claim.epsilon) * wrong + c.claim.delta
    second = 1 - np.exp(-c.claim.epsilon) * (1 - c.claim.delta - wrong)
    claimed = np.clip(np.minimum(first, second), 0, 1)
    return Curve(("wrong", "right", "linear", "claimed"), np.column_stack([wrong, right, linear, claimed]))
