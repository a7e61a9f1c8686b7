"""Ranks every method that can run on an experiment's network and problem, at equal cost and tuned alike."""

import hashlib
import inspect
import json
import math
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from murmurcast import _check, _files
from murmurcast._json import json_text
from murmurcast._progress import quiet
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.method import Method
from murmurcast.certificates.recompute import account_of
from murmurcast.data.fingerprint import sha256_of
from murmurcast.errors import Error
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.fair_terms import Contender, Steps, around, contenders, entered, lengths_in_steps
from murmurcast.experiments.validation import Examples, with_validation
from murmurcast.network.graph import Network
from murmurcast.problems.ridge import RidgeRegression
from murmurcast.problems.softmax import SoftmaxRegression
from murmurcast.runs.folder_lock import locked
from murmurcast.runs.ranking import NOBODY, LeftOut, Ranking, Score, Trial
from murmurcast.runs.require import require_carried_out
from murmurcast.runs.result import Result, require_folder
from murmurcast.runs.run import RunOptions, run
from murmurcast.runs.variants import Train, trainer

TUNING_SEEDS = (1_000_000, 1_000_001)  # none of those that are ranked
MAX_SEEDS = 1000
SCORES = "scores"  # the folder of what is done
_FORMAT = 2


class OnScore(Protocol):
    """Told how far a ranking has come."""

    def __call__(self, done: int, of: int, words: str, /) -> None:
        """How many scores are done, of how many, and which comes next."""
        ...


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """What to rank, and where to keep it.

    Args:
        epsilons: The budgets, each a total epsilon.
        uses: How often a method may use the channel, in all.
        seeds: How many seeds every score is a mean of.
        methods: Their names; () takes all of the house.
        unprotected: Whether methods that promise nothing are shown besides.
        folder: Where to keep every score, so that a ranking that was stopped goes on; None keeps nothing.
        on_score: Told how far it has come.
    """

    epsilons: tuple[float, ...] = (1.0, 3.0)
    uses: tuple[int, ...] = (40, 200)
    seeds: int = 5
    methods: tuple[str, ...] = ()
    unprotected: bool = False
    folder: Path | str | None = None
    on_score: OnScore = quiet

    def __post_init__(self) -> None:
        for epsilon in self.epsilons:
            _check.positive(epsilon=epsilon)
        for uses in self.uses:
            _check.at_least(2, uses=uses)
        _check.at_least(1, seeds=self.seeds)
        if self.seeds > MAX_SEEDS:
            raise Error(f"seeds is {self.seeds}, more than {MAX_SEEDS}", hint="give a smaller number")
        for name, values in (("epsilons", self.epsilons), ("uses", self.uses)):
            if not values or len(set(values)) < len(values):
                raise Error(f"{name} is {values}, expected one or several different numbers", hint="give each once")
        for method in self.methods:
            registry.find(method)


class _Job(NamedTuple):
    """What is the same for all scores of a ranking."""

    experiment: Experiment
    place: Path
    network: Network
    problem: Examples
    tuning: Examples
    train: Train
    options: RankOptions
    data: str


class _Place(NamedTuple):
    """One score to find: a method at a budget, and how often an epoch of it uses the channel."""

    contender: Contender
    against: str
    epsilon: float | None
    uses: int
    uses_per_epoch: int


def rank(experiment: Experiment, options: RankOptions | None = None, place: Path | str = ".") -> Ranking:
    """Ranks methods at equal promised epsilon and at equal channel uses.

    Every method gets the same number of channel uses, so that one with two messages has half the epochs; the least
    noise that meets the budget by its own account; steps from the same grid, chosen on a validation part that is cut
    off the training part; and fresh seeds, trained on the whole training part and evaluated on the test part. The
    epsilon beside a score is recomputed from the run's ledger.

    Args:
        experiment: Network, data, problem, unit, clip and delta are taken from it.
        options: What to rank, and where to keep it.
        place: Where relative files of the experiment start.

    Guarantees:
        None for the ranking itself: settings are chosen on the data, and that is not paid. It is a comparison. Each
        score's epsilon is what one run with these settings, fixed beforehand, costs.
    """
    chosen = options or RankOptions()
    job = _job(experiment, chosen, Path(place))
    places, left_out = _places(job)
    scores = []
    kept = None if chosen.folder is None else Path(chosen.folder) / SCORES
    if kept is not None:
        require_folder(kept)
    with nullcontext() if kept is None else locked(kept):
        for done, one in enumerate(places):
            chosen.on_score(done, len(places), _words(one))
            try:
                scores.append(_kept_or_scored(job, one, kept))
            except Error as problem:
                left_out.append(LeftOut(_words(one), str(problem)))
    chosen.on_score(len(places), len(places), "done")
    return Ranking(
        name=job.problem.data.dataset.name,
        metric=_metric(job.problem),
        unit=experiment.privacy.unit,
        records_per_person=experiment.privacy.records_per_person,
        delta=experiment.privacy.delta,
        nodes=job.network.nodes,
        seeds=chosen.seeds,
        epsilons=chosen.epsilons,
        uses=chosen.uses,
        scores=tuple(scores),
        left_out=tuple(left_out),
    )


