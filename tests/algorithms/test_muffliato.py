"""Muffliato: rounds of gossip, Chebyshev's factor and noise that does not depend on them."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.muffliato import chebyshev
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.link_weights import metropolis_weights
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.networks import two_way
from tests.algorithms.test_dsgd import BY_ACCESS


@pytest.mark.parametrize("gossip", [1, 2, 5, 100])
def test_noise_is_drawn_once_however_often_it_is_passed_on(gossip: int) -> None:
    algorithm = mc.muffliato(setup_of(unit="record"), gossip=gossip)
    expected = 2 * CLIP / np.array(EXAMPLES) * np.sqrt(EPOCHS - 1) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    assert [one.name for one in algorithm.rounds] == ["model", *(f"gossip{n}" for n in range(2, gossip + 1))]
    words = words_of(algorithm)
    assert words.pop("model_draws") == "noise: normal of a node"
    assert [value for name, value in words.items() if name.endswith("_draws")] == ["none"] * (gossip - 1)
    assert algorithm.settings["gossip"] == gossip


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
@pytest.mark.parametrize("gossip", [1, 3])
def test_every_round_uses_the_channel(access: Any, kind: str, uses: int, gossip: int) -> None:
    algorithm = mc.muffliato(setup_of(), gossip=gossip, access=access)
    assert algorithm.channel_uses == gossip * uses
    assert {one.channel.kind for one in algorithm.rounds} == {kind}
    for one in algorithm.rounds[1:]:
        np.testing.assert_array_equal(one.sending.amplitude, algorithm.rounds[0].sending.amplitude)
        np.testing.assert_array_equal(one.receiving.heard, algorithm.rounds[0].receiving.heard)


def test_only_the_last_round_steps() -> None:
    rounds = mc.muffliato(setup_of(decay="constant"), gossip=4, step_factor=3.0).rounds
    assert ["step" in one.receiving._fields for one in rounds] == [False, False, False, True]
    np.testing.assert_allclose(rounds[-1].receiving.step, 0.6, rtol=1e-14)
    (only,) = mc.muffliato(setup_of(decay="constant"), gossip=1).rounds
    np.testing.assert_allclose(only.receiving.step, 0.2, rtol=1e-14)


def test_chebyshevs_factor_on_a_ring() -> None:
    """Weights of a third: eigenvalues (1 + 2 cos(2 pi k/n))/3, the second largest at k = 1."""
    nodes = 9
    gains = np.roll(np.eye(nodes), 1, axis=1) + np.roll(np.eye(nodes), -1, axis=1)
    gap = 1 - (1 + 2 * np.cos(2 * np.pi / nodes)) / 3
    expected = 2 * (1 - np.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2
    assert chebyshev(metropolis_weights(mc.Network(gains=gains))) == pytest.approx(expected, rel=1e-10)
    assert 1 < expected < 2


def test_weights_that_are_not_symmetric_are_not_accelerated() -> None:
    assert chebyshev(balanced_mixing(two_way()).weights) == 1.0
    plain = mc.muffliato(setup_of(), gossip=3)
    quick = mc.muffliato(setup_of(), gossip=3, weights="metropolis", access="slots")
    np.testing.assert_array_equal(plain.rounds[1].receiving.lead, 1.0)
    values = np.sort(np.linalg.eigvalsh(metropolis_weights(two_way()).toarray()))
    gap = 1 - values[-2]
    expected = 2 * (1 - np.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2
    for one in quick.rounds[1:]:
        np.testing.assert_allclose(one.receiving.lead, expected, rtol=1e-12)
