"""One task of a sweep: a point with all its seeds, from its settings to a finished run in a folder.

The same body runs in local worker processes and on a Ray cluster.
"""

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from murmurcast._progress import quiet
from murmurcast.algorithms import registry
from murmurcast.errors import Altered, Error, NotWritten
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.begin import differences, require_space, seeds_of, write_beginning
from murmurcast.experiments.build import Experiment
from murmurcast.runs.folder_lock import locked
from murmurcast.runs.result import EXPERIMENT, RUN, Result, load_run, require_folder

if TYPE_CHECKING:
    from murmurcast.runs.run import Progress


_SECONDS_TO_LEAVE = 60.0  # for a worker of a sweep that was killed: it writes its checkpoint first


class Task(NamedTuple):
    """What a worker is given; all of it can be written as JSON.

    Attributes:
        name: Of the point, and of the run.
        values: The experiment, section by section.
        place: Where relative files of the experiment start.
        folder: Where the run is kept.
    """

    name: str
    values: dict[str, Any]
    place: str
    folder: str


class Done(NamedTuple):
    """What a worker gives back of a finished run.

    Attributes:
        epsilon: What it costs the node that pays most, recomputed from its ledger; None where nothing is promised.
        why_not: Why an epsilon is not shown though one is promised: the account does not hold.
        metric: The one that a table shows, such as "published_accuracy".
        value: The mean of it over nodes and seeds, at the last epoch.
    """

    epsilon: float | None
    why_not: str
    metric: str
    value: float


class Failed(NamedTuple):
    """Why a task came to nothing.

    Attributes:
        problem: What went wrong.
        hint: What to do about it.
        again: Whether another attempt may end otherwise.
        is_full: Whether nothing can be written: all other tasks would fail as well.
        details: For the log; a place in the code, and no values.
    """

    problem: str
    hint: str
    again: bool
    is_full: bool = False
    details: str = ""


def run_task(task: Task, on_progress: "Progress" = quiet) -> Done | Failed:
    """Runs one point, or finds it done; whatever goes wrong is told, and not raised.

    Raises:
        KeyboardInterrupt: When asked to stop, once a checkpoint is written.
    """
    try:
        return _carried_out(task, on_progress)
    except NotWritten as problem:
        return Failed(str(problem), problem.hint, again=False, is_full=True)
    except Error as problem:
        return Failed(str(problem), problem.hint, again=False)
    except OSError as problem:
        return Failed(f"{problem.strerror or problem}", "free some space, or write elsewhere", again=True)
    except Exception as problem:  # noqa: BLE001 - a worker outlives whatever a point runs into
        words = f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
        return Failed(words, "run this point by itself with murmurcast run", again=True, details=_where(problem))


def _carried_out(task: Task, on_progress: "Progress") -> Done:
    experiment, folder, place = experiment_files.from_values(task.values), Path(task.folder), Path(task.place)
    if not (folder / RUN).exists():
        require_folder(folder)
        with locked(folder, _SECONDS_TO_LEAVE):
            if not (folder / RUN).exists():  # else a worker of before has just finished it
                _train(experiment, task.name, folder, place, on_progress)
    run = load_run(folder)
    if differing := differences(run.experiment, experiment.as_toml()):
        raise Altered(
            f"{folder} holds a run of another experiment: {differing}", hint="restore the folder, or remove it"
        )
    return account(run, experiment, place)


def account(run: Result, experiment: Experiment, place: Path) -> Done:
    """What a finished run costs and what it reached: an epsilon only where `certify` would keep it.

    Args:
        run: The run.
        experiment: What it is a run of; a method of the user's own that it names is asked for its account.
        place: Where the experiment's files lie.
    """
    from murmurcast.certificates.compare import shown
    from murmurcast.experiments.rebuild import Rebuilder

    name = experiment.algorithm.name
    own = () if name in registry.NAMES else (registry.find(name),)
    privacy = shown(run, own, Rebuilder(place)).info["privacy"]
    metric = next(one for one in ("published_accuracy", "published_loss") if one in run.metrics)
    refused = privacy["basis"] if privacy["basis"] != run.info["privacy"]["basis"] else ""
    return Done(privacy["epsilon"], refused, metric, float(run.final(metric).mean()))


def _train(experiment: Experiment, name: str, folder: Path, place: Path, on_progress: "Progress") -> None:
    """Trains from the beginning, or from the checkpoint that an earlier attempt left."""
    from murmurcast.runs.run import RunOptions, outcome  # here: who only hands tasks out need not wait for JAX

    section, seeds = experiment.run, seeds_of(experiment)
    resume = _is_begun(folder, experiment)
    problem, algorithm = experiment.build(place)
    require_space(folder, algorithm, problem, experiment)
    write_beginning(folder, experiment, place)
    options = RunOptions(
        evaluate_every=section.evaluate_every,
        name=name,
        experiment=experiment.as_toml(),
        folder=folder,
        checkpoint_every=section.checkpoint_every,
        resume=resume,
        on_progress=on_progress,
    )
    outcome(algorithm, problem, seeds, section.precision, options)


def _is_begun(folder: Path, experiment: Experiment) -> bool:
    """Whether the folder holds the beginning of this very run; another's is refused."""
    if not (folder / EXPERIMENT).exists():
        return False
    begun = (folder / EXPERIMENT).read_text(encoding="utf-8", errors="replace")
    if differing := differences(begun, experiment.as_toml()):
        raise Error(f"{folder} was begun with another experiment: {differing}", hint="remove the folder")
    return True


def _where(problem: Exception) -> str:
    """File, line and function of every call, without the values in them."""
    calls = traceback.extract_tb(problem.__traceback__)
    return "\n".join(f"  {call.filename}:{call.lineno} in {call.name}" for call in calls)
