"""The shift that the experimental bound pays for, carried out: it hides the target, and costs what the bound says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from murmurcast._check import FloatArray
from murmurcast.privacy.amplification import KAPPAS
from tests.privacy.test_amplification import Observers, Setting, cost, setting, shifts

React = Callable[[FloatArray, int], FloatArray]  # states [nodes, dim] and world 0 or 1 -> gradients [nodes, dim]
Adversary = Callable[[FloatArray, FloatArray, FloatArray], React]  # states, states apart, mixed points apart


def clipped(vectors: FloatArray, largest: float) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, largest / np.maximum(length, 1e-300)))


def clipped_quadratics(case: Setting, target: int, rng: np.random.Generator) -> Adversary:
    """Any turn of the state, clipped: curvature of both signs. The target's centre depends on its data."""
    nodes, dim = len(case.weights), 3
    turns = np.linalg.qr(rng.standard_normal((nodes, dim, dim)))[0] * case.smoothness[:, None, None]
    centres = rng.standard_normal((2, nodes, dim))
    centres[1] = np.where(np.arange(nodes)[:, None] == target, -50 * centres[0], centres[0])
    return lambda *_: lambda states, world: clipped(np.einsum("kij,kj->ki", turns, states - centres[world]), case.clip)


def saturating(case: Setting, target: int, rng: np.random.Generator) -> Adversary:
    """G tanh(L x/G) in every coordinate; the target's data turns its sign around."""
    nodes, dim = len(case.weights), 3
    height = case.clip / np.sqrt(dim)
    signs = np.repeat(rng.choice([-1.0, 1.0], (1, nodes, 1)), 2, axis=0)
    signs[1, target] *= -1
    offset = rng.standard_normal((nodes, dim))
    slope = case.smoothness[:, None] / height
    return lambda *_: lambda states, world: signs[world] * height * np.tanh(slope * states + offset)


def worst_case(case: Setting, target: int, rng: np.random.Generator) -> Adversary:
    """Nobody's clip wastes anything: every reaction adds to what the node has to hide, and the target moves by 2G."""
    start = rng.standard_normal(3)

    def meet(states: FloatArray, apart: FloatArray, moved: FloatArray) -> React:
        along = np.where((moved * apart).sum(axis=1) < 0, 1.0, -1.0)[:, None]
        length = np.linalg.norm(moved[target])
        way = moved[target] / length if length > 0 else start / np.linalg.norm(start)

        def react(now: FloatArray, world: int) -> FloatArray:
            result = clipped(along * case.smoothness[:, None] * (now - states), case.clip)
            result[target] = (case.clip, -case.clip)[world] * way
            return result

        return react

    return meet


def step(case: Setting, t: int, states: FloatArray, noise: FloatArray, react: React, world: int, ball: float) -> Any:
    """One epoch as the model has it: what the nodes say, their mixed points, and their next states."""
    said = states + noise
    mixed = case.weights @ said
    return said, mixed, clipped(mixed - case.stride[t][:, None] * react(states, world), ball)


def shifted(
    case: Setting, target: int, hidden: list[int], shift: FloatArray, noise: FloatArray, meet: Adversary, ball: float
) -> tuple[FloatArray, list[React]]:
    """The noises of the other world, and the gradients both worlds used."""
    one = other = np.zeros(noise.shape[1:])
    result, reactions = noise.copy(), []
    for t, v in enumerate(shift):
        apart = other - one
        said_apart = v[:, None] * apart[target]
        result[t, hidden] += (said_apart - apart)[hidden]
        reactions.append(meet(one, apart, case.weights @ said_apart))
        one = step(case, t, one, noise[t], reactions[-1], 0, ball)[2]
        other = step(case, t, other, result[t], reactions[-1], 1, ball)[2]
    return result, reactions


def view(
    case: Setting, observers: Observers, noise: FloatArray, reactions: list[React], world: int, ball: float
) -> FloatArray:
    """All that the observers say and hear."""
    states, seen = np.zeros(noise.shape[1:]), []
    for t, react in enumerate(reactions):
        said, mixed, states = step(case, t, states, noise[t], react, world, ball)
        seen.append(np.concatenate([said[list(observers)], mixed[list(observers)]]))
    return np.array(seen)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("ball", [np.inf, 4.0])
@pytest.mark.parametrize("make", [clipped_quadratics, saturating, worst_case])
@pytest.mark.parametrize("seed", range(5))
def test_the_shift_hides_the_target_and_costs_no_more_than_the_bound(
    seed: int, make: Callable[..., Adversary], ball: float
) -> None:
    rng = np.random.default_rng([seed, 3])
    case = setting(seed, epochs=3 + seed, nodes=4 + seed % 3)
    for observers in [(0,), (1, 3)]:
        hidden, bound = case.hidden(observers), case.bound(observers)
        for target in hidden:
            noise = case.noise[:, :, None] * rng.standard_normal((*case.noise.shape, 3))
            energies = []
            for kappa in (None, *KAPPAS):
                shift = shifts(case, observers, target, kappa)
                moved, reactions = shifted(case, target, hidden, shift, noise, make(case, target, rng), ball)
                seen = [view(case, observers, draw, reactions, w, ball) for w, draw in ((0, noise), (1, moved))]
                np.testing.assert_allclose(seen[1], seen[0], rtol=0, atol=1e-9)
                energies.append(float(np.sum(((moved - noise) / case.noise[:, :, None]) ** 2)))
                assert energies[-1] <= cost(case, observers, target, shift) * (1 + 1e-9) + 1e-15
            assert min(energies) <= bound[target] ** 2 * (1 + 1e-9) + 1e-15


def test_the_shift_and_every_term_of_the_bound_are_needed() -> None:
    case, rng = setting(1, epochs=6, nodes=5), np.random.default_rng(4)
    noise = case.noise[:, :, None] * rng.standard_normal((*case.noise.shape, 3))
    used, without_reaction = [], []
    for target in (1, 2, 3, 4):
        shift = shifts(case, (0,), target, 1.0)
        meet = worst_case(case, target, rng)
        moved, reactions = shifted(case, target, [1, 2, 3, 4], shift, noise, meet, np.inf)
        plain = [view(case, (0,), noise, reactions, world, np.inf) for world in (0, 1)]
        assert np.abs(plain[1] - plain[0]).max() > 1e-3
        energy = np.sum(((moved - noise) / case.noise[:, :, None]) ** 2)
        used.append(energy / cost(case, (0,), target, shift))
        without_reaction.append(energy / cost(case._replace(smoothness=np.zeros(5)), (0,), target, shift))
    assert max(used) > 0.8
    assert max(without_reaction) > 1.01
