"""Makes a plan: chooses the power split or the noise, and settles what depends on itself.

The bound theta of 1/z depends on the weights, the weights on alpha, and alpha on theta; likewise the exposure behind a
certificate. Both are run to a fixed point, and the plan is made only where it verifies.
"""

import warnings
from collections.abc import Callable
from itertools import count
from typing import NamedTuple, get_args

import numpy as np

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.errors import Error, Infeasible, LongWork
from murmurcast.network.graph import Network
from murmurcast.network.weights import Mixing, Z, mixing, perron
from murmurcast.network.weights import normaliser as resolve_normaliser
from murmurcast.planning.forecast import forecast
from murmurcast.planning.mean_mixing import mean_mixing, z_in_epochs
from murmurcast.planning.plan import Plan, PowerRule, objective_value
from murmurcast.planning.power.balanced import balanced_shape, level_below, level_within, require_level
from murmurcast.planning.power.certified import certified_alpha, certified_noise, require_floor
from murmurcast.planning.power.interior_point import Optimum
from murmurcast.planning.power.largest_sum import Split, largest_sum, largest_sum_near
from murmurcast.planning.power.least_noise import least_noise
from murmurcast.planning.power.max_min import even_split, max_min
from murmurcast.planning.power.per_epoch_limits import Limits, limits, unchecked_limits
from murmurcast.planning.schedule import Schedule
from murmurcast.planning.setup import Budget, ProblemFacts, Setup, require_facts
from murmurcast.planning.theta import Tried, settled_theta
from murmurcast.privacy import certificate
from murmurcast.radio import divisor
from murmurcast.radio.settings import Radio

_PAPER_NOISE_TO_STEP = 10.0
_PLAIN_ROUNDS, _ROUNDS = 20, 200
_EXACT_UP_TO = 1000  # nodes; the first-order method of some larger networks is less exact
_LARGE_SLACK = 1e-4

_Mix = Callable[[FloatArray], tuple[Mixing, FloatArray]]


class _Solution(NamedTuple):
    """A split with what it makes of the network."""

    alpha: FloatArray
    noise_to_step: FloatArray
    theta: float
    mixing: Mixing
    z: FloatArray
    even: bool = False


def plan(
    network: Network,
    problem: ProblemFacts,
    budget: Budget,
    schedule: Schedule,
    *,
    power: PowerRule | None = None,
    normaliser: str | int = "lazy",
    z: Z | None = None,
    radio: Radio | None = None,
) -> Plan:
    """Splits every node's power between model and noise so that the budget holds.

    Args:
        network: Who hears whom, how well, with how much power.
        problem: The clip and what else a plan must know; `ClippedGradients` where no problem is at hand.
        budget: What may leak.
        schedule: Epochs, steps, noise.
        power: How the split is chosen; the paper's objective by default.
        normaliser: R: "lazy" (max degree + 1), "max-degree", or a number.
        z: "recursive" (the paper's), "perron" (started at its limit; for large networks), and over a radio whose
            weights change "mean" (the limit of the mean weights; the default there) or "predicted" (of those expected
            from each epoch on; noise follows it).
        radio: What carries the signals, in physical units; None for the paper's ideal channel.

    Returns:
        The plan, verified: the split meets the budget with the weights it makes.

    Raises:
        Infeasible: No split meets the budget; names the worst link or node and the smallest feasible epsilon.
        Error: Bad input.

    Warns:
        LongWork: A per-epoch plan will take minutes or more; before it begins, with an estimate and a way out.
    """
    _check.instance(Network, network=network)
    _check.instance(Budget, budget=budget)
    _check.instance(Schedule, schedule=schedule)
    _check.instance(PowerRule, power=power or PowerRule())
    if radio is not None:
        _check.instance(Radio, radio=radio)
    require_facts(problem)
    setup = Setup(network=network, problem=problem, budget=budget, schedule=schedule, radio=radio)
    return planned(setup, power or PowerRule(), normaliser, z)


