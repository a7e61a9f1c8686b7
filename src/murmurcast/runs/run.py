"""Runs an algorithm on a problem for several seeds, and makes a result of it."""

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._progress import quiet
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.early_end import with_ends
from murmurcast.engine import large, secure, train
from murmurcast.engine.program import Program
from murmurcast.engine.team import team
from murmurcast.engine.train import Point, Record
from murmurcast.errors import Error
from murmurcast.problems.base import Problem
from murmurcast.runs import checkpoint, commitment, record
from murmurcast.runs.checkpoint import Checkpoint
from murmurcast.runs.folder_lock import locked
from murmurcast.runs.memory import enough_memory, seed_groups
from murmurcast.runs.record import Precision
from murmurcast.runs.require import require_clip, require_one_go, require_planned_for, require_settings
from murmurcast.runs.result import CHECKPOINT, Outcome, Result, require_folder, require_unused
from murmurcast.runs.together import (
    Pulse,
    agreed,
    others_there,
    require_same_beginning,
    require_same_run,
    wait_for_all,
)


class Progress(Protocol):
    """Is told how far a run has come; whatever it does changes no number."""

    def __call__(self, done: int, of: int, metrics: dict[str, float], /) -> None:
        """Epochs done over all seeds, of how many, and the latest metrics."""
        ...


class Evaluated(Protocol):
    """Is told what every evaluation found, once; whatever it does changes no number."""

    def __call__(self, epoch: int, metrics: dict[str, float], /) -> None:
        """Epochs done over all seeds, and the metrics at this very epoch, as means over nodes and seeds."""
        ...


class _Asked(Protocol):
    """Whether somebody has asked to stop."""

    def __call__(self) -> bool:
        """So far."""
        ...


class _Fingerprint(Protocol):
    """Of all that a run depends on; worked out when it is first needed."""

    def __call__(self) -> str:
        """As a word."""
        ...


