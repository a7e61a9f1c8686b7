"""Chooses clip, steps and epochs on public data, so that the choice costs nothing of the private budget."""

import hashlib
import inspect
import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from murmurcast import _check, _files
from murmurcast._json import json_text
from murmurcast._progress import Stage, quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Error
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.problem import names_own_code
from murmurcast.experiments.public_data import PublicData, on_public_data
from murmurcast.experiments.tune_search import Choices, OnTry, Setting, Try, best, edges, search
from murmurcast.experiments.tuning import Tuning, changes
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import MAX_EPOCHS, Decay
from murmurcast.privacy.settings_chosen import PublicChoice
from murmurcast.problems.model import Model
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression
from murmurcast.radio.settings import Radio
from murmurcast.runs.folder_lock import locked
from murmurcast.runs.require import require_clip, require_planned_for
from murmurcast.runs.result import require_folder, spread_over_seeds
from murmurcast.runs.variants import Train, trainer

_Examples = SoftmaxRegression | RidgeRegression | Model
TRIES = "tries"  # the folder of what is done
MAX_SEEDS = 1000
_FORMAT = 1
_MOST_GIVEN = 100  # values of one kind


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """What to try, and where to keep it.

    Args:
        clips: What to try of privacy.clip; () searches around the experiment's own, one value fixes it.
        steps: The same of schedule.step. Given steps are taken as they are; others follow clip, epochs and decay.
        epochs: The same of schedule.epochs; () tries no more than the experiment's own.
        decays: The same of schedule.decay.
        seeds: How many seeds every value is a mean of.
        folder: Where to keep every try, so that a search that was stopped goes on; None keeps nothing.
        on_stage: Told what begins before the first try.
        on_try: Told how far the search has come.
    """

    clips: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()
    epochs: tuple[int, ...] = ()
    decays: tuple[Decay, ...] = ()
    seeds: int = 3
    folder: Path | str | None = None
    on_stage: Stage = quiet
    on_try: OnTry = quiet

    def __post_init__(self) -> None:
        for clip in self.clips:
            _check.positive(clip=clip)
        for step in self.steps:
            _check.positive(step=step)
        for epochs in self.epochs:
            _check.at_least(2, epochs=epochs)
            _check.at_most(MAX_EPOCHS, epochs=epochs)
        for decay in self.decays:
            _check.one_of(("constant", "sqrt", "linear"), decay=decay)
        _check.at_least(1, seeds=self.seeds)
        _check.at_most(MAX_SEEDS, seeds=self.seeds)
        for name in ("clips", "steps", "epochs", "decays"):
            given = getattr(self, name)
            if len(set(given)) < len(given) or len(given) > _MOST_GIVEN:
                raise Error(
                    f"{name} is {given!s:.60}, expected up to {_MOST_GIVEN} different values", hint="give each once"
                )


class _Job(NamedTuple):
    """What is the same for all tries. The experiment is the public one: nothing here names the private set."""

    experiment: Experiment
    place: Path
    network: Network
    radio: Radio | None
    problem: _Examples
    metric: str
    seeds: tuple[int, ...]
    fingerprint: str


def tune(
    experiment: Experiment, *, public: Path | str, options: TuneOptions | None = None, place: Path | str = "."
) -> Tuning:
    """Chooses clip, step, decay and epochs by training on public data, and never reads the private set.

    The public set takes the place of the private one: the same network, partition rule, features, problem, method and
    budget, and centring and whitening released anew. Each setting is trained on the public training part and judged by
    the published models on the public test part.

    Args:
        experiment: About the private set, of which only what the file says is looked at.
        public: A set by name, or a file of the same layout; a relative path starts at the working folder.
        options: What to try, and where to keep it.
        place: Where relative files of the experiment start.

    Guarantees:
        No record of the private set is read, so the choice does not depend on them and costs nothing; if the public
        set has none of its records. That a copy of the private set is not called public, nobody can check without
        reading both.
    """
    _check.instance(Experiment, experiment=experiment)
    chosen = options or TuneOptions()
    source = on_public_data(experiment, public, Path(place), chosen.on_stage)
    job = _job(source, chosen, Path(place))
    kept = None if chosen.folder is None else Path(chosen.folder) / TRIES
    if kept is not None:
        require_folder(kept)
    choices, first = _choices(experiment, chosen), _setting(experiment)
    largest = job.metric == "accuracy"
    _algorithm(job, job.problem, first)  # what no setting can mend is said before the first try
    with nullcontext() if kept is None else locked(kept):
        tries = search(first, choices, _judge(job, kept), chosen.on_try, largest=largest)
    return _tuning(experiment, source, job, tries, choices)