def planned(
    setup: Setup, rule: PowerRule, normaliser: str | int = "lazy", z: Z | None = None, on_stage: Stage = quiet
) -> Plan:
    """As `plan`, from a setup; `on_stage` is called with a few words whenever a new stage of the work begins."""
    network, budget, schedule, radio = setup.network, setup.budget, setup.schedule, setup.radio
    rule_of_z = _z_rule(z, setup)
    resolved = resolve_normaliser(network, normaliser)
    network.require_two_way("the paper's power split")
    noise = _noise(schedule, budget, network.nodes)
    at_limit = rule_of_z != "recursive" or (radio is not None and radio.varies)  # z, of the weights or their mean

    def mix(alpha: FloatArray) -> tuple[Mixing, FloatArray]:
        if radio is None:
            mixed = mixing(network, alpha, resolved)
        else:
            mixed = mean_mixing(network, alpha, resolved, radio, schedule.epochs)
        return mixed, z_in_epochs(mixed.weights, schedule, "perron" if at_limit else rule_of_z)

    if budget.target == "per-epoch" and noise is None:
        raise Error(
            'noise_to_step = "auto" needs a total budget', hint='set target = "certificate", or give noise_to_step'
        )
    if budget.target == "per-epoch" and (words := forecast(network, rule)):
        on_stage(words)
        warnings.warn(words, LongWork, stacklevel=3)  # stages are gone with the next one, or shown to nobody
    if rule.objective == "balanced":
        on_stage("balancing the weights")
        solution = _balanced(setup, mix, rule, noise, resolved)
    elif budget.target == "per-epoch" and noise is not None:
        solution = _per_epoch(network, mix, budget, rule, noise, setup.sensitivity, on_stage)
    elif noise is None:
        on_stage("finding the noise")
        solution = _automatic_noise(setup, mix, rule)
    else:
        on_stage("finding the power split")
        solution = _certified(setup, mix, rule, noise)
    return Plan(
        network=network,
        problem=setup.problem,
        budget=budget,
        schedule=schedule,
        radio=radio,
        rule=rule,
        z_rule=rule_of_z,
        alpha=_check.frozen(solution.alpha),
        noise_to_step=solution.noise_to_step,
        theta=solution.theta,
        mixing=solution.mixing,
        z=solution.z,
        perron=solution.z[-1] if at_limit else perron(solution.mixing.weights),
        noise_is_automatic=noise is None,
        fell_back_to_even=solution.even,
    )


def _z_rule(z: Z | None, setup: Setup) -> Z:
    radio, accelerated = setup.radio, setup.schedule.accelerated
    varies = radio is not None and radio.varies
    if accelerated and radio is not None:
        raise Error(
            "accelerated rounds would add up a radio's noise and errors: they are known for the paper's channel only",
            hint="set schedule.accelerated = false, or leave [radio] out",
        )
    if z is None:
        return "mean" if varies else "perron" if accelerated else "recursive"
    _check.one_of(get_args(Z), z=z)
    if accelerated and z != "perron":
        raise Error(
            f'z is "{z}", and rounds are accelerated: what an epoch makes of V changes neither pi nor z at its limit, '
            "and nothing else is known of z",
            hint='set z = "perron", or leave it out',
        )
    if z in ("mean", "predicted") and not varies:
        raise Error(
            f'z is "{z}", and the weights do not change: there is nothing to average or predict',
            hint='set z = "perron", or give the radio fading',
        )
    if z == "predicted" and radio is not None and radio.trace is not None:
        raise Error(
            'z is "predicted", and nothing says how much of a trace is still there some epochs later',
            hint='set z = "mean", or "recursive", the paper\'s',
        )
    if z == "perron" and varies:
        raise Error('z is "perron", and the weights change', hint='set z = "mean": the limit of the mean weights')
    if varies:
        divisor.require_followed(z, setup.network.nodes)  # before anything is planned that cannot be run
    return z


def _noise(schedule: Schedule, budget: Budget, nodes: int) -> FloatArray | None:
    given = schedule.noise_to_step
    if given is None:
        given = "auto" if budget.target == "certificate" else _PAPER_NOISE_TO_STEP
    return None if isinstance(given, str) else _check.per_node(nodes, noise_to_step=given)


def _bound(budget: Budget, z: FloatArray, slack: float = 0.0) -> float:
    return budget.theta or float(1 / z.min()) * (1 + slack)


def _better(rule: PowerRule, noise: FloatArray, chosen: _Solution | None, even: _Solution) -> _Solution:
    """What the rule prefers: the settled split or the same alpha for all, which is always consistent.

    The weights of an even split do not depend on its level, so nothing chases anything there. A settled split can be
    worse: where a node's alpha falls, its pi falls with it, theta grows, and every alpha shrinks.
    """
    if chosen is None:
        return even
    settled, level = (_value(rule, noise, solution) for solution in (chosen, even))
    hair = 1e-4  # programs are solved to finite accuracy
    worse = settled > level * (1 + hair) if rule.objective == "noise" else settled < level * (1 - hair)
    return even if worse else chosen


