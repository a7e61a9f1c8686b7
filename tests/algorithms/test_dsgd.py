"""Decentralised gradient descent: its tables and words, for every weighing and access."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import EPOCHS, carried, setup_of, words_of
from tests.algorithms.networks import one_way, row_weights, two_way
from tests.network.test_link_weights import rank_one

BY_ACCESS = [("air", "air", 1), ("orthogonal", "links", 3), ("slots", "slots", 3)]  # of two-way links


@pytest.mark.parametrize(
    ("access", "kind", "uses"), [("air", "air", 1), ("orthogonal", "links", 3), ("slots", "slots", 3)]
)
def test_channel_and_words_by_access(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.dsgd(setup_of(), access=access)
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "none"}
    assert algorithm.channel_uses == uses  # nodes 0 and 3, 1 and 2, and 4 by itself
    assert algorithm.settings == {"weights": "sinkhorn", "access": access, "step_factor": 1.0, "publish": "last"}


def test_it_promises_nothing_and_proves_nothing() -> None:
    algorithm = mc.dsgd(setup_of())
    assert (algorithm.releases, algorithm.proof, algorithm.is_as_proved) == ((), None, False)


def test_rows_are_those_of_all_power_and_serve_one_way_links() -> None:
    for network in (two_way(), one_way()):
        algorithm = mc.dsgd(setup_of(network), weights="row")
        np.testing.assert_allclose(carried(algorithm), row_weights(network), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(algorithm.rounds[0].sending.amplitude[0], np.sqrt(network.power), rtol=1e-12)
    with pytest.raises(mc.Error, match="two-way links"):
        mc.dsgd(setup_of(one_way()), weights="metropolis", access="slots")


def test_max_degree_by_air_where_gains_are_of_rank_one() -> None:
    network = rank_one(2)
    weights = carried(mc.dsgd(setup_of_any(network), weights="max-degree"))
    links = network.gains.toarray() > 0
    np.testing.assert_allclose(weights[links], 1 / (links.sum(axis=1).max() + 1), rtol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)


def setup_of_any(network: mc.Network) -> mc.Setup:
    """Of a network of any size: nothing depends on how many records there are."""
    return mc.Setup(
        network=network,
        problem=mc.ClippedGradients(),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=3),
    )


@pytest.mark.parametrize("decay", ["constant", "sqrt", "linear"])
def test_steps_follow_the_schedule_times_the_factor(decay: Any) -> None:
    exponent = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}[decay]
    receiving = mc.dsgd(setup_of(decay=decay), step_factor=2.5, publish="average").rounds[0].receiving
    epochs = np.arange(1, EPOCHS + 1)
    np.testing.assert_allclose(receiving.step, 2.5 * 0.2 / epochs**exponent, rtol=1e-14)
    np.testing.assert_allclose(receiving.newest, 4 / (epochs + 3), rtol=1e-14)
