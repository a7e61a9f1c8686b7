"""The paper's three figures, and the certified setting beside them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmurcast.network import gains, topologies
from murmurcast.network.graph import Network
from murmurcast.planning.plan import Plan
from murmurcast.reports import plots
from murmurcast.reproduction import style
from murmurcast.reproduction.document import Curve
from murmurcast.reproduction.run_tables import AccuracyCurve, accuracy_curve
from murmurcast.reproduction.settings import CENTRAL, OURS
from murmurcast.reproduction.training import Run


def topology_figure(plan: Plan) -> Figure:
    """Figure 1: four nodes as a diamond, with the gains of the first network and the power split."""
    diamond = topologies.diamond()
    network = Network(gains=gains.paper(1), power=1.0, positions=diamond.positions)
    figure = Figure(figsize=(style.COLUMN, 3.3), layout="constrained")
    axes = figure.subplots()
    plots.draw_network(axes, network, plan.alpha)
    axes.set_title("")
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    wide = axes.get_legend()
    if wide is not None:  # too wide for a column: the same marks below, in fewer words
        handles = wide.legend_handles
        wide.remove()
        style.legend(figure, handles, ["power for the model", "for the noise"], loc="outside lower center", ncols=2)
    return figure


def accuracy_figure(runs: Sequence[Run], against: str) -> Figure:
    """Figures 2 and 3: accuracy against "epochs" or "uses"; above as published, below with matched steps."""
    figure, panels = style.column(4.4, rows=2)
    published = [run for run in runs if run.setting.group == "published"]
    ours = [run for run in published if run.setting.algorithm == OURS]
    matched = [*ours, *(run for run in runs if run.setting.group == "matched")]
    for axes, shown, title in zip(panels, (published, matched), ("as published", "matched steps"), strict=True):
        for run in shown:
            # A run looks the same in both panels: budget by colour and dashes, algorithm by marker.
            look = style.LOOKS[2 * int(run.setting.epsilon - 1) + (run.setting.algorithm != OURS)]
            name = "Alg. 1" if run.setting.algorithm == OURS else "mPED$^2$FL"
            _draw(axes, accuracy_curve(run), against, look, rf"{name}, $\epsilon_{{\max}}={run.setting.epsilon:g}$")
        style.title(axes, title)
        axes.set_ylabel("test accuracy")
    panels[-1].set_xlabel("epochs" if against == "epochs" else "channel uses")
    panels[0].sharey(panels[1])
    style.legend(figure, *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def certified_figure(runs: Sequence[Run]) -> Figure:
    """Accuracy of published models against epochs, each total budget with its two ceilings."""
    shown = [run for run in runs if run.setting.group == "certified"]
    budgets = sorted({run.setting.epsilon for run in shown}, reverse=True)
    figure, panels = style.column(1.55 * len(budgets) + 0.2, rows=len(budgets))
    names = {OURS: "Alg. 1", CENTRAL: "trusted server"}
    for axes, budget in zip(panels, budgets, strict=True):
        of_budget = [run for run in shown if run.setting.epsilon == budget]
        for look, run in zip(style.LOOKS, of_budget, strict=False):
            _draw(axes, accuracy_curve(run), "epochs", look, names.get(run.setting.algorithm, "no noise"))
        style.title(axes, rf"$\epsilon={budget:g}$ in all")
        axes.set_ylabel("test accuracy")
        axes.sharex(panels[-1])
    style.legend(figure, *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    panels[-1].set_xlabel("epochs")
    return figure


def _draw(axes: Axes, curve: AccuracyCurve, against: str, look: style.Look, label: str) -> None:
    at = curve.epochs if against == "epochs" else curve.uses
    every = max(1, len(at) // 8)
    axes.plot(
        at,
        curve.mean,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=1.1,
        marker=look.marker,
        markersize=3,
        markevery=every,
        label=label,
    )
    axes.fill_between(at, curve.mean - curve.spread, curve.mean + curve.spread, color=look.colour, alpha=0.18, lw=0)


def curves(runs: Sequence[Run]) -> dict[str, Curve]:
    """Every run's curve, its band and every node, as columns."""
    return {run.setting.name: _columns(accuracy_curve(run)) for run in runs}


def _columns(curve: AccuracyCurve) -> Curve:
    low, high = curve.mean - curve.spread, curve.mean + curve.spread
    nodes = [f"node{node}" for node in range(curve.by_node.shape[1])]
    columns = np.column_stack([curve.epochs, curve.uses, curve.mean, low, high, curve.by_node])
    return Curve(("epoch", "uses", "mean", "low", "high", *nodes), columns)
