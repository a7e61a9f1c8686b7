"""The paper's two networks in tables: power split, per-epoch epsilon, and what a whole run costs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.network import gains
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.planning.setup import ClippedGradients
from murmurcast.planning.solve import plan as make_plan
from murmurcast.privacy import gaussian
from murmurcast.privacy.rounding import at_most, at_most_fixed
from murmurcast.reproduction.document import Finding, Table
from murmurcast.reproduction.settings import PAPER_BUDGETS


def tables(plans: Sequence[Plan]) -> list[Table]:
    """For the plans of both budgets, in their order."""
    leaks = [leakage(plan) for plan in plans]
    return [_split(plans), _per_epoch(plans), _cost(plans, leaks), _receivers(plans, leaks), _readings(plans)]


def findings(plans: Sequence[Plan]) -> list[Finding]:
    """What holds of the paper's privacy claims on its own networks."""
    return [
        finding
        for budget, plan in zip(PAPER_BUDGETS, plans, strict=True)
        for finding in (_claimed(budget, plan), _certified(budget, plan), _rival(budget, plan))
    ]


def _claimed(budget: int, plan: Plan) -> Finding:
    claim = plan.paper_claim
    observers, leaked = worst(leakage(plan), 2)
    refuted = leaked > claim.epsilon
    word = "contradicts" if refuted else "does not contradict"
    return Finding(
        False if refuted else None,
        f"Budget {budget}: the Corollary claims epsilon {at_most(claim.epsilon)} for {plan.schedule.epochs} epochs "
        f"(delta {claim.delta:g}). On this network the linear diagnostic {word} it: the "
        f"worst pair of receivers ({_who(observers)}) learns {leaked:.4g}.",
    )


def _certified(budget: int, plan: Plan) -> Finding:
    at_claim = gaussian.epsilon(plan.certificate.mu, plan.paper_claim.delta)
    nominal = plan.problem.gradient_clip.limit
    return Finding(
        None,
        f"Budget {budget}: with gradients clipped at the nominal {nominal:.3g} the certificate would be "
        f"{at_most(at_claim.max())} at that delta. Training as published clips nothing, so nothing is promised.",
    )


def _rival(budget: int, plan: Plan) -> Finding:
    """What mPED2FL costs by the same formula: it does not divide by z, so theta does not lengthen its steps."""
    nodes = plan.network.nodes
    published, matched = (rival_epsilon(plan, factor) for factor in (1, nodes))
    return Finding(
        None,
        f"Budget {budget}: the label is what mPED2FL costs by Theorem 1's formula with theta = {plan.theta:.3g}. It "
        f"does not divide by z, so without theta the formula gives it {published:.3g} an epoch as published, and "
        f"{matched:.3g} with steps {nodes} times longer: with matched steps both also cost about the same.",
    )


def rival_epsilon(plan: Plan, step_factor: float) -> float:
    """The largest eps_ij of mPED2FL with steps `step_factor` times longer, as nominal as Algorithm 1's."""
    ratio = plan.sensitivity.max() * step_factor / plan.noise_to_step.min() * rival_ratio(plan.network)
    return float(gaussian.classical_epsilon(ratio, plan.budget.delta))


Leakage = dict[tuple[int, ...], FloatArray]  # by coalition: [nodes] epsilon about every node, 0 about themselves


def leakage(plan: Plan) -> Leakage:
    """What single receivers and pairs learn under linear gradients, at the Corollary's delta."""
    nodes = range(plan.network.nodes)
    coalitions = [*combinations(nodes, 1), *combinations(nodes, 2)]
    return {observers: _linear_epsilon(plan, observers) for observers in coalitions}


def worst(leaks: Leakage, size: int) -> tuple[tuple[int, ...], float]:
    """The coalition of `size` receivers that learns most, and how much."""
    most = {observers: float(leaked.max()) for observers, leaked in leaks.items() if len(observers) == size}
    coalition = max(most, key=lambda observers: most[observers])
    return coalition, most[coalition]


def _linear_epsilon(plan: Plan, observers: tuple[int, ...]) -> FloatArray:
    mu = plan.linear_common(observers)
    hidden = mu > 0
    result = np.zeros(len(mu))
    result[hidden] = gaussian.epsilon(mu[hidden], plan.paper_claim.delta)
    return result


def _who(observers: tuple[int, ...]) -> str:
    return " and ".join(map(str, observers))


def _split(plans: Sequence[Plan]) -> Table:
    rows = [
        (str(budget), str(node), f"{plan.alpha[node]:.4f}", f"{plan.beta[node]:.4f}", f"{plan.perron[node]:.4f}")
        for budget, plan in zip(PAPER_BUDGETS, plans, strict=True)
        for node in range(plan.network.nodes)
    ]
    note = "alpha: share of power for the model; beta: for the noise; pi: weight of the node in the consensus."
    return Table(
        "power-split",
        "Power split of the paper's networks",
        ("budget", "node", "alpha", "beta", "pi"),
        tuple(rows),
        note,
    )


