"""A sweep's folder: an experiment, the points at which it is run, and a run for each of them.

    sweep.json       which keys are varied, all points, and why a point failed
    experiment.toml  what all of them share
    runs/POINT/      a run each, as any other
    sweep.nc, sweep.csv   what came out, labelled; made anew from the runs whenever the sweep goes on

What is done is what has a finished run: the folder of a run is complete only with its `run.json`, which comes last, so
that nothing has to be believed that a killed process may have left.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from murmurcast import _check, _files
from murmurcast._display import html_of
from murmurcast._json import json_text
from murmurcast.errors import Altered, Error
from murmurcast.runs.result import EXPERIMENT, RUN, Result, load_run
from murmurcast.runs.sealed import MAX_TEXT_BYTES, read_bytes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MANIFEST, RUNS, DATASET, TABLE, LOG = "sweep.json", "runs", "sweep.nc", "sweep.csv", "failures.log"
ALGORITHM, BUDGET = "algorithm.name", "privacy.epsilon"  # the axes that every plot shows by hue and by shade
_FORMAT = 1
_LONGEST_NAME = 100
_MADE_BY = "murmurcast sweep"
_RESTORE = "restore it, or sweep into another folder; the runs beside it can be read one by one"


class Point(NamedTuple):
    """One point of a sweep.

    Attributes:
        name: Of its run, and of the folder in `runs/`.
        values: What the varied keys are here, by dotted key.
    """

    name: str
    values: dict[str, Any]

    def text(self, key: str) -> str:
        """The value of a key, as a table shows it."""
        return text_of(self.values[key])


class Failure(NamedTuple):
    """A point that came to nothing.

    Attributes:
        name: Of the point.
        problem: What went wrong, the last time.
        hint: What to do about it.
        attempts: How often it was tried.
    """

    name: str
    problem: str
    hint: str
    attempts: int


class Manifest(NamedTuple):
    """What a sweep is about.

    Attributes:
        axes: Dotted keys, in the order in which they were given.
        points: All of them.
        drawn: Those of the axes whose values were drawn from a range; with any, points are no grid.
        files: SHA-256 of the files that the experiment names, by their names.
        failures: Of the points that failed when they were last tried.
        experiment: SHA-256 of the experiment.toml beside it.
    """

    axes: tuple[str, ...]
    points: tuple[Point, ...]
    drawn: tuple[str, ...]
    files: dict[str, str]
    failures: tuple[Failure, ...] = ()
    experiment: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """What came out of a sweep.

    Attributes:
        folder: Where it is kept.
        axes: What was varied, as dotted keys.
        points: All points, done or not.
        runs: The finished runs, by the names of their points.
        failures: Why others are not done.
        drawn: Those of the axes whose values were drawn from a range; with any, points are no grid.
        experiment: The experiment file that all of them share, as resolved.
        epsilons: What every finished run costs the node that pays most; None where nothing is promised, or where its
            account does not hold.
        data: All finished runs as one labelled data set. A grid has a dimension for every axis, points that were drawn
            have the dimension `point`; besides them there are `seed` and `epoch`. Metrics of nodes are means over
            nodes. `final_*` and `worst_*` are of the last epoch: of the mean over nodes, and of the worst node.
            `epsilon` is as above.
    """

    folder: Path
    axes: tuple[str, ...]
    points: tuple[Point, ...]
    runs: dict[str, Result]
    failures: tuple[Failure, ...]
    drawn: tuple[str, ...]
    experiment: str
    epsilons: dict[str, float | None]
    data: "xr.Dataset"

    @property
    def name(self) -> str:
        """What the sweep is called."""
        return self.folder.name

    @property
    def done(self) -> tuple[Point, ...]:
        """The points that have a finished run."""
        return tuple(point for point in self.points if point.name in self.runs)

    @property
    def missing(self) -> tuple[Point, ...]:
        """The points that have none."""
        return tuple(point for point in self.points if point.name not in self.runs)

    def __getitem__(self, name: str) -> Result:
        """The run of a point, by the point's name."""
        if name not in self.runs:
            raise Error(f"the sweep has no finished run {name!r:.80}", hint=_check.nearest(name, self.runs))
        return self.runs[name]

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_frame(self) -> "pd.DataFrame":
        """One row for every point and seed: the swept values, and the metrics of the last epoch."""
        from murmurcast.runs.sweep_data import frame

        return frame(self.axes, self.done, self.runs, self.epsilons)


