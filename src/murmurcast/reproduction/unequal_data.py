"""Beyond the paper: what unequal data over a sparse network does to Algorithm 1, and its multicast without that bias.

Ten nodes that each hold about one digit, on a ring with four chords. Algorithm 1 and exact diffusion on the same
multicast have the same certified budget, the same number of channel uses, and steps that were chosen alike: on a part
of the training images, by `murmurcast rank digits-sparse.toml`.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from murmurcast._check import FloatArray
from murmurcast._progress import Stage, quiet
from murmurcast.experiments.build import Experiment
from murmurcast.reproduction import style
from murmurcast.reproduction.document import Curve, Finding, Table
from murmurcast.reproduction.settings import DIFFUSION, OURS, from_example
from murmurcast.runs.result import Result
from murmurcast.runs.run import RunOptions, run

SEEDS = 8
_EVERY = 5  # epochs
_NAMES = {OURS: "Alg. 1", DIFFUSION: "exact diff."}
_STEPS = {  # (epsilon, uses): step and its decay
    OURS: {
        (1.0, 40): (0.0562, "constant"),
        (1.0, 200): (0.0178, "constant"),
        (3.0, 40): (0.3162, "sqrt"),
        (3.0, 200): (0.0316, "constant"),
    },
    DIFFUSION: {
        (1.0, 40): (0.0562, "constant"),
        (1.0, 200): (0.01, "constant"),
        (3.0, 40): (0.1779, "constant"),
        (3.0, 200): (0.0562, "constant"),
    },
}
BUDGETS = tuple(_STEPS[OURS])


class Duel(NamedTuple):
    """Both at one budget.

    Attributes:
        epsilon: Certified, of the whole run.
        uses: Of the channel, in all.
        ours: Algorithm 1.
        diffusion: Exact diffusion on the same multicast.
    """

    epsilon: float
    uses: int
    ours: Result
    diffusion: Result

    @property
    def lead(self) -> tuple[float, float]:
        """How far exact diffusion is ahead in accuracy, and the standard error of that over seeds."""
        gaps = _by_seed(self.diffusion)[:, -1] - _by_seed(self.ours)[:, -1]
        return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps)))


def run_unequal_data(on_stage: Stage = quiet) -> tuple[Duel, ...]:
    """All budgets."""
    duels = []
    for epsilon, uses in BUDGETS:
        on_stage(f"unequal data: epsilon {epsilon:g}, {uses} channel uses")
        duels.append(Duel(epsilon, uses, *(_trained(name, epsilon, uses) for name in (OURS, DIFFUSION))))
    return tuple(duels)


def experiment(name: str, epsilon: float, uses: int) -> Experiment:
    """One run, as a file that anybody can run."""
    step, decay = _STEPS[name][epsilon, uses]
    changed = {
        "algorithm.name": name,
        "privacy.epsilon": str(epsilon),
        "schedule.epochs": str(uses),
        "schedule.step": str(step),
        "schedule.decay": decay,
    }
    return from_example("digits-sparse", changed)


def _trained(name: str, epsilon: float, uses: int) -> Result:
    problem, algorithm = experiment(name, epsilon, uses).build()
    return run(algorithm, problem, seeds=range(SEEDS), options=RunOptions(evaluate_every=_EVERY))


def _by_seed(result: Result) -> FloatArray:
    """[seeds, evaluations] mean accuracy of what nodes publish."""
    return np.asarray(np.asarray(result.metrics["published_accuracy"]).mean(axis=2), np.float64)


def findings(duels: tuple[Duel, ...]) -> list[Finding]:
    """Who is ahead, budget by budget."""
    lines = []
    for duel in duels:
        gap, error = duel.lead
        ours, diffusion = (float(_by_seed(result)[:, -1].mean()) for result in (duel.ours, duel.diffusion))
        clear = abs(gap) > 2 * error
        words = "neither leads clearly" if not clear else "exact diffusion leads" if gap > 0 else "Algorithm 1 leads"
        lines.append(
            Finding(
                None,
                f"Ten nodes with a digit each on a sparse network, epsilon {duel.epsilon:g} in all against everybody, "
                f"{duel.uses} channel uses: Algorithm 1 reaches {ours:.3f}, exact diffusion on the same multicast "
                f"{diffusion:.3f}; {words} ({gap:+.3f}, standard error {error:.3f}).",
            )
        )
    return lines


def table(duels: tuple[Duel, ...]) -> Table:
    """One line per budget."""
    rows = []
    for duel in duels:
        gap, error = duel.lead
        ends = (_by_seed(result)[:, -1] for result in (duel.ours, duel.diffusion))
        reached = (f"{end.mean():.3f} ({end.std(ddof=1):.3f})" for end in ends)
        rows.append((f"{duel.epsilon:g}", str(duel.uses), *reached, f"{gap:+.3f} ({error:.3f})"))
    note = (
        "Test accuracy of published models (spread over seeds); the gap with its standard error. digits, sorted by "
        "label, one image hidden; steps chosen on a part of the training images, for both alike, which is not paid: a "
        "comparison. Again: murmurcast rank digits-sparse.toml"
    )
    headings = ("epsilon", "channel uses", "Algorithm 1", "exact diffusion", "gap")
    return Table("unequal-data", "Algorithm 1 and its multicast without bias", headings, tuple(rows), note)


def curves(duels: tuple[Duel, ...]) -> dict[str, Curve]:
    """Accuracy against channel uses, of both."""
    by_name = {}
    for duel in duels:
        uses = np.asarray(duel.ours.metrics["channel_uses"], np.float64)
        columns = [uses]
        for result in (duel.ours, duel.diffusion):
            by_seed = _by_seed(result)
            columns += [by_seed.mean(axis=0), by_seed.std(axis=0, ddof=1)]
        headings = ("uses", "ours", "ours_spread", "diffusion", "diffusion_spread")
        by_name[f"unequal-data-{duel.epsilon:g}-{duel.uses}"] = Curve(headings, np.column_stack(columns))
    return by_name


def unequal_data_figure(duels: tuple[Duel, ...]) -> Figure:
    """Accuracy against channel uses, a panel for each epsilon, the schedule for few uses and the one for many."""
    budgets = sorted({duel.epsilon for duel in duels}, reverse=True)
    figure, panels = style.column(1.9 * len(budgets) + 0.3, rows=len(budgets))
    for axes, epsilon in zip(panels, budgets, strict=True):
        for duel in (one for one in duels if one.epsilon == epsilon):
            for place, (name, result) in enumerate(((OURS, duel.ours), (DIFFUSION, duel.diffusion))):
                look = style.LOOKS[place + 2 * (duel.uses == min(one.uses for one in duels))]
                by_seed, uses = _by_seed(result), np.asarray(result.metrics["channel_uses"], np.float64)
                mean, spread = by_seed.mean(axis=0), by_seed.std(axis=0, ddof=1)
                label = f"{_NAMES[name]}, for {duel.uses} uses"
                axes.plot(uses, mean, color=look.colour, linestyle=look.dashes, linewidth=1.1, label=label)
                axes.fill_between(uses, mean - spread, mean + spread, color=look.colour, alpha=0.15, lw=0)
        style.title(axes, rf"$\epsilon={epsilon:g}$ in all, against everybody")
        axes.set_ylabel("test accuracy")
        axes.sharex(panels[-1])
    panels[-1].set_xlabel("channel uses")
    style.legend(figure, *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
