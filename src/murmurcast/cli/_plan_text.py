"""A plan as tables, for people."""

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from murmurcast.cli import _tables
from murmurcast.cli._coalitions_text import show_collusion
from murmurcast.cli._tables import show_table
from murmurcast.network.weights import mixing_rate
from murmurcast.privacy import gaussian
from murmurcast.privacy.best_guess import best_guess, in_words
from murmurcast.privacy.rounding import at_most, at_most_fixed

if TYPE_CHECKING:
    from murmurcast.planning.plan import Plan
    from murmurcast.privacy.coalitions import Collusion
    from murmurcast.privacy.linear import Linear

_NODES_SHOWN, _MATRIX_UP_TO, _RATE_UP_TO = 20, 12, 300


def show(
    plan: "Plan",
    linears: "dict[tuple[int, ...], Linear]",
    collusion: "Collusion | None",
    why_nominal: str,
    warned: tuple[str, ...],
    assumed: tuple[str, ...] = (),
) -> None:
    """Prints the whole plan and what is assumed of the data; `why_nominal` says why its number is no certificate."""
    console = _tables.console()
    console.print(_glance(plan, why_nominal))
    _show_nodes(console, plan, why_nominal)
    _show_matrix(console, plan)
    _show_costs(console, plan, why_nominal)
    for heading, line in _tables.headed("Assumed", assumed):
        console.print(f"[bold]{heading:<8}[/bold] {_tables.plain(line)}", soft_wrap=True)
    if collusion is not None:
        show_collusion(console, plan, collusion, "nominal" if why_nominal else "certified")
    for members, found in linears.items():
        _show_linear(console, plan, members, found)
    if plan.power_note:
        console.print(f"[bold]Power[/bold]    {_tables.plain(plan.power_note)}.")
    for line in (*warned, *plan.warnings):
        console.print(f"[yellow]warning:[/yellow] {_tables.plain(line)}")


def _glance(plan: "Plan", why_nominal: str) -> str:
    network, schedule, budget = plan.network, plan.schedule, plan.budget
    degree = network.degree.astype(int)
    degrees = f"{degree.min()}" if degree.min() == degree.max() else f"{degree.min()} to {degree.max()}"
    gains = f"{network.gains.data.min():.3g} to {network.gains.data.max():.3g}"
    lines = [
        f"[bold]Network[/bold]  {network.nodes} nodes, {network.links} links, degree {degrees}, gains {gains}; "
        f"R = {plan.mixing.normaliser}, theta = {plan.theta:.4g}"
    ]
    if network.nodes <= _RATE_UP_TO and plan.mixing.normaliser > network.max_degree:
        rate = mixing_rate(plan.mixing.weights)
        bound = f"|A^t - pi| <= {rate.constant:.3g} x {rate.rate:.4g}^t" if rate.rate > 1e-12 else "A = pi in one epoch"
        radius = plan.exact_diffusion_radius
        settles = f"{'stable' if radius < 1 else 'UNSTABLE'} ({radius:.4g})"
        lines.append(f"[bold]Mixing[/bold]   {bound}; exact diffusion {settles}")
        if schedule.rounds > 1:
            one, all_of_them = plan.disagreement_left
            words = f"one leaves {one:.3g} of a disagreement, those of an epoch {all_of_them:.3g}"
            lines.append(f"[bold]Rounds[/bold]   {words}")
    in_all = "in all, nominal" if why_nominal else "in all, against everybody"
    scope = in_all if budget.target == "certificate" else "per epoch and receiver (the paper's)"
    numbers = f"epsilon {at_most(budget.epsilon, 6)}, delta {at_most(budget.delta, 6)}"
    lines.append(f"[bold]Budget[/bold]   {numbers}, unit {budget.hidden}, {scope}")
    if budget.noise_source == "secure":
        lines.append(
            f"[bold]Noise[/bold]    secure: discrete Gaussian on a grid, by its bound; rounding adds "
            f"{plan.curve.rounding:.2g} to mu"
        )
    lines += _before(plan)
    lines += _sampling(plan)
    rounds = f" of {schedule.rounds}{' accelerated' * schedule.accelerated} rounds" if schedule.rounds > 1 else ""
    lines.append(
        f"[bold]Schedule[/bold] {schedule.epochs} epochs{rounds}, step {schedule.step:g} ({schedule.decay}), "
        f"noise timing {schedule.noise_timing}; objective {plan.rule.objective} = {plan.objective_value:.6g}"
    )
    return "\n".join(lines)


