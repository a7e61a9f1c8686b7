"""A run and the folder it is kept in: metrics, ledger, experiment, published models.

The folder is written file by file and is complete only with `run.json`, which comes last and holds the SHA-256 of all
others: what was cut short, mixed up or edited does not load.
"""

import hashlib
import json
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murmurcast import _check, _files
from murmurcast._display import html_of
from murmurcast.errors import Altered, Error, NotWritten
from murmurcast.runs import sealed, validate
from murmurcast.runs.labelled import Labelled, frame, from_xarray
from murmurcast.runs.radio_use import RadioUse, radio_use

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

RUN, EXPERIMENT, METRICS, TABLE, LEDGER, MODELS, CHECKPOINT = (
    "run.json",
    "experiment.toml",
    "metrics.nc",
    "metrics.csv",
    "ledger.nc",
    "published.npz",
    "checkpoint.npz",
)
CERTIFICATE = "certificate.json"  # written by `murmurcast certify`, and no part of the run
DATA_KEY = "data.key"  # opens the commitment to the data; no part of the run either, so that it can be kept back
BEGUN = "data.commitment"  # to the data of a run that is under way
FILES = (RUN, EXPERIMENT, METRICS, TABLE, LEDGER, MODELS, CHECKPOINT, CERTIFICATE, DATA_KEY, BEGUN)
_FORMAT = 2
LEDGER_FORMAT = 2
_TABLES = 64  # of a round, or metrics: far more than there are
_SMALL = 2**20  # bytes: what a file holds besides its numbers
_NAMES_UP_TO = 4  # runs, in a line


