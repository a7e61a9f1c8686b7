"""What every method takes: a network, what must be known of the problem, what may leak, and when to step how far."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Schedule
from murmurcast.privacy import discrete, settings_chosen
from murmurcast.privacy.certificate import Unit, unit_in_words
from murmurcast.privacy.conversion import EXACT, Curve, NoiseSource, after, curve_of
from murmurcast.privacy.first_releases import Statistic
from murmurcast.privacy.releases import GAUSSIAN, Law, Releases, exposed_ratio
from murmurcast.problems.clip import Clip, Clipping
from murmurcast.problems.sampling import Sampling
from murmurcast.radio.settings import Radio
from murmurcast.radio.trace import ChannelTrace

Target = Literal["certificate", "per-epoch"]


class ProblemFacts(Protocol):
    """What a setup must know of the learning problem: how far one gradient can move, and how large a model can be."""

    @property
    def gradient_clip(self) -> Clip:
        """What gradients are clipped to; it knows the sensitivity that follows."""
        ...

    @property
    def examples_per_node(self) -> ArrayLike | None:
        """The fixed n by which clipped examples are averaged; needed for unit "record"."""
        ...

    @property
    def dim(self) -> int | None:
        """m, the number of parameters; None leaves the power that is sent unknown."""
        ...

    @property
    def radius(self) -> float | None:
        """The largest norm of a model in Omega; None leaves the power of the model's share out."""
        ...


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class ClippedGradients:
    """The least a setup must know of a problem, given by hand.

    Args:
        clip: G (the node's gradient, for unit node) or C (each example's, for unit record).
        examples_per_node: As in `ProblemFacts`.
        dim: As in `ProblemFacts`.
        radius: As in `ProblemFacts`.
        clipping: What the run will clip: each "example"'s gradient, which serves both units, or the "node"'s. With
            "none" the clip is nominal, and so is every number that follows.
        sampled: How examples join by secret coins; None where they do not.
    """

    clip: float = 1.0
    examples_per_node: ArrayLike | None = None
    dim: int | None = None
    radius: float | None = None
    clipping: Clipping = "example"
    sampled: Sampling | None = None

    def __post_init__(self) -> None:
        _check.positive(clip=self.clip)
        if self.examples_per_node is not None:
            _check.positive(examples_per_node=self.examples_per_node)
        if self.dim is not None:
            _check.at_least(1, dim=self.dim)
        if self.radius is not None:
            _check.positive(radius=self.radius)

    @property
    def gradient_clip(self) -> Clip:
        """As said: this problem is not at hand to be looked at."""
        return Clip(limit=self.clip, per=self.clipping, examples_per_node=self.examples_per_node)


