"""A line for each way a setting breaks: what to know before trusting a plan's numbers.

It stands below the plan, which asks for its lines: only the type checker needs to know a plan here.
"""

from typing import TYPE_CHECKING

import numpy as np

from murmurcast._threads import side_by_side
from murmurcast.data.assumptions import facts_of
from murmurcast.data.partition import Partition
from murmurcast.privacy import gaussian
from murmurcast.privacy.best_guess import best_guess, in_words
from murmurcast.privacy.rounding import at_most

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan
    from murmurcast.planning.setup import Setup

_HARDLY_A_SECRET = 0.99  # the best chance of guessing right from which a promise is called empty
_FEW = 100  # records or nodes: with fewer, or with an unknown number, delta is judged as with so many
_LINEAR_WORK = 2e9  # multiplications: a second or two


def warnings_of(plan: "Plan") -> tuple[str, ...]:
    """All that apply, in the order of a plan's making."""
    checks = (
        _corner_alpha,
        _even_split,
        _theta_too_small,
        _formula_range,
        _corollary,
        _certified_cost,
        _private_labels,
        _without_meaning,
    )
    return tuple(line for check in checks for line in check(plan))


def power_note(plan: "Plan") -> str:
    """What p is held against, what the signals take of it, and what the public factor does; a fact, and no warning."""
    if plan.radio is not None:
        return ""
    sent = plan.sent_power()
    if sent is None:
        noise = float((plan.beta * (plan.noise_to_step * plan.schedule.noise_schedule.max()) ** 2).max())
        return (
            "p is held against the energy of a whole message, which counts as one channel use; the noise takes up to "
            f"{noise:.3g} times p in each parameter (set problem.dim to see the whole message)"
        )
    least, most = float(sent.smallest.min()), float(sent.largest.max())
    words = (
        f"p is held against the energy of a whole message of {plan.problem.dim} numbers, which counts as one channel "
        f"use: it takes {least:.3g} to {most:.3g} times p, or {least / sent.symbols:.3g} to {most / sent.symbols:.3g} "
        f"times p in each of {sent.symbols} complex symbols"
    )
    if most <= 1 + 1e-9:
        return words
    return (
        f"{words}. One public factor of {sent.public_scale:.3g} on all signals would bring every message within p; "
        "privacy and weights stay as they are, and the signal-to-noise ratio at every receiver falls by "
        f"{-sent.snr_change_db:.3g} dB"
    )


def without_meaning(chance: float, delta: float, unit: str, examples: float, nodes: int) -> list[str]:
    """A line for each number of a promise that protects nobody.

    Args:
        chance: The best chance of guessing right, of the node that pays most.
        delta: Failure probability.
        unit: What is hidden.
        examples: The fewest records that a node has; 0 where nobody knows.
        nodes: How many nodes there are.
    """
    lines = []
    count = max(examples, _FEW, nodes if unit == "node" else 0)
    if delta >= 1 / count:
        lines.append(
            f"delta without meaning: {at_most(delta)} is not below 1/{count:g}, and with probability delta everything "
            "may be laid bare; choose it far below, such as 1e-5"
        )
    if chance >= _HARDLY_A_SECRET:
        lines.append(f"epsilon without meaning: {in_words(chance, unit)}; lower epsilon")
    return lines


def without_meaning_for(setup: "Setup", chance: float) -> list[str]:
    """The same for a setup whose worst node is guessed right with this chance."""
    sizes, partition = setup.problem.examples_per_node, getattr(setup.problem, "data", None)
    if isinstance(partition, Partition):  # a minibatch is fewer than a node has
        sizes = partition.sizes
    examples = 0.0 if sizes is None else float(np.min(np.asarray(sizes, np.float64)))
    return without_meaning(chance, setup.budget.delta, setup.budget.unit, examples, setup.network.nodes)


def _without_meaning(plan: "Plan") -> list[str]:
    worst = float(best_guess(plan.certificate.mu, plan.curve, plan.budget.delta).max())
    return without_meaning_for(plan, worst)


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
            f"formula outside its range: it is proved for epsilon up to 1 only, and the largest eps_ij is "
            f"{at_most(claimed)}"
        ]
    return []


def _corollary(plan: "Plan") -> list[str]:
    claim = plan.paper_claim
    if claim.delta >= 1:
        return [f"Corollary empty: T delta = {claim.delta:.3g} is 1 or more, so (T epsilon, T delta) says nothing"]
    nodes, epochs = plan.network.nodes, plan.schedule.epochs
    if not plan.is_ideal:
        return ["Corollary not checked: it speaks of the ideal channel in one round, which this plan does not have"]
    if nodes**4 * epochs > _LINEAR_WORK:
        return ["Corollary not checked: the network is too large to try every receiver; try some with --observer"]
    costs = np.array(list(side_by_side(plan.linear_common, [(observer,) for observer in range(nodes)])))
    observer, target = np.unravel_index(int(np.argmax(costs)), costs.shape)
    leaked = float(gaussian.epsilon(costs[observer, target], claim.delta))
    if leaked <= claim.epsilon:
        return []
    return [
        f"Corollary false here: it claims epsilon {at_most(claim.epsilon)} for the run, but receiver {observer} alone "
        f"learns {leaked:.4g} about node {target} (linear diagnostic, at the same delta {claim.delta:.3g})"
    ]


def _certified_cost(plan: "Plan") -> list[str]:
    worst = int(np.argmax(plan.certificate.epsilon))
    total = float(plan.certificate.epsilon[worst])
    if plan.budget.target == "certificate" and plan.noise_is_automatic and total < plan.budget.epsilon * (1 - 1e-6):
        return [
            f"the budget of {plan.budget.epsilon:g} is not used up: above epsilon {at_most(total)} secure noise has "
            "no bound"
        ]
    if plan.budget.target == "certificate" or total <= plan.budget.epsilon:
        return []
    return [
        f"the budget of {plan.budget.epsilon:g} is per epoch: against everybody the whole run comes to epsilon "
        f"{at_most(total)} (node {worst})"
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
