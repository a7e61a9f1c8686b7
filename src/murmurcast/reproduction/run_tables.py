"""The runs of all settings in tables and sentences; every word that judges is computed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from murmurcast._check import FloatArray
from murmurcast.privacy.rounding import at_most
from murmurcast.reproduction.document import Finding, Table
from murmurcast.reproduction.settings import (
    CENTRAL,
    CERTIFIED_BUDGETS,
    GROUP_NAMES,
    NOISELESS,
    OURS,
    PAPER_BUDGETS,
    PROMISED,
    RIVAL,
    Group,
)
from murmurcast.reproduction.training import Run
from murmurcast.runs.compare import compare

TARGETS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
_CHOSEN = "with a schedule chosen on public data"
FROM_EPOCH = 20  # the paper's curves are compared from here on


class AccuracyCurve(NamedTuple):
    """Accuracy against epochs.

    Attributes:
        epochs: [evaluations].
        uses: [evaluations] of the channel.
        by_node: [evaluations, nodes] mean over seeds.
        mean: [evaluations] over seeds and nodes.
        spread: [evaluations] standard deviation over seeds of the mean over nodes; 0 with one seed.
    """

    epochs: FloatArray
    uses: FloatArray
    by_node: FloatArray
    mean: FloatArray
    spread: FloatArray


def metric_of(group: Group) -> str:
    """The paper's curves are of own models; a promise covers only what is published."""
    return "published_accuracy" if group in PROMISED else "own_accuracy"


def accuracy_curve(run: Run) -> AccuracyCurve:
    """Of the figure that belongs to the run's setting."""
    metrics = run.result.metrics
    values = np.asarray(metrics[metric_of(run.setting.group)], np.float64)  # [seed, epoch, node]
    by_seed = values.mean(axis=2)
    spread = by_seed.std(axis=0, ddof=1) if len(by_seed) > 1 else np.zeros(by_seed.shape[1])
    epochs, uses = (np.asarray(metrics[name], np.float64) for name in ("epoch", "channel_uses"))
    return AccuracyCurve(epochs, uses, values.mean(axis=0), by_seed.mean(axis=0), spread)


def find(runs: Sequence[Run], group: Group, algorithm: str, epsilon: float) -> Run:
    """The run of a setting."""
    wanted = (group, algorithm, epsilon)
    return next(run for run in runs if (run.setting.group, run.setting.algorithm, run.setting.epsilon) == wanted)


def tables(runs: Sequence[Run]) -> list[Table]:
    """Where all runs ended, how soon they reached given accuracies, and how loudly they sent."""
    return [summary(runs), _targets(runs), _power(runs)]


def summary(runs: Sequence[Run]) -> Table:
    """One line per run."""
    rows = []
    for run in runs:
        [row] = compare(run.result, metric=metric_of(run.setting.group)).rows
        spread = "-" if row.spread is None else f"{row.spread:.4f}"
        rows.append(
            (
                GROUP_NAMES[run.setting.group],
                run.setting.label,
                f"{row.final:.4f}",
                spread,
                f"{row.worst:.4f} ({row.worst_node})",
                _promised(run),
            )
        )
    note = (
        "Test accuracy at the end: of own models as published and with matched steps (the paper's curves), of "
        f"published models where certified, {_CHOSEN}. Mean over nodes and seeds; spread: standard deviation over "
        "seeds."
    )
    headings = ("setting", "run", "accuracy", "spread", "worst (node)", "promised in all")
    return Table("accuracy", "Accuracy in all settings", headings, tuple(rows), note)


def _promised(run: Run) -> str:
    privacy = run.result.info["privacy"]
    if privacy["epsilon"] is None:
        return "nothing"
    return f"epsilon {at_most(privacy['epsilon'], 3)}, {privacy['caveat'] or 'against everybody'}"


