"""`murmurcast link`: what a radio does on a network, before anything is trained."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast._progress import Stage
    from murmurcast.experiments.build import Experiment
    from murmurcast.planning.plan import Plan
    from murmurcast.radio.link_budget import LinkBudget
    from murmurcast.radio.settings import Radio

_NO_PATH_LOSS = 0.1  # amplitude, 20 dB of loss: even a metre of free space takes more


class LinkAnalysis(NamedTuple):
    """A link budget, and what it was made of."""

    budget: "LinkBudget"
    radio: "Radio"
    plan: "Plan"
    dim: int
    radius: float
    warnings: tuple[str, ...]


def link(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file that describes a radio.")],
    sets: Sets = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw signal-to-noise ratios of all links as .png, .pdf or .svg."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a radio does on a network: signal, noise, slots, time and energy, before anything is trained.

    Examples:
        murmurcast link my.toml

        murmurcast link my.toml --set radio.access=referenced --set radio.duplex=full

        murmurcast link my.toml --set radio.power_dbm=0 --figure my.png

        murmurcast link my.toml --json > link.json
    """
    from murmurcast.experiments import load as experiment_files

    if figure is not None:
        require_figure(figure)
    experiment = experiment_files.load(file, overrides(sets))
    analysis = _work(experiment, file.parent)
    if figure is not None:
        from murmurcast.reports import link_plot, plots

        plots.save(link_plot.link_figure(analysis.budget), figure)
    from murmurcast.cli import _link_text

    if as_json:
        echo_json(_link_text.as_dict(analysis))
        return
    _link_text.show(analysis)


def _work(experiment: "Experiment", folder: Path) -> LinkAnalysis:
    from rich.console import Console
    from rich.markup import escape

    from murmurcast.radio.link_budget import link_budget

    radio = experiment.build_radio(folder)
    if radio is None:
        raise Error(
            "the file says nothing of a radio, so there are no watts, hertz or metres to count in",
            hint='add these three lines: "[radio]", "power_dbm = 20.0" and "carrier_hz = 2.4e9"',
        )
    with Console(stderr=True).status("reading the experiment") as status:

        def report(words: str) -> None:
            status.update(escape(words))

        plan = experiment.build_plan(folder, on_stage=report, radio=radio)
        dim, radius = _size(experiment, plan, folder, report)
        status.update("adding up the links")
        budget = link_budget(
            plan.network,
            radio,
            alpha=plan.alpha,
            noise_std=plan.noise_std,
            dim=dim,
            radius=radius,
            normaliser=plan.mixing.normaliser,
            rounds=plan.schedule.rounds,
        )
    warnings = (*experiment.plan_warnings, *_warnings(experiment, plan, budget))
    return LinkAnalysis(budget, radio, plan, dim, radius, warnings)


def _size(experiment: "Experiment", plan: "Plan", folder: Path, report: "Stage") -> tuple[int, float]:
    """How many parameters a model has, and how large it may be; loads data only where the file does not say."""
    section = experiment.problem
    dim, radius = plan.problem.dim, plan.problem.radius
    if dim is None and (experiment.data is not None or section.kind == "quadratic"):
        problem = experiment.build_problem(plan.network.nodes, folder, report)
        dim, radius = problem.dim, problem.radius
    if dim is None:
        raise Error(
            "the file does not say how many parameters a model has, and a signal is as long as that",
            hint="add dim = 7850, or your own number, to [problem]",
        )
    if radius is None:
        raise Error(
            "the file does not say how large a model may be, and the power of its signal follows from that",
            hint="add radius = 10.0, or your own number, to [problem]: models are then kept within that norm",
        )
    return dim, radius


def _warnings(experiment: "Experiment", plan: "Plan", budget: "LinkBudget") -> list[str]:
    lines = []
    strongest = float(plan.network.gains.data.max())
    if strongest > _NO_PATH_LOSS:
        lines.append(
            f"gains reach {strongest:.3g}, and no signal loses so little on its way: choose gains with path loss, such "
            'as network.gain = {kind = "indoor"}, with network.size_m'
        )
    trace, period = None if plan.radio is None else plan.radio.trace, budget.seconds
    interval = None if trace is None else trace.interval_s
    period += 0.0 if plan.radio is None else plan.radio.compute_seconds
    if interval is not None and not 0.5 < interval / period < 2:
        lines.append(
            f"an epoch takes {period:.3g} s, and the steps of the trace are {interval:.3g} s apart: every epoch takes "
            "one step all the same"
        )
    gain, lengths = experiment.network.gain, budget.distance_m
    least, most = getattr(gain, "range_m", (0.0, math.inf))
    if gain is not None and lengths is not None and not (least <= lengths.min() and lengths.max() <= most):
        lines.append(
            f"links are {lengths.min():.3g} to {lengths.max():.3g} m long, and {gain.kind} gains were measured on "
            f"{least:g} to {most:g} m"
        )
    return lines
