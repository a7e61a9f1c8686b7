"""`murmurcast run`: train, and keep what came out."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure, with_options
from murmurcast.engine.membership import CONNECT_WITHIN, WATCHED, Membership, by_hand, by_launcher, require_nodes
from murmurcast.errors import Error

if TYPE_CHECKING:
    from rich.console import Console

    from murmurcast.algorithms.base import Algorithm
    from murmurcast.experiments.build import Experiment
    from murmurcast.problems.base import Problem
    from murmurcast.runs.result import Outcome

_BYTES_OF_A_PROCESS = 3 * 2**27  # with Python, JAX and a small set of data; less than any that trains has


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command takes."""

    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.", show_default=False)]
    sets: Sets = None
    seeds: Annotated[int | None, typer.Option(help="Run seeds 0 to N-1.", metavar="N", show_default=False)] = None
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to keep the run. Default: runs/NAME-OF-FILE.")
    ] = None
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw who holds which labels, as .png, .pdf or .svg.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="Train in N processes of this machine.", show_default=False)
    ] = None
    coordinator: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where the first of several processes listens.", show_default=False),
    ] = None
    process_id: Annotated[
        int | None, typer.Option(metavar="I", help="Which of several processes this is, from 0.", show_default=False)
    ] = None
    num_processes: Annotated[
        int | None, typer.Option(metavar="N", help="How many processes there are.", show_default=False)
    ] = None
    connect_within: Annotated[
        int, typer.Option(metavar="SECONDS", help="How long several processes look for each other.")
    ] = CONNECT_WITHIN
    as_json: AsJson = False


@with_options
def run(asked: Asked) -> None:
    """Train a network of models as an experiment file says.

    Ctrl-C writes a checkpoint; --resume goes on from it to the very same numbers. With secure noise there is neither.

    Examples:
        murmurcast plan --example digits > digits.toml

        murmurcast run digits.toml

        murmurcast run digits.toml --seeds 5 --set algorithm.name=mped2fl --out runs/rival

        murmurcast compare runs/digits runs/rival

        murmurcast run large.toml --processes 2
    """
    member = _member(asked)
    if WATCHED in os.environ and member is not None:
        from murmurcast.cli import _watched

        _watched.begin(member)
    elif member is not None or asked.processes is not None:
        _start_processes(asked, member)
        return
    _run_here(asked)


def _member(asked: Asked) -> Membership | None:
    """Which of several processes this is, by its options or by what srun and mpirun say; None for one alone."""
    member = by_hand(asked.coordinator, asked.process_id, asked.num_processes, asked.connect_within)
    if asked.processes is None:
        return member or by_launcher(os.environ, asked.connect_within)
    _check.at_least(1, **{"--processes": asked.processes})
    if member is not None:
        raise Error(
            "--processes starts all processes itself", hint="leave --coordinator and its kin out, or --processes"
        )
    return None


def _start_processes(asked: Asked, member: Membership | None) -> None:
    """Everything is checked here first, so that bad input is said once, and nothing is started for it."""
    from murmurcast.cli import _processes

    experiment, folder = _prepared(asked)
    if member is not None:
        code = _processes.run_one(member, _words(asked), folder)
    else:
        _require_room_for(asked.processes or 1)
        _require_nodes_for(asked.processes or 1, experiment)
        code = _processes.run_on_this_machine(asked.processes or 1, _words(asked), asked.connect_within, folder)
    if code:
        raise typer.Exit(code)


