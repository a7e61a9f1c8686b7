"""Runs an experiment at many points: side by side, with retries, and never twice."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from murmurcast import _check, _files
from murmurcast._progress import quiet
from murmurcast.errors import Error
from murmurcast.experiments import load as experiment_files
from murmurcast.experiments.begin import differences, seeds_of
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.data import is_file_of_data
from murmurcast.experiments.settle import settle
from murmurcast.experiments.sweep_points import Range, as_grid, as_ranges, points
from murmurcast.experiments.sweep_state import CountsPoints, State, Watch, as_watch
from murmurcast.experiments.sweep_task import Done
from murmurcast.experiments.sweep_workers import LocalWorkers, Workers, cores
from murmurcast.runs.folder_lock import LOCK, locked
from murmurcast.runs.result import EXPERIMENT, Result, require_folder, require_place
from murmurcast.runs.sweep import (
    DATASET,
    TABLE,
    Failure,
    Manifest,
    Point,
    Sweep,
    is_done,
    is_sweep,
    load_runs,
    point_of,
    read_experiment,
    read_manifest,
    write_manifest,
)
from murmurcast.runs.sweep_data import as_csv, as_netcdf, dataset

_TICK = 0.5  # seconds between looks at the clock


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """What a sweep varies besides a grid, and how it is carried out; the latter changes no draw and no promise.

    On another number of cores for each point sums may differ in their last digits.

    Args:
        ranges: Ranges to draw from, by dotted key: (low, high) or (low, high, "log").
        random: How many draws from the ranges; each is combined with every point of the grid.
        seed: Of the draws; by default as the experiment says, or 0.
        seeds: Run seeds 0 to N-1 at every point; by default as the experiment says.
        folder: Where to keep it; `sweeps/NAME-OF-FILE` by default.
        workers: How many points at a time; one per core by default. They share the cores.
        retries: How often a point is tried again whose worker died.
        ray: Whether a Ray cluster does the work, or a Ray instance that is started here.
        ray_address: Of the cluster; None starts an instance here.
        on_change: Told how it stands; what `murmurcast.progress` yields is told how many points are done.
    """

    ranges: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    random: int | None = None
    seed: int | None = None
    seeds: int | None = None
    folder: Path | str | None = None
    workers: int | None = None
    retries: int = 2
    ray: bool = False
    ray_address: str | None = None
    on_change: Watch | CountsPoints = quiet

    def __post_init__(self) -> None:
        if self.workers is not None:
            _check.at_least(1, workers=self.workers)
        _check.at_least(0, retries=self.retries, seed=0 if self.seed is None else self.seed)
        if self.ray_address is not None and not self.ray:
            raise Error("the address of a Ray cluster is given, and Ray is not asked for", hint="set ray=True (--ray)")
        if isinstance(self.on_change, ContextDecorator) or not isinstance(self.on_change, CountsPoints | Watch):
            raise Error(
                f"on_change is {type(self.on_change).__name__}, expected a function, or what mc.progress() yields",
                hint='write "with mc.progress() as bar:", and in it mc.SweepOptions(on_change=bar)',
            )


def sweep(
    experiment: Experiment | Path | str,
    grid: Mapping[str, Sequence[Any]] | None = None,
    options: SweepOptions | None = None,
    place: Path | str | None = None,
) -> Sweep:
    """Runs an experiment at all combinations of some values, and returns one labelled data set of what came out.

    Every point is an ordinary run, kept in the sweep's folder. What is done there is never run again: the same call
    goes on after a stop, a crash or a full disk, and a grid with further values runs those only. A point that cannot
    be run is reported in `failures`, and the others go on.

    Args:
        experiment: The experiment, or its file.
        grid: Values by dotted key, such as {"privacy.epsilon": [0.5, 1.0, 2.0]}; they come before those of [sweep].
        options: What else is varied, and how it is carried out.
        place: Where relative files of the experiment start; the folder of its file by default.

    Guarantees:
        None for the sweep itself: whoever chooses settings by it has looked at the data, and that is not paid. Each
        epsilon is what one run with these settings, fixed beforehand, costs.
    """
    chosen = options or SweepOptions()
    if not isinstance(experiment, Experiment):
        path = Path(experiment)
        experiment, place = experiment_files.load(path), path.parent if place is None else place
        chosen = _in(chosen, Path("sweeps") / path.stem)
    chosen = _in(chosen, Path("sweeps") / "sweep")
    job = _job(experiment, {} if grid is None else grid, chosen, Path(place or "."))
    workers = _workers(chosen, len(job.experiments))  # first: where nobody can work, nothing is begun
    try:
        require_folder(job.folder)
        with locked(job.folder):
            job = _begun(job)
            done, failures = _carry_out(job, chosen, workers)
            write_manifest(job.folder, job.manifest._replace(failures=failures))
            swept = _read(job.folder, {name: one.epsilon for name, one in done.items()})
            if swept.runs:
                _files.write_atomically(job.folder / DATASET, as_netcdf(swept.data))
                _files.write_atomically(job.folder / TABLE, as_csv(swept.to_frame()))
    finally:
        workers.stop()  # for the second time, but where the sweep was refused
    return swept


def load_sweep(folder: Path | str) -> Sweep:
    """Reads a sweep from its runs, as far as they are done; an altered run is an error.

    Epsilons are recomputed from the runs' ledgers, as `certify` does.
    """
    return _read(Path(folder), None)


class _Job(NamedTuple):
    """A sweep before it begins."""

    folder: Path
    place: Path
    base: Experiment
    manifest: Manifest
    experiments: dict[str, Experiment]


def _in(options: SweepOptions, folder: Path) -> SweepOptions:
    """With a folder, where none is given."""
    return options if options.folder is not None else replace(options, folder=folder)


def _job(experiment: Experiment, grid: Mapping[str, Sequence[Any]], options: SweepOptions, place: Path) -> _Job:
    """All points, each as an experiment that makes sense."""
    section = experiment.sweep
    ranges = (
        {} if section is None else {key: Range(one.low, one.high, one.scale) for key, one in section.ranges.items()}
    )
    ranges |= as_ranges(options.ranges)
    varied = as_grid({} if section is None else section.grid) | as_grid(grid)
    draws = options.random if options.random is not None or section is None else section.random
    seed = options.seed if options.seed is not None else 0 if section is None else section.seed
    all_points = points(varied, ranges, draws, seed)
    seeds = options.seeds if options.seeds is not None or section is None else section.seeds
    base = experiment_files.with_changes(experiment, {} if seeds is None else {"run.seeds": seeds})
    experiments = {point.name: _at(base, point, place) for point in all_points}
    folder = Path(options.folder or "sweeps")
    require_place(folder)
    manifest = Manifest(
        axes=tuple(all_points[0].values),
        points=all_points,
        drawn=tuple(ranges),
        files=_files_of(experiments, place),
        experiment=_hash(base.as_toml()),
    )
    return _Job(folder, place, base, manifest, experiments)


def _at(base: Experiment, point: Point, place: Path) -> Experiment:
    """The experiment at a point."""
    from murmurcast.runs.require import require_settings

    try:
        experiment = settle(experiment_files.with_changes(base, point.values), place)
        experiment.build_budget()  # where its numbers make no sense, it says so
        seeds, section = seeds_of(experiment), experiment.run
        require_settings(seeds, section.evaluate_every, section.checkpoint_every, section.precision)
    except Error as problem:
        words = ", ".join(f"{key} = {point.text(key)}" for key in point.values)
        raise Error(f"{problem} (at {words})", hint=problem.hint) from None
    if experiment.privacy.noise_source == "secure":
        raise Error(
            "a sweep has no secure noise: it compares, a point that is tried again would be paid again, and so would "
            "every further point",
            hint='set privacy.noise_source = "seeded", and run the chosen setting by itself',
        )
    return experiment


def _files_of(experiments: Mapping[str, Experiment], place: Path) -> dict[str, str]:
    """SHA-256 of all files that the experiments name and that are there."""
    names = set()
    for one in experiments.values():
        names |= {one.network.file, one.radio.trace if one.radio is not None else None}
        names |= {one.data.name} if one.data is not None and is_file_of_data(one.data.name) else set()
    paths = {name: place / name for name in names if name is not None and (place / name).is_file()}
    return {Path(name).name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(paths.items())}


def _begun(job: _Job) -> _Job:
    """Writes what the folder holds from its beginning, or goes on with a sweep of the same experiment."""
    folder, text = job.folder, job.base.as_toml()
    if not is_sweep(folder):
        if any(entry.name not in (LOCK, EXPERIMENT) for entry in folder.iterdir()):
            raise Error(f"{folder} is not empty, and holds no sweep", hint="choose another folder with --out")
    else:
        before = read_manifest(folder)
        job = _in_order(job, before.axes)
        job = job._replace(manifest=_grown(job, before, text))
    _files.write_atomically(folder / EXPERIMENT, text.encode())
    write_manifest(folder, job.manifest)
    return job


def _grown(job: _Job, before: Manifest, text: str) -> Manifest:
    """The manifest of a sweep that goes on: what is done stays a part of it."""
    folder, now = job.folder, job.manifest
    hint = "sweep with the file and the options it was begun with, or choose another folder with --out"
    if before.axes != now.axes or set(before.drawn) != set(now.drawn):
        words = f"it varies {', '.join(before.axes)}, and this one {', '.join(now.axes)}"
        raise Error(f"{folder} holds another sweep: {words}", hint=hint)
    if differing := differences(read_experiment(folder), text, left_out=now.axes):
        raise Error(f"{folder} holds a sweep of another experiment: {differing}", hint=hint)
    for name, digest in now.files.items():
        if before.files.get(name, digest) != digest:
            raise Error(f"{folder} holds a sweep of another experiment: {name} has changed since", hint=hint)
    kept = [point for point in before.points if is_done(folder, point)]
    merged = {point.name: point for point in (*now.points, *kept)}
    return now._replace(points=tuple(merged.values()), files=before.files | now.files)


def _in_order(job: _Job, axes: tuple[str, ...]) -> _Job:
    """With the names that points have in the folder: these follow the order in which the keys were first given."""
    if set(job.manifest.axes) != set(axes):
        return job
    points = {point.name: point_of({key: point.values[key] for key in axes}) for point in job.manifest.points}
    manifest = job.manifest._replace(axes=axes, points=tuple(points.values()))
    return job._replace(
        manifest=manifest, experiments={points[name].name: one for name, one in job.experiments.items()}
    )


def _carry_out(job: _Job, options: SweepOptions, workers: Workers) -> tuple[dict[str, Done], tuple[Failure, ...]]:
    """All tasks, as many at a time as there are workers."""
    wanted = [point for point in job.manifest.points if point.name in job.experiments]
    watch = as_watch(options.on_change)
    state = State(job.folder, job.place, wanted, job.experiments, options.retries)
    try:
        while state.is_open:
            while state.has_room(workers.slots):
                workers.submit(state.next_task())
            event = workers.next_event(_TICK)
            if event is not None and event.progress is not None:
                state.goes_on(event.task, event.progress)
            elif event is not None:
                state.ended(event.task, event.outcome)
            watch(state.statuses, state.seconds_left(workers.slots))
    finally:
        workers.stop()
        state.write_log()
    return state.done, state.failures


def _workers(options: SweepOptions, tasks: int) -> Workers:
    if options.ray:
        from murmurcast.experiments.sweep_ray import RayWorkers

        return RayWorkers(options.ray_address, options.workers)
    return LocalWorkers(min(options.workers or cores(), tasks))


def _read(folder: Path, epsilons: Mapping[str, float | None] | None) -> Sweep:
    """The sweep as its folder holds it."""
    manifest = read_manifest(folder)
    runs = load_runs(folder, manifest)
    text = read_experiment(folder)
    known = dict(epsilons or {})
    costs = {name: known[name] if name in known else _cost(run) for name, run in runs.items()}
    return Sweep(
        folder=folder,
        axes=manifest.axes,
        points=manifest.points,
        runs=runs,
        failures=tuple(one for one in manifest.failures if one.name not in runs),
        drawn=manifest.drawn,
        experiment=text,
        epsilons=costs,
        data=dataset(manifest.axes, manifest.points, runs, costs, drawn=bool(manifest.drawn)),
    )


def _cost(run: Result) -> float | None:
    """What a run costs, by its account; code that a folder names is not run."""
    from murmurcast.certificates.compare import shown
    from murmurcast.experiments.rebuild import Rebuilder

    epsilon: float | None = shown(run, (), Rebuilder()).info["privacy"]["epsilon"]
    return epsilon


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