def _targets(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        metric = metric_of(run.setting.group)
        targets = [compare(run.result, metric=metric, target=target).rows[0] for target in TARGETS]
        reached = ("never" if row.epochs is None else f"{row.epochs} / {row.channel_uses}" for row in targets)
        rows.append((GROUP_NAMES[run.setting.group], run.setting.label, *reached))
    headings = ("setting", "run", *(f"to {target:g}" for target in TARGETS))
    return Table(
        "targets", "Epochs / channel uses to reach an accuracy", headings, tuple(rows), "At the evaluated epochs."
    )


def _power(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        if run.setting.algorithm == CENTRAL:
            continue  # its nodes talk to a server, not over the air
        last, loudest = run.result.final("sent_power"), np.asarray(run.result.metrics["loudest"])
        rows.append(
            (
                GROUP_NAMES[run.setting.group],
                run.setting.label,
                f"{loudest.max():.3g}",
                f"{last.min():.3g}",
                f"{last.max():.3g}",
            )
        )
    note = (
        "Energy of a whole message over the power budget, as measured in the runs; the message counts as one channel "
        "use. Above 1 a public factor would bring it within the budget."
    )
    headings = ("setting", "run", "loudest epoch", "last epoch, least", "last epoch, most")
    return Table("sent-power", "Sent power over budget", headings, tuple(rows), note)


def findings(runs: Sequence[Run]) -> list[Finding]:
    """What held and what did not, setting by setting."""
    return [
        *(above_the_rival(runs, budget) for budget in PAPER_BUDGETS),
        *(fewer_uses(runs, budget) for budget in PAPER_BUDGETS),
        *(matched(runs, budget) for budget in PAPER_BUDGETS),
        *(certified(runs, budget) for budget in CERTIFIED_BUDGETS),
        power(runs),
    ]


def above_the_rival(runs: Sequence[Run], budget: float) -> Finding:
    """The paper's main claim, in the published setting."""
    ours, rival = (accuracy_curve(find(runs, "published", name, budget)) for name in (OURS, RIVAL))
    late = ours.epochs >= min(FROM_EPOCH, ours.epochs[-1])
    gap = ours.mean - rival.mean
    above = bool((gap[late] > 0).all())
    words = "at every evaluated epoch" if above else f"at {(gap[late] > 0).sum()} of {late.sum()} evaluated epochs"
    least = int(np.argmin(np.where(late, gap, np.inf)))
    early = ", ".join(f"{epoch:g}" for epoch in ours.epochs[~late & (gap <= 0)])
    before = f"Before that it does not at epoch {early}. " if early else ""
    return Finding(
        above,
        f"As published, budget {budget:g}: from epoch {ours.epochs[late][0]:g} to {ours.epochs[-1]:g} Algorithm 1's "
        f"mean accuracy lies above mPED2FL's {words}; the gap is least at epoch {ours.epochs[least]:g} "
        f"({gap[least]:+.3f}). {before}At the end {_ended(ours)} against {_ended(rival)} of mPED2FL.",
    )


def fewer_uses(runs: Sequence[Run], budget: float) -> Finding:
    """What the rival has reached when it has used the channel as often as Algorithm 1 did in all."""
    ours, rival = (accuracy_curve(find(runs, "published", name, budget)) for name in (OURS, RIVAL))
    uses = ours.uses[-1]
    then = float(np.interp(uses, rival.uses, rival.mean))
    return Finding(
        bool(ours.mean[-1] > then),
        f"As published, budget {budget:g}: after {uses:g} channel uses Algorithm 1 stands at {ours.mean[-1]:.3f}, "
        f"mPED2FL at {then:.3f}; it needs {rival.uses[-1] / rival.epochs[-1]:g} uses an epoch against "
        f"{ours.uses[-1] / ours.epochs[-1]:g}.",
    )


def matched(runs: Sequence[Run], budget: float) -> Finding:
    """Whether the lead survives when both take the same effective step."""
    ours, rival = (
        accuracy_curve(find(runs, "published", OURS, budget)),
        accuracy_curve(find(runs, "matched", RIVAL, budget)),
    )
    gap = float(ours.mean[-1] - rival.mean[-1])
    # Two seeds' spreads beside each other: less than twice that is no lead. One seed has no spread, and tells of none.
    spread = float(np.hypot(ours.spread[-1], rival.spread[-1]))
    clear = spread > 0 and abs(gap) > 2 * spread
    leader = "Algorithm 1 leads" if gap > 0 else "mPED2FL leads"
    longer = find(runs, "matched", RIVAL, budget).setting.experiment.algorithm.options["step_factor"]
    return Finding(
        gap > 0 and clear,
        f"Matched steps, budget {budget:g}: {leader if clear else 'neither leads clearly'} after {ours.epochs[-1]:g} "
        f"epochs; Algorithm 1 ends at {_ended(ours)}, mPED2FL at {_ended(rival)}. Dividing by z makes Algorithm 1's "
        f"steps about {longer:g} times longer; here mPED2FL takes them too.",
    )


def certified(runs: Sequence[Run], budget: float) -> Finding:
    """What the promise costs in accuracy, against runs that promise less."""
    ours, central, free = (accuracy_curve(find(runs, "certified", name, budget)) for name in (OURS, CENTRAL, NOISELESS))
    best = max(accuracy_curve(find(runs, "certified", NOISELESS, other)).mean[-1] for other in CERTIFIED_BUDGETS)
    return Finding(
        None,
        f"Certified, epsilon {budget:g} in all, {_CHOSEN}: the published models reach {_ended(ours)}. The same steps "
        f"without noise reach {free.mean[-1]:.3f}, {free.mean[-1] - ours.mean[-1]:.3f} more; no run without noise "
        f"reaches more than {best:.3f}. A trusted server with the same budget and a step of its own reaches "
        f"{_ended(central)}.",
    )


def power(runs: Sequence[Run]) -> Finding:
    """Whether the signals stayed within the power budget."""
    on_air = [run for run in runs if run.setting.algorithm != CENTRAL]
    loudest = {
        GROUP_NAMES[group].lower(): max(
            float(run.result.metrics["loudest"].max()) for run in on_air if run.setting.group == group
        )
        for group in GROUP_NAMES
    }
    within = max(loudest.values()) <= 1
    peaks = ", ".join(f"{name} {most:.3g}" for name, most in loudest.items())
    return Finding(
        within,
        f"The signals {'stay within' if within else 'exceed'} the power budget, where the energy of a whole message is "
        f"held against it; at most they take of it: {peaks} times. Signals are simulated as written: one public factor "
        "on all of them changes neither models nor privacy, and makes them weaker over receivers' noise.",
    )


def _ended(curve: AccuracyCurve) -> str:
    return f"{curve.mean[-1]:.3f}" + (f" (spread {curve.spread[-1]:.3f})" if curve.spread.any() else "")
