"""Subgradient-push: its y, its words, and where masses go."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms.tables import row_of
from tests.algorithms.calibrated import EPOCHS, ORDER, carried, relabelled, setup_of, words_of
from tests.algorithms.networks import NODES, column_weights, one_way, two_way

ACCESS = [("air", "air", 1), ("orthogonal", "links", 2), ("slots", "slots", 2)]


def y_by_hand(weights: Any) -> Any:
    """[epochs, nodes] W^t 1, sums over senders written out."""
    y, rows = [1.0] * NODES, []
    for _ in range(EPOCHS):
        y = [sum(weights[i, j] * y[j] for j in range(NODES)) for i in range(NODES)]
        rows.append(y)
    return np.array(rows)


@pytest.mark.parametrize("network", [two_way, one_way])
def test_masses_are_divided_by_what_the_weights_make_of_ones(network: Callable[[], mc.Network]) -> None:
    algorithm = mc.subgradient_push(setup_of(network()))
    weights = column_weights(network())
    np.testing.assert_allclose(carried(algorithm), weights, rtol=1e-12, atol=1e-15)
    y = row_of(algorithm.rounds[0].receiving.y, np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(y, y_by_hand(weights), rtol=1e-12)
    np.testing.assert_allclose(y.sum(axis=1), NODES, rtol=1e-12)
    assert np.abs(y - 1).max() > 0.05


def test_out_degrees_share_masses_evenly() -> None:
    gains = one_way().gains.toarray()
    hear = (gains > 0).sum(axis=1)
    weights = ((gains > 0) / (1 + hear)[:, None]).T + np.diag(1 / (1 + hear))
    algorithm = mc.subgradient_push(setup_of(one_way()), weights="out-degree", access="slots")
    y = row_of(algorithm.rounds[0].receiving.y, np.arange(1, EPOCHS + 1))
    np.testing.assert_allclose(y, y_by_hand(weights), rtol=1e-12)
    assert algorithm.settings["weights"] == "out-degree"


@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_channel_and_words_over_one_way_links(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.subgradient_push(setup_of(one_way()), access=access)
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "none"}
    assert algorithm.channel_uses == uses
    assert algorithm.releases == ()


def test_relabelling_nodes_permutes_y() -> None:
    one, other = (mc.subgradient_push(setup_of(network)) for network in (one_way(), relabelled(one_way())))
    np.testing.assert_allclose(other.rounds[0].receiving.y, one.rounds[0].receiving.y[:, ORDER], rtol=1e-12)
