"""Row-stochastic gradient descent under Laplace noise: both calibrations, written out."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.privacy.conversion import epsilon_of, mu_of
from tests.algorithms.calibrated import CLIP, DELTA, DIM, EPOCHS, EPSILON, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.networks import NODES, one_way, row_weights
from tests.algorithms.test_subgradient_push import ACCESS


def ratio_by_hand(timing: str, factor: float = 1.0) -> FloatArray:
    """[epochs - 1, nodes] S gamma_t / (z_jj,t std_t+1) over one-way links, where q = 1."""
    weights, rows = row_weights(one_way()), []
    for epoch in range(1, EPOCHS):
        z = np.diag(np.linalg.matrix_power(weights, epoch - 1))
        step = 0.2 / np.sqrt(epoch)
        std = 0.2 / np.sqrt(epoch + 1) if timing == "paper" else step
        rows.append(2 * CLIP * factor * step / (z * std))
    return np.array(rows)


@pytest.mark.parametrize("timing", ["paper", "aligned", "quiet-start"])
def test_certified_noise_costs_the_budget_and_no_more_than_the_gaussian_bound(timing: Any) -> None:
    algorithm = mc.row_stochastic_laplace(setup_of(one_way(), noise_timing=timing), step_factor=2.0)
    q, unit = noise_in(algorithm), np.sqrt((ratio_by_hand(timing, 2.0) ** 2).sum(axis=0))
    (part,) = algorithm.releases
    assert (part.law.name, part.against) == ("laplace", "everybody")
    np.testing.assert_allclose(part.ratio[1:], ratio_by_hand(timing, 2.0) / q, rtol=1e-10)
    np.testing.assert_allclose(mu_of(part), np.sqrt(np.pi / 2) * unit / q, rtol=1e-10)
    np.testing.assert_allclose(epsilon_of(part, DELTA), EPSILON, rtol=1e-8)
    assert (q <= np.sqrt(np.pi / 2) * unit / allowed_mu() * (1 + 1e-9)).all()


def test_by_the_l1_norm_epochs_share_epsilon() -> None:
    algorithm = mc.row_stochastic_laplace(setup_of(one_way()), calibration="l1")
    expected = np.sqrt(DIM) * ratio_by_hand("aligned").max(axis=0) * (EPOCHS - 1) / EPSILON
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-10)
    assert algorithm.settings["calibration"] == "l1"
    (part,) = algorithm.releases
    # Adding up over epochs pays sqrt(dim) and more: what it really costs lies below what was asked for.
    assert epsilon_of(part, DELTA).max() < 0.8 * EPSILON
    certified = noise_in(mc.row_stochastic_laplace(setup_of(one_way())))
    assert (noise_in(algorithm) > 1.2 * certified).all()


def test_the_l1_norm_needs_the_number_of_parameters() -> None:
    setup = mc.Setup(
        network=one_way(),
        problem=mc.ClippedGradients(),
        budget=mc.Budget(epsilon=1.0),
        schedule=mc.Schedule(epochs=3),
    )
    assert len(noise_in(mc.row_stochastic_laplace(setup))) == NODES
    with pytest.raises(mc.Error, match="number of parameters") as raised:
        mc.row_stochastic_laplace(setup, calibration="l1")
    assert "problem.dim" in raised.value.hint


def test_records_need_gradients_at_the_public_point() -> None:
    with pytest.raises(mc.Error, match="public mixed point") as raised:
        mc.row_stochastic_laplace(setup_of(unit="record"), gradient_at="own")
    assert 'unit = "node"' in raised.value.hint
    own, mixed = (mc.row_stochastic_laplace(setup_of(), gradient_at=where) for where in ("own", "mixed"))
    np.testing.assert_array_equal(noise_in(own), noise_in(mixed))
    assert own.rounds[0].update is not mixed.rounds[0].update


@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_channel_and_words(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.row_stochastic_laplace(setup_of(one_way()), access=access)
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "noise: laplace of a node"}
    assert algorithm.channel_uses == uses
    expected = {"gradient_at": "mixed", "calibration": "certified", "access": access, "step_factor": 1.0}
    assert algorithm.settings == expected | {"publish": "last"}