class Outcome(NamedTuple):
    """What came out of a run, before anybody looks at it through xarray; attributes as of `Result`."""

    metrics: Labelled
    ledger: Labelled
    published: NDArray[Any]
    info: dict[str, Any]
    experiment: str = ""
    data_key: str = ""

    @property
    def name(self) -> str:
        """What the run is called."""
        return str(self.info["name"])

    @property
    def radio(self) -> RadioUse | None:
        """As of `Result`."""
        arrays = {name: one.values for name, one in self.ledger.variables.items()}
        return radio_use(self.ledger.attributes, arrays)

    def final(self, metric: str) -> NDArray[Any]:
        """A metric at the last evaluated epoch, [seed, node] or [seed]."""
        _require_metric(metric, self.metrics.variables)
        dims, values = self.metrics.variables[metric]
        return np.asarray(values.take(-1, dims.index("epoch")))

    @property
    def node_names(self) -> tuple[str, ...]:
        """As of `Result`."""
        return _node_names(self.info)

    @property
    def left_by_method(self) -> tuple[str, ...]:
        """As of `Result`."""
        return _left_by_method({name: one.dims for name, one in self.metrics.variables.items()})

    def result(self) -> "Result":
        """The same for people."""
        return Result(
            metrics=self.metrics.to_xarray(),
            ledger=self.ledger.to_xarray(),
            published=self.published,
            info=self.info,
            experiment=self.experiment,
            data_key=self.data_key,
        )

    def save(self, folder: Path | str) -> None:
        """Writes the folder; `load_run` accepts it only when all of it is there."""
        folder = Path(folder)
        require_folder(folder)
        contents = {
            EXPERIMENT: self.experiment.encode(),
            METRICS: self.metrics.to_netcdf(),
            TABLE: self.metrics.to_csv(),
            LEDGER: self.ledger.to_netcdf(),
        }
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        (folder / RUN).unlink(missing_ok=True)
        for name, content in contents.items():
            _files.write_atomically(folder / name, content)
        with _files.writing(folder / MODELS) as stream:  # the models of a large network are not held twice
            np.savez(stream, published=self.published)
        hashes[MODELS] = sealed.hash_of(folder / MODELS)
        hashes[RUN] = _hash_of(self.info)
        whole = json.dumps({"format": _FORMAT, **self.info, "sha256": hashes}, indent=2, allow_nan=False) + "\n"
        if self.data_key:
            write_data_key(folder, self.data_key)
        _files.write_atomically(folder / RUN, whole.encode())
        for name in (CHECKPOINT, BEGUN):
            (folder / name).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What came out of a run.

    Attributes:
        metrics: Numbers at the evaluated epochs, labelled. [seed, epoch, node]: `own_*` and `published_*` (loss,
            accuracy, distance to the optimum, as the problem has them) and `sent_power` (energy sent over budget).
            [seed, epoch]: `mean_*` of the mean of all own models, and `consensus_error`. [epoch]: `channel_uses`,
            `seconds`. [seed, node]: `loudest`, the largest `sent_power` of all epochs. Over a radio also `air_seconds`
            [epoch], with the radio's `compute_seconds`, and `joules` [epoch, node], both so far. Of more than 1,024
            nodes a sample of 256 is evaluated: `node` has their numbers, and `sent_power`, `loudest` and `joules` have
            all nodes, along `sender`.
        ledger: What was sent, by which rule: every constant that the engine was given.
        published: [seed, node, ...] the models that nodes may publish.
        info: Names, seeds, versions, duration and kind of machine; what `run.json` holds.
        experiment: The experiment file as resolved; empty for a run made in Python.
        folder: Where it was read from; None for a run that was just made.
        data_key: Opens the commitment to the data, `info["data_commitment"]`; empty for a run that was read.
    """

    metrics: "xr.Dataset"
    ledger: "xr.Dataset"
    published: NDArray[Any]
    info: dict[str, Any]
    experiment: str = ""
    folder: Path | None = None
    data_key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """What the run is called."""
        return str(self.info["name"])

    @property
    def node_names(self) -> tuple[str, ...]:
        """What the nodes are called: as in the network or in the data, or by their numbers."""
        return _node_names(self.info)

    @property
    def left_by_method(self) -> tuple[str, ...]:
        """Names of the metrics [seed, epoch, node] that a method's updates left, besides those that every run has."""
        return _left_by_method({str(name): values.dims for name, values in self.metrics.items()})

    @property
    def radio(self) -> RadioUse | None:
        """The radio that carried the signals, and what an epoch takes on it; None for a run without one."""
        return radio_use(self.ledger.attrs, self.ledger)

    def final(self, metric: str) -> NDArray[Any]:
        """A metric at the last evaluated epoch, [seed, node] or [seed]."""
        _require_metric(metric, [name for name, values in self.metrics.items() if "epoch" in values.dims])
        return np.asarray(self.metrics[metric].isel(epoch=-1))

    def to_frame(self) -> "pd.DataFrame":
        """The metrics as a tidy table of pandas, as in metrics.csv: a row for every seed, epoch and node.

        Of more than a million such rows, means over nodes.
        """
        return frame(self.metrics)

    def _repr_html_(self) -> str:
        return html_of(self)

    def save(self, folder: Path | str) -> None:
        """Writes the folder; `load_run` accepts it only when all of it is there."""
        self.outcome().save(folder)

    def outcome(self) -> Outcome:
        """The same, as it is written."""
        metrics, ledger = from_xarray(self.metrics), from_xarray(self.ledger)
        return Outcome(metrics, ledger, self.published, self.info, self.experiment, self.data_key)


def _node_names(info: dict[str, Any]) -> tuple[str, ...]:
    """Names that a file gives are used only where there is a printable one for every node."""
    nodes, names = int(info["problem"]["nodes"]), info["problem"].get("names")
    try:
        return _check.node_names(nodes, names if isinstance(names, list) else ())
    except Error:
        return _check.node_names(nodes, ())