def _job(experiment: Experiment, options: RankOptions, place: Path) -> _Job:
    network = experiment.build_network(place)
    problem = experiment.build_problem(network.nodes, place)
    if not isinstance(problem, SoftmaxRegression | RidgeRegression):
        raise Error(
            f'problem.kind is "{experiment.problem.kind}": there are no examples to choose settings on, or to test on',
            hint='use an experiment on data, with problem.kind "softmax" or "ridge"',
        )
    if experiment.problem.clipping == "none":
        raise Error(
            "gradients are not clipped, so nothing is promised and nothing is equal",
            hint='remove problem.clipping, or set it to "example" or "node"',
        )
    tuning = with_validation(problem)
    old = problem.data.dataset
    data = sha256_of((old.features, old.targets, old.test_features, old.test_targets, *problem.data.rows))
    gains, radio = sha256_of((network.gains.toarray(), network.power)), experiment.build_radio(place)
    channel = radio.trace.sha256 if radio is not None and radio.trace is not None else ""
    train = trainer(tuning, TUNING_SEEDS)
    return _Job(experiment, place, network, problem, tuning, train, options, data + gains + channel)


def _places(job: _Job) -> tuple[list[_Place], list[LeftOut]]:
    """All scores to find, method by method, and the methods that cannot run here."""
    named = job.options.methods
    methods = [registry.find(name) for name in named] if named else list(registry.methods())
    places: list[_Place] = []
    left_out: list[LeftOut] = []
    for method in methods:
        if not method.sends:
            left_out.append(LeftOut(method.name, "nothing is sent, and nothing published"))
            continue
        if method.reason and not job.options.unprotected:
            if named:
                left_out.append(LeftOut(method.name, f"nothing is promised: {method.reason}"))
            continue
        try:
            places += _places_of(job, method)
        except Error as problem:
            left_out.append(LeftOut(method.name, str(problem)))
    return places, left_out


def _places_of(job: _Job, method: Method) -> list[_Place]:
    """All scores of one method."""
    options = job.options
    places: list[_Place] = []
    for contender in contenders(method, job.experiment, job.network.nodes):
        first = Steps(2, lengths_in_steps(job.network.nodes)[0], "constant")
        algorithm = _algorithm(job, job.problem, contender, options.epsilons[0], first)
        require_carried_out(algorithm)
        against = contender.options.get("against") or (algorithm.releases[0].against if algorithm.releases else NOBODY)
        if against == NOBODY and not options.unprotected:
            raise Error("nothing is promised on these terms", hint="show it with unprotected")
        epsilons = (None,) if against == NOBODY else options.epsilons
        places += [
            _Place(contender, against, epsilon, uses, algorithm.channel_uses)
            for uses, epsilon in product(options.uses, epsilons)
        ]
    return places


def _algorithm(job: _Job, problem: Examples, contender: Contender, epsilon: float | None, steps: Steps) -> Algorithm:
    """The contender for this problem, budget and schedule."""
    changed = entered(job.experiment, contender, epsilon, steps)
    build = changed.build_plan if contender.method.needs_plan else changed.build_setup
    return changed.build_algorithm(build(job.place, quiet, problem, job.network))


def _kept_or_scored(job: _Job, place: _Place, kept: Path | None) -> Score:
    """The score, from the folder if it is there; else found, and kept."""
    if kept is None:
        return _score(job, place)
    key = _key(job, place)
    path = kept / f"{re.sub('[^a-z0-9.]+', '-', _words(place))[:120]}-{key[:16]}.json"
    if (score := _read(path, key)) is not None:
        return score
    score = _score(job, place)
    _files.write_atomically(path, json_text({"key": key, "score": score.as_dict()}, indent=1).encode())
    return score