def _per_epoch(plans: Sequence[Plan]) -> Table:
    rows = []
    for budget, plan in zip(PAPER_BUDGETS, plans, strict=True):
        for receiver, line in enumerate(plan.epsilon_per_epoch.toarray()):
            rows.append((str(budget), str(receiver), *(at_most_fixed(value, 4) if value else "-" for value in line)))
    headings = ("budget", "receiver", *(f"about {node}" for node in range(plans[0].network.nodes)))
    note = "The paper's eps_ij of one epoch seen alone: a claim, not a guarantee."
    return Table("epsilon-per-epoch", "Epsilon of one epoch, receiver by sender", headings, tuple(rows), note)


def _cost(plans: Sequence[Plan], leaks: Sequence[Leakage]) -> Table:
    rows = []
    for budget, plan, leaked in zip(PAPER_BUDGETS, plans, leaks, strict=True):
        claim, certified = plan.paper_claim, plan.certificate
        by = "nominal, by the certificate's formula" if plan.why_nominal else "certificate"
        at_claim = gaussian.epsilon(certified.mu, claim.delta)
        rows += [
            (str(budget), "the paper's Corollary", "a claim", at_most(claim.epsilon), at_most(claim.delta)),
            (str(budget), by, "everybody", at_most(certified.epsilon.max()), at_most(certified.delta)),
            (str(budget), by, "everybody", at_most(at_claim.max()), at_most(claim.delta)),
        ]
        for size, word in ((1, "receiver"), (2, "pair")):
            observers, most = worst(leaked, size)
            who = f"worst {word}: {_who(observers)}"
            rows.append((str(budget), "linear diagnostic", who, f"{most:.4g}", f"{claim.delta:g}"))
    note = (
        f"{plans[0].schedule.epochs} epochs, all data of the worst node hidden, gradients clipped at the nominal G. "
        "Training as published clips nothing, so none of these numbers is a promise about it. "
        "The linear diagnostic is no guarantee."
    )
    return Table("cost", "What the whole run costs", ("budget", "by", "against", "epsilon", "delta"), tuple(rows), note)


def _receivers(plans: Sequence[Plan], leaks: Sequence[Leakage]) -> Table:
    rows = []
    for budget, by_coalition in zip(PAPER_BUDGETS, leaks, strict=True):
        for observers, leaked in by_coalition.items():
            cells = ("-" if node in observers else f"{value:.3f}" for node, value in enumerate(leaked))
            rows.append((str(budget), _who(observers), *cells))
    headings = ("budget", "receivers", *(f"about {node}" for node in range(plans[0].network.nodes)))
    note = (
        f"Epsilon of the whole run at delta {plans[0].paper_claim.delta:g}, all changes in one direction: what these "
        "receivers learn if gradients do not react to hidden states. A diagnostic, no guarantee."
    )
    return Table("linear-diagnostic", "What single receivers and pairs learn", headings, tuple(rows), note)


def _readings(plans: Sequence[Plan]) -> Table:
    """The printed matrices in both orders: rows as receivers, used here, and rows as senders, as the paper says."""
    rows = []
    for budget, plan in zip(PAPER_BUDGETS, plans, strict=True):
        for order, reading in (("receivers (used here)", plan), ("senders (as stated)", _as_printed(budget, plan))):
            ratio = f"{rival_ratio(reading.network):.3f}"
            rows.append((str(budget), order, ratio, *(f"{alpha:.4f}" for alpha in reading.alpha)))
    headings = ("budget", "rows are", "rival's ratio", *(f"alpha {node}" for node in range(plans[0].network.nodes)))
    note = (
        "The ratio is mPED2FL's largest amplitude over noise, which sets the budget. Where it is the same for both "
        "matrices, both budgets give nearly the same split and curves."
    )
    return Table("readings", "Two readings of the printed gain matrices", headings, tuple(rows), note)


def _as_printed(budget: int, plan: Plan) -> Plan:
    """The plan of the matrix with its rows as senders; G is such that mPED2FL costs the budget on it, as in `plan`."""
    network = Network(gains=gains.paper(budget).T, power=plan.network.power)
    clip = plan.problem.gradient_clip.limit * rival_ratio(plan.network) / rival_ratio(network)
    # One theta for both: it stands on either side of the comparison and cancels.
    budgeted = replace(plan.budget, theta=plan.theta)
    return make_plan(network, ClippedGradients(clip=clip), budgeted, plan.schedule, power=plan.rule)


def rival_ratio(network: Network) -> float:
    """Of mPED2FL: the largest c_i / sqrt(sum_j h_ji^2 p_j (1 - alpha_ij)) over receivers, at unit noise."""
    arriving = network.gains.toarray() * np.sqrt(network.power)[:, None]
    heard = arriving > 0
    weakest = np.where(heard, arriving, np.inf).min(axis=0)
    noise = np.where(heard, arriving**2 - weakest**2, 0.0).sum(axis=0)
    return float((weakest / np.sqrt(noise)).max())
