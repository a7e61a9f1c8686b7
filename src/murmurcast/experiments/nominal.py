"""Whether the number of an experiment's plan is a certificate of its run, or nominal."""

from typing import TYPE_CHECKING

from murmurcast.algorithms.promise import why_not_certified
from murmurcast.errors import Error
from murmurcast.problems.clip import smallest_limit

if TYPE_CHECKING:
    from murmurcast.experiments.build import Experiment
    from murmurcast.planning.plan import Plan


def why_nominal(experiment: "Experiment", plan: "Plan") -> str:
    """Why the plan's number is no certificate of a run of the experiment; empty where it is one.

    The algorithm is made and asked, as a run does, for the first two epochs of the plan: they have all that is asked
    about, and tables of many epochs take room. Ends that [run] fixes make a run cheaper, never dearer.
    """
    clip, dim = plan.problem.gradient_clip, plan.problem.dim
    if clip.bounds and dim is not None and clip.limit < smallest_limit(dim, experiment.run.precision):
        return f"a run of this file is refused: {experiment.run.precision} cannot clip to {clip.limit:g}"
    endless = experiment.run.model_copy(update={"stop_after": None, "drops": None})
    try:
        whole = experiment.model_copy(update={"run": endless})
        algorithm = whole.build_algorithm(plan.until(min(plan.schedule.epochs, 2)))
    except Error as refused:
        return f"a run of this file is refused: {refused}"
    return why_not_certified(algorithm)