def _tuning(experiment: Experiment, source: PublicData, job: _Job, tries: tuple[Try, ...], choices: Choices) -> Tuning:
    """The best of the tries, written into the private experiment."""
    chosen = best(tries, largest=job.metric == "accuracy")
    if chosen is None:
        why = next((one.refused for one in tries if one.refused), "training diverges with every one of them")
        raise Error(
            f"none of {len(tries)} settings can be used: {why}", hint="try smaller steps: --try step=0.001,0.01,0.1"
        )
    statement = PublicChoice(source.name, source.sha256, len(tries)).statement
    sections: dict[str, Any] = {}
    for (section, key), value in changes(chosen.setting, statement, experiment.schedule).items():
        sections.setdefault(section, {})[key] = value
    dataset = job.problem.data.dataset
    first = _setting(experiment)
    return Tuning(
        public=source.name,
        sha256=source.sha256,
        training=len(dataset.features),
        test=len(dataset.test_features),
        metric=job.metric,
        seeds=len(job.seeds),
        tries=tries,
        chosen=chosen,
        as_in_file=next((one for one in tries if one.setting == first), None),
        warnings=(*source.warnings, *_about_size(experiment, job), *edges(chosen.setting, tries, choices)),
        experiment=experiment.model_copy(
            update={name: getattr(experiment, name).model_copy(update=values) for name, values in sections.items()}
        ),
    )


def _setting(experiment: Experiment) -> Setting:
    schedule = experiment.schedule
    return Setting(float(experiment.privacy.clip), float(schedule.step), schedule.epochs, schedule.decay)


def _choices(experiment: Experiment, options: TuneOptions) -> Choices:
    """What is left to the search, and what the experiment fixes."""
    clips, epochs = options.clips, options.epochs
    if experiment.problem.clipping == "none":
        if clips:
            raise Error(
                "gradients are not clipped, so there is no clip to choose",
                hint='leave --try clip out, or set problem.clipping to "example" or "node"',
            )
        clips = (experiment.privacy.clip,)
    if experiment.run.stop_after is not None or experiment.run.drops:
        if epochs:
            raise Error(
                "run.stop_after and run.drops fix when nodes stop, so there is no number of epochs to choose",
                hint="leave --try epochs out, or both keys",
            )
        epochs = (experiment.schedule.epochs,)
    return Choices(tuple(map(float, clips)), tuple(map(float, options.steps)), epochs, options.decays)


def _job(source: PublicData, options: TuneOptions, place: Path) -> _Job:
    experiment = source.experiment
    radio = experiment.build_radio(place)
    network = experiment.build_network(place)
    try:
        problem = experiment.build_problem(network.nodes, place, options.on_stage)
    except Error as problem_found:
        raise Error(
            f'the public set "{source.name}" cannot take the private one\'s place: {problem_found}',
            hint=problem_found.hint,
        ) from None
    if not isinstance(problem, SoftmaxRegression | RidgeRegression | Model):
        raise Error("the problem learns from no examples", hint='use problem.kind "softmax", "ridge" or "model"')
    metric = "loss" if problem.data.dataset.classes is None else "accuracy"
    options.on_stage("looking for what is done")
    fingerprint = _fingerprint(experiment, problem, network, radio)
    return _Job(experiment, place, network, radio, problem, metric, tuple(range(options.seeds)), fingerprint)


def _fingerprint(experiment: Experiment, problem: _Examples, network: Network, radio: Radio | None) -> str:
    """Of everything that all tries depend on besides what the experiment's text says."""
    old = problem.data.dataset
    arrays = (old.features, old.targets, old.test_features, old.test_targets, *problem.data.rows)
    gains = network.gains
    channel = (gains.data, gains.indices, gains.indptr, network.power)
    trace = "" if radio is None or radio.trace is None else radio.trace.sha256
    words = (sha256_of(arrays), sha256_of(channel), trace, _own_code(experiment))
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _own_code(experiment: Experiment) -> tuple[str, ...]:
    """The hashes of the files that a user's own method and module are in; of the house's, the version tells."""
    definitions = []
    if experiment.algorithm.name not in registry.NAMES:
        definitions.append(registry.find(experiment.algorithm.name).make)
    if names_own_code(experiment.problem):
        definitions.append(_check.own_code(str(experiment.problem.module), "module"))
    paths = [_source(one) for one in definitions]
    return tuple("" if path is None else hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)


