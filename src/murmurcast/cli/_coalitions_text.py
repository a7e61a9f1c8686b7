"""Who learns what, as a table for people: everybody, every receiver alone, the worst two together."""

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from murmurcast.privacy import gaussian
from murmurcast.privacy.rounding import at_most
from murmurcast.reports.text_tables import show_table

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan
    from murmurcast.privacy.coalitions import Collusion

_MATRIX_UP_TO, _TARGETS_SHOWN = 9, 20
_TITLE = "Who learns what: epsilon of the whole run, for every target"
_NOTE = (
    "everybody together. All others: the linear diagnostic, a lower bound of what these receivers learn; "
    "not a guarantee."
)


def show_collusion(console: Console, plan: "Plan", collusion: "Collusion", word: str) -> None:
    """One row for every target; beyond 20 nodes, for the 20 that pay most. The plan's own number is called `word`."""
    if not collusion.receivers:
        console.print(f"\n[bold]{_TITLE}[/bold]")
        console.print(f"{plan.network.nodes} nodes and {plan.schedule.epochs} epochs take long: --collusion all")
        return
    few = plan.network.nodes <= _MATRIX_UP_TO and len(collusion.receivers) == plan.network.nodes
    headings, rows = (_matrix if few else _worst_only)(plan, collusion)
    note = " ".join((f"{word.capitalize()}: {_NOTE}", _left_out(plan, collusion, few))).strip()
    show_table(console, _TITLE, rows, (headings[0], word, *headings[1:]), note)


def _matrix(plan: "Plan", collusion: "Collusion") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    single = gaussian.epsilon(collusion.single_mu, plan.budget.delta)
    certified = plan.certificate.epsilon

    def row(target: int) -> tuple[str, ...]:
        neighbours = plan.network.neighbours(target)
        alone = (
            "-" if receiver == target else f"{single[receiver, target]:#.3g}{_mark(receiver in neighbours)}"
            for receiver in range(plan.network.nodes)
        )
        return str(target), at_most(certified[target]), *alone, _pair(plan, collusion, target)

    headings = ("target", *(f"to {receiver}" for receiver in collusion.receivers), "worst two")
    return headings, [row(target) for target in range(plan.network.nodes)]


def _worst_only(plan: "Plan", collusion: "Collusion") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    certified, receiver = plan.certificate.epsilon, collusion.worst_receiver
    single = gaussian.epsilon(collusion.worst_single_mu, plan.budget.delta)
    order = np.argsort(-certified, kind="stable")[:_TARGETS_SHOWN]

    def row(target: int) -> tuple[str, ...]:
        near = int(receiver[target]) in plan.network.neighbours(target)
        alone = f"{single[target]:#.3g} ({receiver[target]}){_mark(near)}" if receiver[target] >= 0 else "0"
        return str(target), at_most(certified[target]), alone, _pair(plan, collusion, target)

    return ("target", "worst one", "worst two"), [row(target) for target in sorted(order.tolist())]


def _mark(neighbour: bool) -> str:
    return "+" if neighbour else " "


def _pair(plan: "Plan", collusion: "Collusion", target: int) -> str:
    if collusion.pair[target, 0] < 0:
        return "-"
    leaked = float(gaussian.epsilon(collusion.pair_mu[target], plan.budget.delta))
    first, second = collusion.pair[target]
    return f"{leaked:#.3g} ({first}, {second if second >= 0 else 'any'})"


def _left_out(plan: "Plan", collusion: "Collusion", few: bool) -> str:
    words = ["+ a neighbour of the target."]
    if not few:
        words.append("Who it is stands in brackets.")
    if not collusion.is_complete:
        pairs = f"{collusion.pairs_tried} of {collusion.pairs} pairs"
        tried = f"{len(collusion.receivers)} of {plan.network.nodes} receivers, {pairs}"
        words.append(f"Tried: the likeliest {tried}; all of them: --collusion all.")
    return " ".join(words)
