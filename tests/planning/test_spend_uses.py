"""How channel uses are spent: rounds first, until hardly anything is left or few epochs remain."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.planning.schedule import MAX_ROUNDS
from murmurcast.planning.spend_uses import FEWEST_EPOCHS, HARDLY_ANY, spend_uses, step_of_travel
from tests.conftest import asymmetric_network


def ring(nodes: int = 20) -> mc.Network:
    return mc.topologies.ring(nodes, seed=0)


def test_a_ring_spends_on_rounds() -> None:
    for uses, rounds in ((100, 10), (400, 40)):
        result = spend_uses(ring(), uses)
        assert (result.epochs, result.rounds, result.uses) == (10, rounds, uses)
        assert result.per_epoch == pytest.approx(result.per_round**rounds)
    assert result.per_epoch > HARDLY_ANY


def test_a_network_that_mixes_at_once_spends_on_epochs() -> None:
    result = spend_uses(mc.topologies.complete(8, seed=0), 100)
    assert (result.epochs, result.rounds, result.uses) == (100, 1, 100)


@pytest.mark.parametrize("accelerated", [False, True])
def test_no_more_rounds_than_are_of_use(accelerated: bool) -> None:
    network = mc.topologies.grid(4, 5, seed=0)
    result = spend_uses(network, 4000, accelerated=accelerated)
    assert result.per_epoch <= HARDLY_ANY < result.per_round
    one_less = spend_uses(network, FEWEST_EPOCHS * (result.rounds - 1), accelerated=accelerated)
    assert one_less.rounds == result.rounds - 1
    assert one_less.per_epoch > HARDLY_ANY
    assert result.epochs == 4000 // result.rounds


def test_acceleration_needs_fewer_rounds() -> None:
    plain, leaning = (spend_uses(ring(), 100, accelerated=either) for either in (False, True))
    assert leaning.per_epoch < plain.per_epoch / 3
    assert plain.per_round == leaning.per_round
    assert spend_uses(ring(), 4000, accelerated=True).rounds < spend_uses(ring(), 4000).rounds / 3
    assert spend_uses(ring(60), 9000).rounds == MAX_ROUNDS


def test_slots_count() -> None:
    result = spend_uses(ring(), 403, uses_per_round=4)
    assert (result.epochs, result.rounds, result.uses) == (10, 10, 400)


@pytest.mark.parametrize("uses", [2, 5, 9, 11, 19, 37])
def test_never_more_than_there_are_and_never_one_epoch(uses: int) -> None:
    result = spend_uses(asymmetric_network(2, 7), uses)
    assert result.epochs >= 2
    assert result.uses == result.epochs * result.rounds <= uses


def test_relabelling_nodes_changes_nothing() -> None:
    network, order = asymmetric_network(5, 9), np.random.default_rng(0).permutation(9)
    gains = network.gains.toarray()[np.ix_(order, order)]
    shuffled = mc.Network(gains=gains, power=np.broadcast_to(network.power, 9)[order])
    one, other = spend_uses(network, 90), spend_uses(shuffled, 90)
    assert one[:3] == other[:3]
    np.testing.assert_allclose(one[3:], other[3:], rtol=1e-9)


def test_it_says_what_it_chose() -> None:
    assert str(spend_uses(ring(), 100)).startswith("100 channel uses: 10 epochs of 10 rounds; one round leaves 0.9")


def test_too_few_uses_are_refused() -> None:
    with pytest.raises(mc.Error, match="two epochs need 14"):
        spend_uses(ring(), 13, uses_per_round=7)
    with pytest.raises(mc.Error, match="uses is 0"):
        spend_uses(ring(), 0)


@pytest.mark.parametrize("decay", ["constant", "sqrt", "linear"])
def test_steps_add_up_to_the_travel(decay: Any) -> None:
    lengths = float(mc.Schedule(epochs=30, decay=decay).steps.sum())
    step = step_of_travel(7.5, lengths)
    assert mc.Schedule(epochs=30, decay=decay, step=step).steps.sum() == pytest.approx(7.5)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(mc.Error):
            step_of_travel(wrong, lengths)