def _source(definition: Any) -> Path | None:
    """The file that something is defined in; None where it has none."""
    plain = inspect.unwrap(definition) if callable(definition) else definition
    try:
        path = inspect.getsourcefile(plain if inspect.isroutine(plain) or inspect.isclass(plain) else type(plain))
    except TypeError:
        return None
    return None if path is None else Path(path)


def _algorithm(job: _Job, problem: _Examples, setting: Setting) -> Algorithm:
    """The method with this setting, planned for the public problem."""
    changed = _entered(job.experiment, setting)
    method = registry.find(changed.algorithm.name)
    build = changed.build_plan if method.needs_plan else changed.build_setup
    algorithm = changed.build_algorithm(build(job.place, quiet, problem, job.network, job.radio))
    require_planned_for(algorithm, problem)
    require_clip(problem, "float32")
    return algorithm


def _entered(experiment: Experiment, setting: Setting) -> Experiment:
    schedule = {"step": setting.step, "epochs": setting.epochs, "decay": setting.decay}
    return experiment.model_copy(
        update={
            "privacy": experiment.privacy.model_copy(update={"clip": setting.clip}),
            "schedule": experiment.schedule.model_copy(update=schedule),
        }
    )


def _judge(job: _Job, kept: Path | None) -> Callable[[Setting], Try]:
    """Trains settings, each at most once: what is in the folder is not trained again."""
    programs: dict[tuple[float, int], tuple[_Examples, Train]] = {}

    def trained(setting: Setting) -> Try:
        place = (setting.clip, setting.epochs)
        if place not in programs:
            programs.clear()  # each holds a copy of the data
            problem = replace(job.problem, clip=setting.clip)
            programs[place] = problem, trainer(problem, job.seeds)
        problem, train = programs[place]
        by_seed = train(_algorithm(job, problem, setting))[f"published_{job.metric}"].mean(axis=1)
        spread = float(spread_over_seeds(by_seed)) if len(by_seed) > 1 else math.nan
        return Try(setting, float(np.mean(by_seed)), spread)

    def judged(setting: Setting) -> Try:
        path, key = None, _key(job, setting)
        if kept is not None:
            path = kept / f"{key[:32]}.json"
            if (done := _read(path, key, setting)) is not None:
                return done
        try:
            attempt = trained(setting)
        except Error as problem:  # of this setting: what holds for all of them was said before the first
            attempt = Try(setting, math.nan, refused=str(problem))
        if path is not None:
            content = {"key": key, **setting._asdict(), "value": attempt.value, "spread": attempt.spread}
            _files.write_atomically(path, json_text({**content, "refused": attempt.refused}, indent=1).encode())
        return attempt

    return judged


def _key(job: _Job, setting: Setting) -> str:
    """Of everything that a try depends on."""
    text = _entered(job.experiment, setting).as_toml()
    words = (_FORMAT, version("murmurcast"), job.fingerprint, text, job.seeds, job.metric)
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _read(path: Path, key: str, setting: Setting) -> Try | None:
    """A try that is done; None where there is none, or where what is there cannot be read."""
    try:
        values = json.loads(path.read_bytes())
        if values["key"] != key:
            return None
        return Try(setting, _number(values["value"]), _number(values["spread"]), str(values["refused"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _about_size(experiment: Experiment, job: _Job) -> tuple[str, ...]:
    """Where the file says how large the private problem is, and the public one is not."""
    lines = []
    dim = experiment.problem.dim
    if dim is not None and dim != job.problem.dim:
        lines.append(
            f"problem.dim is {dim}, and the model has {job.problem.dim} parameters on the public set: what suits one "
            "need not suit the other"
        )
    said, counts = experiment.privacy.examples_per_node, job.problem.examples_per_node
    if said is not None and counts is not None and experiment.privacy.unit == "record":
        mean = float(np.mean(said))
        if not 0.5 <= mean / float(np.mean(counts)) <= 2:
            lines.append(
                f"privacy.examples_per_node is {mean:g} in the mean, and {np.mean(counts):g} on the public set: one "
                "record weighs otherwise, and so does the noise that hides it"
            )
    return tuple(lines)
