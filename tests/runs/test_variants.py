"""One compiled program for a grid of settings: the numbers are those of a run of its own."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.runs.variants import trainer

NETWORK = mc.Network(gains=[[0, 0.5, 0.9], [0.8, 0, 0.4], [0.6, 0.7, 0]])
PROBLEM = mc.SoftmaxRegression(
    data=mc.datasets.logistic(examples=60, features=3, classes=3, seed=1).partition("sorted", nodes=3)
)
NAMES = [method.name for method in registry.methods() if method.name not in ("ped2fl", "dwfl", "local-only")]
SEEDS = (3, 5)


def built(name: str, step: float, epsilon: float) -> Algorithm:
    method = registry.find(name)
    budget = mc.Budget(epsilon=epsilon, unit="record")
    schedule = mc.Schedule(epochs=4, step=step, decay="constant", noise_timing="quiet-start")
    if method.needs_plan:
        return method.make(mc.plan(NETWORK, PROBLEM, budget, schedule))
    return method.make(mc.Setup(network=NETWORK, problem=PROBLEM, budget=budget, schedule=schedule))


@pytest.mark.one_in(18)
@pytest.mark.parametrize("name", NAMES)
def test_a_second_setting_gives_what_a_run_of_its_own_gives(name: str) -> None:
    train = trainer(PROBLEM, SEEDS)
    first = train(built(name, 0.1, 1.0))["published_loss"]
    second = train(built(name, 0.4, 5.0))["published_loss"]
    alone = mc.run(built(name, 0.4, 5.0), PROBLEM, seeds=SEEDS, options=mc.RunOptions(evaluate_every=4))
    np.testing.assert_allclose(second, alone.final("published_loss"), rtol=1e-6)
    assert not np.allclose(first, second)


def test_the_same_setting_twice_gives_the_same() -> None:
    train = trainer(PROBLEM, SEEDS)
    algorithm = built("power-controlled", 0.1, 1.0)
    first, second = (train(algorithm)["published_accuracy"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (2, 3)


@pytest.mark.slow
def test_a_method_of_a_users_own_is_compiled_anew() -> None:
    """Its functions may hold numbers that are in no table."""
    algorithm = built("power-controlled", 0.1, 1.0)._replace(name="my.module:mine", releases=(), proof=None)
    (only,) = algorithm.rounds

    def louder(factor: float) -> Algorithm:
        def send(here: object, state: object, drawn: object) -> object:
            return factor * only.send(here, state, drawn)  # type: ignore[arg-type]

        return algorithm._replace(rounds=(only._replace(send=send),))  # type: ignore[arg-type]

    train = trainer(PROBLEM, SEEDS)
    first, second = (train(louder(factor))["published_loss"] for factor in (1.0, 2.0))
    assert not np.allclose(first, second)
