"""What a notebook shows of an object, in the blocks that pages are made of."""

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast.audits.verdict import Audit, in_words
from murmurcast.certificates.certify import Certified
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.privacy.certificate import Certificate
from murmurcast.privacy.rounding import at_most
from murmurcast.reports import audits, plan_text, plots, runs, sweep_table
from murmurcast.reports import sweep as sweep_page
from murmurcast.reports.drawn import as_png, pixels
from murmurcast.reports.page import Block, Facts, Outcome, Picture, Row, Table, Text, Verdict, promised
from murmurcast.runs.compare import Comparison
from murmurcast.runs.radio_use import uses_in_words
from murmurcast.runs.ranking import NOT_PAID
from murmurcast.runs.result import Result
from murmurcast.runs.sweep import Sweep

_DRAWN_UP_TO = 300  # nodes: beyond, a drawing takes long and shows little
_LISTED_UP_TO = 20  # nodes of a table, points of a sweep
_DRAWN_RUNS_UP_TO = 24


class Shown(NamedTuple):
    """What is shown: a line above, and blocks in order, none of them a chart."""

    title: str
    blocks: tuple[Block, ...]


@singledispatch
def shown(thing: object) -> Shown:
    """What a notebook shows of an object of this package; any other is an error."""
    raise Error(
        f"{type(thing).__name__} has no view of its own",
        hint="show a network, a plan, a run, a comparison, a certificate, an audit or a sweep",
    )


@shown.register
def _(network: Network) -> Shown:
    least, most = network.gains.data.min(), network.gains.data.max()
    facts = [
        ("Nodes", f"{network.nodes}{f', such as {network.names[0]}' if network.is_named else ''}"),
        ("Links", f"{network.links}, {'all two-way' if network.one_way_link is None else 'some of them one-way'}"),
        ("Degree", _range(network.degree, "mean")),
        ("Gains", f"{least:.3g} to {most:.3g}"),
        ("Power", _range(network.power)),
    ]
    title = f"Network of {network.nodes} nodes"
    if network.nodes > _DRAWN_UP_TO:
        return Shown(title, (_facts(facts), Text((f"Not drawn: beyond {_DRAWN_UP_TO} nodes little could be seen.",))))
    picture = _picture(plots.network_figure(network), "Arrows are links, as wide as their gains.", title)
    return Shown(title, (_facts(facts), picture))


@shown.register
def _(plan: Plan) -> Shown:
    nominal = plan.why_nominal
    meaning = plan_text.meaning(plan, nominal)
    blocks: list[Block] = [Verdict(_cost(plan, nominal, meaning), "warning" if nominal else "for information")]
    blocks += [Verdict(f"{_sentence(line)}.", "warning") for line in plan.warnings]
    blocks.append(_facts(plan_text.glance(plan, nominal)))
    blocks += [plan_text.costs_table(plan, nominal), plan_text.nodes_table(plan, nominal)]
    if plan.network.nodes <= _DRAWN_UP_TO:
        caption = (
            "Left the network with its power split; right the paper's epsilon of one epoch seen alone, a claim and not "
            "a guarantee."
        )
        blocks.append(_picture(plots.plan_figure(plan), caption, "network, power split and epsilon per epoch"))
    if plan.power_note:
        blocks.append(Text((f"Power: {plan.power_note}.",)))
    return Shown(f"Plan for {plan.network.nodes} nodes and {plan.schedule.epochs} epochs", tuple(blocks))


@shown.register
def _(run: Result) -> Shown:
    """As it is: whoever shows it to people strikes out first what its account does not bear."""
    kind = runs.shared_kinds([run])[0]
    facts = [
        ("Seeds", ", ".join(map(str, run.info["seeds"]))),
        ("Channel", uses_in_words(run.info, float(run.final("channel_uses")))),
        ("Time", f"{run.info['seconds']['all']:.3g} s"),
        *([] if run.folder is None else [("Kept in", str(run.folder))]),
    ]
    curves = plots.curves_figure([run], f"published_{kind}", ("epoch",))
    caption = f"Published {kind} against epochs: the mean over nodes, and a band of one standard deviation over seeds."
    blocks = (*runs.summary([run], [run.name]).blocks, _picture(curves, caption, caption), _facts(facts))
    return Shown(f"Run {run.name}: {runs.in_short(run)}", blocks)


@shown.register
def _(comparison: Comparison) -> Shown:
    title = "One run" if len(comparison.rows) == 1 else f"{len(comparison.rows)} runs side by side"
    return Shown(title, (runs.comparison_table(comparison, [row.name for row in comparison.rows]),))


@shown.register
def _(certificate: Certificate) -> Shown:
    worst = int(np.argmax(certificate.epsilon))
    numbers = (
        f"epsilon {at_most(certificate.epsilon[worst])} at delta {at_most(certificate.delta)}, unit {certificate.unit},"
    )
    sentence = (
        f"{numbers} is the most that any node pays for the whole run, against everybody. It is promised only where "
        "gradients are clipped, and by methods that give it."
    )
    columns = (certificate.mu, certificate.epsilon)
    table = _of_nodes("What every node pays", ("node", "mu", "epsilon"), columns, certificate.epsilon)
    return Shown("Certificate", (Verdict(sentence), table))


