"""What `murmurcast plan` prints: the plan, and what was asked about it."""

from typing import TYPE_CHECKING

from rich.console import Console

from murmurcast.cli._coalitions_text import show_collusion
from murmurcast.privacy import gaussian
from murmurcast.reports import plan_text, text_tables

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan
    from murmurcast.privacy.coalitions import Collusion
    from murmurcast.privacy.linear import Linear


def show(
    plan: "Plan",
    linears: "dict[tuple[int, ...], Linear]",
    collusion: "Collusion | None",
    why_nominal: str,
    warned: tuple[str, ...],
    assumed: tuple[str, ...] = (),
) -> None:
    """Prints the whole plan and what is assumed of the data; `why_nominal` says why its number is no certificate."""
    console = text_tables.console()
    plan_text.show_numbers(console, plan, why_nominal)
    for heading, line in text_tables.headed("Assumed", assumed):
        console.print(f"[bold]{heading:<8}[/bold] {text_tables.plain(line)}", soft_wrap=True)
    if collusion is not None:
        show_collusion(console, plan, collusion, "nominal" if why_nominal else "certified")
    for members, linear in linears.items():
        _show_linear(console, plan, members, linear)
    plan_text.show_warnings(console, plan, warned)


def _show_linear(console: Console, plan: "Plan", members: tuple[int, ...], linear: "Linear") -> None:
    names = [plan.network.names[member] for member in members]
    who = f"observer {names[0]}" if len(names) == 1 else f"observers {', '.join(names)} together"
    note = "mu if gradients did not react to hidden states: a lower bound, real training can leak more"
    targets = [node for node in range(plan.network.nodes) if node not in members]
    targets = sorted(sorted(targets, key=lambda node: -linear.mu_worst_upper[node])[: plan_text.NODES_SHOWN])

    def row(node: int) -> tuple[str, ...]:
        low, high = linear.mu_worst_lower[node], linear.mu_worst_upper[node]
        worst = f"{high:.4g}" if high - low <= 1e-4 * high else f"{low:.4g} to {high:.4g}"
        leaked = float(gaussian.epsilon(high, plan.budget.delta))
        return plan.network.names[node], f"{linear.mu_common[node]:.4g}", worst, f"{leaked:.4g}"

    headings = ("target", "mu common", "mu worst", "epsilon worst")
    text_tables.show_table(console, f"Linear diagnostic, {who} (not a guarantee)", map(row, targets), headings, note)