def text_of(value: Any) -> str:
    """A value as a table shows it, short where that loses nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value)


def point_of(values: Mapping[str, Any]) -> Point:
    """A point, named after its values: the same values have the same name in every sweep over the same keys."""
    keys = list(values)
    words = []
    for key in keys:
        text = text_of(values[key])
        short = key.rsplit(".", 1)[-1]
        alone = sum(other.rsplit(".", 1)[-1] == short for other in keys) == 1
        words.append(text if key == ALGORITHM else f"{short if alone else key}-{text}")
    wanted = "_".join(words)
    name = re.sub(r"[^a-z0-9._+-]+", "-", wanted.lower()).strip("-.")[:_LONGEST_NAME]
    if name != wanted:  # something was lost, which a hash brings back
        name = f"{name}-{hashlib.sha256(json.dumps(dict(values)).encode()).hexdigest()[:8]}"
    return Point(name, dict(values))


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (folder / MANIFEST).is_file()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes all of it or nothing."""
    values = {
        "made_by": _MADE_BY,
        "format": _FORMAT,
        "axes": manifest.axes,
        "drawn": manifest.drawn,
        "points": [point._asdict() for point in manifest.points],
        "files": manifest.files,
        "experiment_sha256": manifest.experiment,
        "failures": [failure._asdict() for failure in manifest.failures],
    }
    _files.write_atomically(folder / MANIFEST, f"{json_text(values, indent=1)}\n".encode())


def read_manifest(folder: Path) -> Manifest:
    """What a sweep's folder says of itself; one that cannot be read is an error."""
    if not folder.is_dir():
        raise Error(f"{folder} is not a folder", hint="name the folder of a sweep, such as sweeps/my")
    if not is_sweep(folder):
        raise Error(f"{folder} holds no sweep", hint="name the folder of a sweep: it holds sweep.json")
    try:
        values = json.loads(read_bytes(folder / MANIFEST, MAX_TEXT_BYTES))
        if (values["made_by"], values["format"]) != (_MADE_BY, _FORMAT):
            raise ValueError("another version")
        axes = tuple(map(str, values["axes"]))
        manifest = Manifest(
            axes=axes,
            points=tuple(point_of({key: one["values"][key] for key in axes}) for one in values["points"]),
            drawn=tuple(map(str, values["drawn"])),
            files={str(name): str(digest) for name, digest in values["files"].items()},
            failures=tuple(
                Failure(str(one["name"]), str(one["problem"]), str(one["hint"]), int(one["attempts"]))
                for one in values["failures"]
            ),
            experiment=str(values["experiment_sha256"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Altered(
            f"{folder / MANIFEST} is not of this version of murmurcast, or was altered",
            hint=_RESTORE,
        ) from None
    return manifest


def read_experiment(folder: Path) -> str:
    """The experiment that all points of a sweep share; a folder without it was altered."""
    try:
        return read_bytes(folder / EXPERIMENT, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except Altered as problem:
        raise Altered(str(problem), hint=_RESTORE) from None


def is_done(folder: Path, point: Point) -> bool:
    """Whether the point has a finished run."""
    return (run_folder(folder, point) / RUN).is_file()


def run_folder(folder: Path, point: Point) -> Path:
    """Where the point's run is."""
    return folder / RUNS / point.name


def load_runs(folder: Path, manifest: Manifest) -> dict[str, Result]:
    """All finished runs of a sweep, by the names of their points."""
    return {point.name: _load_run(folder, point) for point in manifest.points if is_done(folder, point)}


def _load_run(folder: Path, point: Point) -> Result:
    """One of them; the sweep runs it again only where its folder is gone."""
    try:
        return load_run(run_folder(folder, point))
    except Altered as problem:
        raise Altered(
            str(problem),
            hint=f"restore it, or remove {run_folder(folder, point)}: the command of the sweep then runs it again",
        ) from None