def _require_room_for(processes: int) -> None:
    """Where the experiment does not say how many nodes there are, they find out once all are there: too late."""
    from murmurcast.runs.free_memory import free_memory

    most = max(1, free_memory() // _BYTES_OF_A_PROCESS)
    if processes > most:
        raise Error(
            f"--processes is {processes}, and the memory of this machine has room for {most}",
            hint="start as many as there are cores: more are no quicker",
        )


def _require_nodes_for(processes: int, experiment: "Experiment") -> None:
    """As far as the file says how many there are; what a network's file or a trace says is looked at by who trains."""
    section = experiment.network
    nodes = section.nodes if section.gains is None else len(section.gains)
    if nodes:
        require_nodes(processes, nodes)


def _words(asked: Asked) -> list[str]:
    """The command again, for a process that trains, but for which process it is."""
    valued = {"--seeds": asked.seeds, "--out": asked.out, "--figure": asked.figure}
    valued |= {"--connect-within": asked.connect_within}
    flags = {"--resume": asked.resume, "--json": asked.as_json}
    return [
        str(asked.file),
        *(word for setting in asked.sets or () for word in ("--set", setting)),
        *(word for name, value in valued.items() if value is not None for word in (name, str(value))),
        *(name for name, given in flags.items() if given),
    ]


def _prepared(asked: Asked) -> "tuple[Experiment, Path]":
    """The experiment, and the folder it may write to."""
    if asked.figure is not None:
        require_figure(asked.figure)
    changed = overrides(asked.sets) | ({} if asked.seeds is None else {"run.seeds": str(asked.seeds)})
    experiment = _read(asked.file, changed, asked.resume)
    folder = asked.out or Path("runs") / asked.file.stem
    if (asked.process_id or 0) == 0:
        _require_free(folder, experiment.as_toml(), asked.resume)
    return experiment, folder


def _run_here(asked: Asked) -> None:
    """Trains in this process, alone or as one of several."""
    import numpy as np
    from rich.console import Console
    from rich.markup import escape

    from murmurcast.engine import check, large, secure
    from murmurcast.experiments.begin import require_space, seeds_of, write_beginning
    from murmurcast.runs import memory, require
    from murmurcast.runs.folder_lock import locked
    from murmurcast.runs.result import require_folder

    experiment, folder = _prepared(asked)
    text, resume = experiment.as_toml(), asked.resume
    console = Console(stderr=True)
    with console.status("reading the experiment") as status:

        def stage(words: str) -> None:
            status.update(escape(words))

        problem, algorithm = experiment.build(asked.file.parent, stage)
        require.require_planned_for(algorithm, problem)
        require.require_clip(problem, experiment.run.precision)
        secure.require(algorithm, problem, experiment.run.precision)
        check.require_fitting(algorithm, problem, problem.test_data(), experiment.run.precision)
        large.require_processes(algorithm, problem)
        memory.seed_groups(algorithm, problem, np.dtype(experiment.run.precision), len(seeds_of(experiment)))
        if asked.figure is not None:
            _require_labels(problem)
    if not _leads():
        _train(experiment, algorithm, problem, folder, text, resume, console)
        return
    require_folder(folder)
    if asked.figure is not None:
        _draw_partition(problem, asked.figure)
    with locked(folder):
        _require_free(folder, text, resume)  # once more: another process may have been quicker
        require_space(folder, algorithm, problem, experiment)
        write_beginning(folder, experiment, asked.file.parent)
        if not asked.as_json:
            from murmurcast.cli._run_text import show_beginning

            show_beginning(algorithm, problem, experiment.warnings)
        result = _train(experiment, algorithm, problem, folder, text, resume, console)
    _show(asked, experiment, algorithm, problem, result, folder)


def _leads() -> bool:
    """Whether this process writes and speaks: of several, the first. A process alone need not ask JAX."""
    if WATCHED not in os.environ:
        return True
    from murmurcast.engine.team import team

    return team().leads


def _show(
    asked: Asked, experiment: "Experiment", algorithm: "Algorithm", problem: "Problem", result: "Outcome", folder: Path
) -> None:
    if asked.as_json:
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
    from murmurcast.runs.sweep import is_sweep

    require_place(folder)
    if is_sweep(folder):
        raise Error(f"{folder} holds a sweep", hint="choose another folder with --out; murmurcast sweep goes on in it")
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
