"""Runs an algorithm on a problem for several seeds, and makes a result of it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from murmurcast import _check
from murmurcast._progress import quiet
from murmurcast.algorithms.base import Algorithm, Slots
from murmurcast.algorithms.early_end import with_ends
from murmurcast.engine import loop, secure, sharding, train
from murmurcast.engine.train import Point, Record
from murmurcast.errors import Error
from murmurcast.planning.plan import Problem as PlannedProblem
from murmurcast.privacy.conversion import NoiseSource
from murmurcast.problems.base import Problem
from murmurcast.runs import checkpoint, record
from murmurcast.runs.checkpoint import Checkpoint
from murmurcast.runs.record import Precision
from murmurcast.runs.result import CHECKPOINT, Result, require_folder, require_unused

Progress = Callable[[int, int, dict[str, float]], None]  # epochs done over all seeds, of how many, latest figures
LARGEST_SEED = 2**32 - 1
_MODEL_COPIES = 8  # of all models that a run holds at once, at most


class _Finished(NamedTuple):
    """A group of seeds that is done: its records, and its published models [nodes, seeds, ...]."""

    records: tuple[Record, ...]
    published: NDArray[Any]


def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    seeds: Iterable[int] = (0,),
    evaluate_every: int | None = None,
    precision: Precision = "float32",
    name: str | None = None,
    experiment: str = "",
    folder: Path | str | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    stop_after: int | None = None,
    drops: Mapping[int, int] | None = None,
    on_progress: Progress = quiet,
) -> Result:
    """Trains, and evaluates on the way.

    The same seeds give the same numbers, to the bit on one machine, whatever the evaluation interval and wherever a run
    was stopped and resumed. A seed draws the same noise in any company; sums may then differ in their last digits.

    With secure noise nothing is repeatable, though the seed still chooses the minibatches. There is one seed, because
    every further one is a further run on the same data, and no checkpoint: an epoch that is sent twice costs twice.

    Args:
        algorithm: What the nodes do; it carries the plan.
        problem: What they learn; it must be the one that was planned for.
        seeds: One run each; all go together where memory allows.
        evaluate_every: Epochs between evaluations; about 100 evaluations by default.
        precision: "float32", or "float64" at half the speed, which secure noise needs.
        name: What the run is called; the algorithm's name by default.
        experiment: Text of the experiment file, kept with the result.
        folder: Where to keep checkpoints and the result; None keeps nothing.
        checkpoint_every: Epochs between checkpoints; None writes one on Ctrl-C only.
        resume: Go on from the checkpoint in `folder`.
        stop_after: The last epoch, fixed before the run, of a plan that has more; the run costs only what it sends. A
            run stopped by hand costs what the whole plan does.
        drops: The last epoch in which a node sends, of nodes that drop out; fixed before the run. Such a node pays
            only for what it sends, and holds its state.
        on_progress: Called about twice a second.

    Raises:
        KeyboardInterrupt: After Ctrl-C, once the checkpoint is written.
    """
    seeds = _check.whole_numbers("range(3)", seeds=seeds)
    require_settings(seeds, evaluate_every, checkpoint_every, precision)
    require_planned_for(algorithm, problem)
    algorithm = with_ends(algorithm, stop_after, drops)
    epochs = algorithm.plan.schedule.epochs
    secure.require(algorithm, problem, precision)
    require_one_go(algorithm.plan.budget.noise_source, seeds, resume, checkpoint_every)
    if folder is not None:
        require_unused(Path(folder), resume)
        require_folder(Path(folder))
    elif resume:
        raise Error("there is no folder to resume from", hint="give the folder of the run that was stopped")
    ticks = _Ticks(epochs, evaluate_every or max(1, epochs // 100), checkpoint_every)
    kept = None if folder is None or secure.is_secure(algorithm.plan) else Path(folder) / CHECKPOINT
    begun = time.perf_counter()
    with jax.enable_x64(precision == "float64"), _delayed_interrupt() as interrupted:
        # Reading all the data takes a second or two: only a run that keeps or finds a checkpoint does.
        mark = cache(lambda: checkpoint.digest(algorithm, problem, seeds, precision, evaluate_every))
        job = _Job(algorithm, problem, np.dtype(precision), ticks, kept, mark, interrupted, on_progress)
        finished, compiling = _train_all(job, seeds, resume)
        seconds = {
            "compiling": round(compiling, 3),
            "training": round(sum(group.records[-1].seconds for group in finished), 3),
            "all": round(time.perf_counter() - begun, 3),
        }
        result = Result(
            metrics=record.metrics(algorithm, seeds, [group.records for group in finished]),
            ledger=record.ledger(algorithm, problem),
            published=np.concatenate([group.published for group in finished], axis=1).swapaxes(0, 1),
            info=record.info(algorithm, problem, name or algorithm.name, seeds, precision) | {"seconds": seconds},
            experiment=experiment,
        )
        if folder is not None:
            result.save(folder)
    return result


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
    mark: Callable[[], str]
    interrupted: Callable[[], bool]
    on_progress: Progress


def _train_all(job: _Job, seeds: tuple[int, ...], resume: bool) -> tuple[list[_Finished], float]:
    """All seeds, group after group; a group is what memory has room for."""
    found = _found(job) if resume else None
    groups = _cut(seeds, found.groups if found else _fitting(job, len(seeds)))
    finished = [_Finished(*done) for done in found.finished] if found else []
    compiling = 0.0
    for number, group in enumerate(groups[len(finished) :], start=len(finished)):
        layout = sharding.layout(job.problem.nodes, len(group), _bytes(job))
        begun = time.perf_counter()
        program = loop.program(job.algorithm, job.problem, layout, group, job.dtype)
        compiling += time.perf_counter() - begun
        point = Point(0, program.start)
        if found is not None and number == len(found.finished):
            point = found.point._replace(carry=train.from_host(layout, program.start, found.point.carry))
        finished.append(_train_group(job, program, layout, point, finished, groups))
    return finished, compiling


def _found(job: _Job) -> Checkpoint | None:
    """Where the run was stopped; None where it had not come to a checkpoint."""
    if job.kept is None or not job.kept.exists():
        return None
    found = checkpoint.load(job.kept)
    if found.digest != job.mark():
        raise Error(
            "the checkpoint is of a run on other data, or with another plan or other settings",
            hint="give the data, the network and the settings it was begun with, or run anew in another folder",
        )
    return found


def _train_group(
    job: _Job,
    program: loop.Program,
    layout: sharding.Layout,
    point: Point,
    finished: list[_Finished],
    groups: list[tuple[int, ...]],
) -> _Finished:
    """One group of seeds from `point` to the end."""
    done, of = len(finished) * job.ticks.epochs, len(groups) * job.ticks.epochs
    while point.epoch < job.ticks.epochs:
        point = train.advance(program, point, job.ticks.next_after(point.epoch))
        if job.ticks.evaluates(point.epoch):
            point = train.evaluate(program, layout, point)
        job.on_progress(done + point.epoch, of, _latest(point))
        stop = job.interrupted()
        if job.kept is not None and (stop or job.ticks.keeps(point.epoch)):
            kept = point._replace(carry=train.to_host(layout, point.carry))
            checkpoint.save(job.kept, Checkpoint(job.mark(), tuple(map(len, groups)), tuple(finished), kept))
        if stop:
            raise KeyboardInterrupt
    published = np.asarray(point.carry.state.published)[: layout.nodes, : layout.seeds]
    return _Finished(point.records, published)


def _fitting(job: _Job, seeds: int) -> tuple[int, ...]:
    """Sizes of as few groups as memory allows, nearly the same."""
    available = _free_memory()
    signals = int(job.algorithm.plan.network.max_degree) if isinstance(job.algorithm.medium, Slots) else 1
    models = job.problem.nodes * job.problem.dim * job.dtype.itemsize * signals
    if 3 * models > available:
        raise Error(
            f"one seed needs at least {3 * models / 2**30:.1f} GiB, and {available / 2**30:.1f} are free",
            hint="use fewer nodes, or an algorithm that multicasts" if signals > 1 else "use fewer nodes or features",
        )
    most = max(1, int(available / 2 // (_MODEL_COPIES * models)))
    return tuple(len(group) for group in np.array_split(np.arange(seeds), -(-seeds // most)))


def _free_memory() -> int:
    """Bytes; 4 GiB where the system does not say."""
    if "SC_AVPHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return 4 * 2**30
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cut(seeds: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    ends = np.cumsum(sizes)
    return [tuple(seeds[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _bytes(job: _Job) -> int:
    """What one seed needs for data and models."""
    return job.problem.nodes * (job.problem.bytes_per_gradient + job.problem.dim * job.dtype.itemsize)


def _latest(point: Point) -> dict[str, float]:
    if not point.records:
        return {}
    return {name: float(value.mean()) for name, value in point.records[-1].figures.items()}


@contextmanager
def _delayed_interrupt() -> Iterator[Callable[[], bool]]:
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


def require_settings(
    seeds: tuple[int, ...], evaluate_every: int | None, checkpoint_every: int | None, precision: str
) -> None:
    """The settings of `run` make sense."""
    if not seeds:
        raise Error("no seed is given", hint="give at least one, such as 0")
    if len(set(seeds)) < len(seeds):
        raise Error("a seed is given twice", hint="the same seed gives the same run: name each once")
    for seed in seeds:
        if not 0 <= seed <= LARGEST_SEED:
            raise Error(f"seed is {seed}, expected 0 to {LARGEST_SEED}", hint="choose a smaller one")
    for name, every in (("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        if every is not None:
            _check.at_least(1, **{name: every})
    if precision not in ("float32", "float64"):
        raise Error(f'precision is "{precision}"', hint=_check.nearest(precision, ("float32", "float64")))


def require_one_go(source: NoiseSource, seeds: tuple[int, ...], resume: bool, checkpoint_every: int | None) -> None:
    """A run with secure noise is one run, in one piece: its cost is claimed for all that it sends and publishes."""
    if source == "seeded":
        return
    if len(seeds) > 1:
        raise Error(
            f"secure noise is for one seed, and there are {len(seeds)}: each would cost the whole budget",
            hint="set run.seeds = 1; make several runs, and add them up with murmurcast certify RUN RUN",
        )
    if resume:
        raise Error(
            "a run with secure noise cannot be resumed: its noise is gone, and an epoch sent again costs again",
            hint="run anew in another folder; besides, the run that was stopped counts as its whole plan",
        )
    if checkpoint_every is not None:
        raise Error("a run with secure noise keeps no checkpoints", hint="remove run.checkpoint_every")


def require_algorithm(algorithm: Algorithm) -> None:
    """This is an algorithm, and not the plan it is made from."""
    if not isinstance(algorithm, Algorithm):
        raise Error(
            f"{type(algorithm).__name__} is given, expected an algorithm",
            hint="make one from a plan: mc.power_controlled(plan)",
        )


def require_planned_for(algorithm: Algorithm, problem: Problem) -> None:
    """The plan is about this problem: as many nodes and parameters, the same clip, the same fixed averages."""
    require_algorithm(algorithm)
    plan = algorithm.plan
    if plan.network.nodes != problem.nodes:
        raise Error(
            f"the network has {plan.network.nodes} nodes, the problem {problem.nodes}",
            hint="partition the data for as many nodes as the network has",
        )
    if plan.budget.unit == "record" and problem.clipping == "node":
        raise Error(
            "unit record needs every example's gradient clipped, and the problem clips the node's",
            hint='set clipping to "example", or plan for unit "node"',
        )
    if plan.problem is problem:
        return
    if secure.is_secure(plan) and not _counted_alike(plan.problem, problem):
        raise Error(
            "rounding was counted for another number of parameters, or of examples per node",
            hint="plan for this problem: mc.plan(network, problem, ...)",
        )
    if plan.problem.dim not in (None, problem.dim):
        raise Error(
            f"the plan was made for {plan.problem.dim} parameters, the problem has {problem.dim}",
            hint="plan for this problem: mc.plan(network, problem, ...)",
        )
    if problem.clipping != "none" and plan.problem.clip != problem.clip:
        raise Error(
            f"the plan was made for clip {plan.problem.clip:g}, the problem clips at {problem.clip:g}",
            hint="plan for this problem: mc.plan(network, problem, ...)",
        )
    if plan.budget.unit == "record":
        planned = np.broadcast_to(np.asarray(plan.problem.examples_per_node, float), (problem.nodes,))
        if problem.examples_per_node is None or not np.array_equal(planned, problem.examples_per_node):
            raise Error(
                "the plan was made for other numbers of examples per node",
                hint="plan for this problem: mc.plan(network, problem, ...)",
            )


def _counted_alike(planned: PlannedProblem, problem: Problem) -> bool:
    sizes = (
        np.zeros(1) if one.examples_per_node is None else np.asarray(one.examples_per_node, np.float64)
        for one in (planned, problem)
    )
    return planned.dim == problem.dim and bool(np.equal(*sizes).all())