def require_facts(problem: object) -> None:
    """This says what a setup must know."""
    if isinstance(problem, type) or not hasattr(problem, "gradient_clip"):
        kind = f"the class {problem.__name__}" if isinstance(problem, type) else type(problem).__name__
        raise Error(
            f"problem is {kind}, expected a problem",
            hint="give one, such as mc.SoftmaxRegression(data=...), or mc.ClippedGradients where none is at hand",
        )


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class Budget:
    """What may leak.

    Args:
        epsilon: The budget.
        delta: Failure probability.
        unit: What is hidden: the data of a whole "node", or one "record" of it.
        target: "certificate": epsilon holds for the whole run, against everybody. "per-epoch": the paper's eps_ij, for
            each receiver and epoch alone; a claim, not a guarantee.
        theta: A bound of 1/z for the per-epoch view; None finds it.
        noise_source: "seeded": a simulation's Gaussian noise, which whoever knows the seed knows. "secure": discrete
            Gaussian noise on a grid, from keys of the operating system; the certificate then goes by its bound.
        settings_chosen: How clip, steps, epochs and noise were chosen, as certificates will say: "fixed beforehand",
            "on public data", or "on this data, paid: RUN, RUN" with the runs that were tried.
        records_per_person: k, the most records that one person has; all of them are hidden together. For unit "record".
        centring: The share of mu^2 that is spent on the nodes' means before training (`murmurcast.preprocess`); 0.02 is
            a good one where rows are not centred by themselves, 0 leaves them as they are.
        whitening: The same for second moments; 0.10 is a good one.

    Guarantees:
        With k records per person sensitivity is k times as large: the noise is k times as large at one budget, or mu is
        k times as large at one noise. They may lie at several nodes: the shifts of what these send, over their noise,
        add up to at most k times the largest (triangle inequality), so the cost of the node that pays most holds. With
        secure noise rounding is counted at one node, and the k records must lie at one.
    """

    epsilon: float
    delta: float = 1e-5
    unit: Unit = "node"
    target: Target = "certificate"
    theta: float | None = None
    noise_source: NoiseSource = "seeded"
    settings_chosen: str = settings_chosen.NOT_STATED
    records_per_person: int = 1
    centring: float = 0.0
    whitening: float = 0.0

    def __post_init__(self) -> None:
        _check.positive(epsilon=self.epsilon)
        _check.fraction(delta=self.delta)
        if self.theta is not None:
            _check.positive(theta=self.theta)
        for name, value, known in (
            ("unit", self.unit, ("node", "record")),
            ("target", self.target, ("certificate", "per-epoch")),
            ("noise_source", self.noise_source, ("seeded", "secure")),
        ):
            _check.one_of(known, **{name: value})
        settings_chosen.check(self.settings_chosen)
        _check.at_least(1, records_per_person=self.records_per_person)
        if self.unit == "node" and self.records_per_person > 1:
            raise Error(
                f"records_per_person is {self.records_per_person} with unit node, which hides all that a node holds",
                hint='remove records_per_person, or set unit = "record"',
            )
        self._require_shares()

    def _require_shares(self) -> None:
        """What is spent before training is a part of a total budget, and its noise is drawn as that of training."""
        _check.not_negative(centring=self.centring, whitening=self.whitening)
        spent = self.centring + self.whitening
        if spent >= 1:
            raise Error(
                f"centring and whitening take {spent:g} of mu^2, and nothing is left to train with",
                hint="0.02 for centring and 0.10 for whitening are good shares",
            )
        if spent and self.target == "per-epoch":
            raise Error(
                "centring and whitening take shares of a total budget, and this one is per epoch",
                hint='set target = "certificate", or both shares to 0',
            )
        if spent and self.noise_source == "secure":
            raise Error(
                "centring and whitening have no secure noise: means and second moments are not drawn on a grid",
                hint='set both shares to 0, or noise_source = "seeded"',
            )

    @property
    def first_releases(self) -> dict[Statistic, float]:
        """What a node's releases before training cost, as mu, by statistic."""
        shares: dict[Statistic, float] = {"centring": self.centring, "whitening": self.whitening}
        if not any(shares.values()):
            return {}
        whole = EXACT.mu_of_steps(self.epsilon, self.delta)
        return {name: float(whole * np.sqrt(share)) for name, share in shares.items() if share}

    @property
    def spent_before(self) -> float:
        """The same of all of them together."""
        return math.sqrt(math.fsum(mu**2 for mu in self.first_releases.values()))

    @property
    def hidden(self) -> str:
        """What the budget hides, in words."""
        return unit_in_words(self.unit, self.records_per_person)


