"""Chooses the schedule of the certified setting on public data, so that the choice costs no privacy.

Had it been chosen on MNIST, every schedule tried would have been one more run on the images that the budget protects.
Fashion-MNIST has as many images of the same size and as many classes, cut up and shared out alike; nobody's image of
MNIST is in it. First decay, clip and step are chosen at epsilon 1, then the step alone for the other budgets, and for
the trusted server, which has less noise to fear, at every budget. What does best on Fashion-MNIST is taken. The number
of epochs is not chosen: with 100 the reproduction takes less than five minutes.

Run it with `make choose`, or `python -m murmurcast.reproduction.tune_schedule`. It takes some minutes.
"""

from collections.abc import Callable, Iterable
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

_DECAYS: tuple[Decay, ...] = ("constant", "sqrt")
_EPOCHS = 100
_CLIPS = (0.3, 1.0, 3.0)
# Step times clip, averaged over all epochs: how far a run can travel, whatever its clip and decay.
_TRAVEL = (0.5, 1.0, 2.0, 4.0)
_OTHER_BUDGETS = {0.3: (0.25, 0.5, 1.0, 2.0), 3.0: (1.0, 2.0, 4.0, 8.0)}
_SERVER_TRAVEL = (0.5, 1.0, 2.0, 4.0, 8.0)
_MAKE = {"power-controlled": power_controlled, "central-dp": central_dp}


class Choice(NamedTuple):
    """A schedule, and the accuracy of its published models on the public test part."""

    algorithm: str
    epsilon: float
    epochs: int
    decay: Decay
    clip: float
    step: float
    accuracy: float = np.nan


def public_data() -> Dataset:
    """Fashion-MNIST, all 70,000 images shuffled and cut 80/20 as MNIST is in the reproduction."""
    return datasets.fashion_mnist().split(0.2, 0)


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
    planned = plan(network, problem, Budget(epsilon=candidate.epsilon, unit="record"), schedule, z="perron")
    options = RunOptions(evaluate_every=candidate.epochs)
    result = run(_MAKE[candidate.algorithm](planned, publish="average"), problem, options=options)
    return candidate._replace(accuracy=float(result.final("published_accuracy").mean()))


def best(tries: Iterable[Choice]) -> Choice:
    """The most accurate; of equals the first."""
    return max(tries, key=lambda one: one.accuracy)


def candidates() -> list[Choice]:
    """All schedules that are tried at epsilon 1."""
    return [
        with_travel(Choice("power-controlled", 1.0, _EPOCHS, decay, clip, np.nan), travel)
        for decay, clip, travel in product(_DECAYS, _CLIPS, _TRAVEL)
    ]


def with_travel(candidate: Choice, travel: float) -> Choice:
    """The candidate with the first step that takes it that far."""
    length = Schedule(epochs=candidate.epochs, decay=candidate.decay).steps.sum()
    return candidate._replace(step=round(float(travel * _EPOCHS / length / candidate.clip), 4))


def choose(data: Dataset, on_try: Callable[[Choice], None]) -> list[Choice]:
    """The schedule of every budget, of Algorithm 1 and of the trusted server."""

    def reported(candidate: Choice) -> Choice:
        choice = tried(data, candidate)
        on_try(choice)
        return choice

    chosen = best(map(reported, candidates()))

    def best_step(algorithm: str, epsilon: float, travels: tuple[float, ...]) -> Choice:
        same = chosen._replace(algorithm=algorithm, epsilon=epsilon)
        return best(reported(with_travel(same, travel)) for travel in travels)

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

    chosen = choose(public_data(), show)
    console.print("\n[bold]Chosen[/bold]")
    for one in chosen:
        show(one)


if __name__ == "__main__":
    main()