@_check.by_name
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where to write and how often to look: nothing here can change a model or a privacy number.

    Args:
        evaluate_every: Epochs between evaluations; about 100 evaluations by default.
        folder: Where to keep checkpoints and the result; None keeps nothing.
        checkpoint_every: Epochs between checkpoints; None writes one on Ctrl-C only.
        resume: Go on from the checkpoint in `folder`.
        name: What the run is called; the algorithm's name by default.
        experiment: Text of the experiment file, kept with the result.
        on_progress: Called about twice a second.
        on_evaluation: Called once at every evaluation; what loggers take.
    """

    evaluate_every: int | None = None
    folder: Path | str | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    name: str | None = None
    experiment: str = ""
    on_progress: Progress = quiet
    on_evaluation: Evaluated = quiet


class _Finished(NamedTuple):
    """A group of seeds that is done: its records, and its published models [nodes, seeds, ...]."""

    records: tuple[Record, ...]
    published: NDArray[Any]


def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    seeds: Iterable[int] = (0,),
    precision: Precision = "float32",
    stop_after: int | None = None,
    drops: Mapping[int, int] | None = None,
    options: RunOptions | None = None,
) -> Result:
    """Trains, and evaluates on the way.

    The same seeds give the same numbers, to the bit on one machine, whatever the evaluation interval and wherever a run
    was stopped and resumed. A seed draws the same noise in any company; sums may then differ in their last digits.

    With secure noise nothing is repeatable, though the seed still chooses the minibatches. There is one seed, because
    every further one is a further run on the same data, and no checkpoint: an epoch that is sent twice costs twice.

    Args:
        algorithm: What the nodes do; it carries the setup.
        problem: What they learn; it must be the one that was planned for.
        seeds: One run each; all go together where memory allows.
        precision: "float32", or "float64" at half the speed, which secure noise needs.
        stop_after: The last epoch, fixed before the run, of a plan that has more; the run costs only what it sends. A
            run stopped by hand costs what the whole plan does.
        drops: The last epoch in which a node sends, of nodes that drop out; fixed before the run. Such a node pays
            only for what it sends, and holds its state.
        options: Where to write and how often to look.

    Raises:
        KeyboardInterrupt: After Ctrl-C, once the checkpoint is written.
    """
    require_planned_for(algorithm, problem)
    ended = with_ends(algorithm, stop_after, drops)
    return outcome(ended, problem, seeds, precision, options or RunOptions()).result()


def outcome(
    algorithm: Algorithm, problem: Problem, seeds: Iterable[int], precision: Precision, watch: RunOptions
) -> Outcome:
    """What `run` does, for those who only save it: they need not wait for xarray."""
    seeds = _check.whole_numbers("range(3)", seeds=seeds)
    require_settings(seeds, watch.evaluate_every, watch.checkpoint_every, precision)
    require_planned_for(algorithm, problem)
    require_clip(problem, precision)
    secure.require(algorithm, problem, precision)
    require_one_go(algorithm.setup.budget.noise_source, seeds, watch.resume, watch.checkpoint_every)
    large.require_processes(algorithm, problem)
    leads = team().leads
    kept = _place_of_checkpoint(algorithm, watch)
    begun = time.perf_counter()
    ours = locked(Path(watch.folder)) if watch.folder is not None and leads else nullcontext()
    with ours, jax.enable_x64(precision == "float64"), _delayed_interrupt() as interrupted:
        key = _key_of_data(algorithm, problem, watch)
        # Reading all the data takes a second or two: only a run that keeps or finds a checkpoint does.
        fingerprint = cache(lambda: checkpoint.digest(algorithm, problem, seeds, precision, watch.evaluate_every))
        ticks = _Ticks(
            algorithm.epochs, watch.evaluate_every or max(1, algorithm.epochs // 100), watch.checkpoint_every
        )
        callbacks = (watch.on_progress, watch.on_evaluation)
        job = _Job(algorithm, problem, np.dtype(precision), ticks, kept, fingerprint, interrupted, *callbacks)
        with enough_memory(), others_there():
            if team().size > 1:
                require_same_run(fingerprint())
            trained = _train_all(job, seeds, watch.resume)
        finished = trained.groups
        finished_run = Outcome(
            metrics=record.metrics(algorithm, seeds, [group.records for group in finished], trained.evaluated),
            ledger=record.ledger(algorithm, problem, seeds, precision),
            published=_joined([group.published for group in finished]).swapaxes(0, 1),
            info=record.info(algorithm, problem, watch.name or algorithm.name, seeds, precision)
            | {"start_loss": trained.start_loss, "seconds": {}}
            | {"data_commitment": commitment.commitment(problem, key)}
            | ({} if team().size == 1 else {"processes": {"count": team().size, "signals_across": trained.crossing}}),
            experiment=watch.experiment,
            data_key=key,
        )
        finished_run.info["seconds"] = _seconds(trained, begun)  # what is written down takes its time too
        if watch.folder is not None and leads:
            finished_run.save(watch.folder)
        with others_there():
            wait_for_all()
    return finished_run


def _joined(groups: list[NDArray[Any]]) -> NDArray[Any]:
    """[nodes, seeds, ...]; one group, as large networks have it, is not copied."""
    return groups[0] if len(groups) == 1 else np.concatenate(groups, axis=1)


def _key_of_data(algorithm: Algorithm, problem: Problem, watch: RunOptions) -> str:
    """Of the commitment to the data; a run that goes on has the data it began with. With secure noise none does."""
    if watch.folder is None or secure.is_secure(algorithm.setup) or not team().leads:
        return commitment.new_key()
    return commitment.begin(Path(watch.folder), problem, resume=watch.resume)


def _place_of_checkpoint(algorithm: Algorithm, watch: RunOptions) -> Path | None:
    """Where checkpoints go, in a folder that is free; None where nothing is kept."""
    if watch.folder is None:
        if watch.resume:
            raise Error("there is no folder to resume from", hint="give the folder of the run that was stopped")
        return None
    folder = Path(watch.folder)
    require_unused(folder, watch.resume)
    require_folder(folder)
    return None if secure.is_secure(algorithm.setup) else folder / CHECKPOINT


def evaluated_epochs(epochs: int, evaluate_every: int | None) -> tuple[int, ...]:
    """At which epochs a run is evaluated."""
    ticks = _Ticks(epochs, evaluate_every or max(1, epochs // 100), None)
    return tuple(dict.fromkeys((*range(ticks.evaluate_every, epochs + 1, ticks.evaluate_every), epochs)))


class _Ticks(NamedTuple):
    """When to look up from training."""

    epochs: int
    evaluate_every: int
    checkpoint_every: int | None

    def evaluates(self, epoch: int) -> bool:
        return epoch % self.evaluate_every == 0 or epoch == self.epochs

    def keeps(self, epoch: int) -> bool:
        return self.checkpoint_every is not None and epoch % self.checkpoint_every == 0

    def next_after(self, epoch: int) -> int:
        """The next epoch at which something is due."""
        periods = [self.evaluate_every, *([self.checkpoint_every] if self.checkpoint_every else [])]
        return min(self.epochs, *((epoch // period + 1) * period for period in periods))


class _Job(NamedTuple):
    """One run, as all its groups of seeds need it."""

    algorithm: Algorithm
    problem: Problem
    dtype: "np.dtype[Any]"
    ticks: _Ticks
    kept: Path | None
    fingerprint: _Fingerprint
    interrupted: _Asked
    on_progress: Progress
    on_evaluation: Evaluated


class _Trained(NamedTuple):
    """What came of training.

    Attributes:
        groups: Of seeds.
        compiling: Seconds of setting up.
        start_loss: Before anything was learnt.
        evaluated: Numbers of the nodes that were evaluated.
        crossing: How many signals crossed between processes in a round.
    """

    groups: list[_Finished]
    compiling: float
    start_loss: float | None
    evaluated: NDArray[Any]
    crossing: int


def _seconds(trained: _Trained, begun: float) -> dict[str, float]:
    """What a run took until now."""
    return {
        "compiling": round(trained.compiling, 3),
        "training": round(sum(group.records[-1].seconds for group in trained.groups), 3),
        "all": round(time.perf_counter() - begun, 3),
    }


def _train_all(job: _Job, seeds: tuple[int, ...], resume: bool) -> _Trained:
    """All seeds, group after group, a group being what memory has room for."""
    stopped = _stopped_at(job) if resume else None
    require_same_beginning(*((len(stopped.finished), stopped.point.epoch) if stopped else (0, 0)))
    groups = _cut(seeds, stopped.groups if stopped else seed_groups(job.algorithm, job.problem, job.dtype, len(seeds)))
    finished = [_Finished(*done) for done in stopped.finished] if stopped else []
    if not team().leads:  # the one that leads keeps what may be published
        finished = [group._replace(published=group.published[:0]) for group in finished]
    make = large.program if stopped is not None and stopped.in_blocks else train.program
    compiling, start_loss, evaluated, crossing = 0.0, None, np.arange(job.problem.nodes), 0
    for number, group in enumerate(groups[len(finished) :], start=len(finished)):
        begun = time.perf_counter()
        program = make(job.algorithm, job.problem, group, job.dtype)
        start_loss = start_loss or train.start_loss(program)
        compiling += time.perf_counter() - begun
        evaluated, crossing = program.evaluated, program.crossing
        point = Point(0, program.start)
        if stopped is not None and number == len(stopped.finished):
            point = stopped.point._replace(carry=program.restore(stopped.point.carry))
            stopped = stopped._replace(point=Point(0, None))  # a large network's models: not twice longer than needed
        finished.append(_train_group(job, program, point, finished, groups))
    return _Trained(finished, compiling, start_loss, evaluated, crossing)


def _stopped_at(job: _Job) -> Checkpoint | None:
    """Where the run was stopped; None where it had not come to a checkpoint."""
    if job.kept is None or not job.kept.exists():
        return None
    stopped = checkpoint.load(job.kept)
    if stopped.digest != job.fingerprint():
        raise Error(
            "the checkpoint is of a run on other data, or with another plan or other settings",
            hint="give the data, the network and the settings it was begun with, or run anew in another folder",
        )
    if team().size > 1 and not stopped.in_blocks:
        raise Error(
            "the checkpoint is of a small or dense network in one process, whose sums several would round otherwise",
            hint="go on in one process: --resume without --processes",
        )
    return stopped


def _train_group(
    job: _Job,
    program: Program,
    point: Point,
    finished: list[_Finished],
    groups: list[tuple[int, ...]],
) -> _Finished:
    """One group of seeds from `point` to the end."""
    done, of, pulse = len(finished) * job.ticks.epochs, len(groups) * job.ticks.epochs, Pulse()
    while point.epoch < job.ticks.epochs:
        point = train.advance(program, point, job.ticks.next_after(point.epoch))
        if job.ticks.evaluates(point.epoch):
            point = train.evaluate(program, point)
            job.on_evaluation(done + point.epoch, _latest(point))
        job.on_progress(done + point.epoch, of, _latest(point))
        next_step = agreed(point.chunk, job.interrupted(), pulse.is_due)
        point, stop = point._replace(chunk=next_step.chunk), next_step.stop
        if job.kept is not None and (stop or next_step.keep or job.ticks.keeps(point.epoch)):
            with pulse:
                carry = program.keep(point.carry)
                if team().leads:
                    sizes, reached = tuple(map(len, groups)), point._replace(carry=carry)
                    done_before = Checkpoint(job.fingerprint(), sizes, program.in_blocks, tuple(finished), reached)
                    checkpoint.save(job.kept, done_before)
                else:
                    checkpoint.pass_on(carry)
        if stop:
            raise KeyboardInterrupt
    return _Finished(point.records, program.published(point.carry))


def _cut(seeds: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    ends = np.cumsum(sizes)
    return [tuple(seeds[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _latest(point: Point) -> dict[str, float]:
    if not point.records:
        return {}
    return {name: float(value.mean()) for name, value in point.records[-1].metrics.items()}


@contextmanager
def _delayed_interrupt() -> Iterator[_Asked]:
    """Ctrl-C waits for the end of a chunk: an epoch is never left half done."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        if asked.is_set():  # asked twice: at once, then
            raise KeyboardInterrupt
        asked.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
