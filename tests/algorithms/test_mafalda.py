"""Mafalda: noise that hangs together over epochs, by an explicit matrix."""

from typing import Any

import numpy as np
import pytest
from scipy.special import binom

import murmurcast as mc
from murmurcast._check import FloatArray
from murmurcast.algorithms.mafalda import remembered
from tests.algorithms.calibrated import CLIP, EPOCHS, EXAMPLES, allowed_mu, noise_in, setup_of, words_of
from tests.algorithms.test_dsgd import BY_ACCESS


def square_root(bandwidth: int) -> FloatArray:
    """[epochs, epochs] C[t, s] = binomial(2k, k)/4^k for 0 <= k = t - s < bandwidth."""
    matrix = np.zeros((EPOCHS, EPOCHS))
    for row in range(EPOCHS):
        for column in range(max(0, row - bandwidth + 1), row + 1):
            lag = row - column
            matrix[row, column] = binom(2 * lag, lag) / 4**lag
    return matrix


def moved(timing: str) -> FloatArray:
    """[epochs] gamma_t-1 / std_t of what every epoch says, 0 in the first."""
    later = np.arange(2, EPOCHS + 1)
    return np.append(0.0, np.sqrt(later / (later - 1)) if timing == "paper" else np.ones(EPOCHS - 1))


@pytest.mark.parametrize("bandwidth", [1, 2, 4, 6, 64])
@pytest.mark.parametrize("timing", ["paper", "aligned", "quiet-start"])
def test_noise_is_found_by_the_matrix(timing: Any, bandwidth: int) -> None:
    algorithm = mc.mafalda(setup_of(noise_timing=timing, unit="record"), bandwidth=bandwidth)
    unit = np.linalg.norm(square_root(bandwidth) @ moved(timing))
    expected = 2 * CLIP / np.array(EXAMPLES) * unit / allowed_mu()
    np.testing.assert_allclose(noise_in(algorithm), expected, rtol=1e-9)
    assert algorithm.settings["bandwidth"] == bandwidth


def test_all_gradients_moved_at_once_is_the_worst_way() -> None:
    """C has no negative entries: no other signs, and no single gradient, move what is said further."""
    rng, matrix, rows = np.random.default_rng(0), square_root(4), moved("paper")
    together = np.linalg.norm(matrix @ rows)
    for _ in range(200):
        assert np.linalg.norm(matrix @ (rng.uniform(-1, 1, EPOCHS) * rows)) <= together


def test_a_wider_band_needs_more_noise_per_draw() -> None:
    """Where all gradients move, C 1 is larger in every row; one epoch less far back is one diagonal less."""
    setup, bands = setup_of(decay="constant", epochs=40), [1, 2, 4, 6, 41]
    noise = np.array([noise_in(mc.mafalda(setup, bandwidth=band))[0] for band in bands])
    assert (np.diff(noise) > 0).all()
    assert noise[0] == pytest.approx(noise_in(mc.dp_dsgd(setup))[0], rel=1e-14)


def test_the_shares_are_those_of_the_square_root_of_summing() -> None:
    """C with all its diagonals, twice, adds up all that came before."""
    full = square_root(EPOCHS)
    np.testing.assert_allclose(full @ full, np.tril(np.ones((EPOCHS, EPOCHS))), rtol=1e-12)
    np.testing.assert_allclose(remembered(EPOCHS), full[1:, 0], rtol=1e-14)
    np.testing.assert_array_equal(remembered(1), [0.0])


@pytest.mark.parametrize(("access", "kind", "uses"), BY_ACCESS)
def test_channel_words_and_what_is_remembered_by(access: Any, kind: str, uses: int) -> None:
    algorithm = mc.mafalda(setup_of(), access=access, publish="average")
    assert words_of(algorithm) == {"model_channel": kind, "model_draws": "noise: normal of a node"}
    assert algorithm.channel_uses == uses
    sending, receiving = algorithm.rounds[0].sending, algorithm.rounds[0].receiving
    for name in ("amplitude", "noise", "schedule"):
        np.testing.assert_array_equal(getattr(receiving, name), getattr(sending, name))
