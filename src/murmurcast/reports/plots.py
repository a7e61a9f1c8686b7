"""Plots: networks and plans, who holds which labels, and the curves of runs."""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Wedge

from murmurcast import _check
from murmurcast._check import FloatArray
from murmurcast._files import write_atomically
from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.privacy.rounding import at_most, at_most_fixed
from murmurcast.reports import cost_axes, palette, sweep_plots
from murmurcast.reports.drawn import Drawn
from murmurcast.runs.result import spread_over_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from murmurcast.data.partition import Partition
    from murmurcast.planning.plan import Plan
    from murmurcast.reports.cost_axes import Against
    from murmurcast.runs.result import Result
    from murmurcast.runs.sweep import Sweep

_MODEL, _NOISE, _LINK, _INK = "#1f6f8b", "#f2b705", "#8a8f98", "#20242b"
_CURVE_COLOURS, _DASHES = (_MODEL, "#d1495b", _INK, "#3a7d44", "#7b4b94", "#c77d0a"), ("-", "--", ":")
_LABELLED_UP_TO, _BARS_UP_TO, _MATRIX_UP_TO = 12, 120, 500  # nodes
_LABELS_WRITTEN = 24  # of a data set
FORMATS = (".png", ".pdf", ".svg")


def require_format(path: Path) -> None:
    """The file's ending is one a plot can have."""
    if path.suffix not in FORMATS:
        raise Error(f"{path} is not a plot's name", hint=f"end it in one of {', '.join(FORMATS)}")


def plan_figure(plan: "Plan") -> Figure:
    """Left the network with gains and power split, right the per-epoch epsilon of every receiver about every sender."""
    figure = Drawn(figsize=(10.5, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.05, 1))
    draw_network(left, plan.network, plan.alpha)
    draw_epsilon(right, plan)
    return figure


def network_figure(network: Network, alpha: FloatArray | None = None) -> Figure:
    """The network alone, with the gains on its links."""
    figure = Drawn(figsize=(5.6, 5.2), layout="constrained")
    draw_network(figure.subplots(), network, alpha)
    return figure