def _before(plan: "Plan") -> list[str]:
    """What is released before training, and what it leaves."""
    released = plan.budget.first_releases
    if not released:
        return []
    shares = " and ".join(f"{name} {getattr(plan.budget, name):g} (mu {mu:.4g})" for name, mu in released.items())
    return [f"[bold]Before[/bold]   released once by every node, as shares of mu^2: {shares}"]


def _sampling(plan: "Plan") -> list[str]:
    """What coins are worth."""
    sampling, noise = plan.sampling, plan.noise_over_full_batches
    if sampling is None or noise is None:
        return []
    return [
        f"[bold]Sampling[/bold] every record joins an epoch by a secret coin: {100 * min(sampling.rates):.3g} to "
        f"{100 * max(sampling.rates):.3g} % of a node's records are read, and the averaged gradient has "
        f"{noise.min():.3f} to {noise.max():.3f} times the noise of full batches at the same epsilon and delta"
    ]


def _show_nodes(console: Console, plan: "Plan", why_nominal: str) -> None:
    certified, word = plan.certificate, "nominal" if why_nominal else "certified"
    order = np.argsort(-certified.epsilon, kind="stable")[:_NODES_SHOWN]
    title = "Nodes" if plan.network.nodes <= _NODES_SHOWN else f"The {_NODES_SHOWN} nodes that pay most"
    headings = ("node", "degree", "power", "alpha", "beta", "pi", "noise s_1", "mu", f"epsilon {word}")
    first_noise = np.sqrt(plan.beta / plan.alpha) * plan.noise_to_step * plan.schedule.noise_schedule[0]
    numbers = (plan.network.power, plan.alpha, plan.beta, plan.perron, first_noise)
    costs = (certified.mu, certified.epsilon)
    rows = (
        (
            plan.network.names[node],
            f"{plan.network.degree[node]:.0f}",
            *(f"{values[node]:.4g}" for values in numbers),
            *(at_most(values[node]) for values in costs),
        )
        for node in sorted(order.tolist())
    )
    show_table(console, title, rows, headings, _node_caption(plan, why_nominal))


def _node_caption(plan: "Plan", why_nominal: str) -> str:
    noise = "noise s_1: std in what a node says in epoch 1, against its model."
    if why_nominal:
        return f"{noise} Nominal: by the certificate's formula, and no promise: {why_nominal}."
    where = ", gradients at the public mixed point" if plan.budget.unit == "record" else ""
    return f"{noise} Certified: whole run, against everybody, unit {plan.budget.hidden}{where}."


def _show_matrix(console: Console, plan: "Plan") -> None:
    epsilon, binding = plan.epsilon_per_epoch, plan.binding
    title = "Epsilon per epoch, the paper's view"
    if plan.network.nodes > _MATRIX_UP_TO:
        least, most = epsilon.data.min(), epsilon.data.max()
        console.print(f"\n[bold]{title}[/bold]")
        console.print(
            f"{at_most(least)} to {at_most(most)} over {epsilon.nnz} links, {binding.data.sum():.0f} of them binding"
        )
        console.print("the whole matrix: --json", style="dim")
        return
    rows = (
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
    show_table(console, f"{title} (row: who learns, column: about whom)", rows, headings, note)


def _show_costs(console: Console, plan: "Plan", why_nominal: str) -> None:
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
    show_table(console, f"What {plan.schedule.epochs} epochs cost", rows, ("", "epsilon", "delta", "what it is"))
    if not why_nominal:
        chance = float(best_guess(certified.mu[worst], plan.curve, certified.delta))
        console.print(f"[bold]Means[/bold]    {_tables.plain(in_words(chance, certified.unit))}", soft_wrap=True)


def _show_linear(console: Console, plan: "Plan", members: tuple[int, ...], found: "Linear") -> None:
    names = [plan.network.names[member] for member in members]
    who = f"observer {names[0]}" if len(names) == 1 else f"observers {', '.join(names)} together"
    note = "mu if gradients did not react to hidden states: a lower bound, real training can leak more"
    targets = [node for node in range(plan.network.nodes) if node not in members]
    targets = sorted(sorted(targets, key=lambda node: -found.mu_worst_upper[node])[:_NODES_SHOWN])

    def row(node: int) -> tuple[str, ...]:
        low, high = found.mu_worst_lower[node], found.mu_worst_upper[node]
        worst = f"{high:.4g}" if high - low <= 1e-4 * high else f"{low:.4g} to {high:.4g}"
        leaked = float(gaussian.epsilon(high, plan.budget.delta))
        return plan.network.names[node], f"{found.mu_common[node]:.4g}", worst, f"{leaked:.4g}"

    headings = ("target", "mu common", "mu worst", "epsilon worst")
    show_table(console, f"Linear diagnostic, {who} (not a guarantee)", map(row, targets), headings, note)
