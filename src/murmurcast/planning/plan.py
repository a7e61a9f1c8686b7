"""The plan: a setup with its power split, its weights and its noise, and what a run of it will cost in privacy.

A run takes a plan, never a noise level: mechanism and account cannot drift apart.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._display import html_of, text_of
from murmurcast._progress import Count, quiet
from murmurcast.errors import Error
from murmurcast.network.acceleration import leads, left_after, plainly_left_after
from murmurcast.network.stability import disagreements, exact_diffusion_radius
from murmurcast.network.weights import Mixing, Z
from murmurcast.planning.power.transmit_power import public_scale, sent_over_budget
from murmurcast.planning.setup import Setup
from murmurcast.planning.warnings import power_note, warnings_of
from murmurcast.privacy import amplification, coalitions, gaussian, linear, paper
from murmurcast.privacy import certificate as certificates
from murmurcast.privacy.certificate import Certificate
from murmurcast.privacy.coalitions import Collusion
from murmurcast.privacy.conversion import Curve
from murmurcast.problems.trust import why_not_bounded

if TYPE_CHECKING:
    import pandas as pd

Objective = Literal["sum", "max-min", "noise", "balanced"]
DENSE_UP_TO = 3000  # nodes, for what one observer learns


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class PowerRule:
    """How the power split is chosen.

    Args:
        objective: "sum" (the paper's: largest sum of alpha), "max-min" (largest least alpha), "noise" (least noise in
            the consensus) or "balanced" (the split that makes the weights doubly stochastic, at its largest level).
            With a total budget and given noise every node takes the largest alpha it can; of the first three the
            objective then only decides between that and an even split.
        minimum: Least alpha. Below it a node's data would hardly count.
        maximum: Greatest alpha. Above it a node would hardly have noise of its own.
        alpha: The split where the noise is found for it (`noise_to_step = "auto"`), one number or one per node.
    """

    objective: Objective = "sum"
    minimum: float = 0.01
    maximum: float = 0.99
    alpha: ArrayLike = 0.5

    def __post_init__(self) -> None:
        _check.split(**{"power.min": self.minimum, "power.max": self.maximum, "power.alpha": self.alpha})
        if self.minimum > self.maximum:
            raise Error(f"power.min is {self.minimum:g}, above power.max {self.maximum:g}", hint="swap them")
        _check.one_of(get_args(Objective), objective=self.objective)


class SentPower(NamedTuple):
    """The energy of a whole message over the power budget p, and the public factor that brings it within.

    A message of m numbers counts as one channel use here, as in the paper, and its whole energy is held against p. Over
    a real radio it takes m/2 complex symbols and p is that of one symbol, so `per_symbol` would be held against it.

    Attributes:
        largest: [nodes] energy of a message over p in the loudest epoch.
        smallest: [nodes] energy of a message over p in the quietest epoch.
        public_scale: One factor for all signals with which no message takes more than p in any epoch.
        symbols: Complex symbols of a message, two numbers each.
    """

    largest: FloatArray
    smallest: FloatArray
    public_scale: float
    symbols: int

    @property
    def per_symbol(self) -> FloatArray:
        """[nodes] mean energy of one complex symbol over p in the loudest epoch."""
        return np.asarray(self.largest / self.symbols)

    @property
    def snr_change_db(self) -> float:
        """What the public factor does to every receiver's signal-to-noise ratio, in decibels."""
        return 20 * math.log10(self.public_scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Setup):
    """A setup with Algorithm 1's power split, weights and z, and all that follows. Made by `murmurcast.plan`.

    Attributes:
        rule: How alpha was chosen.
        alpha: [nodes] share of power for the model.
        noise_to_step: [nodes] q; sigma_k,t = q_k times the noise schedule.
        theta: The bound of 1/z used in the per-epoch view.
        mixing: Weights, compensation and normaliser.
        z: [epochs, nodes] what node k divides its gradient by in epoch t.
        perron: [nodes] pi, the limit of z.
        noise_is_automatic: The noise was found for a given alpha, not the other way round.
        fell_back_to_even: All nodes share one alpha, because what the objective prefers did not settle or was worse.
        z_rule: How z is found; where it follows a changing channel, `z` is its limit for the mean weights, and noise
            follows as z does, so that the certificate is the same in every realisation.
    """

    rule: PowerRule
    alpha: FloatArray
    noise_to_step: FloatArray
    theta: float
    mixing: Mixing
    z: FloatArray
    perron: FloatArray
    noise_is_automatic: bool = False
    fell_back_to_even: bool = False
    z_rule: Z = "recursive"

    def __str__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_frame(self) -> "pd.DataFrame":
        """A table of pandas with one row for every node: its split, its noise and what the whole run costs it."""
        import pandas as pd

        network, costs = self.network, self.certificate
        columns: dict[str, Any] = {"node": network.names, "degree": network.degree.astype(int), "power": network.power}
        columns |= {"alpha": self.alpha, "beta": self.beta, "perron": self.perron}
        columns |= {"noise_to_step": self.noise_to_step, "mu": costs.mu, "epsilon": costs.epsilon}
        return pd.DataFrame(columns).assign(delta=costs.delta, why_nominal=self.why_nominal)

    @property
    def z_follows_channel(self) -> bool:
        """Whether what gradients are divided by is known only as the channel turns out."""
        return self.radio is not None and self.radio.varies and self.z_rule in ("recursive", "predicted")

    @property
    def is_ideal(self) -> bool:
        """Whether the paper's ideal channel carries it in one round: weights are those of the plan in every epoch."""
        return self.radio is None and self.schedule.rounds == 1

    @property
    def beta(self) -> FloatArray:
        """[nodes] share of power for the noise."""
        return np.asarray(1 - self.alpha)

    @property
    def noise_std(self) -> FloatArray:
        """[epochs, nodes] sigma_k,t, per coordinate, before the power split."""
        return np.asarray(self.schedule.noise_schedule[:, None] * self.noise_to_step)

    @property
    def effective_noise(self) -> FloatArray:
        """[epochs, nodes] s_k,t = sqrt(beta_k/alpha_k) sigma_k,t: the noise in what a node says, against its model."""
        return np.asarray(np.sqrt(self.beta / self.alpha) * self.noise_std)

    @property
    def objective_value(self) -> float:
        """What the rule's objective comes to: sum of alpha, least alpha, or sum pi^2 q^2 (1/alpha - 1)."""
        return objective_value(self.rule.objective, self.alpha, self.perron, self.noise_to_step)

    @cached_property
    def curve(self) -> Curve:
        """From mu to epsilon."""
        return self.curve_for(self.z)

    @cached_property
    def certificate(self) -> Certificate:
        """What the whole run costs every node, against everybody.

        Guarantees:
            Unit: the budget's. Record level needs gradients taken at the public mixed point.
            Adversary: everybody else together, hearing every antenna.
            Formula and range: `murmurcast.privacy.certificate.mu`; epsilon is exact at the budget's delta. With secure
                noise, `murmurcast.privacy.discrete`: rounding is added to mu, and epsilon is its bound.
            A promise only where `why_nominal` is empty, and for runs of methods that promise it.
        """
        mu = self._mu(certificates.exposure(self.schedule.steps, self.schedule.noise_schedule, self.z), self.curve)
        return Certificate(mu, self.curve.epsilon(mu, self.budget.delta), self.budget.delta, self.budget.unit)

    @property
    def noise_over_full_batches(self) -> FloatArray | None:
        """[nodes] noise in the averaged gradient over that of full batches at the same epsilon and delta.

        None where records do not join by secret coins.
        """
        if self.sampling is None:
            return None
        before, costs = self.budget.spent_before**2, self.certificate
        plain, full = costs.mu**2 - before, gaussian.mu(costs.epsilon, costs.delta) ** 2 - before
        return np.asarray(np.sqrt(full / plain) / np.asarray(self.sampling.rates))

    @cached_property
    def exact_diffusion_radius(self) -> float:
        """By how much disagreement of exact diffusion on these weights shrinks in an epoch; below 1 it is stable."""
        return exact_diffusion_radius(self.mixing.weights)

    @cached_property
    def leads(self) -> FloatArray:
        """[rounds - 1] w of every further round where rounds are accelerated: how far it leans on the two before it."""
        modes = disagreements(self.mixing.weights)
        lead_weights = leads(modes, self.schedule.rounds)
        if left_after(modes, lead_weights) >= plainly_left_after(modes, self.schedule.rounds) > 0:
            raise Error(
                "accelerated rounds leave more disagreement than plain ones on these weights, which turn too much: "
                "gains around some cycle are very unequal",
                hint="set schedule.accelerated = false",
            )
        return lead_weights

    @property
    def disagreement_left(self) -> tuple[float, float]:
        """The largest share of a disagreement that is left after one round, and after those of an epoch."""
        modes, rounds = disagreements(self.mixing.weights), self.schedule.rounds
        after = left_after(modes, self.leads) if self.schedule.accelerated else plainly_left_after(modes, rounds)
        return plainly_left_after(modes, 1), after

    @property
    def why_nominal(self) -> str:
        """Why all numbers here are nominal, as far as the problem shows: no clip bounds it. Empty where one does."""
        return why_not_bounded(self.problem, self.budget.unit)

    @cached_property
    def per_epoch_ratio(self) -> csr_array:
        """[receiver, sender] Theorem 1's sensitivity over noise, of one epoch seen alone."""
        network = self.network
        return paper.ratio(network.gains, network.power, self.alpha, self.noise_to_step, self.sensitivity, self.theta)

    @cached_property
    def epsilon_per_epoch(self) -> csr_array:
        """[receiver, sender] the paper's eps_ij: a claim about one epoch seen alone.

        As in the paper, step and noise of the same epoch are compared, whatever the noise timing.
        """
        return paper.epsilon_per_epoch(self.per_epoch_ratio, self.budget.delta)

    @property
    def binding(self) -> csr_array:
        """[receiver, sender] 1 where a per-epoch budget binds."""
        limit = self.budget.epsilon * (1 - 1e-6) if self.budget.target == "per-epoch" else np.inf
        result = self.epsilon_per_epoch.copy()
        result.data = (result.data >= limit).astype(np.float64)
        return result

    @property
    def paper_claim(self) -> paper.PaperClaim:
        """What the paper's Corollary says of the whole run: a claim, not a guarantee."""
        return paper.corollary(float(self.epsilon_per_epoch.max()), self.budget.delta, self.schedule.epochs)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """A line for each way this setting breaks."""
        return warnings_of(self)

    @property
    def power_note(self) -> str:
        """What p is held against and what the signals take of it, in words; empty where a radio says it in watts."""
        return power_note(self)

    def mu_until(self, last: ArrayLike) -> FloatArray:
        """[nodes] the certificate's mu where node j sends up to epoch last_j only, fixed before the run.

        Args:
            last: The last epoch in which a node sends, one number or [nodes].

        Guarantees:
            As `certificate`. Who stops when must not depend on anybody's data.
        """
        ends, epochs = _check.per_node(self.network.nodes, last=last), self.schedule.epochs
        if not ((ends >= 1) & (ends <= epochs) & (ends % 1 == 0)).all():
            raise Error(
                f"last is {last!r:.60}, and the plan has {epochs} epochs", hint=f"name epochs from 1 to {epochs}"
            )
        exposed = certificates.exposure(self.schedule.steps, self.schedule.noise_schedule, self.z, ends)
        return self._mu(exposed, self.curve_for(self.z, ends))

    def until(self, epochs: int) -> Self:
        """The first epochs of this plan: same split, same noise, same steps, and what they cost."""
        return replace(super().until(epochs), z=self.z[:epochs])

    def linear_common(self, observers: tuple[int, ...]) -> FloatArray:
        """[nodes] mu the observers reach under linear gradients, all changes in one direction. A diagnostic.

        Of the ideal channel in one round, as `linear` and `collusion`; `murmurcast.observe` knows others.
        """
        arguments = (self._dense_weights(), _check.observers(self.network.nodes, observers))
        return linear.common_direction(*arguments, self.effective_noise, self._push())

    def linear(self, observers: tuple[int, ...], on_target: Count = quiet) -> linear.Linear:
        """What the observers learn of every node under linear gradients: a diagnostic, not a guarantee."""
        arguments = (self._dense_weights(), _check.observers(self.network.nodes, observers))
        numbers = (self.effective_noise, self._push())
        lower, upper = linear.worst_direction(*arguments, *numbers, on_target)
        return linear.Linear(linear.common_direction(*arguments, *numbers), lower, upper)

    def collusion(self, seconds: float = coalitions.QUICK, on_coalition: Count = quiet) -> Collusion:
        """What every receiver alone, and pairs together, learn of every node under linear gradients. A diagnostic.

        Args:
            seconds: About how long it may take; as many receivers and pairs are tried. `math.inf` tries all.
            on_coalition: Called with (coalitions done, coalitions in all).
        """
        numbers = (self.effective_noise, self._push())
        return coalitions.collusion(self._dense_weights(), *numbers, seconds, on_coalition)

    def amplified(self, observers: tuple[int, ...], smoothness: ArrayLike) -> FloatArray:
        """[nodes] mu, an experimental bound of what the observers learn of every node; 0 for the observers.

        Args:
            observers: The coalition, such as `(0, 2)`; its members share all they hear.
            smoothness: L, a Lipschitz constant of every node's gradient, one number or [nodes].

        Guarantees:
            Unit: the budget's, for gradients taken at the node's own point (`gradient_at="own"`), the whole gradient
                within the clip. The mixed point, the default of runs, is not covered.
            Adversary: these observers only, who hear just their own antennas, and know their own data and noise. All
                hidden nodes add their noise honestly and publish nothing.
            Formula: "spread and clean", `murmurcast.privacy.amplification`; projections included.
            Range: the ideal channel in one round; gradients clipped and L-Lipschitz, L public and true.
            Status: experimental; machine-checked, not peer reviewed. Never the default.
        """
        if self.sampling is not None:
            raise Error(
                'network amplification is not known for sampling = "poisson": a node\'s whole gradient has no bound',
                hint='set problem.sampling = "fixed"',
            )
        return amplification.spread_and_clean(
            self._dense_weights("network amplification"),
            _check.observers(self.network.nodes, observers),
            self.effective_noise,
            np.asarray(self.schedule.steps[:, None] / self.z),
            self.sensitivity,
            self.problem.gradient_clip.limit,
            smoothness,
        )

    def sent_power(self) -> SentPower | None:
        """The energy of messages over p, and the public factor; None where `problem.dim` is unknown."""
        if self.problem.dim is None:
            return None
        noise = self.schedule.noise_schedule
        ends = np.array([noise.max(), noise.min()])[:, None] * self.noise_to_step
        largest, smallest = sent_over_budget(self.alpha, ends, self.problem.dim, self.problem.radius or 0.0)
        return SentPower(largest, smallest, public_scale(largest), -(-self.problem.dim // 2))

    def _mu(self, exposed: FloatArray, curve: Curve) -> FloatArray:
        """[nodes] the certificate's mu of what is exposed."""
        moved = self.effective_sensitivity
        return curve.total_mu(certificates.mu(exposed, self.alpha, self.noise_to_step, moved))

    def _push(self) -> FloatArray:
        return np.asarray(self.sensitivity * self.schedule.steps[:, None] / self.z)

    def _dense_weights(self, what: str = "the linear diagnostic") -> FloatArray:
        if not self.is_ideal:
            why = "a radio" if self.radio is not None else f"{self.schedule.rounds} rounds"
            raise Error(
                f"{what} of a plan is that of the ideal channel in one round, and this one has {why}",
                hint="ask murmurcast.observe(plan), which follows the channel"
                if what == "the linear diagnostic"
                else "it is proved for that channel only: leave [radio] out and set schedule.rounds = 1",
            )
        if self.network.nodes > DENSE_UP_TO:
            raise Error(
                f"{what} of {self.network.nodes} nodes needs dense matrices",
                hint=f"use it on at most {DENSE_UP_TO} nodes; the certificate has no such limit",
            )
        return self.mixing.weights.toarray()


def objective_value(objective: Objective, alpha: FloatArray, perron: FloatArray, noise_to_step: FloatArray) -> float:
    """What an objective comes to: sum of alpha, least alpha, or the consensus noise sum pi^2 q^2 (1/alpha - 1)."""
    if objective == "noise":
        return float(np.sum((perron * noise_to_step) ** 2 * (1 / alpha - 1)))
    return float(alpha.min() if objective == "max-min" else alpha.sum())
