"""Makes a plan: chooses the power split or the noise, and settles what depends on itself.

The bound theta of 1/z depends on the weights, the weights on alpha, and alpha on theta; likewise the exposure behind a
certificate. Both are run to a fixed point, and the plan is made only where it verifies.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.network.mixing import Mixing, Z, mixing, perron, z_diagonal
from murmurcast.network.mixing import normaliser as resolve_normaliser
from murmurcast.plan import Budget, Plan, PowerRule, Problem, sensitivity
from murmurcast.power.certified import certified_alpha, certified_noise, demand_floor
from murmurcast.power.largest_sum import largest_sum
from murmurcast.power.least_noise import least_noise
from murmurcast.power.limits import limits
from murmurcast.power.max_min import max_min
from murmurcast.privacy import certificate, gaussian
from murmurcast.schedule import Schedule

_PAPER_NOISE_TO_STEP = 10.0
_SETTLED = 1e-10
_PLAIN_ROUNDS, _ROUNDS = 20, 500


class _Mixed(NamedTuple):
    """A split with what it makes of the network."""

    alpha: FloatArray
    noise_to_step: FloatArray
    theta: float
    mixing: Mixing
    z: FloatArray


def plan(
    network: Network,
    problem: Problem,
    budget: Budget,
    schedule: Schedule,
    *,
    power: PowerRule | None = None,
    normaliser: str | int = "lazy",
    z: Z = "recursive",
    on_stage: Stage = quiet,
) -> Plan:
    """Splits every node's power between model and noise so that the budget holds.

    Args:
        network: Who hears whom, how well, with how much power.
        problem: The clip and what else a plan must know; `ClippedGradients` where no problem is at hand.
        budget: What may leak.
        schedule: Epochs, steps, noise.
        power: How the split is chosen; the paper's objective by default.
        normaliser: R: "lazy" (max degree + 1), "max-degree", or a number.
        z: "recursive" (the paper's) or "perron" (started at its limit; for large networks).
        on_stage: Called with a few words whenever a new stage of the work begins.

    Returns:
        The plan, verified: the split meets the budget with the weights it makes.

    Raises:
        Infeasible: No split meets the budget; names the worst link or node and the smallest feasible epsilon.
        Error: Bad input.
    """
    rule = power or PowerRule()
    if z not in ("recursive", "perron"):
        raise Error(f'z is "{z}"', hint=_check.nearest(z, ("recursive", "perron")))
    resolved = resolve_normaliser(network, normaliser)
    moved = sensitivity(problem, budget.unit, network.nodes)
    noise = _noise(schedule, budget, network.nodes)

    def mix(alpha: FloatArray) -> tuple[Mixing, FloatArray]:
        made = mixing(network, alpha, resolved)
        return made, z_diagonal(made.weights, schedule.epochs, z)

    if budget.target == "per-epoch":
        if noise is None:
            raise Error(
                'noise_to_step = "auto" needs a total budget', hint='set target = "certificate", or give noise_to_step'
            )
        found = _per_epoch(network, mix, budget, rule, noise, moved, on_stage)
    elif noise is None:
        on_stage("finding the noise")
        found = _automatic_noise(mix, budget, schedule, _check.per_node(network.nodes, alpha=rule.alpha), moved)
    else:
        on_stage("finding the power split")
        found = _certified(mix, budget, schedule, rule, noise, moved)
    return Plan(
        network=network,
        problem=problem,
        budget=budget,
        schedule=schedule,
        rule=rule,
        alpha=_check.frozen(found.alpha),
        noise_to_step=found.noise_to_step,
        theta=found.theta,
        mixing=found.mixing,
        z=found.z,
        perron=perron(found.mixing.weights),
    )


def _noise(schedule: Schedule, budget: Budget, nodes: int) -> FloatArray | None:
    given = schedule.noise_to_step
    if given is None:
        given = "auto" if budget.target == "certificate" else _PAPER_NOISE_TO_STEP
    return None if isinstance(given, str) else _check.per_node(nodes, noise_to_step=given)


def _theta(budget: Budget, z: FloatArray) -> float:
    return budget.theta or float(1 / z.min())


def _per_epoch(
    network: Network,
    mix: Callable[[FloatArray], tuple[Mixing, FloatArray]],
    budget: Budget,
    rule: PowerRule,
    noise: FloatArray,
    moved: FloatArray,
    on_stage: Stage,
) -> _Mixed:
    """Alternates between theta (and pi, for the noise objective) and alpha until neither moves."""
    alpha = np.full(network.nodes, (rule.minimum + rule.maximum) / 2)
    theta, weight = 0.0, np.zeros(network.nodes)
    for attempt in range(_ROUNDS):
        on_stage(f"finding the power split, round {attempt + 1}")
        made, z = mix(alpha)
        needed = _theta(budget, z)
        pi = perron(made.weights) if rule.objective == "noise" else weight
        if attempt and abs(needed - theta) <= _SETTLED * theta and np.abs(pi - weight).max() <= _SETTLED:
            return _Mixed(alpha, noise, theta, made, z)
        # An optimum may jump between corners; a theta that only grows, and a pi that moves half way, settle.
        late = attempt >= _PLAIN_ROUNDS
        if late and needed <= theta * (1 + _SETTLED) and rule.objective != "noise":
            return _Mixed(alpha, noise, theta, made, z)
        theta = max(theta, needed) if late else needed
        weight = (pi + weight) / 2 if late else pi
        within = limits(network, noise, moved, theta, budget.epsilon, budget.delta, rule.minimum, rule.maximum)
        if rule.objective == "noise":
            alpha = least_noise(within, weight, noise)
        else:
            alpha = largest_sum(within) if rule.objective == "sum" else max_min(within)
    raise Error("theta and the power split do not settle", hint="give privacy.theta, a bound of 1/z_ii")


def _automatic_noise(
    mix: Callable[[FloatArray], tuple[Mixing, FloatArray]],
    budget: Budget,
    schedule: Schedule,
    alpha: FloatArray,
    moved: FloatArray,
) -> _Mixed:
    made, z = mix(alpha)
    exposed = certificate.exposure(schedule.steps, schedule.noise_course, z)
    noise = certified_noise(exposed, alpha, moved, budget.epsilon, budget.delta)
    return _Mixed(alpha, noise, _theta(budget, z), made, z)


def _certified(
    mix: Callable[[FloatArray], tuple[Mixing, FloatArray]],
    budget: Budget,
    schedule: Schedule,
    rule: PowerRule,
    noise: FloatArray,
    moved: FloatArray,
) -> _Mixed:
    """The largest alpha that the exposure allows, and the exposure that this alpha makes, until both agree."""
    target = float(gaussian.mu(budget.epsilon, budget.delta))
    alpha = np.full(len(noise), (rule.minimum + rule.maximum) / 2)
    for _ in range(_ROUNDS):
        _, z = mix(alpha)
        exposed = certificate.exposure(schedule.steps, schedule.noise_course, z)
        wanted = certified_alpha(exposed, noise, moved, budget.epsilon, budget.delta)
        following = np.clip(wanted, rule.minimum, rule.maximum)
        if np.abs(following / alpha - 1).max() <= _SETTLED:
            cost = certificate.mu(exposed, alpha, noise, moved)
            smallest = float(gaussian.epsilon(cost.max(), budget.delta)) * (1 + 1e-6)
            demand_floor(wanted * (1 + _SETTLED), rule.minimum, budget.epsilon, smallest)
            # A last hair's breadth, so that the promise holds to the last digit.
            odds = alpha / (1 - alpha) * np.minimum(1.0, (target / cost) ** 2)
            alpha = np.maximum(odds / (1 + odds), rule.minimum)
            return _Mixed(alpha, noise, _theta(budget, z), *mix(alpha))
        alpha = following
    raise Error("the power split does not settle", hint='set noise_to_step = "auto", or z = "perron"')
