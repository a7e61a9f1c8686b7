"""Slots of a round: known graphs, and that no schedule lets two disturb each other."""

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.network.graph import Network
from murmurcast.radio.settings import AccessName, Duplex
from murmurcast.radio.slots import slots

T = mc.topologies


@pytest.mark.parametrize(
    ("network", "own", "half"),
    [
        (T.complete(4), 4, 4),
        (T.complete(10), 10, 10),
        (T.ring(10), 4, 2),
        (T.ring(9), 3, 3),
        (T.star(10), 10, 2),
        (T.grid(5, 5), 5, 2),
        (T.path(6), 3, 2),
    ],
)
def test_known_graphs(network: Network, own: int, half: int) -> None:
    assert slots(network, "own-slot", "half").number == own
    assert slots(network, "digital", "full").number == own
    assert slots(network, "aligned", "half").number == half
    assert slots(network, "aligned", "full").number == 1
    assert slots(network, "referenced", "half").number == 2
    assert slots(network, "referenced", "full").number == 1


def test_a_geometric_network_of_a_hundred() -> None:
    assert 20 <= slots(T.geometric(100, seed=0), "own-slot", "half").number <= 30


@pytest.mark.parametrize("seed", range(4))
def test_every_receiver_hears_one_sender_at_a_time_and_never_while_it_sends(seed: int) -> None:
    network = T.geometric(25, seed=seed)
    result, linked = slots(network, "own-slot", "half"), network.gains.toarray() > 0
    for slot in range(result.number):
        sending = result.turn == slot
        heard = linked[sending].sum(axis=0)
        assert heard.max() <= 1
        assert not heard[sending].any()
    assert (result.sendings == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_listeners_of_one_slot_do_not_send_in_it_and_neighbours_send_again_for_each(seed: int) -> None:
    network = T.geometric(25, seed=seed)
    result, linked = slots(network, "aligned", "half"), network.gains.toarray() > 0
    sent = np.zeros(25, int)
    for slot in range(result.number):
        listening = result.turn == slot
        sending = linked[:, listening].any(axis=1)
        assert not (sending & listening).any()
        sent += sending
    np.testing.assert_array_equal(result.sendings, sent)


def test_a_link_in_one_direction_is_in_the_way_too() -> None:
    # 0 -> 1 -> 2 -> 0: every pair is a neighbour in one direction.
    network = Network(gains=[[0, 0.7, 0], [0, 0, 0.9], [0.4, 0, 0]])
    assert slots(network, "own-slot", "half").number == 3
    assert slots(network, "aligned", "half").number == 3


@pytest.mark.parametrize("access", ["aligned", "own-slot", "referenced", "digital"])
@pytest.mark.parametrize("duplex", ["half", "full"])
def test_numbering_does_not_matter_for_who_sends_how_often(access: AccessName, duplex: Duplex) -> None:
    network = T.star(6)
    order = np.array([3, 0, 5, 1, 4, 2])
    other = Network(gains=network.gains.toarray()[np.ix_(order, order)])
    first, second = slots(network, access, duplex), slots(other, access, duplex)
    assert first.number == second.number
    np.testing.assert_array_equal(first.sendings[order], second.sendings)
