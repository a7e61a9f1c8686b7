"""Makes the runs of the reproduction, each kept in a folder of its own."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from murmurcast._progress import Stage, quiet
from murmurcast.planning.plan import Plan
from murmurcast.problems.softmax import SoftmaxRegression
from murmurcast.reproduction.settings import Setting
from murmurcast.runs.result import Result
from murmurcast.runs.run import Progress, RunOptions, run

Watch = Callable[[Setting], Progress]  # whom to tell about the epochs of a run


class Run(NamedTuple):
    """A run that is done."""

    setting: Setting
    plan: Plan
    result: Result


def unwatched(setting: Setting) -> Progress:  # noqa: ARG001
    """Tells nobody."""
    return quiet


def train(
    settings: Iterable[Setting], folder: Path, on_stage: Stage = quiet, watch: Watch = unwatched
) -> tuple[Run, ...]:
    """All runs, one after the other; those on the same problem share its data."""
    problems: dict[str, SoftmaxRegression] = {}
    return tuple(_train(setting, folder, problems, on_stage, watch) for setting in settings)


def _train(
    setting: Setting, folder: Path, problems: dict[str, SoftmaxRegression], on_stage: Stage, watch: Watch
) -> Run:
    experiment = setting.experiment
    problem = _problem(setting, problems, on_stage)
    plan = experiment.build_plan(problem=problem, on_stage=on_stage)
    on_stage("compiling")
    seeds = experiment.run.seeds
    options = RunOptions(
        evaluate_every=experiment.run.evaluate_every,
        name=setting.name,
        experiment=experiment.as_toml(),
        folder=folder / setting.name,
        on_progress=watch(setting),
    )
    algorithm, each = experiment.build_algorithm(plan), range(seeds) if isinstance(seeds, int) else seeds
    result = run(algorithm, problem, seeds=each, options=options)
    return Run(setting, plan, result)


def _problem(setting: Setting, problems: dict[str, SoftmaxRegression], on_stage: Stage) -> SoftmaxRegression:
    """The setting's problem; settings that differ in the clip alone share their data."""
    experiment = setting.experiment
    # What centres and whitens data is released under the noise of a budget.
    key = repr((experiment.data, experiment.problem, experiment.build_budget().first_releases))
    if key not in problems:
        nodes = experiment.build_network().nodes
        problems[key] = cast(SoftmaxRegression, experiment.build_problem(nodes, on_stage=on_stage))
    return replace(problems[key], clip=experiment.privacy.clip)
