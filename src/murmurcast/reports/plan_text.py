"""A plan as tables: for `print`, for the command, and as blocks of a page."""

import io
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from murmurcast._check import FloatArray
from murmurcast.network.weights import mixing_rate
from murmurcast.privacy.best_guess import best_guess, in_words
from murmurcast.privacy.rounding import at_most, at_most_fixed
from murmurcast.reports import text_tables
from murmurcast.reports.page import Table

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan

NODES_SHOWN, _MATRIX_UP_TO, _RATE_UP_TO = 20, 12, 300
_WIDTH = 120  # columns of text that goes to no terminal


def text_of(plan: "Plan", why_nominal: str) -> str:
    """What `murmurcast plan` prints of a plan, without colours; `why_nominal` says why it is no certificate."""
    kept = io.StringIO()
    console = Console(file=kept, width=_WIDTH, highlight=False, color_system=None)
    show_numbers(console, plan, why_nominal)
    show_warnings(console, plan)
    return kept.getvalue().rstrip("\n")


def show_numbers(console: Console, plan: "Plan", why_nominal: str) -> None:
    """Prints the plan at a glance, and all its tables."""
    console.print(
        "\n".join(f"[bold]{name:<8}[/bold] {text_tables.plain(words)}" for name, words in glance(plan, why_nominal))
    )
    _show(console, nodes_table(plan, why_nominal))
    matrix = matrix_table(plan)
    if matrix.headings:
        _show(console, matrix)
    else:
        console.print(f"\n[bold]{matrix.title}[/bold]")
        console.print(matrix.note)
        console.print("the whole matrix: --json, or plan.epsilon_per_epoch", style="dim")
    _show(console, costs_table(plan, why_nominal))
    if means := meaning(plan, why_nominal):
        console.print(f"[bold]Means[/bold]    {text_tables.plain(means)}", soft_wrap=True)


def show_warnings(console: Console, plan: "Plan", warned: tuple[str, ...] = ()) -> None:
    """Prints what power is held against, and all warnings: `warned` first, then the plan's own."""
    if plan.power_note:
        console.print(f"[bold]Power[/bold]    {text_tables.plain(plan.power_note)}.")
    for line in (*warned, *plan.warnings):
        console.print(f"[yellow]warning:[/yellow] {text_tables.plain(line)}")


def _show(console: Console, table: Table) -> None:
    rows = (tuple(cell if isinstance(cell, str) else cell.text for cell in row) for row in table.rows)
    text_tables.show_table(console, table.title, rows, table.headings, table.note)


def glance(plan: "Plan", why_nominal: str) -> list[tuple[str, str]]:
    """(heading, line) of what a plan is about, in a few lines."""
    network, schedule, budget = plan.network, plan.schedule, plan.budget
    degree = network.degree.astype(int)
    degrees = f"{degree.min()}" if degree.min() == degree.max() else f"{degree.min()} to {degree.max()}"
    gains = f"{network.gains.data.min():.3g} to {network.gains.data.max():.3g}"
    lines = [
        (
            "Network",
            f"{network.nodes} nodes, {network.links} links, degree {degrees}, gains {gains}; "
            f"R = {plan.mixing.normaliser}, theta = {plan.theta:.4g}",
        )
    ]
    if network.nodes <= _RATE_UP_TO and plan.mixing.normaliser > network.max_degree:
        rate = mixing_rate(plan.mixing.weights)
        bound = f"|A^t - pi| <= {rate.constant:.3g} x {rate.rate:.4g}^t" if rate.rate > 1e-12 else "A = pi in one epoch"
        radius = plan.exact_diffusion_radius
        settles = f"{'stable' if radius < 1 else 'UNSTABLE'} ({radius:.4g})"
        lines.append(("Mixing", f"{bound}; exact diffusion {settles}"))
        if schedule.rounds > 1:
            one, all_of_them = plan.disagreement_left
            words = f"one leaves {one:.3g} of a disagreement, those of an epoch {all_of_them:.3g}"
            lines.append(("Rounds", words))
    in_all = "in all, nominal" if why_nominal else "in all, against everybody"
    scope = in_all if budget.target == "certificate" else "per epoch and receiver (the paper's)"
    numbers = f"epsilon {at_most(budget.epsilon, 6)}, delta {at_most(budget.delta, 6)}"
    lines.append(("Budget", f"{numbers}, unit {budget.hidden}, {scope}"))
    if budget.noise_source == "secure":
        rounding = f"{plan.curve.rounding:.2g}"
        lines.append(("Noise", f"secure: discrete Gaussian on a grid, by its bound; rounding adds {rounding} to mu"))
    lines += _before(plan)
    lines += _sampling(plan)
    rounds = f" of {schedule.rounds}{' accelerated' * schedule.accelerated} rounds" if schedule.rounds > 1 else ""
    lines.append(
        (
            "Schedule",
            f"{schedule.epochs} epochs{rounds}, step {schedule.step:g} ({schedule.decay}), noise timing "
            f"{schedule.noise_timing}; objective {plan.rule.objective} = {plan.objective_value:.6g}",
        )
    )
    return lines


