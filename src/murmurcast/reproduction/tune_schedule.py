"""Chooses the schedule of the certified setting without looking at the test part.

The training examples are cut once more, 80/20; runs on the larger part are judged on the smaller. First epochs, decay,
clip and step at epsilon 1, then the step alone for the other budgets, and for the trusted server, which has less noise
to fear, at every budget. Of runs within 0.002 of the best the one with the fewest epochs is taken, and of those the
best.

Run it with `make choose`, or `python -m murmurcast.reproduction.tune_schedule`. It takes some minutes.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from murmurcast.algorithms.central_dp import central_dp
from murmurcast.algorithms.power_controlled import power_controlled
from murmurcast.data import datasets
from murmurcast.data.base import Dataset
from murmurcast.network import gains
from murmurcast.network.graph import Network
from murmurcast.planning.schedule import Decay, Schedule
from murmurcast.planning.setup import Budget
from murmurcast.planning.solve import plan
from murmurcast.problems.softmax import SoftmaxRegression
from murmurcast.runs.run import RunOptions, run

_PURPOSE = 11  # of the cut's draw, beside the seed
_CLOSE = 0.002
_DECAYS: tuple[Decay, ...] = ("constant", "sqrt")
_EPOCHS = (100, 200)
_CLIPS = (0.3, 1.0, 3.0)
# Step times clip, averaged over 100 epochs: how far a run can travel, whatever its clip and decay.
_TRAVEL = (0.5, 1.0, 2.0, 4.0)
_OTHER_BUDGETS = {0.3: (0.125, 0.25, 0.5, 1.0), 3.0: (1.0, 2.0, 4.0, 8.0)}
_SERVER_TRAVEL = (0.5, 1.0, 2.0, 4.0, 8.0)
_MAKE = {"power-controlled": power_controlled, "central-dp": central_dp}


class Choice(NamedTuple):
    """A schedule, and the accuracy of its published models on the part held back."""

    algorithm: str
    epsilon: float
    epochs: int
    decay: Decay
    clip: float
    step: float
    accuracy: float = np.nan


def held_back(dataset: Dataset) -> Dataset:
    """The training part alone, cut 80/20 into one to learn from and one to judge on."""
    order = np.random.default_rng([0, _PURPOSE]).permutation(len(dataset.features))
    learn, judge = np.split(order, [int(0.8 * len(order))])
    return replace(
        dataset,
        features=dataset.features[learn],
        targets=dataset.targets[learn],
        test_features=dataset.features[judge],
        test_targets=dataset.targets[judge],
    )


def tried(data: Dataset, candidate: Choice) -> Choice:
    """The candidate with its accuracy."""
    network = Network(gains=gains.paper(1), power=1.0)
    partition = data.partition("sorted", network.nodes)
    problem = SoftmaxRegression(data=partition, clip=candidate.clip, clipping="example")
    schedule = Schedule(
        epochs=candidate.epochs,
        step=candidate.step,
        decay=candidate.decay,
        noise_timing="aligned",
        noise_to_step="auto",
    )
    made = plan(network, problem, Budget(epsilon=candidate.epsilon, unit="record"), schedule, z="perron")
    options = RunOptions(evaluate_every=candidate.epochs)
    found = run(_MAKE[candidate.algorithm](made, publish="average"), problem, options=options)
    return candidate._replace(accuracy=float(found.final("published_accuracy").mean()))


def best(tries: Iterable[Choice]) -> Choice:
    """Of those close to the best, the shortest; of those, the best."""
    tries = list(tries)
    close = [one for one in tries if one.accuracy >= max(other.accuracy for other in tries) - _CLOSE]
    return min(close, key=lambda one: (one.epochs, -one.accuracy))


def candidates() -> list[Choice]:
    """All schedules that are tried at epsilon 1."""
    return [
        with_travel(Choice("power-controlled", 1.0, epochs, decay, clip, np.nan), travel)
        for epochs, decay, clip, travel in product(_EPOCHS, _DECAYS, _CLIPS, _TRAVEL)
    ]


def with_travel(candidate: Choice, travel: float) -> Choice:
    """The candidate with the first step that takes it that far."""
    length = Schedule(epochs=candidate.epochs, decay=candidate.decay).steps.sum()
    return candidate._replace(step=round(float(travel * _EPOCHS[0] / length / candidate.clip), 4))


def choose(data: Dataset, on_try: Callable[[Choice], None]) -> list[Choice]:
    """The schedule of every budget, of Algorithm 1 and of the trusted server."""

    def told(candidate: Choice) -> Choice:
        found = tried(data, candidate)
        on_try(found)
        return found

    chosen = best(map(told, candidates()))

    def best_step(algorithm: str, epsilon: float, travels: tuple[float, ...]) -> Choice:
        same = chosen._replace(algorithm=algorithm, epsilon=epsilon)
        return best(told(with_travel(same, travel)) for travel in travels)

    ours = [best_step("power-controlled", epsilon, travels) for epsilon, travels in _OTHER_BUDGETS.items()]
    server = [best_step("central-dp", epsilon, _SERVER_TRAVEL) for epsilon in (1.0, *_OTHER_BUDGETS)]
    return sorted([chosen, *ours, *server])


def main() -> None:
    """Shows every try, and at the end what is chosen."""
    from rich.console import Console

    console = Console(highlight=False)

    def show(one: Choice) -> None:
        console.print(
            f"{one.algorithm}, epsilon {one.epsilon:g}, {one.epochs} epochs, {one.decay} step {one.step:g}, "
            f"clip {one.clip:g}: {one.accuracy:.4f}",
            soft_wrap=True,
        )

    chosen = choose(held_back(datasets.mnist().split(0.2, 0)), show)
    console.print("\n[bold]Chosen[/bold]")
    for one in chosen:
        show(one)


if __name__ == "__main__":
    main()