@_check.by_name
@dataclass(frozen=True, kw_only=True, eq=False)
class Setup:
    """What is the same for every method on a network: nothing here is a method's own choice.

    Args:
        network: Who hears whom.
        problem: What must be known of the problem.
        budget: What may leak.
        schedule: Epochs, steps and the schedule of the noise.
        radio: What carries the signals, in physical units; None for the paper's ideal channel without units.
    """

    network: Network
    problem: ProblemFacts
    budget: Budget
    schedule: Schedule
    radio: Radio | None = None

    def __post_init__(self) -> None:
        if self.radio is not None and self.radio.trace is not None:
            self.radio.trace.require(self.schedule.epochs, self.radio.repeat)
            _require_network_of(self.radio.trace, self.network)
        if self.sampling is not None:
            require_sampled(self.budget)

    @property
    def sampling(self) -> Sampling | None:
        """How records join an epoch by secret coins; None where they do not."""
        sampled = getattr(self.problem, "sampled", None)
        return sampled if isinstance(sampled, Sampling) else None

    @cached_property
    def sensitivity(self) -> FloatArray:
        """[nodes] S: the largest change of one node's gradient when one unit's data changes."""
        budget = self.budget
        return self.problem.gradient_clip.sensitivity(budget.unit, self.network.nodes, budget.records_per_person)

    @cached_property
    def effective_sensitivity(self) -> FloatArray:
        """[nodes] S, or what gradients move by as float64 computes them, where secure noise counts rounding."""
        return effective_sensitivity(self.problem, self.sensitivity, self.budget.noise_source)

    @cached_property
    def law(self) -> Law:
        """Of the noise that hides a vector of the model's size, by the budget's noise source."""
        if self.budget.noise_source == "secure":
            return Law("discrete gaussian", dim=_dim(self.problem))
        if self.sampling is None:
            return GAUSSIAN
        return Law("sampled gaussian", rates=self.sampling.rates, overflow=self.sampling.overflow)

    def curve_of(self, releases: Releases) -> Curve:
        """From mu to epsilon for such releases after those that the budget has before training."""
        return curve_of(after(self.budget.spent_before, releases))

    @cached_property
    def curve(self) -> Curve:
        """From mu to epsilon for any releases under the budget's noise; what coins hide is not counted on."""
        law = GAUSSIAN if self.law.name == "sampled gaussian" else self.law
        return self.curve_of(Releases(law, np.zeros((self.schedule.epochs, 0)), "everybody"))

    def curve_for(self, z: FloatArray, last: ArrayLike | None = None) -> Curve:
        """The same for Algorithm 1, whose gradients are divided by z.

        Args:
            z: [epochs, nodes].
            last: The last epoch in which a node sends, one number or [nodes]; by default all send to the end.
        """
        steps, noise = self.schedule.steps, self.schedule.noise_schedule
        if self.law.name != "sampled gaussian":  # it does not matter how releases compare: no [epochs, nodes] is made
            epochs = len(steps) if last is None else int(np.max(last))
            return self.curve_of(Releases(self.law, np.zeros((epochs, 0)), "everybody"))
        ratio = exposed_ratio(np.ones(z.shape[1]), steps[:, None] / z, np.broadcast_to(noise[:, None], z.shape))
        releases = Releases(self.law, ratio, "everybody")
        return self.curve_of(releases if last is None else releases.until(last))

    def until(self, epochs: int) -> Self:
        """The first epochs of this setup: same noise, same steps, and what they cost."""
        schedule = replace(self.schedule, epochs=epochs)
        if epochs > self.schedule.epochs:
            raise Error(
                f"epochs is {epochs}, and the plan has {self.schedule.epochs}", hint="lower it, or plan for more"
            )
        return replace(self, schedule=schedule)


def _require_network_of(trace: ChannelTrace, network: Network) -> None:
    """Links and gains that are planned with are those that will be played back."""
    if network.nodes == trace.nodes and np.allclose(network.gains.toarray(), trace.rms, rtol=1e-6, atol=0):
        return
    raise Error(
        "the network is not that of the radio's trace: it has other nodes, links or gains",
        hint="plan with network = trace.network(power=radio.power_w)",
    )


def require_sampled(budget: Budget) -> None:
    """What coins hide is known for this budget."""
    obstacles = {
        "hides whole nodes, and what a node's records do together is bounded for batches of a fixed size only": (
            budget.unit == "node"
        ),
        f"hides {budget.records_per_person} records together, each with a coin of its own": (
            budget.records_per_person > 1
        ),
        "has secure noise, whose bound knows nothing of coins": budget.noise_source == "secure",
    }
    for words, holds in obstacles.items():
        if holds:
            raise Error(
                f'sampling = "poisson" is accounted for one record, under Gaussian noise, and the budget {words}',
                hint='set problem.sampling = "fixed", or unit = "record", records_per_person = 1 and noise_source = '
                '"seeded"',
            )


def effective_sensitivity(problem: ProblemFacts, exact: FloatArray, source: NoiseSource) -> FloatArray:
    """[nodes] how far gradients move: S, or what they move by as float64 computes them, where that is counted."""
    if source == "seeded":
        return exact
    examples = 0.0 if problem.examples_per_node is None else problem.examples_per_node
    return discrete.sensitivity(exact, problem.gradient_clip.limit, examples, _dim(problem))


def _dim(problem: ProblemFacts) -> int:
    if problem.dim is None:
        raise Error(
            "secure noise needs the number of parameters: rounding each of them is counted",
            hint="set problem.dim, or give the problem itself",
        )
    return problem.dim
