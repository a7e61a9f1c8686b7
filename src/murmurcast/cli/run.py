"""`murmurcast run`: train, and keep what came out."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurcast import _check
from murmurcast.cli._options import AsJson, Sets, echo_json, overrides, require_figure
from murmurcast.errors import Error

MAX_SEEDS = 100_000

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
    from murmurcast.runs import require
    from murmurcast.runs.folder_lock import locked
    from murmurcast.runs.result import EXPERIMENT, require_folder

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
        _require_space(folder, problem, _seeds(experiment))
        _write_beginning(folder, {EXPERIMENT: text.encode()}, _network_file(experiment, file.parent))
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
    from murmurcast.runs import require

    experiment = experiment_files.load(file, changed)
    section, seeds = experiment.run, _seeds(experiment)
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
            return outcome(algorithm, problem, _seeds(experiment), section.precision, options)
        except KeyboardInterrupt:
            bar.stop()
            typer.echo(_farewell(experiment, folder), err=True)
            raise


def _farewell(experiment: "Experiment", folder: Path) -> str:
    if experiment.privacy.noise_source == "secure":
        return "stopped; with secure noise there is no going on, and what was sent counts as the whole plan"
    return f"stopped; a checkpoint is in {_check.printable(str(folder))}. Go on with the same command and --resume"


def _seeds(experiment: "Experiment") -> tuple[int, ...]:
    given = experiment.run.seeds
    if isinstance(given, int):
        _check.at_least(1, **{"run.seeds": given})
        if given > MAX_SEEDS:
            raise Error(f"run.seeds is {given}, more than {MAX_SEEDS}", hint="give a smaller number, or a list")
        return tuple(range(given))
    return tuple(given)


def _require_free(folder: Path, text: str, resume: bool) -> None:
    """The folder is new, or holds the beginning of this very run."""
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
    differences = _differences((folder / EXPERIMENT).read_text(encoding="utf-8", errors="replace"), text)
    if differences:
        raise Error(
            f"{folder} was begun with another experiment: {differences}",
            hint="resume with the file and --set it was begun with, or choose another --out",
        )


def _differences(before: str, now: str) -> str:
    """The keys whose values differ, with both values."""
    import tomllib

    try:
        old, new = _flat(tomllib.loads(before)), _flat(tomllib.loads(now))
    except (ValueError, RecursionError):
        return "its experiment.toml cannot be read"
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return "; ".join(f"{key} was {old.get(key, 'not set')}, is {new.get(key, 'not set')}" for key in keys)


def _flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return found


def _require_space(folder: Path, problem: "Problem", seeds: tuple[int, ...]) -> None:
    """There is room for a checkpoint and the published models, known before training starts."""
    needed = 8 * problem.nodes * problem.dim * len(seeds) * 4 + 2**20
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Error(
            f"{folder} has {free / 2**20:.0f} MiB free, and the run needs up to {needed / 2**20:.0f}",
            hint="free some space, or choose another folder with --out",
        )


def _network_file(experiment: "Experiment", folder: Path) -> Path | None:
    return None if experiment.network.file is None else folder / experiment.network.file


def _write_beginning(folder: Path, contents: dict[str, bytes], network: Path | None) -> None:
    """What makes a folder resumable; a network's file goes along, so that the folder can be planned from alone."""
    from murmurcast._files import write_atomically
    from murmurcast.runs.result import FILES

    if network is not None and network.name in FILES:
        raise Error(f"the network's file is called {network.name}, as one of a run's files", hint="rename it")
    if network is not None:
        contents = contents | {network.name: network.read_bytes()}
    for name, content in contents.items():
        write_atomically(folder / name, content)


def _require_labels(problem: "Problem") -> None:
    if getattr(problem, "data", None) is None:
        raise Error("there are no labels to draw", hint="leave --figure out")


def _draw_partition(problem: "Problem", path: Path) -> None:
    """Who holds which labels, as a picture."""
    from murmurcast.reports import plots

    plots.save(plots.partition_figure(getattr(problem, "data")), path)  # noqa: B009 - not every problem has it
