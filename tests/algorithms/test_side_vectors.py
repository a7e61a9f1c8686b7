"""What is exchanged before training, free of data, and what it costs."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast.algorithms import registry, side_vectors
from murmurcast.algorithms.side_vectors import setup_numbers, setup_uses
from murmurcast.network import stability
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.weights import mixing_rate
from tests.algorithms.networks import NODES, two_way


def built(name: str, epochs: int = 400, **options: Any) -> mc.Algorithm:
    setup = mc.Setup(
        network=two_way(),
        problem=mc.ClippedGradients(clip=0.5),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=epochs, step=0.1),
    )
    return registry.find(name).make(setup, **options)


def numbers(name: str, epochs: int = 400, **options: Any) -> int:
    result = setup_numbers(registry.find(name), built(name, epochs, **options))
    assert result is not None
    return result


def test_degrees_need_no_agreement() -> None:
    assert numbers("dp-dsgd", weights="metropolis", access="slots") == 0


def test_balanced_weights_take_two_numbers_a_round() -> None:
    assert numbers("dp-dsgd") == 2 * balanced_mixing(two_way()).rounds > 0


def test_rows_take_a_number_of_every_node_a_round_until_z_has_settled() -> None:
    result = numbers("row-stochastic")
    assert result % NODES == 0
    rounds = result // NODES
    z = np.asarray(built("row-stochastic").rounds[0].receiving.z)
    late = min(rounds, len(z) - 1)
    np.testing.assert_allclose(z[late], z[-1], rtol=1e-4)
    assert numbers("row-stochastic", epochs=3) == 3 * NODES  # no longer than there is training


def test_columns_take_one_number_a_round() -> None:
    assert 0 < numbers("subgradient-push") < numbers("row-stochastic")


@pytest.mark.parametrize("dim", [1, 50])
def test_a_use_carries_as_many_numbers_as_a_model_has(dim: int) -> None:
    method = registry.find("frost")
    uses = setup_uses(method, built("frost"), dim)
    assert uses == pytest.approx(numbers("frost") / dim)


@pytest.mark.parametrize("name", ["row-stochastic", "subgradient-push"])
def test_rounds_of_a_large_network_are_those_of_all_eigenvalues(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = mc.Setup(
        network=mc.topologies.random_regular(90, 6, seed=2),
        problem=mc.ClippedGradients(clip=0.5),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=400, step=0.1),
    )
    method, algorithm = registry.find(name), registry.find(name).make(setup)
    with monkeypatch.context() as patched:
        patched.setattr(side_vectors, "rate_alone", lambda weights: mixing_rate(weights).rate)
        before = setup_numbers(method, algorithm)
    monkeypatch.setattr(stability, "_EXACT_UP_TO", 70)
    for solver in ("eig", "eigvals", "cond"):
        monkeypatch.setattr(np.linalg, solver, None)
    assert setup_numbers(method, algorithm) == before
    assert before is not None
    assert 1 < before / (90 if name == "row-stochastic" else 1) < 400