def _require_metric(name: object, known: Iterable[Hashable]) -> None:
    names = [str(metric) for metric in known]
    if name not in names:
        ending = [metric for metric in names if metric.endswith(f"_{name}")]  # accuracy: of which models?
        hint = f"ask for one of {', '.join(ending)}" if ending else _check.nearest(str(name), names)
        raise Error(f"the run has no metric {name!r:.60}", hint=hint)


def _left_by_method(metrics: Mapping[str, tuple[Hashable, ...]]) -> tuple[str, ...]:
    every, by_node = ("own_", "published_", "sent_power"), ("seed", "epoch", "node")
    return tuple(name for name, dims in metrics.items() if dims == by_node and not name.startswith(every))


def samples_in_words(*runs: Outcome | Result) -> tuple[str, ...]:
    """A line for metrics that are of a sample of nodes, one for every sample; of which runs, unless of all of them."""
    names: dict[tuple[int, int], list[str]] = {}
    for run in runs:
        nodes = int(run.info["problem"]["nodes"])
        labels = run.metrics.coordinates if isinstance(run, Outcome) else run.metrics
        if (evaluated := len(labels["node"])) < nodes:
            names.setdefault((evaluated, nodes), []).append(_check.printable(run.name))
    lines = []
    for (evaluated, nodes), sampled in names.items():
        few = ", ".join(sampled) if len(sampled) <= _NAMES_UP_TO else f"{len(sampled)} of {len(runs)} runs"
        whose = f" of {few}" if len(sampled) < len(runs) else ""
        lines.append(f"metrics{whose} are of a public sample of {evaluated} of {nodes} nodes")
    return tuple(lines)


def write_data_key(folder: Path, key: str) -> None:
    """Keeps the key of the commitment to the data where only its owner reads it."""
    _files.write_atomically(folder / DATA_KEY, f"{key}\n".encode())
    (folder / DATA_KEY).chmod(0o600)


def hash_of_start(start: NDArray[Any]) -> str:
    """The SHA-256 of where all nodes began, [seeds, ...], or [seeds, nodes, ...] where each has a point of its own."""
    return hashlib.sha256(start.tobytes()).hexdigest()


def spread_over_seeds(by_seed: NDArray[Any]) -> NDArray[Any]:
    """Standard deviation over the first axis; not a number where a run that diverged has no numbers left."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(by_seed.std(axis=0, ddof=1))


def load_run(folder: Path | str) -> Result:
    """Reads a run; an incomplete or altered folder is an error."""
    folder = Path(folder)
    info, hashes = _read_info(folder)
    with _reading(folder, RUN):
        validate.require_info(info)
    contents = {name: sealed.read_bytes(folder / name, most) for name, most in _most_bytes(info).items()}
    actual = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    actual[TABLE] = sealed.hash_of(folder / TABLE)
    for name, digest in actual.items():
        if digest != hashes.get(name):
            raise Altered(f"{folder / name} is not what the run wrote", hint="run it again, or restore the file")
    return _result(folder, contents, info)


def _most_bytes(info: dict[str, Any]) -> dict[str, int]:
    """How large a run's files can be at most, by what run.json says of it: known before anything else is read."""
    nodes, epochs, numbers = info["problem"]["nodes"], info["epochs"], 8  # bytes
    of_models = len(info["seeds"]) * nodes * numbers
    tables = _TABLES * len(info["rounds"]) * nodes * (epochs + nodes) * numbers
    sizes = {METRICS: _TABLES * of_models * epochs, LEDGER: tables, MODELS: of_models * info["problem"]["dim"]}
    return {EXPERIMENT: sealed.MAX_TEXT_BYTES} | {name: size + _SMALL for name, size in sizes.items()}


def listed(runs: object) -> list[Result]:
    """Several runs, at least one: the name of a folder is none."""
    if isinstance(runs, Result):
        raise Error("a run by itself is given, expected a list of runs", hint="put it in brackets: [run]")
    given: list[Any] = list(runs) if isinstance(runs, Iterable) and not isinstance(runs, str) else [runs]
    if not given:
        raise Error("no run is given", hint="name at least one")
    for run in given:
        if isinstance(run, str | Path):
            raise Error(f'"{run}" is a name, not a run', hint=f'read the run first: mc.load_run("{run}")')
        if not isinstance(run, Result):
            raise Error(
                f"{type(run).__name__} is given, expected a run",
                hint="give what mc.run or mc.load_run returned, each by itself",
            )
    return given


