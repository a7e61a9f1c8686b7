"""Subgradient-push under noise: what it needs on one-way links, and its words."""

from typing import Any

import numpy as np
import pytest

import murmurcast as mc
from tests.algorithms.calibrated import CLIP, EPOCHS, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.networks import one_way
from tests.algorithms.test_subgradient_push import ACCESS


def test_noise_is_that_of_gradient_descent_whatever_y_is() -> None:
    """A gradient moves the mass by gamma S: y divides what is published, not what is sent."""
    pushed = noise_in(mc.subgradient_push_gaussian(setup_of(one_way())))
    np.testing.assert_allclose(pushed, 2 * CLIP * np.sqrt(EPOCHS - 1) / allowed_mu(), rtol=1e-9)


def test_a_quiet_start_needs_the_same_and_the_papers_timing_more() -> None:
    aligned, quiet, paper = (
        noise_in(mc.subgradient_push_gaussian(setup_of(one_way(), noise_timing=timing)))
        for timing in ("aligned", "quiet-start", "paper")
    )
    np.testing.assert_array_equal(quiet, aligned)
    expected = np.sqrt(sum((epoch + 1) / epoch for epoch in range(1, EPOCHS)) / (EPOCHS - 1))
    np.testing.assert_allclose(paper / aligned, expected, rtol=1e-12)


@pytest.mark.parametrize(("access", "kind", "uses"), ACCESS)
def test_channel_and_words(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.subgradient_push_gaussian(setup_of(one_way()), access=access, publish="average")
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "noise: normal of a node"}
    assert algorithm.channel_uses == uses
    plain = mc.subgradient_push(setup_of(one_way()), access=access, publish="average")
    assert plain.settings == algorithm.settings
    np.testing.assert_array_equal(plain.rounds[0].receiving.y, algorithm.rounds[0].receiving.y)
