"""Checks of the noise, on noise of known faults: what is as claimed is not accused, and every fault by its own name."""

from typing import Any

import numpy as np
import pytest

from murmurcast.audits import noise_checks
from murmurcast.audits.canaries import Canaries
from murmurcast.audits.following import Following
from murmurcast.audits.noise_checks import Check, check_noise, smallest_cut_of_size

NODES, EPOCHS, LINKS, RUNS, DIM = 3, 6, 1, 50, 40
CONFIDENCE = 0.9999


def canaries(seed: int) -> Canaries:
    signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (NODES, RUNS, DIM))
    return Canaries(np.arange(NODES), signs, np.ones(NODES), alone=False)


def honest(seed: int = 0, runs: int = RUNS, dim: int = DIM) -> Following:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((NODES, EPOCHS, LINKS, runs, dim)).astype(np.float32)
    signs = rng.choice([-1, 1], (2, NODES, EPOCHS, runs, dim), p=[0.7, 0.3]).astype(np.int8)
    signs[0, :, 0] = 0  # before the first gradient, data did nothing
    return Following(
        nodes=np.arange(NODES),
        noisy=np.ones((NODES, EPOCHS, LINKS), bool),
        shift=np.ones((NODES, EPOCHS, LINKS)),
        surprises=noise,
        noise=noise,
        bits=rng.integers(0, 8, noise.shape, np.int8),
        moved=signs[0],
        own=signs[1],
        elsewhere=0.1 * rng.standard_normal((1, *noise.shape)).astype(np.float32),
        unexplained=np.zeros((NODES, EPOCHS)),
        published=np.zeros((NODES, runs, dim)),
        published_shift=np.zeros(NODES),
    )


def looked_at(following: Following, seed: int = 0) -> dict[str, Check]:
    return {check.name: check for check in check_noise(following, canaries(seed), CONFIDENCE)}


def refuting(following: Following) -> list[str]:
    return [name for name, check in looked_at(following).items() if check.refutes]


def changed(at: tuple[int, ...], values: Any) -> Following:
    """Honest noise, with other values at a place."""
    following = honest()
    noise = following.noise.copy()
    noise[at] = values
    return following._replace(noise=noise)


@pytest.mark.slow
def test_noise_as_claimed_is_not_accused_and_probabilities_are_those_of_chance() -> None:
    """Over many systems the smallest of all tests is as small as chance makes it, and no smaller."""
    result = [looked_at(honest(seed), seed) for seed in range(60)]
    assert not any(check.refutes for one in result for check in one.values())
    noise_checks_without_tolerance = [_without_tolerance(seed) for seed in range(60)]
    assert min(noise_checks_without_tolerance) > 0.0
    assert np.mean(np.array(noise_checks_without_tolerance) < 0.2) < 0.4


def _without_tolerance(seed: int) -> float:
    """The probability that the size check gives, as if nothing were negligible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_checks, "NEGLIGIBLE", 0.0)
        return noise_checks.check_size(honest(seed), 1e-4).probability


def test_noise_that_is_too_small_somewhere_is_named() -> None:
    noise = honest().noise
    once = changed((1, 4), 0.3 * noise[1, 4])
    assert refuting(once) == ["the size of the noise"]
    assert looked_at(once)["the size of the noise"].worst == "node 1 in epoch 5 has 30.0% of the std"
    always = looked_at(changed((2,), 0.9 * noise[2]))["the size of the noise"]
    assert always.refutes
    assert always.worst.startswith("node 2 has 9")
    assert refuting(changed((2,), 1.2 * noise[2])) == []  # louder is no less private


def test_noise_that_two_nodes_two_epochs_or_all_coordinates_share_is_named() -> None:
    noise = honest().noise
    name = "the independence of the noise"
    nodes = changed((2,), noise[0])
    assert refuting(nodes) == [name]
    assert "node 0" in looked_at(nodes)[name].worst
    assert "node 2" in looked_at(nodes)[name].worst
    in_part = changed((2,), 0.2 * noise[0] + np.sqrt(0.96) * noise[2])
    assert "nodes 0 and 2, all epochs together" in looked_at(in_part)[name].worst
    assert refuting(in_part) == [name]
    epochs = looked_at(changed((1, 5), noise[1, 0]))[name]
    assert epochs.refutes
    assert "node 1 in epoch 1 and of node 1 in epoch 6" in epochs.worst
    moved = looked_at(changed((1, 5), noise[0, 2]))[name]
    assert "node 0 in epoch 3 and of node 1 in epoch 6" in moved.worst
    assert name in refuting(changed((1, 2), noise[1, 2, ..., :1]))


def test_noise_and_bits_that_go_with_data_are_named() -> None:
    name, following = "the blindness of the noise", honest()
    louder = following.noise * np.sqrt(1 + 0.3 * following.moved[:, :, None])
    result = looked_at(following._replace(noise=louder.astype(np.float32)))[name]
    assert result.refutes
    assert "the size of the noise of node" in result.worst
    assert "the sign of its data" in result.worst
    pushed = following._replace(noise=following.noise + np.float32(0.1) * following.own[:, :, None])
    assert "the sign of its model" in looked_at(pushed)[name].worst
    stated = following._replace(bits=(following.bits & ~1) | (canaries(0).signs > 0)[:, None, None].astype(np.int8))
    assert "bit 1 from the end of node" in looked_at(stated)[name].worst
    assert "the sign of its canaries" in looked_at(stated)[name].worst
    late = following.bits.copy()
    late[1, 5] = (late[1, 5] & ~2) | 2 * (following.moved[1, 5] > 0)
    assert looked_at(following._replace(bits=late))[name].worst.startswith("bit 2 from the end of node 1")


def test_a_bit_that_is_always_set_says_nothing() -> None:
    following = honest()
    assert refuting(following._replace(bits=np.full_like(following.bits, 7))) == []


def test_gradients_at_another_point_are_named() -> None:
    following = honest()
    elsewhere = following._replace(
        noise=following.noise + following.elsewhere[0] * (np.arange(NODES) == 1)[:, None, None, None, None]
    )
    result = looked_at(elsewhere)["where gradients are taken"]
    assert result.refutes
    assert result.worst.startswith("node 1 takes its gradients at its own point")
    away = following._replace(elsewhere=following.elsewhere[..., :0, :])
    assert looked_at(away)["where gradients are taken"].tests == 0


def test_where_nothing_is_sent_nothing_is_missed() -> None:
    following = honest()
    noisy, noise = following.noisy.copy(), following.noise.copy()
    noisy[1, 3:], noise[1, 3:] = False, 0.0
    silent = following._replace(noisy=noisy, noise=noise)
    assert refuting(silent) == []
    assert looked_at(silent)["the size of the noise"].tests == noisy.sum() + NODES


def test_the_stated_power_is_exact() -> None:
    cut = smallest_cut_of_size(honest(), CONFIDENCE)
    assert 0.8 < cut < 0.95
    caught = []
    for seed in range(120):
        following = honest(seed)
        noise = following.noise.copy()
        noise[1, 2] *= np.float32(cut)
        caught.append(noise_checks.check_size(following._replace(noise=noise), (1 - CONFIDENCE) / 4).refutes)
    assert 0.82 < np.mean(caught) < 0.98  # 0.9 in truth
    assert smallest_cut_of_size(honest()._replace(noisy=np.zeros((NODES, EPOCHS, LINKS), bool)), CONFIDENCE) == 0.0
