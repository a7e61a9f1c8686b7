"""What a run must be given before it begins: settings that make sense, and a problem that was planned for."""

import numpy as np

from murmurcast import _check
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.channels.base import is_over_radio
from murmurcast.data.assumptions import require_declared_maps, require_public_labels
from murmurcast.data.partition import Partition
from murmurcast.engine import secure
from murmurcast.errors import Error
from murmurcast.planning.preprocess import require_preprocessed
from murmurcast.planning.setup import ProblemFacts
from murmurcast.privacy.conversion import NoiseSource
from murmurcast.problems.base import Problem
from murmurcast.problems.clip import smallest_limit
from murmurcast.problems.examples import LARGEST_VALUE
from murmurcast.problems.trust import data_facts
from murmurcast.runs.record import promises_about_data
from murmurcast.runs.validate import LARGEST_SEED


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
            raise Error(f"seed is {seed}, expected 0 to {LARGEST_SEED}", hint="choose one of these")
    for name, every in (("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        if every is not None:
            _check.at_least(1, **{name: every})
    if precision not in ("float32", "float64"):
        raise Error(f'precision is "{precision}"', hint=_check.nearest(precision, ("float32", "float64")))


def require_clip(problem: Problem, precision: str) -> None:
    """The clip is not below what this precision can clip to: there, longer gradients would pass."""
    clip = problem.gradient_clip
    if not clip.bounds or clip.limit >= smallest_limit(problem.dim, precision, LARGEST_VALUE):
        return
    data = getattr(problem, "data", None)
    largest = float(np.abs(data.dataset.features).max()) if isinstance(data, Partition) else 1.0
    least = smallest_limit(problem.dim, precision, largest)
    if clip.limit < least:
        raise Error(
            f"clip is {clip.limit:g}, and {precision} can clip {problem.dim} parameters to {_check.rounded_up(least)} "
            "at the least: below, squares of gradients are lost, and longer ones pass",
            hint="raise clip; scaling the loss by a constant does the same for training"
            + (', or set precision to "float64"' if precision == "float32" else ""),
        )


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
            hint=f"make one from a plan: mc.{registry.DEFAULT.replace('-', '_')}(plan)",
        )


def require_carried_out(algorithm: Algorithm) -> None:
    """The method sends over the radio that the setup has, and mixes as often in an epoch as its schedule says.

    Methods without anything on the air, such as those with a server, have neither to carry out.
    """
    on_air = [one for one in algorithm.rounds if one.channel.on_air]
    if algorithm.setup.radio is not None and not all(is_over_radio(one.channel) for one in on_air):
        raise Error(
            f"the setup has a radio, and {algorithm.name} does not send over it",
            hint=f"use {registry.names_that('radio')}, or leave the radio out",
        )
    rounds = algorithm.setup.schedule.rounds
    further = {f"mixing{number}" for number in range(2, rounds + 1)}
    if on_air and not further <= {one.name for one in on_air}:
        raise Error(
            f"schedule.rounds is {rounds}, and {algorithm.name} has no further mixing rounds",
            hint=f"use {registry.names_that('free_rounds')}, or set schedule.rounds = 1",
        )


def require_planned_for(algorithm: Algorithm, problem: Problem) -> None:
    """The plan is about this problem: as many nodes and parameters, the same clip, the same fixed averages.

    Where something is promised about it, its labels are public.
    """
    require_algorithm(algorithm)
    require_carried_out(algorithm)
    plan, clip = algorithm.setup, problem.gradient_clip
    if plan.network.nodes != problem.nodes:
        raise Error(
            f"the network has {plan.network.nodes} nodes, the problem {problem.nodes}",
            hint="partition the data for as many nodes as the network has",
        )
    _require_same_names(algorithm, problem)
    clip.require_unit(plan.budget.unit)
    plan.sensitivity  # noqa: B018 - refuses more records per person than a node averages over, before the work
    require_preprocessed(getattr(problem, "data", None), plan.budget)
    if promises_about_data(algorithm, problem):
        require_public_labels(data_facts(problem), _name_of_data(problem))
        require_declared_maps(data_facts(problem))
    if plan.problem is problem:
        return
    if plan.sampling != getattr(problem, "sampled", None):
        raise Error(
            "the plan was made for records that join otherwise: by other coins, or by none",
            hint="plan for this problem: mc.plan(network, problem, ...)",
        )
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
    planned_clip = plan.problem.gradient_clip.limit
    if clip.bounds and planned_clip != clip.limit:
        raise Error(
            f"the plan was made for clip {planned_clip:g}, the problem clips at {clip.limit:g}",
            hint="plan for this problem: mc.plan(network, problem, ...)",
        )
    if plan.budget.unit == "record":
        planned = np.broadcast_to(np.asarray(plan.problem.examples_per_node, float), (problem.nodes,))
        if problem.examples_per_node is None or not np.array_equal(planned, problem.examples_per_node):
            raise Error(
                "the plan was made for other numbers of examples per node",
                hint="plan for this problem: mc.plan(network, problem, ...)",
            )


def _require_same_names(algorithm: Algorithm, problem: Problem) -> None:
    """Where both the network and the data name the nodes, they agree: otherwise records would sit at the wrong node."""
    network, partition = algorithm.setup.network, getattr(problem, "data", None)
    if not isinstance(partition, Partition) or not network.is_named or network.names == partition.names:
        return
    if partition.names != _check.node_names(partition.nodes, ()):
        raise Error(
            f"the network's nodes are called {', '.join(network.names[:4])}, ..., those of the data "
            f"{', '.join(partition.names[:4])}, ...: not the same, or in another order",
            hint="share the data out by the network's names: partition(rule, nodes=network.names)",
        )


def _name_of_data(problem: Problem) -> str:
    partition = getattr(problem, "data", None)
    return partition.dataset.name if isinstance(partition, Partition) else type(problem).__name__


def _counted_alike(planned: ProblemFacts, problem: Problem) -> bool:
    sizes = (
        np.zeros(1) if one.examples_per_node is None else np.asarray(one.examples_per_node, np.float64)
        for one in (planned, problem)
    )
    return planned.dim == problem.dim and bool(np.equal(*sizes).all())
