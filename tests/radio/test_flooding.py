"""What a flood takes: by hand on a path with a branch, where the strongest sender and the worst receiver decide."""

import numpy as np
import pytest

from murmurcast.errors import Error
from murmurcast.network.graph import Network
from murmurcast.radio.flooding import flood_cost, hops_from
from murmurcast.radio.settings import Radio

# 0 reaches 1 and 2 in one hop; both reach 3 in two, 1 more strongly; 4 hangs on 3.
GAINS = 1e-4 * np.array(
    [
        [0, 3.0, 1.0, 0, 0],
        [2.0, 0, 0, 2.5, 0],
        [1.5, 0, 0, 0.5, 0],
        [0, 0.7, 0.9, 0, 0.2],
        [0, 0, 0, 0.4, 0],
    ]
)
POWER = np.array([0.1, 0.02, 0.05, 0.08, 0.01])
NETWORK = Network(gains=GAINS, power=POWER)


def test_by_hand() -> None:
    radio = Radio(bandwidth_hz=2e6, efficiency=0.5, gap_db=3.0, circuit_watts=0.3)
    cost = flood_cost(NETWORK, radio, dim=10, bits=8)
    noise = radio.noise_w(POWER)

    def symbols(sender: int, receiver: int) -> float:
        ratio = GAINS[sender, receiver] ** 2 * POWER[sender] / noise[receiver]
        return float(80 / np.log2(1 + ratio / 10**0.3))

    hops = [max(symbols(0, 1), symbols(0, 2)), min(symbols(1, 3), symbols(2, 3)), symbols(3, 4)]
    assert hops[0] == symbols(0, 2)  # the worst placed receiver
    assert hops[1] == symbols(1, 3)  # the strongest sender
    seconds = sum(hops) / 0.5 / 2e6
    assert cost.hops == 3
    assert cost.seconds == pytest.approx(seconds, rel=1e-12)
    sent = np.array([hops[0], hops[1], hops[1], hops[2], 0])
    np.testing.assert_allclose(cost.joules, POWER * sent / 2e6 + 0.3 * seconds, rtol=1e-12)
    assert flood_cost(Network(gains=GAINS.T, power=POWER), radio, dim=10).seconds != pytest.approx(seconds, rel=1e-3)


def test_hops_follow_the_links_as_they_point() -> None:
    ring = Network(gains=[[0, 0.7, 0], [0, 0, 0.9], [0.4, 0, 0]])
    assert hops_from(ring.gains).tolist() == [0, 1, 2]
    assert hops_from(ring.gains, 1).tolist() == [2, 0, 1]


def test_twice_the_bits_take_twice_the_time() -> None:
    once, twice = (flood_cost(NETWORK, Radio(), dim=10, bits=bits) for bits in (8, 16))
    assert twice.seconds == pytest.approx(2 * once.seconds)
    np.testing.assert_allclose(twice.joules, 2 * once.joules)


def test_a_link_that_carries_nothing_is_named() -> None:
    weak = GAINS.copy()
    weak[3, 4] = weak[4, 3] = 1e-15
    with pytest.raises(Error, match="a digital link of node 4 carries nothing"):
        flood_cost(Network(gains=weak, power=POWER), Radio(), dim=10)
