"""Every method goes where an independent calculation goes, on the same noise, through its real functions."""

from typing import Any

import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.algorithms.mixer import mixer
from murmurcast.algorithms.muffliato import chebyshev
from murmurcast.algorithms.subgradient_push import push_sum
from murmurcast.network.balanced import balanced_mixing
from murmurcast.network.link_weights import max_degree_weights, metropolis_weights, out_degree_weights
from murmurcast.network.weights import column_mixing, perron, z_diagonal
from tests.algorithms.paths import follow, said
from tests.algorithms.reference_paths import METHODS, NOT_BUILT, instances, noise_of, plan_of, work_of

TOLERANCE = 1e-10
NAMES = sorted(instances())
# Compiling takes the time. One instance waits for the slow suite: what it has is in the others, which clip and project.
QUICK_FIRST = [pytest.param(name, marks=[pytest.mark.slow] * (name == "k6-logistic")) for name in NAMES]


def at_receivers(values: FloatArray, gains: FloatArray) -> FloatArray:
    """[sender, receiver, ...] from the [nodes, links, ...] that a node makes for those that hear it."""
    result = np.zeros((len(gains), len(gains), *values.shape[2:]))
    for j, row in enumerate(gains):
        there = np.flatnonzero(row)
        result[j, there] = values[j, : len(there)]
    return result


def test_no_path_of_the_file_is_forgotten() -> None:
    for one in instances().values():
        assert set(METHODS) | NOT_BUILT == set(one["expected"]["paths"])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", QUICK_FIRST)
def test_the_path_is_the_expected_one(name: str, method: str) -> None:
    inputs, expected = instances()[name]["inputs"], instances()[name]["expected"]["paths"][method]
    algorithm = METHODS[method](inputs)
    path = follow(
        algorithm,
        noise_of(inputs),
        np.array(inputs["start"]),
        work_of(inputs),
        np.array(inputs["normal_per_receiver"]),
    )
    states = path.states
    for epoch in ("1", "2", "5", "30"):
        at = int(epoch) - 1
        own = getattr(states, "mass", states.own)[at]
        np.testing.assert_allclose(own, expected["own"][epoch], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(states.published[at], expected["published"][epoch], rtol=0, atol=TOLERANCE)
    signals = [values[1] for values in said(algorithm, path)]
    if algorithm.rounds[0].channel.signals is not None and method in ("locally-balanced", "mped2fl/headroom"):
        gains = np.array(inputs["gains"])
        (values,) = signals
        links = gains > 0
        np.testing.assert_allclose(
            at_receivers(values, gains)[links], np.array(expected["sent_in_epoch_2"])[links], rtol=0, atol=TOLERANCE
        )
        return
    for values, wanted in zip(signals, expected["sent_in_epoch_2"], strict=True):
        # Slots: it says the same to all.
        once = values if values.ndim == 2 else values[:, 0]
        np.testing.assert_allclose(once, wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_what_follows_from_them(name: str) -> None:
    inputs, expected = instances()[name]["inputs"], instances()[name]["expected"]
    plan = plan_of(inputs)
    network, weights = plan.network, expected["weights"]
    result: dict[str, Any] = {
        "row": plan.mixing.weights,
        "column": column_mixing(network).weights,
        "out-degree": out_degree_weights(network),
        "max-degree": max_degree_weights(network),
        "metropolis": metropolis_weights(network),
        "sinkhorn": balanced_mixing(network).weights,
    }
    assert set(result) == set(weights)
    for kind, built in result.items():
        np.testing.assert_allclose(built.toarray(), weights[kind], rtol=0, atol=1e-12, err_msg=kind)
        access = "orthogonal" if kind in ("out-degree", "max-degree", "metropolis") else "air"
        by = mixer(plan, kind, access)  # type: ignore[arg-type]
        np.testing.assert_allclose(by.weights.toarray(), weights[kind], rtol=0, atol=1e-12)
    np.testing.assert_allclose(perron(result["row"]), expected["perron_of_row"], rtol=1e-12)
    z = np.array(expected["z_of_row"])
    np.testing.assert_allclose(z_diagonal(result["row"], len(z), "recursive"), z, rtol=1e-12)
    y = np.array(expected["push_sum_y"])
    np.testing.assert_allclose(push_sum(result["column"], len(y)), y, rtol=1e-12)
    assert chebyshev(result["metropolis"]) == pytest.approx(expected["chebyshev"], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_sinkhorn_scales_up_to_their_common_factor(name: str) -> None:
    inputs, expected = instances()[name]["inputs"], instances()[name]["expected"]["sinkhorn"]
    built = balanced_mixing(plan_of(inputs).network)
    senders = built.amplitude / np.array(expected["sender_amplitude"])
    receivers = built.receiver_scale / np.array(expected["receiver_scale"])
    np.testing.assert_allclose(senders, senders[0], rtol=1e-11)
    np.testing.assert_allclose(receivers, 1 / senders[0], rtol=1e-11)