@shown.register
def _(certified: Certified) -> Shown:
    outcomes: dict[str, Outcome] = {"kept": "held", "broken": "did not hold"}
    facts = [("Unit", certified.hidden), ("Against", certified.adversary), ("Basis", certified.basis)]
    facts += [("Assumed", line) for line in (*certified.assumptions, *certified.not_compared)]
    facts += [("Chosen", f"settings: {certified.settings_chosen}"), ("Note", certified.note)]
    sentence = f"The promise is {certified.verdict}." if certified.verdict in outcomes else "Nothing is promised."
    if certified.verdict == "kept":
        sentence += (
            f" epsilon {at_most(certified.epsilon.max())} at delta {at_most(certified.delta)} for the node that pays "
            "most."
        )
    blocks: list[Block] = [Verdict(sentence, outcomes.get(certified.verdict, "for information"))]
    blocks += [Verdict(f"{_sentence(line)}.", "did not hold") for line in certified.problems]
    blocks += [Verdict(f"{_sentence(line)}.", "warning") for line in certified.warnings]
    if certified.verdict in outcomes:
        headings = ("node", "mu promised", "mu recomputed", f"epsilon at delta {at_most(certified.delta)}")
        columns = (certified.promised_mu, certified.mu, certified.epsilon)
        blocks.append(_of_nodes("What it cost", headings, columns, certified.epsilon))
    return Shown("What it cost, from the ledger", (*blocks, _facts(facts)))


@shown.register
def _(audit: Audit) -> Shown:
    return Shown(f"Audit of {in_words(audit)}", audits.verdict_section(audit, audit.warnings).blocks)


@shown.register
def _(sweep: Sweep) -> Shown:
    title = f"Sweep {sweep.name}"
    failed = [Verdict(f"{one.name} failed: {one.problem}.", "warning") for one in sweep.failures]
    if not sweep.runs:
        return Shown(title, (*failed, Text(("No point is done yet.",))))
    blocks: list[Block] = [Text((sweep_page.in_short(sweep),)), *failed]
    if len(sweep.runs) > 1:
        blocks.append(Verdict(f"Whoever chooses by this: {NOT_PAID}.", "warning"))
    tables = [table._replace(rows=table.rows[:_LISTED_UP_TO]) for table in sweep_page.tables(sweep)]
    if (more := len(sweep.runs) - _LISTED_UP_TO) > 0:
        words = f"{more} more points are left out here; all of them: to_frame(), or mc.report."
        tables = [table._replace(note=f"{words} {table.note}") for table in tables]
    return Shown(title, (*blocks, *_drawn(sweep), *tables))


def _drawn(sweep: Sweep) -> list[Block]:
    metric = sweep_table.shown_metric(sweep, None)
    if len(sweep.runs) < 2 or len(sweep.runs) > _DRAWN_RUNS_UP_TO:
        return []
    caption = f"{_sentence(metric.replace('_', ' '))} at the last epoch; bands are one standard deviation over seeds."
    try:
        return [_picture(plots.sweep_figure(sweep), caption, caption)]
    except Error as problem:  # nothing to draw along: the tables say it all
        return [Text((f"Not drawn: {problem}.",))]


def _cost(plan: Plan, nominal: str, meaning: str) -> str:
    numbers = f"epsilon {at_most(plan.certificate.epsilon.max())} at delta {at_most(plan.budget.delta)}"
    if nominal:
        return f"Nominal {numbers}, and no promise: {nominal}."
    return f"A run costs {numbers}, unit {plan.budget.hidden}, against everybody. {_sentence(meaning)}."


def _of_nodes(title: str, headings: tuple[str, ...], columns: tuple[FloatArray, ...], by: FloatArray) -> Table:
    """A row for every node; of many, for those that pay most."""
    order = sorted(np.argsort(-by, kind="stable")[:_LISTED_UP_TO].tolist())
    rows: list[Row] = [(str(node), *(promised(float(values[node])) for values in columns)) for node in order]
    left_out = len(by) - len(order)
    note = f"The {left_out} nodes that pay least are left out here." if left_out else ""
    return Table(title, headings, tuple(rows), note)


def _range(values: FloatArray, mean: str = "") -> str:
    least, most = float(values.min()), float(values.max())
    if least == most:
        return f"{least:.4g}"
    return f"{least:.4g} to {most:.4g}{f', {mean} {float(values.mean()):.3g}' if mean else ''}"


def _facts(lines: Sequence[tuple[str, str]]) -> Facts:
    """Lines under their headings; what has the same heading stands below it."""
    grouped: dict[str, tuple[str, ...]] = {}
    for heading, line in lines:
        grouped[heading] = (*grouped.get(heading, ()), line)
    return Facts(tuple(grouped.items()))


def _picture(figure: Figure, caption: str, alt: str) -> Picture:
    return Picture(as_png(figure), caption, alt, pixels(figure)[0])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