def _value(rule: PowerRule, noise: FloatArray, solution: _Solution) -> float:
    pi = perron(solution.mixing.weights) if rule.objective == "noise" else solution.z[-1]  # nothing else looks at it
    return objective_value(rule.objective, solution.alpha, pi, noise)


def _per_epoch(
    network: Network,
    mix: _Mix,
    budget: Budget,
    rule: PowerRule,
    noise: FloatArray,
    moved: FloatArray,
    on_stage: Stage,
) -> _Solution:
    def within(theta: float) -> Limits:
        return limits(network, noise, moved, theta, budget.epsilon, budget.delta, rule.minimum, rule.maximum)

    on_stage("checking that a power split exists")
    # The weights of an even split do not depend on its level, so its theta is known before the level is.
    theta = _bound(budget, mix(np.full(network.nodes, rule.minimum))[1])
    # Raises where even the least alpha is too much; the epsilon it then names works, by the same even split.
    level = even_split(within(theta))
    even = _Solution(level, noise, theta, *mix(level), even=True)
    try:
        large = len(noise) > _EXACT_UP_TO and rule.objective != "noise"
        settle = _settle_between if large else _settle
        chosen = settle(mix, within, budget, rule, noise, even, on_stage)
    except Infeasible:
        chosen = None  # only for the larger theta that the program itself brought about
    return _better(rule, noise, chosen, even)


def _settle(
    mix: _Mix,
    within: Callable[[float], Limits],
    budget: Budget,
    rule: PowerRule,
    noise: FloatArray,
    start: _Solution,
    on_stage: Stage,
) -> _Solution | None:
    """Alternates between theta (and pi, for the noise objective) and alpha until theta bounds 1/z, and hardly more."""
    # A hair above what is needed, so that the bound holds although programs are solved to finite accuracy.
    slack = 1e-6 if rule.objective == "noise" else 1e-9
    theta = _bound(budget, start.z, slack)
    weight = perron(start.mixing.weights) if rule.objective == "noise" else start.z[-1]
    for attempt in range(_ROUNDS):
        on_stage(f"finding the power split, round {attempt + 1}")
        if rule.objective == "noise":
            alpha = least_noise(within(theta), weight, noise)
        else:
            alpha = (largest_sum if rule.objective == "sum" else max_min)(within(theta))
        mixed, z = mix(alpha)
        needed = _bound(budget, z)
        pi = perron(mixed.weights) if rule.objective == "noise" else weight
        late = attempt >= _PLAIN_ROUNDS
        settled = np.abs(pi - weight).max() <= slack and (late or needed * (1 + 3 * slack) >= theta)
        if needed <= theta and settled:
            return _Solution(alpha, noise, theta, mixed, z)
        # An optimum may jump between corners; a theta that only grows, and a pi that moves half way, settle.
        following = _bound(budget, z, slack)
        theta = max(theta, following) if late else following
        weight = (pi + weight) / 2 if late else pi
    return None


def _settle_between(
    mix: _Mix,
    within: Callable[[float], Limits],
    budget: Budget,
    rule: PowerRule,
    noise: FloatArray,
    start: _Solution,
    on_stage: Stage,
) -> _Solution | None:
    """As `_settle`, where every round costs a large program: between bounds, each begun where the last came by."""
    near: Optimum | None = None
    attempts = count(1)

    def attempt(theta: float) -> Tried[_Solution]:
        nonlocal near
        on_stage(f"finding the power split, round {next(attempts)}")
        alpha, near = (
            largest_sum_near(within(theta), near) if rule.objective == "sum" else Split(max_min(within(theta)))
        )
        mixed, z = mix(alpha)
        return Tried(theta, _bound(budget, z), _Solution(alpha, noise, theta, mixed, z))

    def hopeless(solution: _Solution) -> bool:
        # The larger theta, the less alpha: once the even split is better, it stays so.
        return _better(rule, noise, solution, start) is start

    tried = settled_theta(attempt, _bound(budget, start.z, _LARGE_SLACK), _LARGE_SLACK, hopeless)
    return None if tried is None else tried.solution


