"""The experiment in the folder of a run, and the data it is about, for commands that do the run again."""

from pathlib import Path
from typing import TYPE_CHECKING

from murmurcast.errors import Error

if TYPE_CHECKING:
    from murmurcast.experiments.build import Experiment


def experiment_file(path: Path, otherwise: str) -> Path:
    """The experiment file: the path itself, or that of the run whose folder it is.

    Args:
        path: A file, or the folder of a run.
        otherwise: What to do about a run that was made in Python and has no such file.
    """
    from murmurcast.runs.result import EXPERIMENT

    if not path.is_dir():
        return path
    if not (path / EXPERIMENT).is_file():
        raise Error(
            f"{path} holds no {EXPERIMENT}: it is not a run of an experiment file",
            hint=f"name the folder of a run that murmurcast run made; where it was made in Python, {otherwise}",
        )
    if not (path / EXPERIMENT).read_bytes().strip():
        raise Error(f"{path / EXPERIMENT} is empty: the run was made in Python", hint=otherwise)
    return path / EXPERIMENT


def with_trace(experiment: "Experiment", folder: Path) -> "Experiment":
    """The same experiment of a run, its trace named by where it lies: a run keeps only the name of that file too."""
    radio = experiment.radio
    if radio is None or radio.trace is None:
        return experiment
    otherwise = f"copy {radio.trace} into the folder of the run, or start the command where it lies"
    update = {"trace": _place(folder, radio.trace, "the channel", otherwise)}
    return experiment.model_copy(update={"radio": radio.model_copy(update=update)})


def place_of_data(folder: Path, name: str, otherwise: str) -> str:
    """Where the data of a run are: a run keeps only the name of a file, which may lie beside it or here.

    Args:
        folder: Of the run.
        name: Of the set, or of its file.
        otherwise: What to do where the file is in neither place.
    """
    if Path(name).suffix not in (".npz", ".csv", ".parquet"):
        return name
    return _place(folder, name, "the data", otherwise)


def _place(folder: Path, name: str, what: str, otherwise: str) -> str:
    for place in (folder, Path()):
        if (place / name).is_file():
            return str((place / name).resolve())
    raise Error(f"{name}, {what} of {folder}, is neither there nor in this folder", hint=otherwise)
