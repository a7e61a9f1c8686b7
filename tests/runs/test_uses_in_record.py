"""run.json says how often the channel was used: by an epoch, and before training."""

import pytest

import murmurcast as mc
from murmurcast.algorithms import registry
from murmurcast.algorithms.base import Algorithm
from murmurcast.algorithms.side_vectors import setup_numbers
from murmurcast.runs.record import _setup_uses
from tests.algorithms.networks import NODES, setup_on, two_way

DIM = 4
PROBLEM = mc.Quadratic.random(NODES, DIM, seed=1)


def built(name: str, **options: object) -> Algorithm:
    return registry.find(name).make(setup_on(two_way(), PROBLEM, step=0.01, epochs=3), **options)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "uses"), [("dp-dsgd", 1), ("private-gradient-tracking", 2)])
def test_a_run_says_both(name: str, uses: int) -> None:
    algorithm = built(name)
    info = mc.run(algorithm, PROBLEM).info
    assert info["channel_uses_per_epoch"] == algorithm.channel_uses == uses
    numbers = setup_numbers(registry.find(name), algorithm)
    assert numbers is not None
    assert numbers > 0  # both balance their weights beforehand
    assert info["setup_uses"] == numbers / DIM


def test_weights_that_need_no_agreement_use_nothing_beforehand() -> None:
    assert _setup_uses(built("dp-dsgd", weights="metropolis", access="slots"), PROBLEM) == 0
    assert _setup_uses(built("frost"), PROBLEM) == NODES * 3 / DIM  # z, as many rounds as there are epochs


def test_of_a_users_own_method_it_is_not_known() -> None:
    assert _setup_uses(built("dp-dsgd")._replace(name="my.module:mine"), PROBLEM) is None