def file_hashes(folder: Path | str) -> dict[str, str]:
    """The SHA-256 of the files of a run, as `run.json` has them; `load_run` checks that they hold."""
    return _read_info(Path(folder))[1]


def _result(folder: Path, contents: dict[str, bytes], info: dict[str, Any]) -> Result:
    with _reading(folder, METRICS):
        metrics = sealed.dataset(contents[METRICS], METRICS)
        validate.require_metrics(metrics, info)
    with _reading(folder, LEDGER):
        ledger = sealed.dataset(contents[LEDGER], LEDGER)
        validate.require_ledger(ledger, info)
        validate.require_radio(metrics, ledger)
    with _reading(folder, MODELS):
        published = sealed.published(contents[MODELS])
        validate.require_published(published, info)
    with _reading(folder, EXPERIMENT):
        experiment = contents[EXPERIMENT].decode()
    return Result(metrics=metrics, ledger=ledger, published=published, info=info, experiment=experiment, folder=folder)


@contextmanager
def _reading(folder: Path, name: str) -> Iterator[None]:
    """Whatever goes wrong is this file's fault: its hash holds, so somebody made the hashes anew."""
    try:
        yield
    except validate.Unsound as problem:
        raise Altered(f'run "{folder}": {problem}', hint="restore the run's folder, or run it again") from None
    except _files.UNREADABLE as problem:
        raise Altered(
            f"{folder / name} cannot be read ({type(problem).__name__})", hint="run it again, or restore the file"
        ) from None


def _read_info(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What `run.json` says, and the hashes of all files; it must be as it was written."""
    if not folder.is_dir():
        raise Error(f"{folder} is not a folder", hint="name the folder of a run, such as runs/my")
    if not (folder / RUN).exists():
        stopped = (folder / CHECKPOINT).exists()
        raise Error(
            f"{folder} holds no finished run",
            hint="finish it: murmurcast run EXPERIMENT --out FOLDER --resume"
            if stopped
            else "name the folder of a run",
        )
    try:
        info = json.loads(sealed.read_bytes(folder / RUN, sealed.MAX_TEXT_BYTES))
        known, hashes = info.pop("format") == _FORMAT, info.pop("sha256")
        known = known and hashes[RUN] == _hash_of(info)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known = False
    if not known:
        raise Altered(f"{folder / RUN} is not of this version of murmurcast, or was altered", hint="run it again")
    return info, hashes


def _hash_of(info: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(info, sort_keys=True).encode()).hexdigest()


def require_unused(folder: Path, resume: bool) -> None:
    """No other run is in the folder, but the one to resume."""
    if (folder / RUN).exists():
        raise Error(f"{folder} already holds a finished run", hint="choose another folder, or remove it")
    if (folder / CHECKPOINT).exists() and not resume:
        raise Error(f"{folder} holds a run that was stopped", hint="resume it (--resume), or choose another folder")


def require_place(folder: Path) -> None:
    """The folder could be written to, or made: nothing is made yet."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise Error(f"{nearest} is not a folder", hint="choose another with --out")
    if not os.access(nearest, os.W_OK):
        raise Error(f"the folder {nearest} is not writable", hint="choose another with --out")


def require_folder(folder: Path) -> None:
    """The folder is there, or can be made, and can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise NotWritten(
            f"the folder {folder} cannot be made: {problem.strerror}", hint="choose another with --out"
        ) from None
    if not os.access(folder, os.W_OK):
        raise Error(f"the folder {folder} is not writable", hint="choose another with --out")
