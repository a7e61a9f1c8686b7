"""A line for each way a setting breaks: what to know before trusting a plan's numbers.

It stands below the plan, which asks for its lines: only the type checker needs to know a plan here.
"""

from typing import TYPE_CHECKING

import numpy as np

from murmurcast._threads import side_by_side
from murmurcast.data.assumptions import facts_of
from murmurcast.data.partition import Partition
from murmurcast.privacy import gaussian

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan

_LINEAR_WORK = 2e9  # multiplications: a second or two


def cautions(plan: "Plan") -> tuple[str, ...]:
    """All that apply, in the order of a plan's making."""
    checks = (
        _corner_alpha,
        _even_split,
        _theta_too_small,
        _power_exceeded,
        _formula_range,
        _corollary,
        _certified_cost,
        _private_labels,
    )
    return tuple(line for check in checks for line in check(plan))


def _corner_alpha(plan: "Plan") -> list[str]:
    if plan.noise_is_automatic:
        return []
    lines = []
    for name, end, what in (
        ("max", plan.rule.maximum, "a node keeps the least noise of its own and leans on the honesty of others"),
        ("min", plan.rule.minimum, "a node sends the least of its model and its data hardly counts"),
    ):
        nodes = np.flatnonzero(np.abs(plan.alpha / end - 1) < 1e-6)
        if nodes.size:
            lines.append(f"corner alpha: node {_few(nodes)} at power.{name} = {end:g}, where {what}")
    return lines


def _even_split(plan: "Plan") -> list[str]:
    if not plan.fell_back_to_even:
        return []
    return [
        f"even split: what objective {plan.rule.objective} prefers does not settle or is worse, so every node has "
        f"the same alpha; a larger power.min or epsilon may let it settle"
    ]


def _theta_too_small(plan: "Plan") -> list[str]:
    needed = float(1 / plan.z.min())
    if plan.theta >= needed * (1 - 1e-9):
        return []
    return [f"theta too small: theta = {plan.theta:.4g} was given, but 1/z reaches {needed:.4g}, so eps_ij is too low"]


def _power_exceeded(plan: "Plan") -> list[str]:
    sent = plan.sent_power()
    if sent is None:
        noise = float((plan.beta * (plan.noise_to_step * plan.schedule.noise_schedule.max()) ** 2).max())
        if noise <= 1 + 1e-9:
            return []
        return [f"power exceeded: the noise alone takes {noise:.3g} times the budget PER PARAMETER (set problem.dim)"]
    most, least = float(sent.largest.max()), float(sent.smallest.min())
    if most <= 1 + 1e-9:
        return []
    return [
        f"power exceeded: as written the signals take {least:.3g} to {most:.3g} times the power budget; "
        f"scale all by the public factor {sent.public_scale:.3g} (it leaves privacy and weights as they are)"
    ]


def _formula_range(plan: "Plan") -> list[str]:
    claimed = float(plan.epsilon_per_epoch.max())
    exact = float(gaussian.epsilon(plan.per_epoch_ratio.max(), plan.budget.delta))
    if exact > claimed:
        return [
            f"formula false: the textbook Gaussian formula gives {claimed:.4g} per epoch where the exact curve gives "
            f"{exact:.4g}"
        ]
    if claimed > 1 + 1e-9:
        return [
            f"formula outside its range: it is proved for epsilon up to 1 only, and the largest eps_ij is {claimed:.4g}"
        ]
    return []


def _corollary(plan: "Plan") -> list[str]:
    claim = plan.paper_claim
    if claim.delta >= 1:
        return [f"Corollary empty: T delta = {claim.delta:.3g} is 1 or more, so (T epsilon, T delta) says nothing"]
    nodes, epochs = plan.network.nodes, plan.schedule.epochs
    if nodes**4 * epochs > _LINEAR_WORK:
        return ["Corollary not checked: the network is too large to try every receiver; try some with --observer"]
    costs = np.array(list(side_by_side(plan.linear_common, [(observer,) for observer in range(nodes)])))
    observer, target = np.unravel_index(int(np.argmax(costs)), costs.shape)
    leaked = float(gaussian.epsilon(costs[observer, target], claim.delta))
    if leaked <= claim.epsilon:
        return []
    return [
        f"Corollary false here: it claims epsilon {claim.epsilon:.4g} for the run, but receiver {observer} alone "
        f"learns {leaked:.4g} about node {target} (linear diagnostic, at the same delta {claim.delta:.3g})"
    ]


def _certified_cost(plan: "Plan") -> list[str]:
    worst = int(np.argmax(plan.certificate.epsilon))
    total = float(plan.certificate.epsilon[worst])
    if plan.budget.target == "certificate" and plan.noise_is_automatic and total < plan.budget.epsilon * (1 - 1e-6):
        return [
            f"the budget of {plan.budget.epsilon:g} is not used up: above epsilon {total:.4g} secure noise has no bound"
        ]
    if plan.budget.target == "certificate" or total <= plan.budget.epsilon:
        return []
    return [
        f"the budget of {plan.budget.epsilon:g} is per epoch: the whole run is certified at epsilon {total:.4g} only "
        f"(node {worst})"
    ]


def _private_labels(plan: "Plan") -> list[str]:
    partition = getattr(plan.problem, "data", None)
    if not isinstance(partition, Partition) or not plan.problem.gradient_clip.bounds:
        return []
    if not facts_of(partition).labels_are_private:
        return []
    return [
        "labels read from records: one record with a label of its own would change the shape of all models, so a run "
        "that promises something is refused; declare them when the file is loaded"
    ]


def _few(nodes: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    shown = ", ".join(map(str, nodes[:8]))
    return shown + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
