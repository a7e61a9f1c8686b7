"""`murmurcast plan`: how to split the power, and what a run will cost."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure
from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast._progress import Stage
    from murmurcast.algorithms.observed import Observed
    from murmurcast.experiments.build import Experiment
    from murmurcast.planning.plan import Plan
    from murmurcast.privacy.coalitions import Collusion
    from murmurcast.privacy.linear import Linear


class HowMuch(StrEnum):
    """How many receivers and pairs to try."""

    QUICK = "quick"
    ALL = "all"
    NONE = "none"


class PlanAnalysis(NamedTuple):
    """A plan, what was asked about it, and why its number is no certificate; empty where it is one."""

    plan: "Plan"
    linears: "dict[tuple[int, ...], Linear]"
    collusion: "Collusion | None"
    why_nominal: str


def plan(
    file: Annotated[Path | None, typer.Argument(help="The experiment, a TOML file.", show_default=False)] = None,
    sets: Sets = None,
    observer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODES",
            help="Add what this node, or these together (0,2), learn: the linear diagnostic. Repeatable.",
        ),
    ] = None,
    collusion: Annotated[
        HowMuch,
        typer.Option(help="What every receiver alone and pairs learn: as many as a second allows, all, or none."),
    ] = HowMuch.QUICK,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw network and epsilon matrix as .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Print a commented file to start from: certified, digits, paper-1, paper-2 or ring."
        ),
    ] = None,
) -> None:
    """Split every node's power between its model and its noise, and say what that costs in privacy.

    Examples:
        murmurcast plan --example paper-1 > my.toml

        murmurcast plan my.toml

        murmurcast plan my.toml --set privacy.epsilon=0.5 --set power.objective=noise

        murmurcast plan my.toml --observer 0 --observer 0,2 --figure my.pdf

        murmurcast plan my.toml --collusion all --json > plan.json
    """
    from murmurcast.experiments import load as experiment_files

    if example is not None:
        if file is not None:
            raise Error("--example prints a file, so it takes none", hint="leave FILE or --example out")
        typer.echo(experiment_files.example(example), nl=False)
        return
    if file is None:
        raise Error("no experiment file is given", hint="make one: murmurcast plan --example paper-1 > my.toml")
    if figure is not None:
        require_figure(figure)
    coalitions = [_members(names) for names in observer or []]
    experiment = experiment_files.load(file, overrides(sets))
    assumed = _assumed(experiment)
    analysis = _work(experiment, file.parent, coalitions, collusion)
    if figure is not None:
        from murmurcast.reports import plots

        plots.save(plots.plan_figure(analysis.plan), figure)
    if as_json:
        from murmurcast.cli._plan_json import as_dict

        names = {"names": list(analysis.plan.network.names)} if analysis.plan.network.is_named else {}
        echo_json(as_dict(*analysis, experiment.plan_warnings) | {"assumptions": list(assumed)} | names)
        return
    from murmurcast.cli._plan_text import show

    show(*analysis, experiment.plan_warnings, assumed)


def _assumed(experiment: "Experiment") -> tuple[str, ...]:
    """What must be true of the data for what the plan certifies; labels that nothing can be promised on are refused."""
    from murmurcast.data.assumptions import assumptions, require_declared_maps, require_public_labels

    facts = experiment.promised_data
    if facts is None or experiment.data is None:
        return ()
    require_public_labels(facts, experiment.data.name)
    require_declared_maps(facts)
    return assumptions(facts, experiment.privacy.unit)


def _work(experiment: Any, folder: Path, coalitions: list[tuple[int, ...]], how_much: HowMuch) -> PlanAnalysis:
    """Plans, with a word on stderr about what is going on; it shows only on a terminal, and only while it lasts."""
    from rich.console import Console
    from rich.markup import escape

    from murmurcast.algorithms.observed import observe
    from murmurcast.experiments.nominal import why_nominal

    console = Console(stderr=True)
    with console.status("reading the experiment") as status:
        power_plan = experiment.build_plan(folder, on_stage=lambda words: status.update(escape(words)))
        linears, observed = {}, observe(power_plan)
        for members in coalitions:
            name = ", ".join(map(str, members))

            def report(done: int, of: int, name: str = name) -> None:
                status.update(f"linear diagnostic of observer {name}: target {done} of {of}")

            status.update(f"linear diagnostic of observer {name}")
            linears[members] = observed.linear(members, report)
        collusion = _collusion(observed, how_much, status.update)
        status.update("checking what could break")
        _ = power_plan.warnings
        reason = why_nominal(experiment, power_plan)
    return PlanAnalysis(power_plan, linears, collusion, reason)


def _collusion(observed: "Observed", how_much: HowMuch, tell: "Stage") -> "Collusion | None":
    """None where it is not wanted, or not possible and nobody insists."""
    from murmurcast.algorithms.observed import why_not_beside_the_certificate

    if how_much is HowMuch.NONE or (how_much is HowMuch.QUICK and why_not_beside_the_certificate(observed.plan)):
        return None

    def report(done: int, of: int) -> None:
        tell(f"who learns what: coalition {done} of {of}")

    seconds = {} if how_much is HowMuch.QUICK else {"seconds": math.inf}
    return observed.collusion(**seconds, on_coalition=report)


def _members(names: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(name) for name in names.split(",")}))
    except ValueError:
        raise Error(f"--observer {names}: not a list of nodes", hint="write --observer 0, or --observer 0,2") from None