def partition_figure(partition: "Partition") -> Figure:
    """Above how many examples every node holds, below of which labels (not for regression)."""
    names, nodes = partition.dataset.label_names, partition.nodes
    rows = min(max(len(names), 4), _LABELS_WRITTEN)
    heights = (1.0, 0.3 * rows) if names else (1.0,)
    figure = Drawn(figsize=(min(max(5.5, 1.5 + 0.62 * nodes), 10.5), 1.4 + sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    few = nodes <= _LABELLED_UP_TO
    # With many nodes one filled outline: thousands of bars would be slow and leave hairlines between them.
    if nodes <= _BARS_UP_TO:
        axes[0].bar(range(nodes), partition.sizes, width=0.8, color=_MODEL)
    else:
        axes[0].stairs(partition.sizes, np.arange(nodes + 1) - 0.5, fill=True, color=_MODEL)
    axes[0].tick_params(axis="x", bottom=not names)
    axes[0].set_ylim(0, float(partition.sizes.max()) * (1.3 if few else 1.05))
    axes[0].set_ylabel("examples")
    axes[0].spines[["top", "right"]].set_visible(False)
    if few:
        for node, size in enumerate(partition.sizes):
            axes[0].text(node, size, str(size), ha="center", va="bottom", fontsize=9, color=_INK)
        axes[0].set_xticks(range(nodes))
    axes[0].set_xlim(-0.5, nodes - 0.5)
    rule = getattr(partition.rule, "kind", type(partition.rule).__name__)
    title = _check.printable(f"{partition.dataset.name[:60]}, {rule}, {nodes} nodes")
    axes[0].set_title(title, color=_INK, fontsize=11, parse_math=False)
    if names:
        _draw_labels(axes[1], partition, written=few and len(names) <= _LABELS_WRITTEN)
    axes[-1].set_xlabel("node")
    return figure


def curves_figure(runs: "Sequence[Result]", metric: str, against: "Sequence[Against] | None" = None) -> Figure:
    """A figure of all runs: mean over nodes, band over seeds.

    Args:
        runs: At least one.
        metric: A metric of every node.
        against: What to draw it against, a plot each; by default epochs and channel uses, and where any run has a radio
            seconds and joules. A run that uses none of it is left out of that plot.
    """
    chosen = tuple(against or dict.fromkeys(("epoch", "channel_uses", *cost_axes.shown(runs))))
    columns = 2 if len(chosen) == 4 else len(chosen)
    rows = -(-len(chosen) // columns)
    aside = 2.2 if len(runs) > len(_CURVE_COLOURS) else 0.0  # for the legend
    height = max(3.6 * rows + 0.6, 0.6 + 0.19 * len(runs))
    figure = Drawn(figsize=(5.25 * columns + aside, height), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for side, one in zip(axes.flat, chosen, strict=True):
        _draw_curves(side, runs, metric, one)
    for side in axes[:, 0]:
        side.set_ylabel(_check.printable(metric.replace("_", " ")), parse_math=False)
    if len(runs) > 1:
        _add_names(figure, axes[0, 0], runs)
    return figure


def _draw_curves(axes: Axes, runs: "Sequence[Result]", metric: str, against: "Against") -> None:
    looks = _looks(runs)
    for index, run in enumerate(runs):
        at = cost_axes.along(run, against)
        if at is None:
            continue  # it uses none of it: there is no curve to draw
        by_seed = np.asarray(run.metrics[metric].mean("node", skipna=False))
        mean, (colour, dashes) = by_seed.mean(axis=0), looks[index]
        spread = spread_over_seeds(by_seed) if len(by_seed) > 1 else np.zeros_like(mean)
        axes.plot(at, mean, color=colour, linestyle=dashes, linewidth=1.6, label=str(index))
        # Bands of many runs would cover each other, and all curves.
        alpha = 0.18 if len(runs) <= len(_CURVE_COLOURS) else 0.4 / len(runs)
        axes.fill_between(at, mean - spread, mean + spread, color=colour, alpha=alpha, linewidth=0)
    if cost_axes.is_logarithmic(runs, against):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(cost_axes.title(runs, against))
    axes.grid(color=_LINK, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _looks(runs: "Sequence[Result]") -> list[tuple[str, Any]]:
    """Colour and dashes: of few runs each has a colour; of more, hue says the algorithm, and shade the budget."""
    if len(runs) <= len(_CURVE_COLOURS):
        return [(_CURVE_COLOURS[index], _DASHES[index % len(_DASHES)]) for index in range(len(runs))]
    return [(one.light, sweep_plots.DASHES[one.dash]) for one in palette.of_runs(runs)]


def sweep_figure(sweep: "Sweep", metric: str | None = None, against: str | None = None) -> Figure:
    """A metric at the last epoch against a key that was varied: mean over nodes and seeds, band over seeds.

    Args:
        sweep: At least one of its points is done.
        metric: A metric of every node; by default the accuracy of published models, or their loss.
        against: The key; by default the budget, or the first that has several numbers.
    """
    return sweep_plots.sweep_figure(sweep, metric, against)


def _add_names(figure: Figure, axes: Axes, runs: "Sequence[Result]") -> None:
    """Written in afterwards: a name of a label may not begin with "_", and what stands between "$" is a formula."""
    if len(runs) <= len(_CURVE_COLOURS):
        legend = axes.legend(frameon=False)
    else:
        legend = figure.legend(
            *axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=7.5
        )
    drawn = (runs[int(str(line.get_label()))] for line in axes.get_lines())
    for text, run in zip(legend.get_texts(), drawn, strict=True):
        text.set(text=_check.printable(run.name[:60]), parse_math=False)


def _draw_labels(axes: Axes, partition: "Partition", *, written: bool) -> None:
    """Labels by node, the darker the more examples; grey where there are none."""
    table, names = partition.table.T, partition.dataset.label_names
    # The square root keeps small counts visible beside large ones; the palest blue still differs from none.
    shades = mpl.colors.LinearSegmentedColormap.from_list(
        "counts", mpl.colormaps["Blues"](np.linspace(0.22, 0.95, 256))
    )
    norm = mpl.colors.PowerNorm(0.5, vmin=0, vmax=int(table.max()))
    image = axes.imshow(np.ma.masked_equal(table, 0), cmap=shades, norm=norm, aspect="auto", interpolation="none")
    axes.set_facecolor("#f3f4f6")
    step = -(-len(names) // _LABELS_WRITTEN)
    axes.set_yticks(
        range(0, len(names), step), [_check.printable(name[:20]) for name in names[::step]], parse_math=False
    )
    axes.set_ylabel("label")
    axes.tick_params(axis="y", length=0)
    if partition.nodes <= _BARS_UP_TO and step == 1:
        axes.hlines(np.arange(1, len(names)) - 0.5, -0.5, partition.nodes - 0.5, color="white", linewidth=1)
        axes.vlines(np.arange(1, partition.nodes) - 0.5, -0.5, len(names) - 0.5, color="white", linewidth=1)
    if not written:
        axes.figure.colorbar(image, ax=axes, label="examples", pad=0.01)
        return
    for label, node in np.argwhere(table > 0):
        colour = "white" if norm(table[label, node]) > 0.62 else _INK
        axes.text(node, label, str(table[label, node]), ha="center", va="center", fontsize=8.5, color=colour)


def save(figure: Figure, path: Path | str) -> None:
    """Writes a figure as .png, .pdf or .svg, all of it or nothing."""
    path = Path(path)
    require_format(path)
    buffer = io.BytesIO()
    # A fixed date keeps the same figure the same file.
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
    if path.suffix == ".pdf":
        metadata = {"CreationDate": None}
    with mpl.rc_context({"svg.hashsalt": "murmurcast"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a box stands for it
        figure.savefig(buffer, format=path.suffix[1:], dpi=200, metadata=metadata)
    write_atomically(path, buffer.getvalue())


def draw_network(axes: Axes, network: Network, alpha: FloatArray | None = None) -> None:
    """Nodes as pies of their power split, links as arrows whose width is the gain."""
    spots = _layout(network)
    labelled = network.nodes <= _LABELLED_UP_TO
    radius = 0.1 if labelled else max(0.008, 0.35 / np.sqrt(network.nodes))
    largest = float(network.gains.max())
    sender, receiver = network.gains.nonzero()
    for i, j, gain in zip(sender, receiver, network.gains.data, strict=True):
        width = (0.4 + 1.8 * gain / largest) * (1.0 if labelled else 0.35)
        if labelled:
            _arrow(axes, spots[i], spots[j], radius, width, f"{gain:.2f}".lstrip("0") if gain < 1 else f"{gain:.2f}")
        elif i < j:
            axes.plot(*spots[[i, j]].T, color=_LINK, linewidth=width, zorder=1)
    for node, spot in enumerate(spots):
        _pie(axes, spot, radius, None if alpha is None else float(alpha[node]))
        if labelled:
            axes.annotate(
                str(node), spot, ha="center", va="center", color="white", fontsize=11, fontweight="bold", zorder=5
            )
    axes.set_aspect("equal")
    axes.set_xlim(-1.25, 1.25)
    axes.set_ylim(-1.25, 1.25)
    axes.axis("off")
    gains = "gains on the links" if labelled else "line width: gain"
    axes.set_title(f"{network.nodes} nodes, {network.links} links, {gains}", color=_INK, fontsize=11)
    if alpha is not None:
        handles = [Circle((0, 0), color=_MODEL), Circle((0, 0), color=_NOISE)]
        labels = ["power for the model (alpha)", "for the noise (beta)"]
        axes.legend(
            handles, labels, loc="lower center", ncols=2, frameon=False, fontsize=9, bbox_to_anchor=(0.5, -0.06)
        )


def draw_epsilon(axes: Axes, plan: "Plan") -> None:
    """The matrix of per-epoch epsilon, receiver by sender; the binding links framed."""
    nodes = plan.network.nodes
    axes.set_title("epsilon per epoch (the paper's view)", color=_INK, fontsize=11)
    if nodes > _MATRIX_UP_TO:
        axes.hist(plan.epsilon_per_epoch.data, bins=60, color=_MODEL)
        axes.set_xlabel("epsilon of a link")
        axes.set_ylabel("links")
        return
    matrix = plan.epsilon_per_epoch.toarray()
    image = axes.imshow(np.where(matrix > 0, matrix, np.nan), cmap="Blues", vmin=0, vmax=matrix.max() * 1.4)
    axes.set_facecolor("#eceef1")
    bound = plan.budget.target == "per-epoch" and nodes <= _LABELLED_UP_TO
    note = f"\n(framed: links that bind at epsilon {at_most(plan.budget.epsilon)})" if bound else ""
    axes.set_xlabel("sender: whose data" + note)
    axes.set_ylabel("receiver: who learns")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)
    if nodes > _LABELLED_UP_TO:
        return
    axes.set_xticks(range(nodes))
    axes.set_yticks(range(nodes))
    binding = plan.binding.toarray()
    for i, j in np.argwhere(matrix > 0):
        dark = matrix[i, j] > 0.8 * matrix.max()
        bold = bool(binding[i, j])
        look: dict[str, Any] = {"color": "white" if dark else _INK, "fontweight": "bold" if bold else "normal"}
        axes.text(
            j, i, at_most_fixed(matrix[i, j], 2), ha="center", va="center", fontsize=10 if nodes <= 6 else 7, **look
        )
        if bold:
            axes.add_patch(
                mpl.patches.Rectangle((j - 0.48, i - 0.48), 0.96, 0.96, fill=False, edgecolor=_NOISE, linewidth=2.5)
            )


def _layout(network: Network) -> FloatArray:
    """Positions scaled into the unit square around 0; a spring layout where none are known."""
    if network.positions is not None:
        spots = np.array(network.positions)
    elif network.links == network.nodes * (network.nodes - 1):
        angle = (
            np.pi / 2 - 2 * np.pi * np.arange(network.nodes) / network.nodes + (np.pi / 4 if network.nodes == 4 else 0)
        )
        spots = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        import networkx as nx

        positions = nx.spring_layout(network.to_networkx().to_undirected(), seed=0)
        spots = np.array([positions[node] for node in range(network.nodes)])
    spots = spots - (spots.max(axis=0) + spots.min(axis=0)) / 2
    return np.asarray(spots / max(float(np.abs(spots).max()), 1e-12))


def _arrow(axes: Axes, start: FloatArray, end: FloatArray, radius: float, width: float, label: str) -> None:
    """One direction of a link, bowed to its own side, its gain written near the sender."""
    along = (end - start) / np.linalg.norm(end - start)
    aside = np.array([along[1], -along[0]])
    offset = 0.028 * aside
    patch = FancyArrowPatch(
        tuple(start + along * radius * 1.1 + offset),
        tuple(end - along * radius * 1.1 + offset),
        arrowstyle="-|>",
        mutation_scale=9,
        color=_LINK,
        linewidth=width,
        zorder=2,
    )
    axes.add_patch(patch)
    x, y = start + (end - start) * 0.3 + 0.028 * aside
    axes.text(
        x,
        y,
        label,
        fontsize=7.5,
        ha="center",
        va="center",
        color=_INK,
        zorder=3,
        bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
    )


def _pie(axes: Axes, spot: FloatArray, radius: float, alpha: float | None) -> None:
    axes.add_patch(Circle(tuple(spot), radius, color=_MODEL, zorder=3, linewidth=0))
    if alpha is not None:
        axes.add_patch(Wedge(tuple(spot), radius, 90 - 360 * (1 - alpha), 90, color=_NOISE, zorder=4, linewidth=0))
