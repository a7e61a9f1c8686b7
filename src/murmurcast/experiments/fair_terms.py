"""On which terms methods are ranked: the same for all, whatever their authors chose.

Noise is found by each method's own account for the same budget. Steps are as long as Algorithm 1's. The first message,
which is free of data, carries no noise. What is published is averaged alike, where a method's promise allows it.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from murmurcast.algorithms.method import Method, Option
from murmurcast.experiments.build import Experiment
from murmurcast.experiments.schema import AlgorithmSection, RunSection, ScheduleSection

HEADROOM = 0.7  # of methods that need some to promise anything
LENGTHS = tuple(np.round(np.logspace(-1.5, 1.5, 7), 4).tolist())  # of steps along the mean of all gradients


class Contender(NamedTuple):
    """A method on fair terms.

    Attributes:
        method: The method.
        options: As in [algorithm].
    """

    method: Method
    options: dict[str, Any]

    def with_options(self, options: dict[str, float]) -> Self:
        """The same with some options changed."""
        return self._replace(options=self.options | options)


class Steps(NamedTuple):
    """How many, how long and how they decay."""

    epochs: int
    step: float
    decay: str


def contenders(method: Method, experiment: Experiment, nodes: int) -> tuple[Contender, ...]:
    """The method, once for every adversary that it can be made against."""
    known = {option.name: option for option in method.options}
    terms = _terms(method, known, experiment, nodes)
    if "against" not in known:
        return (Contender(method, terms),)
    return tuple(Contender(method, {**terms, "against": who}) for who in known["against"].choices)


def entered(experiment: Experiment, contender: Contender, epsilon: float | None, steps: Steps) -> Experiment:
    """The experiment with this method, budget and schedule, and with all else as the file says."""
    privacy: dict[str, Any] = {"target": "certificate", "theta": None, "noise_source": "seeded"}
    if epsilon is not None:
        privacy["epsilon"] = epsilon
    mixing = experiment.schedule.model_dump(include={"rounds", "accelerated"})
    schedule = {**steps._asdict(), "noise_timing": "quiet-start", **mixing}
    return experiment.model_copy(
        update={
            "privacy": experiment.privacy.model_copy(update=privacy),
            "schedule": ScheduleSection(**schedule),
            "algorithm": AlgorithmSection(name=contender.method.name, **contender.options),
            "run": RunSection(),
        }
    )


def around(step: float) -> tuple[float, float]:
    """Steps half way to the neighbours on the grid: what is tried once the best of the grid is known."""
    half = (LENGTHS[1] / LENGTHS[0]) ** 0.5
    return step / half, step * half


def lengths_in_steps(nodes: int) -> tuple[float, ...]:
    """The steps to try: Algorithm 1's goes along the sum of all gradients, which is `nodes` times their mean."""
    return tuple(length / nodes for length in LENGTHS)


def _terms(method: Method, known: dict[str, Option], experiment: Experiment, nodes: int) -> dict[str, Any]:
    """Options that are numbers stay as the file says; what makes methods unequal does not."""
    given = experiment.algorithm.options
    terms = {key: given[key] for key in given if key in known and not known[key].choices}
    terms.pop("step_factor", None)
    if method.averages and "step_factor" in known:
        terms["step_factor"] = float(nodes)
    if "headroom" in known:
        terms["headroom"] = HEADROOM
    if "publish" in known:
        terms["publish"] = "average"
    if "publish_from" in known:
        terms["publish_from"] = "heard"  # what else they publish holds own models as they are
    return terms