def _before(plan: "Plan") -> list[tuple[str, str]]:
    """What is released before training, and what it leaves."""
    released = plan.budget.first_releases
    if not released:
        return []
    shares = " and ".join(f"{name} {getattr(plan.budget, name):g} (mu {mu:.4g})" for name, mu in released.items())
    return [("Before", f"released once by every node, as shares of mu^2: {shares}")]


def _sampling(plan: "Plan") -> list[tuple[str, str]]:
    """What coins are worth."""
    sampling, noise = plan.sampling, plan.noise_over_full_batches
    if sampling is None or noise is None:
        return []
    return [
        (
            "Sampling",
            f"every record joins by a secret coin: {_range(100 * np.array(sampling.rates), '.3g')} % of a node's "
            f"records are read, and the averaged gradient has {_range(noise, '.3f')} times the noise of full batches "
            "at the same epsilon and delta",
        )
    ]


def _range(values: FloatArray, form: str) -> str:
    """The least and the largest, or one where people see no difference."""
    least, largest = f"{values.min():{form}}", f"{values.max():{form}}"
    return least if least == largest else f"{least} to {largest}"


def nodes_table(plan: "Plan", why_nominal: str) -> Table:
    """Split, noise and cost of every node; beyond 20, of those that pay most."""
    certified, word = plan.certificate, "nominal" if why_nominal else "certified"
    order = np.argsort(-certified.epsilon, kind="stable")[:NODES_SHOWN]
    title = "Nodes" if plan.network.nodes <= NODES_SHOWN else f"The {NODES_SHOWN} nodes that pay most"
    headings = ("node", "degree", "power", "alpha", "beta", "pi", "noise s_1", "mu", f"epsilon {word}")
    first_noise = np.sqrt(plan.beta / plan.alpha) * plan.noise_to_step * plan.schedule.noise_schedule[0]
    numbers = (plan.network.power, plan.alpha, plan.beta, plan.perron, first_noise)
    costs = (certified.mu, certified.epsilon)
    rows = tuple(
        (
            plan.network.names[node],
            f"{plan.network.degree[node]:.0f}",
            *(f"{values[node]:.4g}" for values in numbers),
            *(at_most(values[node]) for values in costs),
        )
        for node in sorted(order.tolist())
    )
    return Table(title, headings, rows, _node_caption(plan, why_nominal))


def _node_caption(plan: "Plan", why_nominal: str) -> str:
    noise = "noise s_1: std in what a node says in epoch 1, against its model."
    if why_nominal:
        return f"{noise} Nominal: by the certificate's formula, and no promise: {why_nominal}."
    where = ", gradients at the public mixed point" if plan.budget.unit == "record" else ""
    return f"{noise} Certified: whole run, against everybody, unit {plan.budget.hidden}{where}."


def matrix_table(plan: "Plan") -> Table:
    """The paper's epsilon of every receiver about every sender; beyond 12 nodes only a line about it, as the note."""
    epsilon, binding = plan.epsilon_per_epoch, plan.binding
    title = "Epsilon per epoch, the paper's view"
    if plan.network.nodes > _MATRIX_UP_TO:
        least, most = epsilon.data.min(), epsilon.data.max()
        links = f"{epsilon.nnz} links, {binding.data.sum():.0f} of them binding"
        return Table(title, (), (), f"{at_most(least)} to {at_most(most)} over {links}")
    rows = tuple(
        (
            plan.network.names[receiver],
            *(
                "-" if not value else at_most_fixed(value, 4) + " *"[int(mark)]
                for value, mark in zip(*row, strict=True)
            ),
        )
        for receiver, row in enumerate(zip(epsilon.toarray(), binding.toarray(), strict=True))
    )
    headings = ("receiver", *plan.network.names)
    note = "* binds" if binding.data.any() else ""
    return Table(f"{title} (row: who learns, column: about whom)", headings, rows, note)


def costs_table(plan: "Plan", why_nominal: str) -> Table:
    """What the whole run costs: as the paper claims, and as it is."""
    claim, certified, worst = plan.paper_claim, plan.certificate, int(np.argmax(plan.certificate.epsilon))
    word, what, same_what = (
        ("nominal", f"nothing is promised: {why_nominal}", "the same at the paper's delta")
        if why_nominal
        else ("certified", "holds against everybody", "the same certificate at the paper's delta")
    )
    rows = [
        (
            "paper claims",
            at_most(claim.epsilon),
            at_most(claim.delta),
            "the Corollary, T times one epoch; not a guarantee",
        ),
        (
            f"{word}, worst node {plan.network.names[worst]}",
            at_most(certified.epsilon.max()),
            at_most(certified.delta),
            what,
        ),
    ]
    if claim.delta < 1:
        same = float(plan.curve.epsilon(certified.mu.max(), claim.delta))
        rows.append(("", at_most(same), at_most(claim.delta), same_what))
    return Table(f"What {plan.schedule.epochs} epochs cost", ("", "epsilon", "delta", "what it is"), tuple(rows))


def meaning(plan: "Plan", why_nominal: str) -> str:
    """What the certified number comes to for whoever guesses, in words; empty where nothing is certified."""
    if why_nominal:
        return ""
    certified = plan.certificate
    chances = best_guess(certified.mu, plan.curve, certified.delta)
    return in_words(float(chances.max()), certified.unit)