def _key(job: _Job, place: _Place) -> str:
    """Of everything that a score depends on."""
    nodes, method = job.network.nodes, place.contender.method
    steps = Steps(max(2, place.uses // place.uses_per_epoch), 1.0, "constant")
    text = entered(job.experiment, place.contender, place.epsilon, steps).as_toml()
    tried = (lengths_in_steps(nodes), method.decays, dict(method.tries), TUNING_SEEDS, job.options.seeds)
    code = (_FORMAT, version("murmurcast"), _own_code(method))
    words = (code, job.data, text, place.against, place.uses, place.uses_per_epoch, tried)
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _own_code(method: Method) -> str:
    """The hash of the file that a user's own method is in; of the house's, the version tells."""
    path = None if method.name in registry.NAMES else inspect.getsourcefile(inspect.unwrap(method.make))
    return "" if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _read(path: Path, key: str) -> Score | None:
    """A score that is done; None where there is none, or where what is there cannot be read."""
    try:
        values = json.loads(path.read_bytes())
        return Score.from_dict(values["score"]) if values["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None


def _score(job: _Job, place: _Place) -> Score:
    """Tunes on the validation part, trains on the whole training part, and accounts for it."""
    epochs = place.uses // place.uses_per_epoch
    if epochs < 2:
        raise Error(
            f"two epochs need {2 * place.uses_per_epoch} channel uses, and there are {place.uses}",
            hint="allow more channel uses",
        )
    contender, metric = place.contender, _metric(job.problem)
    trials = tuple(_trials(job, place, epochs))
    best = _best(trials, metric)
    if best is None:
        raise Error("it diverges with every step that was tried", hint="lower the clip, or allow more epsilon")
    chosen = contender.with_options(best.options)
    algorithm = _algorithm(job, job.problem, chosen, place.epsilon, Steps(epochs, best.step, best.decay))
    options = RunOptions(evaluate_every=epochs)
    result = run(algorithm, job.problem, seeds=range(job.options.seeds), options=options)
    final = np.asarray(result.final(f"published_{metric}"), np.float64)
    steps = lengths_in_steps(job.network.nodes)
    return Score(
        method=contender.method.name,
        against=place.against,
        epsilon=place.epsilon,
        certified=None if place.against == NOBODY else _certified(result, contender.method, place.against),
        uses=place.uses,
        uses_per_epoch=place.uses_per_epoch,
        epochs=epochs,
        step=best.step,
        decay=best.decay,
        options=best.options,
        at_edge=not steps[0] < best.step < steps[-1],
        by_seed=tuple(final.mean(axis=1).tolist()),
        by_node=tuple(final.mean(axis=0).tolist()),
        trials=trials,
    )


def _trials(job: _Job, place: _Place, epochs: int) -> Iterator[Trial]:
    """Settings on the validation part, by what is published: a grid, then the surroundings of its best."""
    metric, method = _metric(job.problem), place.contender.method
    tries = [dict(zip(method.tries, values, strict=True)) for values in product(*method.tries.values())]
    grid = tuple(
        _trial(job, place, Steps(epochs, step, decay), options)
        for options, decay, step in product(tries, method.decays, lengths_in_steps(job.network.nodes))
    )
    yield from grid
    best = _best(grid, metric)
    if best is not None:
        yield from (_trial(job, place, Steps(epochs, step, best.decay), best.options) for step in around(best.step))


def _trial(job: _Job, place: _Place, steps: Steps, options: dict[str, float]) -> Trial:
    contender = place.contender.with_options(options)
    metrics = job.train(_algorithm(job, job.tuning, contender, place.epsilon, steps))
    value = float(metrics[f"published_{_metric(job.problem)}"].mean())
    return Trial(steps.step, steps.decay, options, value)


def _best(trials: tuple[Trial, ...], metric: str) -> Trial | None:
    """The best that did not diverge."""
    finite = [trial for trial in trials if math.isfinite(trial.value)]
    better = max if metric == "accuracy" else min
    return better(finite, key=lambda trial: trial.value, default=None)


def _certified(result: Result, method: Method, against: str) -> float:
    """What the run costs the node that pays most against this adversary, recomputed from its ledger."""
    account = account_of(result, () if method.name in registry.NAMES else (method,))
    strongest = result.info["privacy"]["against"]
    costs = {**dict(account.weaker), strongest: account.mu}
    if set(account.verdicts) != {"kept"} or against not in costs:
        raise Error(
            f"its account does not hold: {', '.join(sorted(set(account.verdicts)))}", hint="certify a run of it"
        )
    return float(account.curve.epsilon(costs[against].max(), account.delta))


def _metric(problem: Examples) -> str:
    return "loss" if problem.data.dataset.classes is None else "accuracy"


def _words(place: _Place) -> str:
    budget = "no privacy" if place.epsilon is None else f"epsilon {place.epsilon:g} against {place.against}"
    return f"{place.contender.method.name}, {budget}, {place.uses} uses"
