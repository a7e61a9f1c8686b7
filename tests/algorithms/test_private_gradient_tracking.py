"""Gradient tracking under noise: weights, words and noise."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.network.link_weights import metropolis_weights
from tests.algorithms.calibrated import CLIP, EXAMPLES, allowed_mu, carried, noise_in, setup_of, words_of
from tests.algorithms.networks import two_way
from tests.algorithms.test_dsgd import BY_ACCESS


@pytest.mark.parametrize("epochs", [2, 6, 40])
def test_noise_grows_with_the_root_of_epochs(epochs: int) -> None:
    algorithm = mc.private_gradient_tracking(setup_of(unit="record", epochs=epochs))
    expected = 2 * CLIP / np.array(EXAMPLES) * np.sqrt(epochs) / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
def test_one_draw_stands_in_both_messages(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.private_gradient_tracking(setup_of(), access=access)
    assert words_of(algorithm) == {
        "model_channel": kind,
        "model_draws": "noise: normal of a node",
        "tracker_channel": kind,
        "tracker_draws": "noise: noise of model again, 0 epochs ago",
    }
    assert algorithm.channel_uses == 2 * uses
    model, tracker = (one.sending.noise for one in algorithm.rounds)
    np.testing.assert_array_equal(model, tracker)


def test_both_messages_are_mixed_by_the_same_doubly_stochastic_weights() -> None:
    algorithm = mc.private_gradient_tracking(setup_of())
    models, trackers = carried(algorithm, 0), carried(algorithm, 1)
    np.testing.assert_array_equal(models, trackers)
    for axis in (0, 1):
        np.testing.assert_allclose(models.sum(axis=axis), 1, rtol=1e-10)


def test_neighbours_heard_apart_are_weighed_by_metropolis() -> None:
    """Row i of the factors: what each neighbour, in the order of their numbers, is multiplied by."""
    network = two_way()
    algorithm = mc.private_gradient_tracking(setup_of(), weights="metropolis", access="orthogonal")
    receiving, amplitude = algorithm.rounds[0].receiving, algorithm.rounds[0].sending.amplitude[0]
    gains, weights = network.gains.toarray(), metropolis_weights(network).toarray()
    for node in range(network.nodes):
        senders = np.flatnonzero(gains[:, node])
        factors = receiving.heard[0, node, : len(senders)]
        np.testing.assert_allclose(
            factors * gains[senders, node] * amplitude[senders], weights[node, senders], rtol=1e-12
        )
        np.testing.assert_array_equal(receiving.heard[0, node, len(senders) :], 0)
