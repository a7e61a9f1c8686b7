"""The experiment in the folder of a run, and the data it is about, for commands that do the run again."""

from pathlib import Path

from murmurcast.errors import Error


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
            f"{path} holds no {EXPERIMENT}: it is no run of an experiment file",
            hint=f"name the folder of a run that murmurcast run made; where it was made in Python, {otherwise}",
        )
    if not (path / EXPERIMENT).read_bytes().strip():
        raise Error(f"{path / EXPERIMENT} is empty: the run was made in Python", hint=otherwise)
    return path / EXPERIMENT


def place_of_data(folder: Path, name: str, otherwise: str) -> str:
    """Where the data of a run are: a run keeps only the name of a file, which may lie beside it or here.

    Args:
        folder: Of the run.
        name: Of the set, or of its file.
        otherwise: What to do where the file is in neither place.
    """
    if Path(name).suffix not in (".npz", ".csv", ".parquet"):
        return name
    for place in (folder, Path()):
        if (place / name).is_file():
            return str((place / name).resolve())
    raise Error(f"{name}, the data of {folder}, is neither there nor in this folder", hint=otherwise)