def _balanced(setup: Setup, mix: _Mix, rule: PowerRule, noise: FloatArray | None, resolved: int) -> _Solution:
    """The split that makes the weights doubly stochastic, at the largest level that the budget allows."""
    budget, schedule, moved = setup.budget, setup.schedule, setup.effective_sensitivity
    shape = balanced_shape(setup.network, resolved, rule.minimum, rule.maximum)
    mixed, z = mix(shape)
    theta, exposed = _bound(budget, z), certificate.exposure(schedule.steps, schedule.noise_schedule, z)
    curve = setup.curve_for(z)
    if noise is None:
        wanted = float(np.mean(_check.per_node(len(shape), **{"power.alpha": rule.alpha})) / shape.mean())
        alpha = shape * min(max(wanted, rule.minimum / float(shape.min())), rule.maximum)
        noise_needed = certified_noise(exposed, alpha, moved, budget.epsilon, budget.delta, curve)
        return _Solution(alpha, noise_needed, theta, mixed, z)
    if budget.target == "per-epoch":
        # Where even the least alphas are too much, the epsilon that this shape needs is larger than theirs.
        within = unchecked_limits(
            *(setup.network, noise, setup.sensitivity, theta),
            *(budget.epsilon, budget.delta, rule.minimum, rule.maximum),
        )
        return _Solution(level_within(within, shape, budget.epsilon), noise, theta, mixed, z)
    most = certified_alpha(exposed, noise, moved, budget.epsilon, budget.delta, curve)
    alpha = level_below(most, shape, rule.maximum)
    at_floor = certificate.mu(exposed, shape * rule.minimum / float(shape.min()), noise, moved)
    smallest = float(curve.epsilon_for(at_floor.max(), budget.epsilon, budget.delta))
    require_level(alpha, rule.minimum, budget.epsilon, smallest)
    return _Solution(alpha, noise, theta, mixed, z)


def _automatic_noise(setup: Setup, mix: _Mix, rule: PowerRule) -> _Solution:
    budget, schedule, moved = setup.budget, setup.schedule, setup.effective_sensitivity
    alpha = np.array(_check.per_node(len(moved), **{"power.alpha": rule.alpha}))
    if (alpha < rule.minimum).any() or (alpha > rule.maximum).any():
        raise Error(
            f"power.alpha leaves its bounds {rule.minimum:g} to {rule.maximum:g}", hint="move power.min or power.max"
        )
    mixed, z = mix(alpha)
    exposed = certificate.exposure(schedule.steps, schedule.noise_schedule, z)
    noise = certified_noise(exposed, alpha, moved, budget.epsilon, budget.delta, setup.curve_for(z))
    return _Solution(alpha, noise, _bound(budget, z), mixed, z)


def _certified(setup: Setup, mix: _Mix, rule: PowerRule, noise: FloatArray) -> _Solution:
    """The largest alpha that the exposure allows, and the exposure that this alpha makes, until both agree."""
    budget, schedule, moved = setup.budget, setup.schedule, setup.effective_sensitivity
    _require_plain(setup)

    def exposed(z: FloatArray) -> FloatArray:
        return certificate.exposure(schedule.steps, schedule.noise_schedule, z)

    _, z = mix(np.full(len(noise), rule.minimum))
    curve = setup.curve_for(z)
    alpha = certified_alpha(exposed(z), noise, moved, budget.epsilon, budget.delta, curve)
    require_floor(alpha, rule.minimum, exposed(z), noise, moved, budget.epsilon, budget.delta, curve)
    level = np.full(len(noise), min(float(alpha.min()), rule.maximum))
    even = _Solution(level, noise, _bound(budget, z), *mix(level), even=True)
    for _ in range(_ROUNDS):
        alpha = np.clip(alpha, rule.minimum, rule.maximum)
        mixed, z = mix(alpha)
        wanted = certified_alpha(exposed(z), noise, moved, budget.epsilon, budget.delta, curve)
        if (alpha <= wanted * (1 + 1e-11)).all() and np.abs(np.minimum(wanted, rule.maximum) / alpha - 1).max() < 1e-9:
            return _better(rule, noise, _Solution(alpha, noise, _bound(budget, z), mixed, z), even)
        # Approached from below, so that the promise holds to the last digit.
        alpha = wanted * (1 - 1e-10)
    return even


def _require_plain(setup: Setup) -> None:
    """Records do not join by coins: what these are worth changes with every split that is tried."""
    if setup.law.name == "sampled gaussian":
        raise Error(
            'sampling = "poisson" finds the noise for a given split, not the split for a given noise',
            hint='remove noise_to_step, or set it to "auto"',
        )
