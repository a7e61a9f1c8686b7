"""`murmurcast run`: train, and keep what came out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure
from murmurcast.errors import Error

if TYPE_CHECKING:
    from rich.console import Console

    from murmurcast.algorithms.base import Algorithm
    from murmurcast.experiments.build import Experiment
    from murmurcast.problems.base import Problem
    from murmurcast.runs.result import Outcome


def run(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)],
    sets: Sets = None,
    seeds: Annotated[int | None, typer.Option(help="Run seeds 0 to N-1.", metavar="N", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to keep the run. Default: runs/NAME-OF-FILE.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw who holds which labels, as .png, .pdf or .svg.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a network of models as an experiment file says.

    Ctrl-C writes a checkpoint; --resume goes on from it to the very same numbers. With secure noise there is neither.

    Examples:
        murmurcast plan --example digits > digits.toml

        murmurcast run digits.toml

        murmurcast run digits.toml --seeds 5 --set algorithm.name=mped2fl --out runs/rival

        murmurcast compare runs/digits runs/rival
    """
    from rich.console import Console
    from rich.markup import escape

    from murmurcast.engine import secure
    from murmurcast.experiments.begin import require_space, seeds_of, write_beginning
    from murmurcast.runs import require
    from murmurcast.runs.folder_lock import locked
    from murmurcast.runs.result import require_folder

    if figure is not None:
        require_figure(figure)
    changed = overrides(sets) | ({} if seeds is None else {"run.seeds": str(seeds)})
    experiment = _read(file, changed, resume)
    folder, text = out or Path("runs") / file.stem, experiment.as_toml()
    _require_free(folder, text, resume)
    console = Console(stderr=True)
    with console.status("reading the experiment") as status:

        def stage(words: str) -> None:
            status.update(escape(words))

        problem, algorithm = experiment.build(file.parent, stage)
        require.require_planned_for(algorithm, problem)
        require.require_clip(problem, experiment.run.precision)
        secure.require(algorithm, problem, experiment.run.precision)
        if figure is not None:
            _require_labels(problem)
        require_folder(folder)
        if figure is not None:
            _draw_partition(problem, figure)
    with locked(folder):
        _require_free(folder, text, resume)  # once more: another process may have been quicker
        require_space(folder, problem, seeds_of(experiment))
        write_beginning(folder, experiment, file.parent)
        if not as_json:
            from murmurcast.cli._run_text import show_beginning

            show_beginning(algorithm, problem, experiment.warnings)
        result = _train(experiment, algorithm, problem, folder, text, resume, console)
    if as_json:
        from murmurcast.cli._run_text import as_dict, diverged, warnings

        warned = [*experiment.warnings, *warnings(algorithm, problem), *diverged(result)]
        echo_json({**as_dict(result, folder), "warnings": warned})
        return
    from murmurcast.cli._run_text import show_end

    show_end(result, folder)


def _read(file: Path, changed: dict[str, str], resume: bool) -> "Experiment":
    """The experiment of a file, with settings that make sense."""
    from murmurcast.experiments import load as experiment_files
    from murmurcast.experiments.begin import seeds_of
    from murmurcast.runs import require

    experiment = experiment_files.load(file, changed)
    section, seeds = experiment.run, seeds_of(experiment)
    require.require_settings(seeds, section.evaluate_every, section.checkpoint_every, section.precision)
    require.require_one_go(experiment.privacy.noise_source, seeds, resume, section.checkpoint_every)
    return experiment


def _train(
    experiment: "Experiment",
    algorithm: "Algorithm",
    problem: "Problem",
    folder: Path,
    text: str,
    resume: bool,
    console: "Console",
) -> "Outcome":
    """Trains under a progress bar: epochs, metrics, time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from murmurcast.experiments.begin import seeds_of
    from murmurcast.runs.run import RunOptions, outcome

    reached = (TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    columns = (*reached, TextColumn("time left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=algorithm.epochs)

        def show(done: int, of: int, metrics: dict[str, float]) -> None:
            shown = [
                f"{name.split('_')[1]} {metrics[name]:.4g}" for name in ("own_accuracy", "own_loss") if name in metrics
            ]
            bar.update(task, completed=done, total=of, description=", ".join(shown) or "training")

        section = experiment.run
        try:
            options = RunOptions(
                evaluate_every=section.evaluate_every,
                name=folder.name,
                experiment=text,
                folder=folder,
                checkpoint_every=section.checkpoint_every,
                resume=resume,
                on_progress=show,
            )
            return outcome(algorithm, problem, seeds_of(experiment), section.precision, options)
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(_farewell(experiment, folder), err=True)
            raise


def _farewell(experiment: "Experiment", folder: Path) -> str:
    if experiment.privacy.noise_source == "secure":
        return "stopped; with secure noise there is no going on, and what was sent counts as the whole plan"
    return f"stopped; a checkpoint is in {_check.printable(str(folder))}. Go on with the same command and --resume"


def _require_free(folder: Path, text: str, resume: bool) -> None:
    """The folder is new, or holds the beginning of this very run."""
    from murmurcast.experiments.begin import differences
    from murmurcast.runs.folder_lock import LOCK
    from murmurcast.runs.result import EXPERIMENT, require_place, require_unused

    require_place(folder)
    require_unused(folder, resume)
    if not resume:
        if folder.exists() and any(entry.name != LOCK for entry in folder.iterdir()):
            raise Error(f"{folder} is not empty", hint="choose another folder with --out; nothing is overwritten")
        return
    if not (folder / EXPERIMENT).exists():
        raise Error(f"{folder} holds no run to resume", hint="leave --resume out")
    _check.readable(folder / EXPERIMENT)
    differing = differences((folder / EXPERIMENT).read_text(encoding="utf-8", errors="replace"), text)
    if differing:
        raise Error(
            f"{folder} was begun with another experiment: {differing}",
            hint="resume with the file and --set it was begun with, or choose another --out",
        )


def _require_labels(problem: "Problem") -> None:
    if getattr(problem, "data", None) is None:
        raise Error("there are no labels to draw", hint="leave --figure out")


def _draw_partition(problem: "Problem", path: Path) -> None:
    """Who holds which labels, as a picture."""
    from murmurcast.reports import plots

    plots.save(plots.partition_figure(getattr(problem, "data")), path)  # noqa: B009 - not every problem has it
